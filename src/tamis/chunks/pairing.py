"""Two arrays of one shape, stored in chunks of different shapes, compared in bounded memory. Knows no file format."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.engine import ordered_map
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.rechunking import within
from tamis.chunks.statistics import FRAME, Frame, Tally, compare
from tamis.chunks.values import Values

Shape = tuple[int, ...]

_BLOCK_NBYTES = 32 << 20
_SLAB_NBYTES = 1 << 20


def compared(
    source: Values,
    target: Values,
    fills: tuple[NDArray[Any], ...],
    threads: int,
    progress: Callable[[int, int], None],
    frame: Frame = FRAME,
) -> Tally:
    """Compare all values of two arrays of one shape, in threads; the result is the same for any number of them.

    Chunks of the same shape are compared pair by pair. Where the shapes differ, a block of the source of at most
    32 MiB, or one chunk, is put together first, and then compared with each part of the target.

    Parameters
    ----------
    source, target
        The arrays.
    fills, frame
        As for `compare`.
    threads
        Threads.
    progress
        Called with values done and values in all, before the first and after each part.
    """
    shape, total, found = source.shape, math.prod(source.shape), Tally()
    progress(0, total)
    if not total:
        return found

    def pair(part: Region) -> Tally:
        return compare(source.read(part), target.read(part), origin_of(part), fills, frame)

    if source.chunks == target.chunks:
        whole = tuple(slice(0, extent) for extent in shape)
        for each in ordered_map(pair, _parts(whole, source), threads):
            found = found.plus(each)
            progress(found.count, total)
        return found
    itemsize = max(source.dtype.itemsize, 1)
    size = block_shape(shape, [each for each in (source.chunks, target.chunks) if each], _BLOCK_NBYTES // itemsize)
    # One for all blocks: fresh memory costs as much time as decoding into it.
    room = np.empty(math.prod(size), source.dtype)
    for block in _cut(tuple(slice(0, extent) for extent in shape), size):
        extents = [each.stop - each.start for each in block]
        values = room[: math.prod(extents)].reshape(extents)

        def fill(part: Region, values: NDArray[Any] = values, block: Region = block) -> None:
            values[within(part, block)] = source.read(part)

        def check(part: Region, values: NDArray[Any] = values, block: Region = block) -> Tally:
            return compare(values[within(part, block)], target.read(part), origin_of(part), fills, frame)

        for _ in ordered_map(fill, _parts(block, source), threads):
            pass
        for each in ordered_map(check, _parts(block, target), threads):
            found = found.plus(each)
            progress(found.count, total)
    return found


def block_shape(shape: Shape, grids: Sequence[Shape], most: int) -> Shape:
    """Choose the shape of blocks of an array, so that chunks that several blocks touch are as few as can be.

    Parameters
    ----------
    shape
        Of the array.
    grids
        Shapes of the chunks of one or two ways to store it.
    most
        Values of a block, unless a chunk has more.
    """
    block = _clipped(grids[-1], shape) if grids else (1,) * len(shape)
    while True:
        best = None
        for larger in _grown(block, shape, grids):
            if math.prod(larger) <= most:
                # Of equally good ones the one that grew along the fastest axis, which is stored in one piece.
                rank = (_decoded(larger, shape, grids), larger)
                best = rank if best is None or rank < best else best
        if best is None:
            return block
        block = best[1]


def slab(shape: Shape, most: int) -> Shape:
    """Shape of parts of an array of at most so many values, whole along the fastest axes."""
    extents = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        extents[axis] = max(1, min(shape[axis], most // math.prod(extents)))
        if extents[axis] < shape[axis]:
            break
    return tuple(extents)


def _grown(block: Shape, shape: Shape, grids: Sequence[Shape]) -> Iterator[Shape]:
    for axis, (step, extent) in enumerate(zip(block, shape, strict=True)):
        if step >= extent:
            continue
        # Twice as long at least, but where that makes whole chunks, so that few steps lead to the end.
        ends = {2 * step}
        for each in (chunk[axis] for chunk in grids):
            ends |= {-(-2 * step // each) * each, -(-step // each) * each}
        for end in sorted({min(each, extent) for each in ends if each > step}):
            yield (*block[:axis], end, *block[axis + 1 :])


def _decoded(block: Shape, shape: Shape, grids: Sequence[Shape]) -> int:
    """Values that are decoded to read the array block by block."""
    return sum(math.prod(chunk) * math.prod(map(_touched, block, chunk, shape)) for chunk in grids)


def _touched(block: int, chunk: int, extent: int) -> int:
    """Chunks along an axis, counted once for each block that they share a value with."""
    # All chunks once, and those that the end of a block cuts once more.
    common = math.lcm(block, chunk)
    return -(-extent // chunk) + -(-extent // block) - -(-extent // common)


def _parts(block: Region, values: Values) -> Iterator[Region]:
    """Cut a block along the chunks of an array, or into slabs."""
    if values.chunks is not None:
        return _cut(block, values.chunks)
    extents = tuple(each.stop - each.start for each in block)
    step = slab(extents, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
    starts = itertools.product(*(range(each.start, each.stop, n) for each, n in zip(block, step, strict=True)))
    return (
        tuple(slice(at, min(at + n, each.stop)) for at, n, each in zip(start, step, block, strict=True))
        for start in starts
    )


def _cut(block: Region, step: Shape) -> Iterator[Region]:
    """Cut a block along a grid that begins where the array does, last axis fastest."""
    axes = [range(each.start // n * n, each.stop, n) for each, n in zip(block, step, strict=True)]
    for corner in itertools.product(*axes):
        yield tuple(
            slice(max(at, each.start), min(at + n, each.stop)) for at, n, each in zip(corner, step, block, strict=True)
        )


def _clipped(chunk: Shape, shape: Shape) -> Shape:
    return tuple(min(step, extent) for step, extent in zip(chunk, shape, strict=True))
