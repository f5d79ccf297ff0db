"""What a variable must keep after lossy compression, as people ask for it: ``abs=0.1,psnr=80``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tamis.errors import ParameterError
from tamis.filters.base import Parameter
from tamis.formatting import did_you_mean
from tamis.jobs.recipe import split_recipe

LOSSLESS = "lossless"

_TINY, _LARGE = sys.float_info.min, sys.float_info.max


def _share(about: str, bounds: str) -> Parameter:
    return Parameter(about, _TINY, 1.0, bounds=bounds, real=True)


def _size(about: str) -> Parameter:
    return Parameter(about, _TINY, _LARGE, bounds="more than 0", real=True)


KINDS: Mapping[str, Parameter] = {
    "abs": _size("largest absolute error, in units of the variable"),
    "rel": _share("largest error relative to a value", "more than 0, at most 1"),
    "range": _share("largest absolute error relative to the range of the values", "more than 0, at most 1"),
    "digits": Parameter("significant decimal digits", 1, 15),
    "bits": Parameter("bits of the significand after the implicit first one", 1, 52),
    "information": _share("share of the real information in the bits", "more than 0, at most 1"),
    "rmse": _size("root of the mean square error, in units of the variable"),
    "psnr": _size("least peak signal-to-noise ratio, range over rmse, in dB"),
    "dssim": _share("least data structural similarity of each field", "more than 0, at most 1"),
    "corr": _share("least correlation with the source, Pearson's r", "more than 0, at most 1"),
}
"""What can be asked for, with its meaning and allowed values."""

RELATIVE = ("rel", "digits", "bits", "information")
"""Wants about each value relative to itself, which rounding bounds and zfp does not."""


@dataclass(frozen=True, slots=True)
class Want:
    """What must hold together; nothing but bits that stay as they are, if `limits` is empty.

    Parameters
    ----------
    limits
        Values by name: see `KINDS`.
    """

    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_lossless(self) -> bool:
        """True if no bit may change."""
        return not self.limits

    @property
    def relative(self) -> float | None:
        """The largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
        bounds = []
        if "rel" in self.limits:
            bounds.append(self.limits["rel"])
        if "digits" in self.limits:
            bounds.append(5.0 / 10.0 ** self.limits["digits"])  # half a unit of the last digit, at most
        if "bits" in self.limits:
            bounds.append(2.0 ** -(self.limits["bits"] + 1))
        return min(bounds, default=None)

    def __str__(self) -> str:
        return ",".join(f"{name}={value!r}" for name, value in self.limits.items()) or LOSSLESS


def as_want(value: object) -> Want:
    """Return a want from its text, such as ``abs=0.1,psnr=80`` or ``lossless``, or from values by name.

    Raises
    ------
    ParameterError
        If a name is unknown, or a value is not allowed.
    """
    if isinstance(value, Want):
        return value
    if isinstance(value, str):
        return _parsed(value)
    if isinstance(value, Mapping):
        return Want({_known(name, value): KINDS[name].checked(name, limit) for name, limit in value.items()})  # type: ignore[misc]
    raise ParameterError(f"expected a want such as 'abs=0.1' or {{'abs': 0.1}}, got {value!r}")


def _parsed(text: str) -> Want:
    if text.strip() == LOSSLESS:
        return Want()
    limits: dict[str, object] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        _known(name, text)
        if not equals:
            raise ParameterError(f"expected {name}=VALUE in {text[:80]!r}, got {part.strip()!r}")
        if name in limits:
            raise ParameterError(f"expected {name} once, got it twice in {text[:80]!r}")
        limits[name] = _number(name, number, text)
    return as_want(limits)


def _known(name: object, source: object) -> str:
    if name in KINDS:
        return str(name)
    if name == LOSSLESS:
        raise ParameterError(f"expected lossless alone, got it with others in {source!r}: nothing may change then")
    raise ParameterError(
        f"expected {', '.join(KINDS)} or {LOSSLESS}, got {str(name)[:40]!r}{did_you_mean(str(name), KINDS)}"
    )


def _number(name: str, text: str, whole: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise ParameterError(f"expected a number for {name} in {whole[:80]!r}, got {text[:40]!r}") from None
    return int(number) if number.is_integer() and not KINDS[name].real else number


def parse_wants(texts: Iterable[str]) -> list[tuple[str, Want]]:
    """Return name and want of texts such as ``T*:abs=0.1``.

    Raises
    ------
    ParameterError
        If there is no name or no want, or the want is wrong.
    """
    pairs = [split_recipe(text, "NAME:WANT", "TS:abs=0.1") for text in texts]
    return [(name, as_want(want)) for name, want in pairs]


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``16MB``, in units of powers of 1000.

    Raises
    ------
    ParameterError
        If the text is no size.
    """
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|kB|MB|GB)", text)
    if match is None:
        raise ParameterError(f"expected a size such as 16MB, a number with B, kB, MB or GB, got {text[:40]!r}")
    return int(float(match[1]) * 1000 ** ("B", "kB", "MB", "GB").index(match[2]))
