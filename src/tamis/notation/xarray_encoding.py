"""Filters in the ``encoding`` of xarray's ``to_netcdf``, which depends on the engine.

Each engine has a fixed place for fletcher32, whatever the pipeline: h5netcdf last, netcdf4 first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.filters import Blosc, Bzip2, Deflate, Filter, Fletcher32, Scaleoffset, Shuffle, Stage, Szip, Zstd
from tamis.notation.h5py_keywords import keywords
from tamis.notation.text import Chain, refuse_other_flags

if TYPE_CHECKING:
    from tamis.rounding import Rounding

ENGINES = ("h5netcdf", "netcdf4")
"""Engines of xarray that write filters."""

_OFF = {"compression": None, "shuffle": False, "fletcher32": False}
_BLOSC_SHUFFLES = {"none": 0, "byte": 1, "bit": 2}


def encoding_keywords(chain: Chain, engine: str, rounding: Rounding | None = None) -> dict[str, Any]:
    """Write a pipeline as the encoding of a variable; other filters are turned off."""
    stages = tuple(chain)
    if rounding is not None and not (engine == "netcdf4" and rounding.quantize_mode):
        other = "engine='netcdf4' can; or " if rounding.quantize_mode else ""
        raise ParameterError(
            f"the engine {engine} cannot round by {rounding}: {other}round the values before,"
            f" tamis.{rounding!r}.round(values, missing_values=…), and set the attribute"
            f" {rounding.attribute}={rounding.number}; ds.tamis.to_netcdf rounds while it writes, and tamis repack a"
            " saved file"
        )
    try:
        return _encoding(stages, engine) | (
            {} if rounding is None else {"quantize_mode": rounding.quantize_mode, "significant_digits": rounding.number}
        )
    except ParameterError as error:
        other = "" if engine == "h5netcdf" else "engine='h5netcdf' supports more filters; "
        raise ParameterError(
            f"the engine {engine} cannot write {_text(stages)}: {error}: {_simpler_recipe(stages, engine)}{other}tamis"
            " repack stores a saved file with any filters"
        ) from error


def _encoding(stages: tuple[Stage, ...], engine: str) -> dict[str, Any]:
    return _OFF | (_h5netcdf(stages) if engine == "h5netcdf" else _netcdf4(stages))


def _simpler_recipe(stages: tuple[Stage, ...], engine: str) -> str:
    """Return advice for a recipe of the first filter and checksums alone; empty if the engine cannot write that."""
    reduced = (*stages[:1], *(stage for stage in stages[1:] if isinstance(stage.filter, Fletcher32)))
    try:
        _encoding(reduced, engine)
    except ParameterError:
        return ""
    return f"it can write the recipe {_text(reduced)!r}; "


def _text(stages: tuple[Stage, ...]) -> str:
    return "|".join(map(str, stages))


def _h5netcdf(chain: tuple[Stage, ...]) -> dict[str, Any]:
    if any(isinstance(stage.filter, Scaleoffset) for stage in chain):
        raise ParameterError("xarray does not pass scaleoffset on")
    return keywords((*_without_checksum(chain), *(stage for stage in chain if isinstance(stage.filter, Fletcher32))))


def _netcdf4(chain: tuple[Stage, ...]) -> dict[str, Any]:
    refuse_other_flags(chain, "netCDF4-python")
    checksum = {"fletcher32": True} if len(_without_checksum(chain)) < len(chain) else {}
    match [stage.filter for stage in _without_checksum(chain)]:
        case []:
            return checksum
        case [Shuffle(), Deflate(level=level)] if level:
            return checksum | {"compression": "zlib", "complevel": level, "shuffle": True}
        case [compressor]:
            return checksum | _netcdf4_compression(compressor)
    raise ParameterError("netCDF writes one compression, and shuffle before deflate only")


def _netcdf4_compression(compressor_filter: Filter) -> dict[str, Any]:
    match compressor_filter:
        case Deflate(level=level) if level:
            return {"compression": "zlib", "complevel": level}
        case Zstd(level=level) if 0 < level < 10:
            return {"compression": "zstd", "complevel": level}
        case Bzip2(level=level):
            return {"compression": "bzip2", "complevel": level}
        case Szip(coding=("ec" | "nn") as coding, pixels=(4 | 8 | 16 | 32) as pixels):
            return {"compression": "szip", "szip_coding": coding, "szip_pixels_per_block": pixels}
        case Blosc(compressor=compressor, level=level, shuffle=shuffle) if level and compressor != "snappy":
            name = compressor.replace("blosclz", "lz")
            return {"compression": f"blosc_{name}", "complevel": level, "blosc_shuffle": _BLOSC_SHUFFLES[shuffle]}
    raise ParameterError(
        "netCDF4-python writes deflate, zstd, bzip2 and blosc of levels 1 to 9, and szip of 4, 8, 16 or 32 pixels"
    )


def _without_checksum(chain: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in chain if not isinstance(stage.filter, Fletcher32))
