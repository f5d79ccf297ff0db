"""Count the missing values of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.gather import one_by_one, over_chunks
from tamis.chunks.grid import Region
from tamis.chunks.regions import Parts, as_array
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray


@dataclass(frozen=True, slots=True)
class MissingCount:
    """Counts of missing values of a dataset.

    Parameters
    ----------
    nan, infinite
        Number of NaN, and of infinities.
    marked
        For each value that means missing, its text and its number.
    """

    nan: int = 0
    infinite: int = 0
    marked: tuple[tuple[str, int], ...] = ()

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
    plan: Plan, source: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> MissingCount:
    """Count the missing values of a source in threads, without the parts that are not stored.

    Raises
    ------
    FileError
        If the source cannot be read.
    """
    source.check_readable()
    parts = source.parts(plan.grid(source))
    total = MissingCount()
    progress(0, len(parts))

    def count(part: Region, values: NDArray[Any]) -> MissingCount:
        nan = infinite = 0
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            nan = int(np.count_nonzero(np.isnan(values)))
            infinite = int(np.count_nonzero(np.isinf(values)))
        marked = ((f"{marker:g}", int(np.count_nonzero(values == marker))) for marker in plan.missing.values)
        return MissingCount(nan, infinite, tuple(marked))

    with (
        closing(source.open_reader()) as reader,
        closing(over_chunks(reader, parts, plan.dtype, one_by_one(count), threads)) as counts,
    ):
        for done, part_count in enumerate(counts, start=1):
            total += part_count
            progress(done, len(parts))
    return total


def count_partial(plan: Plan, target: StoredArray) -> int:
    """Count the chunks without zfp that reach beyond the array along an axis that can grow."""
    steps = zip(plan.padding.growing, target.shape, plan.chunk_shape, strict=False)
    if plan.pipeline.zfp is None or not any(grows and extent % step for grows, extent, step in steps):
        return 0
    index = target.chunk_index()
    without_zfp = as_array(index.numbers)[index.masks & 1 == 1]
    extents = ([axis.stop - axis.start for axis in part] for part in Parts(index.grid, without_zfp))
    return sum(plan.padding.is_read(tuple(extent), plan.chunk_shape) for extent in extents)
