"""The HDF5 filters that make the chunks of a Zarr array, if there are such filters."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tamis.errors import TamisError
from tamis.filters import ChunkType, Fletcher32, Shuffle, Stage
from tamis.notation.zarr import parse_text, zfp_of
from tamis.pipeline import Pipeline
from tamis.zarr.masked_chunk import MaskedPipeline

Json = dict[str, Any]

_KNOWN = ("zlib", "shuffle", "fletcher32", "bz2", "zstd", "blosc")


@dataclass(frozen=True, slots=True)
class ChunkFilters:
    """What chunks of a Zarr array are, in terms of HDF5.

    Parameters
    ----------
    pipeline
        Filters with stored parameters.
    marked
        The usual mask of ``tamis.pipeline``, whose other chunks are marked; None for other codecs.
    raw_nbytes
        Size of chunks that are values as they are, whatever the codecs; None if there are none such.
    """

    pipeline: Pipeline
    marked: MaskedPipeline | None = None
    raw_nbytes: int | None = None


@lru_cache(maxsize=256)
def chunk_filters(codecs: str, chunk: ChunkType) -> ChunkFilters | None:
    """Return the filters that HDF5 would have for chunks of these codecs; None if there are none.

    Parameters
    ----------
    codecs
        JSON of their metadata of version 2 or 3, in the order of encoding.
    chunk
        Type, as stored, and shape of the chunks.
    """
    rest = [codec for codec in json.loads(codecs) if codec.get("name") != "bytes"]
    if rest[:1] and rest[0].get("name") == "reshape":
        rest = rest[1:] if _squeezes(rest[0], chunk.shape) and rest[1:] and rest[1].get("name") == "zfp" else []
        if not rest:
            return None
    elif rest and rest[0].get("name") == "zfp" and any(extent == 1 for extent in chunk.shape):
        return None  # HDF5's zfp would leave these axes out
    try:
        if len(rest) == 1 and _name(rest[0]) == "tamis.pipeline":
            return _of_pipeline_codec(rest[0], chunk)
        stages = [stage for codec in rest for stage in _stages(codec)]
        if not shuffles_whole_values(stages, chunk):
            return None
        return ChunkFilters(_recorded(Pipeline(stages), chunk), raw_nbytes=_raw_nbytes(rest, chunk))
    except TamisError:
        return None


def shuffles_whole_values(stages: Sequence[Stage], chunk: ChunkType) -> bool:
    """Return whether shuffle, if it is there, gets whole values, which Zarr's needs.

    Other filters do not leave them, except the four bytes of a checksum behind the values, by which netCDF begins.
    """
    before = 0
    for stage in stages:
        if isinstance(stage.filter, Shuffle) and (before < 0 or (chunk.nbytes + before) % chunk.dtype.itemsize):
            return False
        if isinstance(stage.filter, Fletcher32) and before >= 0:
            before += 4
        elif not isinstance(stage.filter, Shuffle):
            before = -1
    return True


def _name(codec: Json) -> str:
    return str(codec.get("id", codec.get("name", "")))


def _stages(codec: Json) -> tuple[Stage, ...]:
    name = _name(codec)
    if name == "h5z_zfp":
        known = {key: value for key, value in codec.items() if key not in ("id", "dtype", "shape")}
        return (Stage(zfp_of(known), False),)
    if name == "zfp" and "name" in codec:
        return (Stage(zfp_of(codec.get("configuration") or {}), False),)
    if name.removeprefix("numcodecs.") not in _KNOWN:
        raise TamisError(name)
    return tuple(Stage(stage.filter, False) for stage in parse_text(json.dumps(codec)))


def _of_pipeline_codec(codec: Json, chunk: ChunkType) -> ChunkFilters:
    config = codec.get("configuration") or {key: codec[key] for key in ("filters", "mask") if key in codec}
    masked = MaskedPipeline.from_config(config)
    return ChunkFilters(_recorded(masked.pipeline, chunk), masked)


def _recorded(pipeline: Pipeline, chunk: ChunkType) -> Pipeline:
    pipeline.check(chunk)
    return Pipeline(Stage(stage.filter, stage.optional, stage.filter.stored(chunk)) for stage in pipeline.stages)


def _squeezes(codec: Json, chunk_shape: tuple[int, ...]) -> bool:
    """Return whether a codec reshape only joins unit axes with others."""
    shape = (codec.get("configuration") or {}).get("shape")
    if not isinstance(shape, list) or not all(isinstance(axis, list) for axis in shape):
        return False
    members = [member for axis in shape for member in axis]
    if members != list(range(len(chunk_shape))):
        return False
    joined = tuple(math.prod(chunk_shape[member] for member in axis) for axis in shape)
    return joined == tuple(extent for extent in chunk_shape if extent > 1)


def _raw_nbytes(codecs: Sequence[Json], chunk: ChunkType) -> int | None:
    """Return the size of chunks that ``h5z_zfp`` stores as they are, if it is the only codec."""
    if len(codecs) != 1 or _name(codecs[0]) != "h5z_zfp":
        return None
    from tamis.zarr.zarr2_codecs import H5zZfp

    codec = H5zZfp.of(
        zfp_of({k: v for k, v in codecs[0].items() if k not in ("id", "dtype", "shape")}), chunk.dtype, chunk.shape
    )
    return chunk.nbytes if codec.may_be_raw else None
