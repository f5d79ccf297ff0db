"""What is known of all values of an array before it is written, if its plan depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tamis.arrays.grid import grid_of
from tamis.jobs.progress import Progress, Step
from tamis.rewrite.packed_array import packing_range_of, possible_marks
from tamis.rewrite.surveys import survey

if TYPE_CHECKING:
    from tamis.accuracy.measured import Measured
    from tamis.rewrite.plan import ArrayPlan
    from tamis.rounding import PackingRange
    from tamis.stores.protocols import StoredArray


class Survey(Protocol):
    """What is known of all values of an array before it is written, if its plan depends on them."""

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """Return what is known of all values of an array by its plan, on request with their moments."""

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """Return the range and the missing values of an array that is packed."""


class ReadSurvey(NamedTuple):
    """A survey that reads all values."""

    report: Progress = lambda *_: None
    threads: int = 1

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        step = Step(f"reading {plan.path}, whose range or deviation is needed", 1, 1)
        return survey(plan, source, partial(self.report, step), self.threads, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        step = Step(f"reading {source.path}, whose range is needed", 1, 1)
        return packing_range_of(source, grid_of(source.shape, chunk_shape), partial(self.report, step), self.threads)


class GivenRanges(NamedTuple):
    """A survey whose ranges are known: those of several files together."""

    ranges: Mapping[str, PackingRange]
    read: ReadSurvey

    def measured(self, plan: ArrayPlan, source: StoredArray, *, moments: bool) -> Measured:
        """See `Survey.measured`."""
        return self.read.measured(plan, source, moments=moments)

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `Survey.packing_range`."""
        known = self.ranges.get(source.path)
        if known is None:
            return self.read.packing_range(source, chunk_shape)
        if known.own(possible_marks(source)).has_codes:
            return known
        return known.own(self.read.packing_range(source, chunk_shape).missing)  # only its values tell which it has


SURVEY_ALONE = ReadSurvey()
"""Reads in one thread, and reports nothing."""
