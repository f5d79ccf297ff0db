"""Filters, chunk shapes and packing in the encoding of xarray's variables, of any engine, and for ``to_netcdf``.

Each engine has a fixed place for fletcher32, whatever the pipeline: h5netcdf last, netcdf4 first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable, conventions

from tamis import meaning
from tamis.errors import DataError, ParameterError, located
from tamis.filters import (
    Blosc,
    Bzip2,
    Deflate,
    Filter,
    Fletcher32,
    Scaleoffset,
    Shuffle,
    Stage,
    Szip,
    UnknownFilter,
    Zstd,
)
from tamis.formatting import printable, shape_text
from tamis.jobs.result import SCHEMA, Part, Result, Table
from tamis.notation.h5py_keywords import keywords, parse_keywords
from tamis.notation.text import Chain, refuse_other_flags
from tamis.pipeline import Pipeline
from tamis.rewrite.new_packing import of_values
from tamis.rounding import ERROR_BOUND, ROUNDING_ATTRIBUTES, Codes, Pack

if TYPE_CHECKING:
    from tamis.rounding import Rounding


ENGINES = ("h5netcdf", "netcdf4")
"""Engines of xarray that write filters."""

_SHARES = (1.0, 0.99, 0.9)
"""Shares of the bound that are tried as that of the codes: xarray's divisions may leave the nearest one."""

_IN_ATTRIBUTES = (*meaning.FILL_ATTRIBUTES, "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks")
"""Attributes that would have to be written in packed units, which no encoding does."""

_OFF = {"compression": None, "shuffle": False, "fletcher32": False}
_BLOSC_SHUFFLES = ("none", "byte", "bit")


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
            return {"compression": f"blosc_{name}", "complevel": level, "blosc_shuffle": _BLOSC_SHUFFLES.index(shuffle)}
    raise ParameterError(
        "netCDF4-python writes deflate, zstd, bzip2 and blosc of levels 1 to 9, and szip of 4, 8, 16 or 32 pixels"
    )


def _without_checksum(chain: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in chain if not isinstance(stage.filter, Fletcher32))


class Filters(Result, dict[str, Pipeline]):
    """Filters by variable, from its encoding; prints as a table."""

    def __init__(self, dataset: Dataset) -> None:
        variables = {str(name): variable for name, variable in dataset.variables.items()}
        super().__init__({name: encoding_pipeline(name, own.encoding) for name, own in variables.items()})
        self._encodings = {name: variable.encoding for name, variable in variables.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        return {
            "schema": SCHEMA,
            "variables": [
                {"name": name, "pipeline": str(pipeline), "chunks": self._encodings[name].get("chunksizes")}
                for name, pipeline in self.items()
            ],
        }

    def _parts(self) -> Iterator[Part]:
        yield table_of(self, self._encodings)


def table_of(pipelines: Mapping[str, Pipeline], encodings: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table of variables: the filters of each, and chunks and type in its encoding."""
    rows = [("variable", "filters", "chunks", "type")]
    for name, encoding in encodings.items():
        chunks, dtype = encoding.get("chunksizes"), encoding.get("dtype")
        filters = "" if pipelines[name] == Pipeline() else str(pipelines[name]).replace("|", "\n")
        rows.append(
            (printable(name), filters, shape_text(chunks) if chunks else "", "" if dtype is None else str(dtype))
        )
    return Table(rows, folded=[1], code=[1])


PIPELINE = "pipeline"
"""Key of an encoding: all filters of a variable, as text."""

FLAGS = ("zlib", "zstd", "bzip2", "szip", "blosc")
"""Keys of xarray's engines, one for each compression."""

FILTER_KEYS = (PIPELINE, *FLAGS, "complevel", "shuffle", "fletcher32", "compression", "compression_opts")


def filter_encoding(pipeline: Pipeline) -> dict[str, Any]:
    """Return filters as keys of an encoding: all of them as text, and as xarray's engines save them.

    ``compression`` is the text of a pipeline that the engines cannot save, which makes them refuse it instead of losing
    it.
    """
    requested = Pipeline(Stage.of(item) for item in pipeline.filters)
    encoding: dict[str, Any] = {"zlib": False, "shuffle": False, "fletcher32": False}
    if not requested.stages:
        return encoding
    encoding[PIPELINE] = str(requested)
    try:
        keywords = encoding_keywords(requested.stages, "h5netcdf")
    except ParameterError:
        return encoding | {"compression": str(requested)}
    if any(isinstance(item, UnknownFilter) for item in requested.filters):
        return encoding | {"compression": str(requested)}
    level = keywords.get("compression_opts")
    if keywords["compression"] != "gzip":
        return encoding | keywords | {"compression_opts": level} | _netcdf4_flags(requested)
    shuffle, fletcher32 = keywords["shuffle"], keywords["fletcher32"]
    return encoding | {"zlib": True, "complevel": level, "shuffle": shuffle, "fletcher32": fletcher32}


def _netcdf4_flags(pipeline: Pipeline) -> dict[str, Any]:
    """Return the compression as netCDF4-python shows it; xarray's engines use ``compression`` if both are present."""
    for item in pipeline.filters:
        match item:
            case Zstd() | Bzip2():
                return {item.name: True, "complevel": item.level}
            case Szip():
                szip = {"coding": item.coding, "pixels_per_block": item.pixels}
                return {"szip": szip} | {f"szip_{key}": value for key, value in szip.items()}
            case Blosc():
                name = "lz" if item.compressor == "blosclz" else item.compressor
                shuffle = _BLOSC_SHUFFLES.index(item.shuffle)
                return {"blosc": {"compressor": f"blosc_{name}", "shuffle": shuffle}, "complevel": item.level}
    return {}


def encoding_pipeline(name: str, encoding: Mapping[str, Any]) -> Pipeline:
    """Return the filters in the encoding of a variable."""
    with located(name, dataset=name):
        text = encoding.get(PIPELINE)
        if text is None:
            return Pipeline(_stages(encoding))
        pipeline = Pipeline.parse(str(text))
    expected = filter_encoding(pipeline)
    for key in FILTER_KEYS:
        if (encoding.get(key) or None) != (expected.get(key) or None):
            raise ParameterError(
                f"{name}: expected one pipeline in its encoding, got {PIPELINE}={text!r} and"
                f" {key}={encoding.get(key)!r}: delete one of them, or give a recipe"
            ).at(dataset=name)
    return pipeline


def _stages(encoding: Mapping[str, Any]) -> Iterable[Stage]:
    """Return the filters by the keys of xarray's engines, shuffle first and fletcher32 last."""
    compression, options = encoding.get("compression"), encoding.get("compression_opts")
    level = 4 if encoding.get("complevel") is None else int(encoding["complevel"])
    flag = next((key for key in FLAGS if encoding.get(key)), None)
    name = compression if compression is not None else flag
    filters: list[Filter | Stage] = [Shuffle()] if encoding.get("shuffle") else []
    if name == "unknown":
        raise ParameterError(
            "expected filters, got compression='unknown' of the engine h5netcdf: open the file with engine='tamis', or"
            " give a recipe"
        )
    details = encoding.get(flag) if flag else None
    match name:
        case None:
            pass
        case "zlib":
            filters.append(Deflate(level=level))
        case "zstd":
            filters.append(Zstd(level=level))
        case "bzip2":
            filters.append(Bzip2(level=level))
        case "szip" if isinstance(details, Mapping):
            filters.append(Szip(coding=details["coding"], pixels=details["pixels_per_block"]))
        case "blosc" if isinstance(details, Mapping):
            compressor = str(details["compressor"]).removeprefix("blosc_")
            shuffle = dict(enumerate(_BLOSC_SHUFFLES)).get(details["shuffle"], "byte")
            filters.append(
                Blosc(compressor="blosclz" if compressor == "lz" else compressor, level=level, shuffle=shuffle)
            )
        case _:
            keywords = {"compression": name} | ({} if options is None else {"compression_opts": options})
            filters += [stage for stage in parse_keywords(keywords).chain if isinstance(stage, Stage)]
    return [
        item if isinstance(item, Stage) else Stage.of(item)
        for item in (*filters, *([Fletcher32()] if encoding.get("fletcher32") else ()))
    ]


def encoding_chunks(variable: Variable, unlimited: Collection[str]) -> tuple[int, ...] | None:
    """Return the chunk shape in the encoding of a variable, within its shape except along unlimited dimensions."""
    chunks = variable.encoding.get("chunksizes")
    if chunks is not None and len(chunks) == variable.ndim:
        ends = zip(variable.dims, chunks, variable.shape, strict=True)
        return tuple(step if name in unlimited else max(min(step, extent), 1) for name, step, extent in ends)
    return None


def packed_encoding(array: Any, pack: Pack) -> dict[str, Any]:
    """Return the keys with which xarray packs an array within the bound. All values are read, packed and unpacked."""
    _check_attributes(array, pack)
    values = np.asarray(array.values)
    for share in _SHARES:
        tighter = Pack(pack.bound * share, pack.range, pack.outside)
        codes = of_values(tighter, values.dtype, None, {}, [values], grows=True).codes
        number, packed = codes.dtype.type, codes.unpacked.type
        keys = {
            "dtype": codes.dtype,
            "scale_factor": packed(codes.scale),
            "add_offset": packed(codes.offset),
            "_FillValue": number(codes.missing[0][1]),
        }
        if _keeps(values, array.dims, keys, codes, pack.bound):
            return keys
    raise DataError(
        f"{array.name}: xarray's arithmetic does not pack all values within {pack.bound:g}: save with "
        "ds.tamis.to_netcdf, whose packing is exact"
    )


def _check_attributes(array: Any, pack: Pack) -> None:
    """Raise ParameterError for attributes that would be wrong in the file, which an encoding cannot change."""
    packed_before = [name for name in ("scale_factor", "add_offset") if array.encoding.get(name) is not None]
    wrong = [name for name in _IN_ATTRIBUTES if name in array.attrs] + [
        name
        for name in (*ROUNDING_ATTRIBUTES, ERROR_BOUND)
        if name in array.attrs and (name != pack.attribute or packed_before or array.attrs[name] != pack.bound)
    ]
    if wrong:
        raise ParameterError(
            f"the attribute {wrong[0]} of the variable does not go with {pack}, and no encoding of xarray's "
            "changes it: save with ds.tamis.to_netcdf, or delete it"
        ).at(filter=pack)


def _keeps(values: NDArray[Any], dims: tuple[Any, ...], keys: dict[str, Any], codes: Codes, bound: float) -> bool:
    """Return whether xarray packs values so that readers unpack them within a bound, in float32 and in float64."""
    encoded = conventions.encode_cf_variable(Variable(dims, values, encoding=dict(keys))).values
    missing = np.isnan(values)
    if encoded.dtype != codes.dtype or not np.array_equal(encoded == keys["_FillValue"], missing):
        return False
    for dtype in {codes.unpacked, np.dtype(np.float64)}:
        error = np.abs(codes.unpack(encoded, dtype)[~missing].astype(np.float64) - values[~missing])
        if not error.max(initial=0.0) <= bound:
            return False
    return True
