"""Compare two arrays of one shape, in chunks of any shapes, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.statistics import Tally, compare
from tamis.chunks.boxes import block_shape, cut, several_chunks, whole, within
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import ArrayReader
from tamis.chunks.threads import ordered_map
from tamis.missing.definition import Missing

Shape = tuple[int, ...]

_BLOCK_NBYTES = 32 << 20
_SLAB_NBYTES = 1 << 20


def compared(
    source: ArrayReader,
    target: ArrayReader,
    missing: Missing,
    threads: int,
    progress: Callable[[int, int], None],
    zero: float = 0.0,
) -> Tally:
    """Compare all values of two arrays of one shape, in threads; the result does not depend on their number.

    Chunks of the same shape are compared pair by pair. If the shapes differ, a block of the source of at most 32 MiB,
    or one chunk, is assembled first, and then compared with each part of the target.

    Parameters
    ----------
    source, target
        The arrays.
    missing, zero
        As for `compare`.
    threads
        Number of threads.
    progress
        Called with the number of compared values and of all values, before the first part and after each part.
    """
    shape, total, tally = source.shape, math.prod(source.shape), Tally()
    progress(0, total)
    if not total:
        return tally

    def pair(part: Region) -> Tally:
        return compare(source.read(part), target.read(part), origin_of(part), missing, zero)

    if source.chunk_shape == target.chunk_shape:
        for part_tally in ordered_map(pair, cut(whole(shape), _step(source, shape)), threads):
            tally = tally.plus(part_tally)
            progress(tally.count, total)
        return tally
    itemsize = max(source.dtype.itemsize, 1)
    grids = [chunk_shape for chunk_shape in (source.chunk_shape, target.chunk_shape) if chunk_shape]
    size = block_shape(shape, grids, _BLOCK_NBYTES // itemsize)
    # One array for all blocks, because new memory costs as much time as decoding into it.
    room = np.empty(math.prod(size), source.dtype)
    for block in cut(whole(shape), size):
        extents = [span.stop - span.start for span in block]
        values = room[: math.prod(extents)].reshape(extents)

        def fill(part: Region, values: NDArray[Any] = values, block: Region = block) -> None:
            values[within(part, block)] = source.read(part)

        def check(part: Region, values: NDArray[Any] = values, block: Region = block) -> Tally:
            return compare(values[within(part, block)], target.read(part), origin_of(part), missing, zero)

        for _ in ordered_map(fill, cut(block, _step(source, size)), threads):
            pass
        for part_tally in ordered_map(check, cut(block, _step(target, size)), threads):
            tally = tally.plus(part_tally)
            progress(tally.count, total)
    return tally


def _step(values: ArrayReader, block: Shape) -> Shape:
    """Return the shape of the parts of a block: chunks of an array, several small ones at a time, or slabs."""
    chunk_shape = values.chunk_shape or (1,) * len(block)
    return several_chunks(block, chunk_shape, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
