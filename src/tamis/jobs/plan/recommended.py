"""Requirements that are recommended for variables, by CF standard name or their names in CMIP, CESM and at ECMWF."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.jobs.plan.requirements import PlanRequirement
from tamis.jobs.recipes import units_along
from tamis.optional import optional

if TYPE_CHECKING:
    from tamis.stores import Store, StoredArray

_SOURCE = "compression-recommendations, doi:10.5281/zenodo.22761209"
"""The package, whose figures are those of a community; it lists them by names of ECMWF and a few of CF."""

_PRESSURE_UNITS = frozenset(("pa", "hpa", "mb", "mbar", "millibar", "millibars"))

_TEMPERATURE = {"K": 1.0, "kelvin": 1.0, "degC": 1.0, "degreesC": 1.0, "deg_C": 1.0, "degree_C": 1.0, "Celsius": 1.0}
_TEMPERATURE |= {"degrees_C": 1.0, "celsius": 1.0, "C": 1.0, "degree_Celsius": 1.0, "degrees_Celsius": 1.0}
_PRESSURE = {"Pa": 1.0, "hPa": 100.0, "mb": 100.0, "mbar": 100.0, "millibars": 100.0}
_SPEED = {"m s-1": 1.0, "m/s": 1.0, "m s**-1": 1.0}
_FLUX = {"W m-2": 1.0, "W/m2": 1.0, "W m**-2": 1.0, "W/m^2": 1.0}
_CONTENT = {"kg m-2": 1.0, "kg/m2": 1.0, "kg m**-2": 1.0}
_GEOPOTENTIAL = {"m2 s-2": 1.0, "m**2 s**-2": 1.0, "m": 9.80665, "gpm": 9.80665}
_OMEGA = {"Pa s-1": 1.0, "Pa/s": 1.0, "Pa s**-1": 1.0}
_ANY: Mapping[str, float] = {}


class Known(NamedTuple):
    """A quantity: the name by which the package has its figures, and the names of others for it."""

    name: str  # At ECMWF
    level: str  # "single" or "pressure"
    # Units that a variable may have, with their size in those of the figures; empty: the figures are relative
    units: Mapping[str, float]
    standard_names: tuple[str, ...]
    cmip: tuple[str, ...]  # As in https://github.com/PCMDI/cmip6-cmor-tables
    cesm: tuple[str, ...] = ()  # As https://github.com/E3SM-Project/e3sm_to_cmip converts them to those of CMIP


KNOWN = (
    Known("t2m", "single", _TEMPERATURE, ("air_temperature",), ("tas",), ("TREFHT",)),
    Known("mx2t", "single", _TEMPERATURE, (), ("tasmax",), ("TREFHTMX", "TREFMXAV")),
    Known("mn2t", "single", _TEMPERATURE, (), ("tasmin",), ("TREFHTMN", "TREFMNAV")),
    Known("skt", "single", _TEMPERATURE, ("surface_temperature",), ("ts",), ("TS",)),
    Known("sst", "single", _TEMPERATURE, ("sea_surface_temperature",), ("tos",), ("SST",)),
    Known("msl", "single", _PRESSURE, ("air_pressure_at_mean_sea_level",), ("psl",), ("PSL",)),
    Known("sp", "single", _PRESSURE, ("surface_air_pressure",), ("ps",), ("PS",)),
    Known("u10", "single", _SPEED, ("eastward_wind",), ("uas",)),
    Known("v10", "single", _SPEED, ("northward_wind",), ("vas",)),
    Known("avg_tprate", "single", _ANY, ("precipitation_flux",), ("pr",), ("PRECT",)),
    Known("avg_ie", "single", _ANY, ("water_evapotranspiration_flux",), ("evspsbl",), ("QFLX",)),
    Known("avg_sdswrf", "single", _FLUX, ("surface_downwelling_shortwave_flux_in_air",), ("rsds",), ("FSDS",)),
    Known("avg_sdlwrf", "single", _FLUX, ("surface_downwelling_longwave_flux_in_air",), ("rlds",), ("FLDS",)),
    Known("avg_tnlwrf", "single", _FLUX, ("toa_outgoing_longwave_flux",), ("rlut",), ("FLUT",)),
    Known("avg_slhtf", "single", _FLUX, ("surface_upward_latent_heat_flux",), ("hfls",), ("LHFLX",)),
    Known("avg_ishf", "single", _FLUX, ("surface_upward_sensible_heat_flux",), ("hfss",), ("SHFLX",)),
    Known("tcwv", "single", _CONTENT, ("atmosphere_mass_content_of_water_vapor",), ("prw",), ("TMQ",)),
    Known("t", "pressure", _TEMPERATURE, ("air_temperature",), ("ta",), ("T",)),
    Known("u", "pressure", _SPEED, ("eastward_wind",), ("ua",), ("U",)),
    Known("v", "pressure", _SPEED, ("northward_wind",), ("va",), ("V",)),
    Known("q", "pressure", _ANY, ("specific_humidity",), ("hus",), ("Q",)),
    Known("r", "pressure", _ANY, ("relative_humidity",), ("hur",), ("RELHUM",)),
    Known("w", "pressure", _OMEGA, ("lagrangian_tendency_of_air_pressure",), ("wap",), ("OMEGA",)),
    Known("z", "pressure", _GEOPOTENTIAL, ("geopotential", "geopotential_height"), ("zg",), ("Z3",)),
)
"""Quantities whose names and units agree with those of the package."""

_WORDS = {
    "max-pointwise-absolute-error-bound": "abs",
    "max-pointwise-relative-error-bound": "rel",
    "max-pointwise-range-relative-error-bound": "range",
    "mean-absolute-error-bound": "rmse",
    "mean-relative-error-bound": "rel",
}
"""Published requirements with a number that is plan's, or implies it."""
_IN_UNITS = ("abs", "rmse")
"""Words whose number is in units of the variable."""
_LIMITS = "data-limits"
_KEPT_ANYWAY = ("missing-value",)
_COMBINED = "all"


class Recommended(NamedTuple):
    """What is recommended for a variable."""

    requirement: PlanRequirement | None  # None if nothing is published that applies: then its own noise decides
    note: str


def recommended_requirement(store: Store, array: StoredArray, name: str) -> Recommended:
    """Return the recommended requirement for a variable, and a sentence about where it comes from."""
    recommendations = optional(
        "compression_recommendations",
        "the package compression-recommendations is not installed: pip install 'tamis[plan]'",
    ).Recommendations
    pressure = {unit.lower() for unit in units_along(store, array.path).values()} & _PRESSURE_UNITS
    level = "pressure" if pressure else "single"
    standard_name, units = (_text(array, attribute) for attribute in ("standard_name", "units"))
    for kind, value, known in _searches(standard_name, name, level):
        try:
            found = recommendations.provide.search(markers={kind: value, "level-kind": level})
        except KeyError:
            continue
        limits = [requirement.get_config() for requirement in found]
        by = f"{name} (there {value}, {level} level)"
        size = 1.0 if known is None else known.units.get(units)
        if size is None and _needs_units(limits):
            return Recommended(
                None, f"the figure that {_SOURCE} has for {by} does not apply to values in {units or 'unknown units'}"
            )
        requirement, note = requirement_of(limits, by, size or 1.0)
        if known is None and _needs_units(limits) and not requirement.is_lossless:
            note += f"; that figure is in ECMWF's units: check that {units or 'yours'} is the same"
        return Recommended(requirement, note)
    return Recommended(None, f"no figure is published for {standard_name or name}")


def _text(array: StoredArray, attribute: str) -> str:
    value = array.attributes.get(attribute, "")
    return value.strip() if isinstance(value, str) else ""


def _searches(standard_name: str, name: str, level: str) -> Iterator[tuple[str, str, Known | None]]:
    """Yield names by which the package may know a variable, with their kind, and what is known of the quantity.

    A standard name says more than a variable's own name, which others may use for something else.
    """
    for known in KNOWN:
        is_named = not standard_name and name in (*known.cmip, *known.cesm)
        if known.level == level and (standard_name in known.standard_names or is_named):
            yield "cf-short-name", known.name, known
    if standard_name:
        yield "cf-standard-name", standard_name, None
    for known in KNOWN:
        if known.level == level and name in (*known.cmip, *known.cesm):
            yield "cf-short-name", known.name, known
    yield "cf-short-name", name.lower(), None


def _needs_units(requirements: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a figure is in units of the variable."""
    return any(_WORDS.get(str(requirement["kind"])) in _IN_UNITS for requirement in _flat(requirements))


def requirement_of(
    requirements: Iterable[Mapping[str, Any]], by: str, size: float = 1.0
) -> tuple[PlanRequirement, str]:
    """Return the requirement that published ones come to, and a sentence about it.

    A unit of the variable has a size in theirs. The requirement is lossless if one of them cannot be applied.
    """
    limits: dict[str, float | bool] = {}
    for requirement in _flat(requirements):
        kind, value = str(requirement["kind"]), requirement.get("value")
        if kind in _WORDS and value:
            word = _WORDS[kind]
            number = float(f"{value / size:.6g}") if word in _IN_UNITS else float(value)
            limits[word] = min(number, float(limits.get(word, math.inf)))
        elif kind == "mean-range-relative-error-bound" and value:
            limits["psnr"] = max(-20 * math.log10(value), float(limits.get("psnr", 0.0)))
        elif kind == _LIMITS and requirement.get("minimum") == 0 and requirement.get("maximum") is None:
            limits["sign"] = True  # that values are not negative holds without attributes
        elif kind not in _KEPT_ANYWAY:
            return (
                PlanRequirement(),
                f"stays lossless: plan cannot apply what is recommended for {by}, {dict(requirement)}",
            )
    return PlanRequirement(limits), f"recommended for {by} by {_SOURCE}"


def _flat(requirements: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for requirement in requirements:
        if requirement["kind"] == _COMBINED:
            yield from _flat(requirement["requirements"])
        else:
            yield requirement
