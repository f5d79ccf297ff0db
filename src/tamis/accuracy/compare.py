"""Compare two arrays of one shape, in chunks of any shapes, in bounded memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.statistics import FRAME, Frame, Tally, compare
from tamis.chunks.boxes import block_shape, several_chunks, slab, within
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import ArrayReader
from tamis.chunks.threads import ordered_map

Shape = tuple[int, ...]

_BLOCK_NBYTES = 32 << 20
_SLAB_NBYTES = 1 << 20


def compared(
    source: ArrayReader,
    target: ArrayReader,
    fills: tuple[NDArray[Any], ...],
    threads: int,
    progress: Callable[[int, int], None],
    frame: Frame = FRAME,
) -> Tally:
    """Compare all values of two arrays of one shape, in threads; the result does not depend on their number.

    Chunks of the same shape are compared pair by pair. If the shapes differ, a block of the source of at most 32 MiB,
    or one chunk, is assembled first, and then compared with each part of the target.

    Parameters
    ----------
    source, target
        The arrays.
    fills, frame
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
        return compare(source.read(part), target.read(part), origin_of(part), fills, frame)

    if source.chunk_shape == target.chunk_shape:
        everything = tuple(slice(0, extent) for extent in shape)
        for part_tally in ordered_map(pair, _parts(everything, source), threads):
            tally = tally.plus(part_tally)
            progress(tally.count, total)
        return tally
    itemsize = max(source.dtype.itemsize, 1)
    grids = [chunk_shape for chunk_shape in (source.chunk_shape, target.chunk_shape) if chunk_shape]
    size = block_shape(shape, grids, _BLOCK_NBYTES // itemsize)
    # One array for all blocks, because new memory costs as much time as decoding into it.
    room = np.empty(math.prod(size), source.dtype)
    for block in _cut(tuple(slice(0, extent) for extent in shape), size):
        extents = [span.stop - span.start for span in block]
        values = room[: math.prod(extents)].reshape(extents)

        def fill(part: Region, values: NDArray[Any] = values, block: Region = block) -> None:
            values[within(part, block)] = source.read(part)

        def check(part: Region, values: NDArray[Any] = values, block: Region = block) -> Tally:
            return compare(values[within(part, block)], target.read(part), origin_of(part), fills, frame)

        for _ in ordered_map(fill, _parts(block, source), threads):
            pass
        for part_tally in ordered_map(check, _parts(block, target), threads):
            tally = tally.plus(part_tally)
            progress(tally.count, total)
    return tally


def _parts(block: Region, values: ArrayReader) -> Iterator[Region]:
    """Return the parts of a block: chunks of an array, several small ones at a time, or slabs if it has none."""
    if values.chunk_shape is not None:
        return _cut(
            block, several_chunks(values.shape, values.chunk_shape, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
        )
    extents = tuple(span.stop - span.start for span in block)
    step = slab(extents, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
    starts = itertools.product(*(range(span.start, span.stop, n) for span, n in zip(block, step, strict=True)))
    return (
        tuple(slice(first, min(first + n, span.stop)) for first, n, span in zip(start, step, block, strict=True))
        for start in starts
    )


def _cut(block: Region, step: Shape) -> Iterator[Region]:
    """Yield the parts of a block along a grid that begins with the array, last axis fastest."""
    axes = [range(span.start // n * n, span.stop, n) for span, n in zip(block, step, strict=True)]
    for corner in itertools.product(*axes):
        yield tuple(
            slice(max(first, span.start), min(first + n, span.stop))
            for first, n, span in zip(corner, step, block, strict=True)
        )
