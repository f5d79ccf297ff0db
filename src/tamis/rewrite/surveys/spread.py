"""Range and standard deviation of an array, in one pass over its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

from numpy.typing import NDArray

from tamis.accuracy.measured import Measured
from tamis.chunks.gather import one_by_one, over_chunks
from tamis.chunks.grid import Region
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray


def survey(
    plan: Plan, source: StoredArray, progress: Callable[[int, int], None], threads: int = 1, *, moments: bool
) -> Measured:
    """Return what is known of all valid values of a source, if asked for with moments; read in threads.

    Raises
    ------
    FileError
        If the source cannot be read.
    """
    source.check_readable()
    parts = source.parts(plan.grid(source))
    count, total = 0, Measured()
    progress(0, len(parts))

    def measured(part: Region, values: NDArray[Any]) -> tuple[int, Measured]:
        size = math.prod(axis.stop - axis.start for axis in part)
        return size, Measured.unchanged(values, plan.missing, moments=moments)

    with (
        closing(source.open_reader()) as reader,
        closing(over_chunks(reader, parts, plan.dtype, one_by_one(measured), threads)) as found,
    ):
        for done, (size, values) in enumerate(found, start=1):
            count, total = count + size, total.plus(values)
            progress(done, len(parts))
    return total.plus(Measured.repeated(source.fill_value.astype(plan.dtype), source.size - count, plan.missing))
