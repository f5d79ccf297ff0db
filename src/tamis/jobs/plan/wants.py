"""Wants for a variable under lossy compression, as people write them: ``abs=0.1,psnr=80``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.accuracy.requirement import EACH_VALUE, FLAGS, WHOLE, Requirement, Vocabulary, relative_of, share, text_of
from tamis.errors import ParameterError
from tamis.jobs.recipes.names import split_recipe, units_along

if TYPE_CHECKING:
    from tamis.filters.base import Parameter
    from tamis.stores.protocols import Store, StoredArray

LOSSLESS = "lossless"

KINDS: Mapping[str, Parameter] = {
    **EACH_VALUE,
    "information": share("share of the real information in the bits"),
    **WHOLE,
}
"""What can be asked for, with its meaning and allowed values."""

_VOCABULARY = Vocabulary("a want", KINDS, FLAGS, alone=(LOSSLESS, "recommended"))

ABSOLUTE = ("abs", "range", "std")
"""Wants that come to a largest absolute error."""

RELATIVE = ("rel", "digits", "bits", "information")
"""Wants about each value relative to itself, which rounding bounds and zfp does not."""


@dataclass(frozen=True, slots=True)
class Want:
    """Limits that must all hold; if there are none, the bits stay unchanged."""

    # Values by name: see `KINDS`; True for words without a number
    limits: Mapping[str, float | bool] = field(default_factory=dict)

    @property
    def is_lossless(self) -> bool:
        """True if no bit may change: nothing allows an error."""
        return all(name in FLAGS for name in self.limits)

    @property
    def relative(self) -> float | None:
        """The largest error relative to a value, by ``rel``, ``digits`` and ``bits``; None if none is given."""
        return relative_of(self.limits)

    def required(self, absolute: float | None = None, *, measures: bool = False) -> Requirement | None:
        """Return what repack must prove for each value; None if the want has no such limit."""
        known = (*EACH_VALUE, *FLAGS, *(WHOLE if measures else ()))
        words = {name: value for name, value in self.limits.items() if name in known}
        if absolute is not None:
            words = {name: value for name, value in words.items() if name not in ABSOLUTE} | {"abs": absolute}
        return Requirement(**words) if words else None  # type: ignore[arg-type]

    def __str__(self) -> str:
        return text_of(self.limits) or LOSSLESS


RECOMMENDED = Want({"recommended": True})
"""Whatever is recommended for a variable of its name: see `tamis.jobs.plan.wants`."""


def as_want(value: object) -> Want:
    """Return a want from its text, such as ``abs=0.1,psnr=80`` or ``lossless``, or from values by name."""
    if isinstance(value, Want):
        return value
    if isinstance(value, str):
        if value.strip() == str(RECOMMENDED):
            return RECOMMENDED
        return Want() if value.strip() == LOSSLESS else Want(_VOCABULARY.parsed(value))
    if isinstance(value, Mapping):
        return Want(_VOCABULARY.checked(value))
    raise ParameterError(f"expected a want such as 'abs=0.1' or {{'abs': 0.1}}, got {value!r}")


def parse_wants(texts: Iterable[str]) -> list[tuple[str, Want]]:
    """Return name and want of texts such as ``T*:abs=0.1``."""
    pairs = [split_recipe(text, "NAME:WANT", "TS:abs=0.1") for text in texts]
    return [(name, as_want(want)) for name, want in pairs]


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``16MB``, in units of powers of 1000."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|kB|MB|GB)", text)
    if match is None:
        raise ParameterError(f"expected a size such as 16MB, a number with B, kB, MB or GB, got {text[:40]!r}")
    return int(float(match[1]) * 1000 ** ("B", "kB", "MB", "GB").index(match[2]))


_PRESSURE_UNITS = frozenset(("pa", "hpa", "mb", "mbar", "millibar", "millibars"))
_WORDS = {
    "max-pointwise-absolute-error-bound": "abs",
    "max-pointwise-relative-error-bound": "rel",
    "max-pointwise-range-relative-error-bound": "range",
    "mean-absolute-error-bound": "rmse",
    "mean-relative-error-bound": "rel",
}
"""Requirements with a number that is the want's, or implies it."""
_LIMITS = "data-limits"
_KEPT_ANYWAY = ("missing-value",)
_COMBINED = "all"


def recommended_want(store: Store, array: StoredArray, name: str) -> tuple[Want, str]:
    """Return the recommended want for a variable, lossless if there is none, and a sentence about it."""
    try:
        from compression_recommendations import Recommendations
    except ImportError as error:
        raise ParameterError(
            "expected the package compression-recommendations, found none: pip install 'tamis[plan]'"
        ) from error
    for markers in _markers(store, array, name):
        try:
            recommendation = Recommendations.provide.search(markers=markers)
        except KeyError:
            continue
        by = ", ".join(markers.values())
        return _want([requirement.get_config() for requirement in recommendation], by)
    return Want(), f"nothing is recommended for {name}, so it stays lossless"


def _markers(store: Store, array: StoredArray, name: str) -> Iterable[dict[str, str]]:
    """Yield the names by which the package may know a variable: first its standard name, then its own."""
    units = {unit.lower() for unit in units_along(store, array.path).values()}  # of coordinates along its dimensions
    level = {"level-kind": "single" if units.isdisjoint(_PRESSURE_UNITS) else "pressure"}
    standard_name = array.attributes.get("standard_name", "")
    if isinstance(standard_name, str) and standard_name:
        yield {"cf-standard-name": standard_name} | level
    yield {"cf-short-name": name.lower()} | level


def _want(requirements: Iterable[Mapping[str, Any]], by: str) -> tuple[Want, str]:
    limits: dict[str, float | bool] = {}
    for requirement in _flat(requirements):
        kind, value = str(requirement["kind"]), requirement.get("value")
        if kind in _WORDS and value:
            limits[_WORDS[kind]] = min(float(value), float(limits.get(_WORDS[kind], math.inf)))
        elif kind == "mean-range-relative-error-bound" and value:
            limits["psnr"] = max(-20 * math.log10(value), float(limits.get("psnr", 0.0)))
        elif kind == _LIMITS and requirement.get("minimum") == 0 and requirement.get("maximum") is None:
            limits["sign"] = True  # that values are not negative holds without attributes
        elif kind not in _KEPT_ANYWAY:
            return Want(), f"stays lossless: plan cannot apply what is recommended for {by}, {dict(requirement)}"
    return Want(limits), f"recommended for {by} by compression-recommendations"


def _flat(requirements: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for requirement in requirements:
        if requirement["kind"] == _COMBINED:
            yield from _flat(requirement["requirements"])
        else:
            yield requirement
