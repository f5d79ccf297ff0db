"""Filters and chunk shapes in the encoding of xarray's variables, from any engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from xarray import Dataset, Variable

from tamis.errors import ParameterError, TamisError
from tamis.filters import Blosc, Bzip2, Deflate, Filter, Fletcher32, Shuffle, Stage, Szip, UnknownFilter, Zstd
from tamis.formatting import printable, shape_text
from tamis.jobs.result import SCHEMA, Result
from tamis.notation.h5py_keywords import parse_keywords
from tamis.notation.xarray_encoding import encoding_keywords
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.jobs.parts import Part


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
        from tamis.jobs.parts import Table

        rows = [("variable", "filters", "chunks", "type")]
        for name, pipeline in self.items():
            chunks, dtype = (self._encodings[name].get(key) for key in ("chunksizes", "dtype"))
            texts = "\n".join(map(str, pipeline.stages)), shape_text(chunks) if chunks else ""
            rows.append((printable(name), *texts, "" if dtype is None else str(dtype)))
        yield Table(rows, folded=[1], code=[1])


PIPELINE = "pipeline"
"""Key of an encoding: all filters of a variable, as text."""

FLAGS = ("zlib", "zstd", "bzip2", "szip", "blosc")
"""Keys of xarray's engines, one for each compression."""

FILTER_KEYS = (PIPELINE, *FLAGS, "complevel", "shuffle", "fletcher32", "compression", "compression_opts")

_SHUFFLES = {0: "none", 1: "byte", 2: "bit"}


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
                shuffle = next(number for number, word in _SHUFFLES.items() if word == item.shuffle)
                return {"blosc": {"compressor": f"blosc_{name}", "shuffle": shuffle}, "complevel": item.level}
    return {}


def encoding_pipeline(name: str, encoding: Mapping[str, Any]) -> Pipeline:
    """Return the filters in the encoding of a variable."""
    try:
        text = encoding.get(PIPELINE)
        if text is None:
            return Pipeline(_stages(encoding))
        pipeline = Pipeline.parse(str(text))
    except TamisError as error:
        error.at(name, dataset=name)
        raise
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
            shuffle = _SHUFFLES.get(details["shuffle"], "byte")
            filters.append(
                Blosc(compressor="blosclz" if compressor == "lz" else compressor, level=level, shuffle=shuffle)
            )
        case _:
            keywords = {"compression": name} | ({} if options is None else {"compression_opts": options})
            filters += parse_keywords(keywords).chain
    return [
        item if isinstance(item, Stage) else Stage.of(item)
        for item in (*filters, *([Fletcher32()] if encoding.get("fletcher32") else ()))
    ]


def encoding_chunks(variable: Variable, unlimited: frozenset[str]) -> tuple[int, ...] | None:
    """Return the chunk shape in the encoding of a variable, within its shape except along unlimited dimensions."""
    chunks = variable.encoding.get("chunksizes")
    if chunks is not None and len(chunks) == variable.ndim:
        ends = zip(variable.dims, chunks, variable.shape, strict=True)
        return tuple(step if name in unlimited else max(min(step, extent), 1) for name, step, extent in ends)
    return None
