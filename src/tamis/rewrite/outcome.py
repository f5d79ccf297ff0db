"""What became of the values of an array when it was written: outcomes of chunks add up to that of the array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.accuracy.measured import Measured
from tamis.arrays.grid import ChunkNotes
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.rewrite.plan import ArrayPlan
    from tamis.stores.protocols import ArrayWriter

_NOTHING_MEASURED = Measured()


class Outcome(NamedTuple):
    """What became of the values of chunks."""

    chunks: int = 0  # Number of chunks. Those that the source does not store are not written.
    # How many of them are stored without the first filter, such as zfp, because it cannot keep what is required
    lossless_chunks: int = 0
    lossless_for_missing: int = 0  # How many of these have missing values
    lossless_for_range: int = 0  # How many others would have values that cross a limit of the valid range
    missed_chunks: int = 0  # Chunks without loss because a filter or rounding fails the requirements on each value
    missing_values: int = 0  # Number of missing values; not counted if nothing is lossy
    # Number of values that are not rounded, because rounding would make them missing or let them cross a limit
    unrounded_values: int = 0
    largest_error: float = 0.0  # Largest error of the chunks that were decoded and compared
    worst: int | None = None  # Number of the chunk with that error; None if there is none
    # For each filter but the first, by its text, the number of chunks for which it failed
    skipped: Mapping[str, int] = {}
    measured: Measured = _NOTHING_MEASURED  # Measures of the chunks that were decoded and compared

    @classmethod
    def of(cls, plan: ArrayPlan, chunk: NewChunk) -> Outcome:
        """Return the outcome of a chunk that a plan made."""
        error = chunk.error or 0.0
        worst = chunk.number if error else None
        measured = chunk.measured or _NOTHING_MEASURED
        if not (chunk.mask or chunk.missing or chunk.crossed or chunk.missed):
            return cls(1, largest_error=error, worst=worst, measured=measured)
        without_first = plan.pipeline.bounded is not None and bool(chunk.mask & 1)
        is_rounded = plan.rounding is not None
        crosses = without_first and not is_rounded and bool(chunk.crossed) and not chunk.missing
        return cls(
            chunks=1,
            lossless_chunks=int(without_first),
            lossless_for_missing=int(without_first and bool(chunk.missing)),
            lossless_for_range=int(crosses),
            missed_chunks=int(chunk.missed and plan.required is not None),
            missing_values=chunk.missing,
            unrounded_values=chunk.crossed if is_rounded else 0,
            largest_error=error,
            worst=worst,
            skipped=Counter(_failed_filters(plan.pipeline, chunk.mask)),
            measured=measured,
        )

    def counts(self) -> dict[str, Any]:
        """Return its numbers of chunks and values, by name, as results have them."""
        return {
            "chunks": self.chunks,
            "lossless_chunks": self.lossless_chunks,
            "lossless_for_missing": self.lossless_for_missing,
            "lossless_for_range": self.lossless_for_range,
            "missed_chunks": self.missed_chunks,
            "missing_values": self.missing_values,
            "unrounded_values": self.unrounded_values,
        }

    def plus(self, other: Outcome) -> Outcome:
        """Return the outcome of both; of equal errors, the worst chunk is the first one's."""
        is_worse = other.largest_error > self.largest_error
        return Outcome(
            self.chunks + other.chunks,
            self.lossless_chunks + other.lossless_chunks,
            self.lossless_for_missing + other.lossless_for_missing,
            self.lossless_for_range + other.lossless_for_range,
            self.missed_chunks + other.missed_chunks,
            self.missing_values + other.missing_values,
            self.unrounded_values + other.unrounded_values,
            other.largest_error if is_worse else self.largest_error,
            other.worst if is_worse else self.worst,
            Counter(self.skipped) + Counter(other.skipped) if other.skipped else self.skipped,
            self.measured if other.measured is _NOTHING_MEASURED else self.measured.plus(other.measured),
        )


def _failed_filters(pipeline: Pipeline, mask: int) -> Iterator[str]:
    """Yield the filters that failed for a chunk, without zfp or the like, after which others are skipped on purpose."""
    first = pipeline.bounded
    for at, stage in enumerate(pipeline.stages):
        if mask >> at & 1 and stage.filter != first and (first is None or mask & 1):
            yield str(stage.filter)


@dataclass(frozen=True, slots=True)
class Written:
    """An array that was written: see `tamis.rewrite.write.write`."""

    outcome: Outcome
    # Filters as the store recorded them, which decode the proven chunks
    pipeline: Pipeline = field(default_factory=lambda: Pipeline(()))
    reused_chunks: int = 0  # How many chunks an earlier run had encoded
    # The companion with the missing values, without a name yet; None if none was needed
    companion: ArrayWriter | None = None
    # Numbers and seals (see `seal_of`) of the chunks that were decoded and compared with the source before they were
    # written. It remains to be shown that the store holds them.
    proven: ChunkNotes = field(default_factory=lambda: ChunkNotes("I"))
    packing_error: float = 0.0  # Largest error of the packed values, in units of the variable
