"""Two arrays of one shape, stored in chunks of different shapes, compared in bounded memory. Knows no file format."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.statistics import FRAME, Frame, Tally, compare
from tamis.chunks.blocks import block_shape, slab, within
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import Values
from tamis.chunks.threads import ordered_map

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
