"""The HDF5 filters that would make the chunks of a Zarr array, if any, with filter masks, which Zarr lacks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self

from tamis.errors import MissingFilterError, ParameterError, TamisError
from tamis.filters import ChunkType, Data, Filter, Fletcher32, Shuffle, Stage, StoredZfp
from tamis.formats.zarr.masked import MaskedPipeline, recorded
from tamis.formats.zarr.stored.readers import shuffle_size
from tamis.notation.zarr import parse_text, zfp_of
from tamis.pipeline import Pipeline
from tamis.zfp import Header

Json = dict[str, Any]

_KNOWN = ("zlib", "shuffle", "fletcher32", "bz2", "zstd", "blosc", "pcodec")

_HEADER_NBYTES = 12
"""Bytes of the header of a zfp stream, except in expert mode and for blocks of more than 2,048 bits."""


@dataclass(frozen=True, slots=True)
class ChunkFilters:
    """Chunks of a Zarr array, in terms of HDF5."""

    pipeline: Pipeline  # Filters with stored parameters
    # The usual mask of ``tamis.pipeline``, whose other chunks are marked; None for other codecs
    marked: MaskedPipeline | None = None
    # Size, after the codecs behind zfp are undone, of chunks that skip zfp; None if no chunk does
    raw_nbytes: int | None = None
    # The header of each zfp stream, as numcodecs' zfpy has it; empty for streams without a header
    header: bytes = b""


@lru_cache(maxsize=256)
def chunk_filters(codecs: str, chunk: ChunkType) -> ChunkFilters | None:
    """Return the equivalent HDF5 filters for chunks of these codecs; None if there are none."""
    rest = [codec for codec in json.loads(codecs) if codec.get("name") != "bytes"]
    names = [codec.get("name") for codec in rest[:2]]
    if names[:1] == ["reshape"]:
        if names[1:] != ["zfp"] or not _squeezes(rest[0], chunk.shape):
            return None
        rest = rest[1:]
    elif rest and rest[0].get("name") == "zfp" and any(extent == 1 for extent in chunk.shape):
        return None  # HDF5's zfp would leave these axes out
    try:
        if len(rest) == 1 and _name(rest[0]) == "tamis.pipeline":
            return _of_pipeline_codec(rest[0], chunk)
        stages = [stage for codec in rest for stage in _stages(codec)]
        if not shuffles_whole_values(stages, chunk) or not all(_shuffles_values(codec, chunk) for codec in rest):
            return None
        pipeline = Pipeline(stages)
        pipeline.check(chunk)
        stored = recorded(pipeline, chunk)
        if rest and _is_zfpy(rest[0]):
            header = header_of(stored.stages[0])
            return None if header is None or chunk.dtype.kind == "u" else ChunkFilters(stored, header=header)
        return ChunkFilters(stored, raw_nbytes=_raw_nbytes(rest, chunk))
    except TamisError:
        return None


def header_of(stage: Stage) -> bytes | None:
    """Return the header of the streams of a zfp filter with stored parameters; None if it is not of whole bytes."""
    stored = StoredZfp.parse(stage.stored or ())
    header = Header(stored.dtype, stored.shape, stored.filter.mode).pack()
    return header if len(header) == _HEADER_NBYTES else None


def _is_zfpy(codec: Json) -> bool:
    return codec.get("id") == "zfpy"


def shuffles_whole_values(stages: Sequence[Stage], chunk: ChunkType) -> bool:
    """Return whether shuffle, if present, gets whole values, as Zarr's needs.

    Filters before it must not change them, except for the checksum of four bytes with which netCDF begins.
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


def _shuffles_values(codec: Json, chunk: ChunkType) -> bool:
    """Return whether a codec, if it is shuffle, takes elements of the size of the values, as HDF5's does."""
    if _name(codec).removeprefix("numcodecs.") != "shuffle":
        return True
    configuration = codec.get("configuration", codec)
    size = shuffle_size(configuration) if "id" in codec else configuration.get("elementsize", chunk.dtype.itemsize)
    return size in (0, chunk.dtype.itemsize)


def _name(codec: Json) -> str:
    return str(codec.get("id", codec.get("name", "")))


def _stages(codec: Json) -> tuple[Stage, ...]:
    name = _name(codec)
    if name == "h5z_zfp":
        known = {key: value for key, value in codec.items() if key not in ("id", "dtype", "shape")}
        return (Stage(zfp_of(known), False),)
    if name == "zfp" and "name" in codec:
        return (Stage(zfp_of(codec.get("configuration") or {}), False),)
    if name.removeprefix("numcodecs.") not in _KNOWN and not _is_zfpy(codec):
        raise TamisError(name)
    return tuple(Stage(stage.filter, False) for stage in parse_text(json.dumps(codec)))


def _of_pipeline_codec(codec: Json, chunk: ChunkType) -> ChunkFilters:
    config = codec.get("configuration") or {key: codec[key] for key in ("filters", "mask") if key in codec}
    masked = MaskedPipeline.from_config(config)
    masked.pipeline.check(chunk)
    return ChunkFilters(recorded(masked.pipeline, chunk), masked)


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
    """Return the size of chunks that ``h5z_zfp`` stores raw; None for other codecs."""
    if not codecs or _name(codecs[0]) != "h5z_zfp":
        return None
    from tamis.formats.zarr.zarr2_codecs import H5zZfp  # late: it needs numcodecs

    codec = H5zZfp.of(
        zfp_of({k: v for k, v in codecs[0].items() if k not in ("id", "dtype", "shape")}), chunk.dtype, chunk.shape
    )
    return chunk.nbytes if codec.may_be_raw else None


@dataclass(frozen=True, slots=True)
class ZarrCodec(Filter):
    """A codec by its name; zarr-python decodes it, and nothing encodes it in HDF5."""

    name: str = "codec"  # type: ignore[misc]  # a name for each instance, not for the class
    config: str = field(default="")  # Its parameters, as JSON
    id: ClassVar[int] = 0
    registered_name: ClassVar[str] = ""

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> Self:
        """Return the codec of metadata of version 2 or 3."""
        known = {key: value for key, value in metadata.items() if key not in ("id", "name", "configuration")}
        config = metadata.get("configuration") or known
        text = ",".join(
            f"{key}={json.dumps(value)}" for key, value in config.items() if not isinstance(value, (list, dict))
        )
        return cls(str(metadata.get("id", metadata.get("name"))), text)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Refuse: HDF5 has no such filter."""
        raise ParameterError("expected the metadata of a codec of Zarr, got parameters of an HDF5 filter")

    @property
    def requested(self) -> tuple[int, ...]:
        """Nothing: HDF5 has no such filter."""
        return ()

    def unencodable(self) -> str:
        """Return why tamis cannot encode it."""
        return f"HDF5 has no filter for the Zarr codec {self}: choose filters with -f"

    def undecodable(self) -> str:
        """Return why tamis cannot decode it by itself."""
        return self.unencodable()

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        raise MissingFilterError(self.unencodable())

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        raise MissingFilterError(self.undecodable())

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the codec and its parameters."""
        return f"Zarr codec {self}"

    def __str__(self) -> str:
        return f"{self.name}({self.config})" if self.config else self.name
