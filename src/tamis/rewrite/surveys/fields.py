"""Measures of whole fields, the last two axes of an array, against its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from contextlib import closing

from tamis.accuracy.field_measures import FieldMeasures
from tamis.chunks.boxes import cut, whole
from tamis.chunks.gather import bounded_threads
from tamis.chunks.grid import Region
from tamis.chunks.threads import ordered_map
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray

_BLOCK_NBYTES = 32 << 20
_BLOCK_COPIES, _FIELD_COPIES = 8, 30
"""Memory of a block in work, as multiples of its size and of the size of a field, which is compared in float64."""


def measured_fields(
    plan: Plan,
    source: StoredArray,
    target: StoredArray,
    words: Collection[str],
    progress: Callable[[int, int], None],
    threads: int = 1,
) -> FieldMeasures:
    """Return the measures with these words of all fields of an array.

    Fields are read in blocks of up to 32 MiB, or one by one if they are larger, so that chunks with several fields are
    decoded as rarely as possible.

    Raises
    ------
    FileError
        If a chunk cannot be read.
    """
    shape, steps = source.shape, _block_shape(plan, source, target)
    blocks = [*cut(whole(shape), steps)]
    total = FieldMeasures()

    def measure(block: Region) -> FieldMeasures:
        first, second = (reader.read(block).astype(plan.dtype, copy=False) for reader in (before, after))
        return FieldMeasures.of(first, second, plan.missing, plan.packing, words)

    progress(0, len(blocks))
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    nbytes = _BLOCK_COPIES * math.prod(steps[:-2]) * field_nbytes + _FIELD_COPIES * field_nbytes
    with (
        closing(source.open_reader()) as before,
        closing(target.open_reader()) as after,
        closing(ordered_map(measure, blocks, bounded_threads(nbytes, threads))) as found,
    ):
        for done, measures in enumerate(found, start=1):
            total = total.plus(measures)
            progress(done, len(blocks))
    return total


def _block_shape(plan: Plan, source: StoredArray, target: StoredArray) -> tuple[int, ...]:
    """Return the shape of blocks of whole fields, with as many of them as chunks have, if they are not too large."""
    shape = source.shape
    grids = [grid for grid in (source.chunk_shape, target.chunk_shape) if grid]
    steps = [min(extent, max(steps)) for extent, *steps in zip(shape[:-2], *(grid[:-2] for grid in grids), strict=True)]
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    while math.prod(steps) > 1 and math.prod(steps) * field_nbytes > _BLOCK_NBYTES:
        axis = steps.index(max(steps))
        steps[axis] = -(-steps[axis] // 2)
    return (*steps, *shape[-2:])
