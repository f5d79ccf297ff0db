"""Whether a dataset takes more room when it is stored anew: docs/design/2026-11-22-what-would-grow-is-kept.md."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.errors import FileError, TamisError
from tamis.filters import Bitshuffle, Fletcher32, Shuffle
from tamis.pipeline import Pipeline
from tamis.rewrite.estimate import RECORD_NBYTES, likely_nbytes, unreadable
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray

_HELD_NBYTES = 16 << 20
"""Chunks of a dataset that takes no more than this wait in memory until it is known whether it grows."""


class LargerError(TamisError):
    """The dataset takes more room than in its source."""


def compresses(pipeline: Pipeline) -> bool:
    """Return whether a pipeline is there to make chunks smaller, rather than to check or only to order their bytes."""
    return any(
        not isinstance(each, (Shuffle, Fletcher32)) and not (isinstance(each, Bitshuffle) and each.compressor == "none")
        for each in pipeline.filters
    )


def check_growth(plan: Plan, source: StoredArray, count: int) -> int | None:
    """Return the bytes that the new chunks may take; None where there is no limit, or too much to wait for.

    Parameters
    ----------
    plan
        Of the dataset.
    source
        As it is stored.
    count
        Chunks that will be written.

    Raises
    ------
    LargerError
        If it is known already that they take more.
    FileError
        If they would, and the source cannot be read.
    """
    if plan.may_grow or not count:
        return None
    stored = source.stored_nbytes
    most = stored + source.described_nbytes(source.chunk_shape, source.pipeline)
    most -= source.described_nbytes(plan.chunk_shape, plan.pipeline)
    if most <= 0:
        if source.pipeline.stages and (reason := unreadable(plan, source)):  # which is listed, whatever its size
            raise FileError(reason)
        raise LargerError
    if stored <= _HELD_NBYTES:
        return most
    # Values that went through no filter become no larger; of others some chunks are encoded to see.
    if source.pipeline.stages and likely_nbytes(plan, source) > most + count * RECORD_NBYTES:
        raise LargerError
    return None


def held_back(chunks: Iterable[NewChunk], most_nbytes: int) -> list[NewChunk]:
    """Return chunks when all are there.

    Raises
    ------
    LargerError
        As soon as they take more than so many bytes.
    """
    held: list[NewChunk] = []
    nbytes = 0
    for each in chunks:
        nbytes += len(each.data) + (len(each.flags[0]) if each.flags else 0)
        if nbytes > most_nbytes:
            raise LargerError
        held.append(each)
    return held
