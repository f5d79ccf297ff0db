"""Chunks with the filter masks of HDF5, which Zarr lacks: a pipeline with its usual mask, and a mark before others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import ParameterError, StreamError
from tamis.filters import ChunkType, Data, Filter, Stage, Zfp
from tamis.old_names import recorded_text
from tamis.pipeline import Pipeline, as_pipeline

MASK_MARK = b"\x89tamis.mask\n"
"""The first bytes of a chunk whose mask follows, in four bytes, little-endian."""

_MARK_NBYTES = len(MASK_MARK) + 4


@dataclass(frozen=True, slots=True)
class MaskedPipeline:
    """A pipeline and the filter mask of chunks without a mark."""

    pipeline: Pipeline
    mask: int = 0  # The usual mask: bit i is set if chunks skip filter i

    @classmethod
    def of(cls, filters: Pipeline | Filter | str, mask: object) -> MaskedPipeline:
        """Return a pipeline with its usual mask."""
        pipeline = as_pipeline(filters)
        pipeline.refuse_bound()
        if type(mask) is not int or mask < 0 or mask >> len(pipeline.stages):
            raise ParameterError(f"expected a mask of the {len(pipeline.stages)} filters of {pipeline}, got {mask!r}")
        return cls(pipeline, mask)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedPipeline:
        """Read the codec's metadata, ``filters`` and ``mask``; raises ParameterError if they are malformed."""
        filters = config.get("filters")
        if not config.keys() <= {"filters", "mask"} or not isinstance(filters, str):
            raise ParameterError(f"expected the text of filters, and a mask, got {config!r}")
        return cls.of(filters, config.get("mask", 0))

    def to_config(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        config: dict[str, Any] = {"filters": recorded_text(str(self.pipeline))}
        return config | {"mask": self.mask} if self.mask else config

    def encode(self, values: NDArray[Any], chunk: ChunkType) -> bytes:
        """Encode the values of a chunk with all filters that can; raises the errors of `Pipeline.encode`."""
        stored, native = np.ascontiguousarray(values, chunk.dtype), _as_filtered(self.pipeline, chunk)
        pipeline = recorded(self.pipeline, native)
        data, mask = pipeline.encode(stored.astype(native.dtype, copy=False))
        if mask & 1 and native is not chunk:
            data, mask = pipeline.encode(stored, skip=(Zfp,))
        return self.marked(data, mask)

    def marked(self, data: bytes, mask: int) -> bytes:
        """Return the bytes of an encoded chunk as the codec stores them."""
        return mark_of(mask) + data if self.needs_mark(data, mask) else data

    def needs_mark(self, head: bytes, mask: int) -> bool:
        """Return whether a chunk needs a mark, by its first bytes and its mask."""
        return mask != self.mask or head.startswith(MASK_MARK)

    def decode(self, data: Data, chunk: ChunkType) -> NDArray[Any]:
        """Decode a chunk; the result may be read-only."""
        view, mask = memoryview(data).cast("B"), self.mask
        if view[: len(MASK_MARK)] == MASK_MARK:
            mask = int.from_bytes(view[len(MASK_MARK) : _MARK_NBYTES], "little")
            if len(view) < _MARK_NBYTES or mask >> len(self.pipeline.stages):
                raise StreamError(
                    f"expected a filter mask of {len(self.pipeline.stages)} bits after the mark of a chunk, got"
                    f" {bytes(view[len(MASK_MARK) : _MARK_NBYTES])!r}"
                )
            view = view[_MARK_NBYTES:]
        native = _as_filtered(self.pipeline, chunk)
        values = recorded(self.pipeline, native).decode(view, mask, chunk if mask & 1 else native)
        return values.astype(chunk.dtype, copy=False)


def _as_filtered(pipeline: Pipeline, chunk: ChunkType) -> ChunkType:
    """Return the chunk as filters take it: zfp, whose streams have no byte order, takes this machine's."""
    if chunk.dtype.isnative or pipeline.zfp is None:
        return chunk
    native = chunk.dtype.newbyteorder("=")
    return ChunkType(native, chunk.shape, np.frombuffer(chunk.fill, chunk.dtype).astype(native).tobytes())


def mark_of(mask: int) -> bytes:
    """Return the bytes before a chunk that has an unusual filter mask."""
    return MASK_MARK + mask.to_bytes(4, "little")


@lru_cache(maxsize=256)
def recorded(pipeline: Pipeline, chunk: ChunkType) -> Pipeline:
    """Return the pipeline with the parameters that HDF5 would store for such chunks."""
    return Pipeline(
        Stage(stage.filter, stage.optional, stage.filter.stored(chunk)) if stage.stored is None else stage
        for stage in pipeline.stages
    )
