"""Read and decode many small chunks in one native call, without Python in between."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import deflate
import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.arrays.index import ChunkIndex, Parts
from tamis.arrays.source import Descriptor, FileSource, SlowSource
from tamis.system.files import memory_file

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin, Region
    from tamis.filters import ChunkType
    from tamis.pipeline import Pipeline

SMALL_NBYTES = 32 << 10
"""Size of the largest chunks that are read many at a time; for larger ones, Python costs little."""

_LARGEST_NBYTES = 64 << 20
"""Size of the largest chunks that native code reads; it allocates three times as much memory, and may use less."""

_LEAST_COUNT = 8
"""Smallest number of chunks for a native call, whose preparation costs as much as reading a few."""

_CALL_NBYTES = 64 << 20
"""Limit of the decoded bytes of one call, so that Ctrl-C takes effect soon."""

_FETCHED_NBYTES = 8 << 20
"""Decoded bytes of one call for a slow source, which fetches the bytes of the next call meanwhile."""

_THREAD_NBYTES = 128 << 10
"""Decoded bytes for which another thread pays."""

_ALL_SKIPPED = 0xFFFFFFFF

# This extension module contains libdeflate, and stays loaded.
_native.use_libdeflate(getattr(deflate, "_deflate", deflate).__file__ or "")


@lru_cache(maxsize=256)  # shared by most datasets of a file
def native_pipeline(pipeline: Pipeline, chunk: ChunkType) -> _native.ChunkPipeline | None:
    """Return the native twin of a pipeline with stored parameters; None if there is none for such chunks."""
    filters = [(stage.filter.id, stage.stored) for stage in pipeline.stages]
    if chunk.dtype.kind not in "iufcb" or any(stored is None for _, stored in filters):
        return None
    cd_values = [(number, [cd_value & 0xFFFFFFFF for cd_value in stored or ()]) for number, stored in filters]
    return _native.ChunkPipeline(chunk.shape, chunk.dtype.itemsize, cd_values)


def native_pipeline_of_large(pipeline: Pipeline, chunk: ChunkType) -> _native.ChunkPipeline | None:
    """Return the native twin of a pipeline for chunks that are read one at a time.

    Its threads reuse their memory, because fresh pages for each step of each chunk cost as much as decoding.
    """
    if not pipeline.stages or not SMALL_NBYTES < chunk.nbytes <= _LARGEST_NBYTES:
        return None
    native = native_pipeline(pipeline, chunk)
    return None if native is None or native.foreign else native


class ManyChunks:
    """The stored chunks of an array in columns, as native code reads them."""

    def __init__(
        self, index: ChunkIndex, chunk: ChunkType, pipeline: Pipeline, fill: NDArray[Any], *, partial_filtered: bool
    ) -> None:
        native = native_pipeline(pipeline, chunk)
        if native is None:
            raise ValueError(f"expected chunks that native code reads, got {chunk} through {pipeline}")
        self._native = native
        self._chunk = chunk
        self._fill = fill
        self._index = index
        self._partial_filtered = partial_filtered

    def read(self, source: FileSource | SlowSource, part: Region, out: NDArray[Any], threads: int) -> list[Origin]:
        """Read a part of the array, and return the origins of chunks that are left to the caller."""
        rows = self._rows(part)
        unread: list[int] = []
        if len(rows) < chunk_count(part, self._chunk.shape):
            out[...] = self._fill
        start = np.array([span.start for span in part])
        threads = max(1, min(threads, out.nbytes // _THREAD_NBYTES))
        at_once = (_CALL_NBYTES if isinstance(source, FileSource) else _FETCHED_NBYTES) // self._chunk.nbytes
        batches = [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
        for file, batch in self._files(source, batches):
            unread += self._read(file, batch, start, out, threads)
        return [self._index.grid.origin_of(number) for number in sorted(unread)]

    def _files(
        self, source: FileSource | SlowSource, batches: Sequence[NDArray[np.int64]]
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield rows with a file that has their bytes; those of a slow source are copied to memory, a batch ahead."""
        if isinstance(source, FileSource):
            yield from ((source.descriptor.number, rows) for rows in batches)
            return
        ahead: deque[Callable[[int], None]] = deque()
        for number, rows in enumerate(batches):
            for following in batches[number + len(ahead) : number + 2]:
                columns = self._index.offsets[following].tolist(), self._index.sizes[following].tolist()
                ahead.append(source.copying(zip(*columns, strict=True)))
            descriptor = Descriptor(memory_file())
            os.ftruncate(descriptor.number, source.nbytes)
            ahead.popleft()(descriptor.number)
            yield descriptor.number, rows

    def _read(
        self, file: int, rows: NDArray[np.int64], start: NDArray[np.int64], out: NDArray[Any], threads: int
    ) -> list[int]:
        """Read chunks, and return the numbers of those left to the caller."""
        index = self._index
        numbers = rows if isinstance(index.numbers, range) else index.numbers[rows]
        masks = index.masks[rows]
        origins = Parts(index.grid, numbers).origin_table()
        if not self._partial_filtered:
            masks[(origins + self._chunk.shape > np.array(index.grid.shape)).any(axis=1)] = _ALL_SKIPPED
        foreign = np.uint32(self._native.foreign)
        can = masks & foreign == foreign
        offsets, sizes = index.offsets[rows][can], index.sizes[rows][can]
        failed = self._native.read(file, origins[can], offsets, sizes, masks[can], start, out, threads)
        return [*numbers[~can].tolist(), *numbers[can][failed].tolist()]

    def _rows(self, part: Region) -> NDArray[np.int64]:
        """Return the rows of the stored chunks that a part overlaps."""
        axes = np.ix_(*_touched(part, self._chunk.shape))
        rows = self._index.positions_of(np.ravel_multi_index(axes, self._index.grid.counts).ravel())
        return rows[rows >= 0]


def goes_over_many(part: Region, chunk: ChunkType) -> bool:
    """Return whether a part of an array has many small chunks, so that `ManyChunks` reads it fastest."""
    return chunk.nbytes <= SMALL_NBYTES and chunk_count(part, chunk.shape) >= _LEAST_COUNT


def chunk_count(part: Region, chunk_shape: tuple[int, ...]) -> int:
    """Return the number of chunks that a part of an array overlaps."""
    return math.prod([len(axis) for axis in _touched(part, chunk_shape)])


def _touched(part: Region, chunk_shape: tuple[int, ...]) -> list[range]:
    """Return for each axis the numbers of the chunks that a part overlaps."""
    steps = zip(part, chunk_shape, strict=True)
    return [range(span.start // step, (span.stop - 1) // step + 1) for span, step in steps]
