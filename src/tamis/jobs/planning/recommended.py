"""What the package compression-recommendations asks for, by names and levels of variables, as wants.

Its requirements are those of a community of weather and climate scientists. Bounds of mean errors become bounds that
imply them: of the root mean square, and of each value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tamis.errors import ParameterError
from tamis.jobs.planning.wants import Want
from tamis.jobs.recipes.dimension_chunks import units_along
from tamis.store.array import Store, StoredArray

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
    """Return what is recommended for a variable, without loss if nothing is, and a sentence about it.

    Parameters
    ----------
    store, array
        The variable, whose ``standard_name`` and level decide, or else its name.
    name
        Its name without groups.

    Raises
    ------
    ParameterError
        If the package is not installed; names the extra.
    """
    try:
        from compression_recommendations import Recommendations
    except ImportError as error:
        raise ParameterError(
            "expected the package compression-recommendations, found none: pip install 'tamis[plan]'"
        ) from error
    for markers in _markers(store, array, name):
        try:
            found = Recommendations.provide.search(markers=markers)
        except KeyError:
            continue
        by = ", ".join(markers.values())
        return _want([requirement.get_config() for requirement in found], by)
    return Want(), f"nothing is recommended for {name}, so that it stays without loss"


def _markers(store: Store, array: StoredArray, name: str) -> Iterable[dict[str, str]]:
    """Yield how the package may know a variable: by its standard name first, then by its own."""
    level = {"level-kind": "pressure" if _has_pressure(store, array) else "single"}
    standard_name = array.attributes.get("standard_name", "")
    if isinstance(standard_name, str) and standard_name:
        yield {"cf-standard-name": standard_name} | level
    yield {"cf-short-name": name.lower()} | level


def _has_pressure(store: Store, array: StoredArray) -> bool:
    """Return whether a coordinate along one of the dimensions has units of pressure."""
    return any(units.lower() in _PRESSURE_UNITS for units in units_along(store, array.path).values())


def _want(requirements: Iterable[Mapping[str, Any]], by: str) -> tuple[Want, str]:
    limits: dict[str, float | bool] = {}
    for requirement in _flat(requirements):
        kind, value = str(requirement["kind"]), requirement.get("value")
        if kind in _WORDS and value:
            limits[_WORDS[kind]] = min(float(value), float(limits.get(_WORDS[kind], math.inf)))
        elif kind == "mean-range-relative-error-bound" and value:
            limits["psnr"] = max(-20 * math.log10(value), float(limits.get("psnr", 0.0)))
        elif kind == _LIMITS and _is_of_sign(requirement):
            limits["sign"] = True
        elif kind not in _KEPT_ANYWAY:
            return Want(), f"stays without loss: plan cannot keep what is recommended for {by}, {dict(requirement)}"
    return Want(limits), f"recommended for {by} by compression-recommendations"


def _is_of_sign(requirement: Mapping[str, Any]) -> bool:
    """Return whether limits are that values are not negative, the only ones that hold without attributes."""
    return requirement.get("minimum") == 0 and requirement.get("maximum") is None


def _flat(requirements: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for requirement in requirements:
        if requirement["kind"] == _COMBINED:
            yield from _flat(requirement["requirements"])
        else:
            yield requirement
