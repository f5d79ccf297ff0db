"""How many values of a dataset are missing."""

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
    """Missing values of a dataset.

    Parameters
    ----------
    nan, infinite
        How many are NaN, and how many an infinity.
    marked
        How many are each of the values that stand for missing ones, in words.
    """

    nan: int = 0
    infinite: int = 0
    marked: tuple[tuple[str, int], ...] = ()

    @property
    def total(self) -> int:
        """All of them."""
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
    """Count the missing values of a dataset that is to be written, in threads; parts that are not stored are left out.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    source.check_readable()
    parts = source.parts(plan.grid(source))
    found = MissingCount()
    progress(0, len(parts))

    def count(part: Region, values: NDArray[Any]) -> MissingCount:
        nan = infinite = 0
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            nan = int(np.count_nonzero(np.isnan(values)))
            infinite = int(np.count_nonzero(np.isinf(values)))
        marked = ((f"{each:g}", int(np.count_nonzero(values == each))) for each in plan.missing.values)
        return MissingCount(nan, infinite, tuple(marked))

    with (
        closing(source.open_reader()) as values,
        closing(over_chunks(values, parts, plan.dtype, one_by_one(count), threads)) as counts,
    ):
        for done, each in enumerate(counts, start=1):
            found += each
            progress(done, len(parts))
    return found


def count_partial(plan: Plan, target: StoredArray) -> int:
    """Count the chunks without zfp that reach beyond the array along an axis that can grow."""
    index = target.chunk_index()
    steps = zip(plan.padding.growing, target.shape, plan.chunk_shape, strict=False)
    if plan.pipeline.zfp is None or not any(grows and extent % step for grows, extent, step in steps):
        return 0
    without_zfp = as_array(index.numbers)[index.masks & 1 == 1]
    extents = ([axis.stop - axis.start for axis in part] for part in Parts(index.grid, without_zfp))
    return sum(plan.padding.is_read(tuple(some), plan.chunk_shape) for some in extents)
