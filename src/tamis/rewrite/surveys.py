"""Facts from a pass over all values of an array: missing values, range and deviation, measures of whole fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.fields import FieldMeasures
from tamis.accuracy.measured import Measured
from tamis.arrays.gather import bounded_threads, cut, each_result, whole
from tamis.arrays.index import Parts, as_array, joined
from tamis.arrays.threads import ordered_map
from tamis.rewrite.write import encode_parts
from tamis.stores.facts import ArrayFacts, size_of

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.rewrite.plan import ArrayPlan
    from tamis.stores.protocols import StoredArray


@dataclass(frozen=True, slots=True)
class MissingCount:
    """Counts of missing values of a dataset."""

    # Number of NaN, and of infinities
    nan: int = 0
    infinite: int = 0
    marked: tuple[tuple[str, int], ...] = ()  # For each value that means missing, its text and its number

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return self.nan + self.infinite + sum(count for _, count in self.marked)

    def __add__(self, other: MissingCount) -> MissingCount:
        marked = dict(self.marked)
        for name, count in other.marked:
            marked[name] = marked.get(name, 0) + count
        return MissingCount(self.nan + other.nan, self.infinite + other.infinite, tuple(marked.items()))

    def __str__(self) -> str:
        counts = (("NaN", self.nan), ("infinite", self.infinite), *self.marked)
        return ", ".join(f"{count} {name}" for name, count in counts if count) or "none"


def count_missing(
    plan: ArrayPlan, source: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> MissingCount:
    """Count the missing values of a source in threads, without the parts that are not stored."""
    source.check_readable()
    parts = source.parts(plan.grid(source))

    def count(part: Region, values: NDArray[Any]) -> MissingCount:
        nan = infinite = 0
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            nan = int(np.count_nonzero(np.isnan(values)))
            infinite = int(np.count_nonzero(np.isinf(values)))
        marked = ((f"{marker:g}", int(np.count_nonzero(values == marker))) for marker in plan.checks.missing.values)
        return MissingCount(nan, infinite, tuple(marked))

    return sum(each_result(source.open_reader(), parts, plan.dtype, count, threads, progress), MissingCount())


def count_partial(plan: ArrayPlan, target: StoredArray) -> int:
    """Count the chunks without zfp that reach beyond the array along an axis that can grow."""
    steps = zip(plan.padding.growing, target.shape, plan.chunk_shape, strict=False)
    if plan.pipeline.bounded is None or not any(grows and extent % step for grows, extent, step in steps):
        return 0
    index = target.chunk_index()
    without_zfp = as_array(index.numbers)[index.masks & 1 == 1]
    extents = ([axis.stop - axis.start for axis in part] for part in Parts(index.grid, without_zfp))
    return sum(plan.padding.is_read(tuple(extent), plan.chunk_shape) for extent in extents)


_BLOCK_NBYTES = 32 << 20
_BLOCK_COPIES, _FIELD_COPIES = 8, 30
"""Memory of a block in work, as multiples of its size and of the size of a field, which is compared in float64."""


def measured_fields(
    plan: ArrayPlan,
    source: StoredArray,
    target: StoredArray,
    words: Collection[str],
    progress: Callable[[int, int], None],
    threads: int = 1,
) -> FieldMeasures:
    """Return the measures with these words of all fields of an array.

    Fields are read in blocks of up to 32 MiB, or one by one if they are larger, so that chunks with several fields are
    decoded as rarely as possible.
    """
    shape = source.shape
    steps = _block_shape(plan, source, target)
    blocks = [*cut(whole(shape), steps)]
    total = FieldMeasures()

    def measure(block: Region) -> FieldMeasures:
        first, second = (reader.read(block).astype(plan.dtype, copy=False) for reader in (before, after))
        return FieldMeasures.of(first, second, plan.checks.missing, plan.packing, words)

    progress(0, len(blocks))
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    nbytes = _BLOCK_COPIES * math.prod(steps[:-2]) * field_nbytes + _FIELD_COPIES * field_nbytes
    with (
        closing(source.open_reader()) as before,
        closing(target.open_reader()) as after,
        closing(ordered_map(measure, blocks, bounded_threads(nbytes, threads))) as surveys,
    ):
        for done, measures in enumerate(surveys, start=1):
            total = total.plus(measures)
            progress(done, len(blocks))
    return total


def measured_pairs(
    plan: ArrayPlan, source: StoredArray, target: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> Measured:
    """Return what the measures of a plan need of all values of two arrays, read in threads."""
    grid = plan.grid(source)
    parts = joined(source.parts(grid), target.parts(grid))
    total = Measured()

    def measured(part: Region, values: NDArray[Any]) -> Measured | None:
        return plan.measured(values, after.read(part).astype(plan.dtype, copy=False))

    with closing(target.open_reader()) as after:
        for found in each_result(source.open_reader(), parts, plan.dtype, measured, threads, progress):
            total = total.plus(found or Measured())
    return total.plus(unstored_measured(plan, source, parts))


def unstored_measured(plan: ArrayPlan, source: ArrayFacts, parts: Parts) -> Measured:
    """Return the facts of all values outside of some parts, where the fill value is read."""
    if parts.are_all:
        return Measured()
    stored = sum(math.prod(axis.stop - axis.start for axis in part) for part in parts)
    return Measured.repeated(source.fill.value.astype(plan.dtype), size_of(source) - stored, plan.checks.missing)


def _block_shape(plan: ArrayPlan, source: ArrayFacts, target: ArrayFacts) -> tuple[int, ...]:
    """Return the shape of blocks of whole fields, with as many of them as chunks have, if they are not too large."""
    shape = source.shape
    chunk_shapes = [known for known in (source.storage.chunk_shape, target.storage.chunk_shape) if known]
    steps = [min(extent, max(known[axis] for known in chunk_shapes)) for axis, extent in enumerate(shape[:-2])]
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    while math.prod(steps) > 1 and math.prod(steps) * field_nbytes > _BLOCK_NBYTES:
        axis = steps.index(max(steps))
        steps[axis] = -(-steps[axis] // 2)
    return (*steps, *shape[-2:])


def survey(
    plan: ArrayPlan, source: StoredArray, progress: Callable[[int, int], None], threads: int = 1, *, moments: bool
) -> Measured:
    """Return the facts of all valid values of a source, with moments on request; read in threads."""
    source.check_readable()
    parts = source.parts(plan.grid(source))
    total = Measured()

    def measured(_: Region, values: NDArray[Any]) -> Measured:
        return Measured.unchanged(values, plan.checks.missing, moments=moments)

    for values in each_result(source.open_reader(), parts, plan.dtype, measured, threads, progress):
        total = total.plus(values)
    return total.plus(unstored_measured(plan, source, parts))


def has_missing(plan: ArrayPlan, source: StoredArray, threads: int = 1) -> bool:
    """Return whether values of a source are missing, so that a plan with flags gives it a mask; read in threads.

    Reading ends with the first part that has a missing value.
    """
    flags = plan.flags
    if flags is None:
        return False
    parts = source.parts(plan.grid(source))
    if not parts.are_all and flags.find(source.fill.value.astype(plan.dtype).reshape(1)) is not None:
        return True

    def finds(_: Region, values: NDArray[Any]) -> bool:
        return flags.find(values) is not None

    with closing(each_result(source.open_reader(), parts, plan.dtype, finds, threads)) as found:
        return any(found)


_SAMPLED = 5


def stored_ratio(plan: ArrayPlan, source: StoredArray, threads: int) -> float:
    """Return the bytes of values for each stored byte, of a few chunks spread over an array."""
    parts = source.parts(plan.grid(source))
    rows: list[int] = []
    if len(parts):
        rows = sorted({(2 * place + 1) * len(parts) // (2 * _SAMPLED) for place in range(_SAMPLED)})
    sample = Parts(parts.grid, np.array([parts.numbers[row] for row in rows], np.int64))
    stored = values = 0
    with closing(encode_parts(plan, source, sample, threads)) as chunks:
        for chunk in chunks:
            stored += len(chunk.data)
            values += math.prod(plan.chunk_shape) * plan.dtype.itemsize
    return max(values / stored, 1.0) if stored else 1.0
