"""Many small chunks read and decoded in one native call, without Python in between."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import deflate._deflate
import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.chunks.grid import Origin, Region
from tamis.filters import ChunkType
from tamis.pipeline import Pipeline

SMALL_NBYTES = 32 << 10
"""Size of the largest chunks that are read many at a time. Beside the work on larger ones, Python costs little."""

_LEAST_COUNT = 8
"""Chunks in the smallest part that is read this way; the preparation of the call costs as much as reading some."""

_CALL_NBYTES = 64 << 20
"""Values that one call decodes, so that Ctrl-C is answered soon."""

_THREAD_NBYTES = 128 << 10
"""Values for which it is worth to start a thread."""

_ALL_SKIPPED = 0xFFFFFFFF

# The module has libdeflate in it, and stays loaded.
_native.use_libdeflate(deflate._deflate.__file__ or "")


@lru_cache(maxsize=256)  # most datasets of a file have the same
def native_pipeline(pipeline: Pipeline, chunk: ChunkType) -> _native.ChunkPipeline | None:
    """Return the native twin of a pipeline with stored parameters; None if there is none for such chunks."""
    filters = [(stage.filter.id, stage.stored) for stage in pipeline.stages]
    if chunk.dtype.kind not in "iufcb" or any(stored is None for _, stored in filters):
        return None
    words = [(number, [word & 0xFFFFFFFF for word in stored or ()]) for number, stored in filters]
    return _native.ChunkPipeline(chunk.shape, chunk.dtype.itemsize, words)


class ManyChunks:
    """The stored chunks of an array in columns, as native code reads them.

    Parameters
    ----------
    records
        Offset, size and filter mask of each stored chunk by its origin, in the order of origins.
    shape
        Shape of the array.
    chunk
        Type and shape of its chunks.
    pipeline
        Filters with their stored parameters.
    fill
        Value of chunks that are not stored.
    partial_filtered
        Whether chunks at the end of the array went through the filters.

    Raises
    ------
    ValueError
        If native code cannot read such chunks, or records are not those of a grid.
    """

    def __init__(
        self,
        records: Mapping[Origin, tuple[int, int, int]],
        shape: tuple[int, ...],
        chunk: ChunkType,
        pipeline: Pipeline,
        fill: NDArray[Any],
        *,
        partial_filtered: bool,
    ) -> None:
        native = native_pipeline(pipeline, chunk)
        if native is None:
            raise ValueError(f"expected chunks that native code reads, got {chunk} through {pipeline}")
        self._native, self._chunk, self._fill = native, chunk, fill
        self._grid = tuple(-(-extent // step) for extent, step in zip(shape, chunk.shape, strict=True))
        steps, count = np.array(chunk.shape), len(records)
        try:
            flat = np.fromiter(itertools.chain.from_iterable(records), np.int64, count * len(shape))
            columns = np.fromiter(itertools.chain.from_iterable(records.values()), np.int64, count * 3)
        except OverflowError as error:
            raise ValueError("expected offsets and sizes below 2^63") from error
        self._origins = flat.reshape(count, len(shape))
        self._offsets, self._nbytes, masks = np.ascontiguousarray(columns.reshape(count, 3).T)
        self._masks = masks.astype(np.uint32)
        if not partial_filtered:
            self._masks[(self._origins + steps > np.array(shape)).any(axis=1)] = _ALL_SKIPPED
        index = self._origins // steps
        # Refuses what lies beyond the array, or beyond the numbers that there are.
        self._numbers = np.ravel_multi_index(tuple(index.T), self._grid)
        if (index * steps != self._origins).any():
            raise ValueError("expected origins that are multiples of the chunk shape")

    def read(self, file: int, part: Region, out: NDArray[Any], threads: int) -> list[Origin]:
        """Read a part of the array.

        Parameters
        ----------
        file
            Descriptor of the file.
        part
            Part of the array, not empty.
        out
            Array to fill, of the shape of the part and the type of the chunks.
        threads
            Threads to read and decode in, at most.

        Returns
        -------
        list of tuple of int
            Origins of the chunks that are left to the caller, in their order: damaged ones, and those that went through
            filters without a native decoder. Their places are undefined.
        """
        rows = self._rows(part)
        left: list[int] = []
        if len(rows) < chunk_count(part, self._chunk.shape):
            out[...] = self._fill
        if foreign := np.uint32(self._native.foreign):
            can = self._masks[rows] & foreign == foreign
            rows, left = rows[can], rows[~can].tolist()
        start = np.array([span.start for span in part])
        threads = max(1, min(threads, out.nbytes // _THREAD_NBYTES))
        at_once = _CALL_NBYTES // self._chunk.nbytes
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            table = (self._origins[some], self._offsets[some], self._nbytes[some], self._masks[some])
            left += some[self._native.read(file, *table, start, out, threads)].tolist()
        return [tuple(origin) for origin in self._origins[sorted(left)].tolist()]

    def _rows(self, part: Region) -> NDArray[np.int64]:
        """Return the rows of the stored chunks that a part touches."""
        axes = np.ix_(*_touched(part, self._chunk.shape))
        wanted = np.ravel_multi_index(axes, self._grid).ravel()
        rows = np.searchsorted(self._numbers, wanted)
        stored = rows < len(self._numbers)
        stored[stored] = self._numbers[rows[stored]] == wanted[stored]
        return rows[stored]


def goes_over_many(part: Region, chunk: ChunkType) -> bool:
    """Return whether a part of an array goes over many small chunks, so that `ManyChunks` reads it fastest."""
    return chunk.nbytes <= SMALL_NBYTES and chunk_count(part, chunk.shape) >= _LEAST_COUNT


def chunk_count(part: Region, chunk_shape: tuple[int, ...]) -> int:
    """Return the number of chunks that a part of an array touches."""
    return math.prod([len(axis) for axis in _touched(part, chunk_shape)])


def _touched(part: Region, chunk_shape: tuple[int, ...]) -> list[range]:
    steps = zip(part, chunk_shape, strict=True)
    return [range(span.start // step, (span.stop - 1) // step + 1) for span, step in steps]
