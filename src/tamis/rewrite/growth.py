"""Refuse a rewrite that would make a dataset larger: docs/design/2026-11-22-what-would-grow-is-kept.md."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import FileError, TamisError
from tamis.filters import Bitshuffle, Fletcher32, Shuffle
from tamis.pipeline import Pipeline
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.plan import Plan
from tamis.rewrite.sampled.estimate import RECORD_NBYTES, likely_nbytes, unreadable
from tamis.store.array import StoredArray

_HELD_NBYTES = 16 << 20
"""Up to this size, all new chunks of a dataset stay in memory until it is known whether it grows."""


class LargerError(TamisError):
    """The new dataset is larger than its source."""


def compresses(pipeline: Pipeline) -> bool:
    """Return whether a pipeline has a filter that compresses, not only checksums and shuffles."""
    return any(
        not isinstance(item, (Shuffle, Fletcher32)) and not (isinstance(item, Bitshuffle) and item.compressor == "none")
        for item in pipeline.filters
    )


def check_growth(plan: Plan, source: StoredArray, count: int) -> int | None:
    """Return how many bytes the new chunks may take; None if there is no limit, or they are too many for the memory.

    Raises
    ------
    LargerError
        If they will certainly or, for large datasets, probably take more.
    FileError
        If they would, and the source cannot be read.
    """
    if plan.may_grow or not count:
        return None
    stored = source.stored_nbytes
    most = stored + source.described_nbytes(source.chunk_shape, source.pipeline)
    most -= source.described_nbytes(plan.chunk_shape, plan.pipeline)
    if most <= 0:
        # An unreadable dataset is reported whatever its size.
        if source.pipeline.stages and (reason := unreadable(plan, source)):
            raise FileError(reason)
        raise LargerError
    if stored <= _HELD_NBYTES:
        return most
    # Unfiltered values do not become larger; for others, a sample of chunks is encoded.
    if source.pipeline.stages and likely_nbytes(plan, source) > most + count * RECORD_NBYTES:
        raise LargerError
    return None


def collect_within(chunks: Iterable[NewChunk], most_nbytes: int) -> list[NewChunk]:
    """Return all chunks as a list; raise LargerError as soon as they take more than `most_nbytes`."""
    collected: list[NewChunk] = []
    nbytes = 0
    for chunk in chunks:
        nbytes += len(chunk.data) + (len(chunk.flags[0]) if chunk.flags else 0)
        if nbytes > most_nbytes:
            raise LargerError
        collected.append(chunk)
    return collected
