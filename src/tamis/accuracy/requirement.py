"""Requirements on the values of a dataset, however they are stored: ``abs=0.1,limits``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from tamis.errors import ParameterError, located
from tamis.filters.base import Parameter
from tamis.formatting import did_you_mean

Limits = dict[str, float | bool]
"""Numbers by word, and True for each word that stands alone."""

_TINY, _LARGE = sys.float_info.min, sys.float_info.max
_SHOWN = 80


def share(about: str) -> Parameter:
    """Return a parameter for a share: more than 0, at most 1."""
    return Parameter(about, _TINY, 1.0, bounds="more than 0, at most 1", real=True)


def positive(about: str) -> Parameter:
    """Return a parameter for any number above 0."""
    return Parameter(about, _TINY, _LARGE, bounds="more than 0", real=True)


EACH_VALUE: Mapping[str, Parameter] = {
    "abs": positive("largest absolute error, in units of the variable"),
    "rel": share("largest error relative to a value"),
    "range": share("largest absolute error relative to the range of the values"),
    "std": positive("largest absolute error relative to the standard deviation of the values"),
    "digits": Parameter("significant decimal digits", 1, 15),
    "bits": Parameter("bits of the significand after the implicit first one", 1, 52),
}
"""Words with a number about each value."""

FLAGS: Mapping[str, str] = {
    "limits": "valid values stay on their side of valid_min, valid_max, valid_range",
    "sign": "no value changes its sign, and none that is not negative becomes negative",
    "zeros": "zeros stay zeros, and no other value becomes zero",
}
"""Words without a number about each value."""

WHOLE: Mapping[str, Parameter] = {
    "rmse": positive("root of the mean square error, in units of the variable"),
    "psnr": positive("least peak signal-to-noise ratio, range over rmse, in dB"),
    "dssim": share("least data structural similarity of each field"),
    "corr": share("least correlation with the source, Pearson's r"),
    "ks": share("least probability by the Kolmogorov-Smirnov test, for the number of values of the dataset"),
    "spectrum": positive("largest relative difference of mean power along the last axis, from 4 values on"),
}
"""Words with a number about a whole dataset."""


RELATIVE_WORDS = ("rel", "digits", "bits")
"""Words that `relative_of` reads."""


def relative_of(limits: Mapping[str, float | bool | None]) -> float | None:
    """Return the largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
    bounds = []
    if (rel := limits.get("rel")) is not None:
        bounds.append(float(rel))
    if (digits := limits.get("digits")) is not None:
        bounds.append(5.0 / 10.0**digits)  # half a unit of the last digit, at most
    if (bits := limits.get("bits")) is not None:
        bounds.append(2.0 ** -(bits + 1))
    return min(bounds, default=None)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that a list such as ``abs=0.1,sign`` may have."""

    numbers: Mapping[str, Parameter]  # Words with a number
    flags: Mapping[str, str] = field(default_factory=dict)  # Words without a number, with their meaning
    # Words that replace a whole list. They cannot be part of one, and the caller handles them.
    alone: tuple[str, ...] = ()

    def parsed(self, text: str) -> Limits:
        """Return numbers and flags of a text."""
        limits: dict[str, object] = {}
        for part in text.split(","):
            name, equals, number = (piece.strip() for piece in part.partition("="))
            self._check_word(name, text)
            if name in limits:
                raise ParameterError(f"{name} is given twice in {text[:_SHOWN]!r}")
            if name in self.flags:
                if equals:
                    raise ParameterError(f"{name} takes no number, got {part.strip()!r} in {text[:_SHOWN]!r}")
                limits[name] = True
                continue
            if not equals:
                raise ParameterError(f"expected {name}=VALUE in {text[:_SHOWN]!r}, got {part.strip()!r}")
            limits[name] = self._number(name, number, text)
        return self.checked(limits)

    def checked(self, limits: Mapping[str, object]) -> Limits:
        """Return numbers and flags by word, without flags that are False."""
        result: Limits = {}
        for name, value in limits.items():
            self._check_word(name, limits)
            if name not in self.flags:
                result[name] = self.numbers[name].checked(name, value)
            elif not isinstance(value, bool):
                raise ParameterError(f"expected True or False for {name}, got {name}={value!r}")
            elif value:
                result[name] = True
        return result

    def _check_word(self, name: object, source: object) -> None:
        """Raise ParameterError if a list cannot have a word."""
        if name in self.numbers or name in self.flags:
            return
        if name in self.alone:
            raise ParameterError(f"{name} cannot be combined with others, got {source!r}")
        words = (*self.numbers, *self.flags, *self.alone)
        *first, last = words
        nearest = did_you_mean(str(name), words)
        raise ParameterError(
            f"expected a requirement, one of {', '.join(first)} or {last}, got {str(name)[:40]!r}{nearest}"
        )

    def _number(self, name: str, text: str, whole: str) -> int | float:
        try:
            number = float(text)
        except ValueError:
            raise ParameterError(f"expected a number for {name} in {whole[:_SHOWN]!r}, got {text[:40]!r}") from None
        return int(number) if number.is_integer() and not self.numbers[name].real else number


def text_of(limits: Mapping[str, float | bool]) -> str:
    """Return the text that `Vocabulary.parsed` reads."""
    return ",".join(name if value is True else f"{name}={value!r}" for name, value in limits.items())


VOCABULARY = Vocabulary({**EACH_VALUE, **WHOLE}, FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Requirements on values after lossy compression, all of which must hold. Missing values never change.

    Examples
    --------
    >>> Requirement.parse("abs=0.1, limits")
    Requirement.parse('abs=0.1,limits')
    """

    # Largest absolute error, in units of the variable, and largest error relative to a value
    abs: float | None = None
    rel: float | None = None
    # Largest absolute error relative to the range, and to the standard deviation, of all valid values
    range: float | None = None
    std: float | None = None
    # A relative error as significant decimal digits, or bits of the significand after the implicit first one
    digits: int | None = None
    bits: int | None = None
    limits: bool = False  # Whether valid values stay on their side of ``valid_min``, ``valid_max``, ``valid_range``
    # Whether no value changes its sign. None that is not negative becomes negative; any may become zero.
    sign: bool = False
    zeros: bool = False  # Whether zeros stay zeros, and no other value becomes zero
    # Of the whole dataset: largest root mean square error in units of the variable; least peak signal-to-noise ratio
    # in dB, Pearson correlation with the source, data structural similarity of each field, and probability of the
    # Kolmogorov-Smirnov test; largest relative difference of mean power along the last axis
    rmse: float | None = None
    psnr: float | None = None
    corr: float | None = None
    dssim: float | None = None
    ks: float | None = None
    spectrum: float | None = None

    def __post_init__(self) -> None:
        """Check all values."""
        checked = VOCABULARY.checked(self.given)
        if not checked:
            raise ParameterError("expected a requirement such as 'abs=0.1', got none")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a text such as ``abs=0.1,limits``."""
        return cls(**VOCABULARY.parsed(text))  # type: ignore[arg-type]

    @property
    def given(self) -> Limits:
        """The requirements, by word."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in values if value is not None and value is not False}

    def joined(self, other: Requirement) -> Requirement:
        """Return the requirements of both; if both have a word, this one's number is used."""
        return Requirement(**{**other.given, **self.given})  # type: ignore[arg-type]

    @property
    def relative(self) -> float | None:
        """The largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
        return relative_of(self.given)

    @property
    def measures(self) -> Mapping[str, float]:
        """The requirements on the whole dataset, by word."""
        return {name: value for name, value in self.given.items() if name in WHOLE}

    def __str__(self) -> str:
        return text_of(self.given)

    def __repr__(self) -> str:
        return f"Requirement.parse({str(self)!r})"


def as_requirement(value: object) -> Requirement:
    """Return a requirement from an object, its text, or values by word."""
    if isinstance(value, Requirement):
        return value
    if isinstance(value, str):
        return Requirement.parse(value)
    if isinstance(value, Mapping):
        return Requirement(**VOCABULARY.checked(value))  # type: ignore[arg-type]
    raise ParameterError(f"expected a requirement such as 'abs=0.1' or {{'abs': 0.1}}, got {value!r}")


Requirements = Mapping[str, Requirement | Mapping[str, object] | str]
"""Requirements by name or pattern of datasets, as objects, by word, or as text."""


def as_requirements(values: object) -> dict[str, Requirement]:
    """Return requirements by name."""
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise ParameterError(f"expected requirements by name such as {{'TS': 'abs=0.1'}}, got {values!r}")
    result = {}
    for name, value in values.items():
        with located(f"{name}: require", dataset=name):
            result[name] = as_requirement(value)
    return result
