"""Compare two arrays of one shape, in chunks of any shapes, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.statistics import Tally, compare
from tamis.chunks.boxes import block_shape, cut, several_chunks, within
from tamis.chunks.grid import Grid, Region, origin_of
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts, as_array
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
    stored: Callable[[Grid], Parts] = Parts,
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
    stored
        Returns the parts of a grid that have stored values in one of the arrays. All others read as one value, which is
        compared once.
    """
    shape, total = source.shape, math.prod(source.shape)
    progress(0, total)
    if not total:
        return Tally()

    def divided(step: Shape) -> tuple[Parts, Tally]:
        """Return the parts to compare, and the tally of all others."""
        parts = stored(Grid(shape, step))
        one = () if parts.are_all else tuple(slice(at, at + 1) for at in _first_absent(parts))
        rest = compare(source.read(one), target.read(one), origin_of(one), missing, zero) if one else Tally(0)
        if rest.different:  # the result tells how many differ, and where
            return Parts(parts.grid), Tally()
        count = total - sum(math.prod(span.stop - span.start for span in part) for part in parts) if one else 0
        if count:
            progress(count, total)
        return parts, replace(rest, count=count, missing=rest.missing * count, compared=rest.compared * count)

    def pair(part: Region) -> Tally:
        return compare(source.read(part), target.read(part), origin_of(part), missing, zero)

    if source.chunk_shape == target.chunk_shape:
        parts, tally = divided(_step(source, shape))
        for part_tally in ordered_map(pair, parts, threads):
            tally = tally.plus(part_tally)
            progress(tally.count, total)
        return tally
    itemsize = max(source.dtype.itemsize, 1)
    grids = [chunk_shape for chunk_shape in (source.chunk_shape, target.chunk_shape) if chunk_shape]
    size = block_shape(shape, grids, _BLOCK_NBYTES // itemsize)
    # One array for all blocks, because new memory costs as much time as decoding into it.
    room = np.empty(math.prod(size), source.dtype)
    blocks, tally = divided(size)
    for block in blocks:
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


def _first_absent(parts: Parts) -> Shape:
    """Return the origin of the first part of a grid that is not among some of its parts."""
    numbers = as_array(parts.numbers)
    gaps = np.flatnonzero(numbers != np.arange(len(numbers)))
    return origin_of(parts.grid.region_of(int(gaps[0]) if len(gaps) else len(numbers)))


def _step(values: ArrayReader, block: Shape) -> Shape:
    """Return the shape of the parts of a block: chunks of an array, several small ones at a time, or slabs."""
    chunk_shape = values.chunk_shape or (1,) * len(block)
    return several_chunks(block, chunk_shape, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
