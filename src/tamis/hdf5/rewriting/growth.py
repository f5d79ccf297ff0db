"""Whether a dataset takes more room when it is stored anew: docs/design/2026-11-22-what-would-grow-is-kept.md."""

from __future__ import annotations

import math
from collections.abc import Iterable

import h5py

from tamis.errors import FileError, TamisError
from tamis.filters import Bitshuffle, Fletcher32, Shuffle
from tamis.hdf5.facts import file_of, has_tree_indexes
from tamis.hdf5.rewriting.encoding import NewChunk
from tamis.hdf5.rewriting.estimating import RECORD_NBYTES, likely_nbytes
from tamis.hdf5.rewriting.plans import Plan
from tamis.hdf5.rewriting.unreadable import unreadable
from tamis.hdf5.storage import pipeline_of
from tamis.pipeline import Pipeline

_HELD_NBYTES = 16 << 20
"""Chunks of a dataset that takes no more than this wait in memory until it is known whether it grows."""

_FILTER_NBYTES = 32
"""What a filter takes in the header of a dataset, about."""

_NODE_CHUNKS = 64


class LargerError(TamisError):
    """The dataset takes more room than in its source."""


def compresses(pipeline: Pipeline) -> bool:
    """Return whether a pipeline is there to make chunks smaller, rather than to check or only to order their bytes."""
    return any(
        not isinstance(each, (Shuffle, Fletcher32)) and not (isinstance(each, Bitshuffle) and each.compressor == "none")
        for each in pipeline.filters
    )


def check_growth(plan: Plan, source: h5py.Dataset, count: int) -> int | None:
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
    stored = int(source.id.get_storage_size())
    most: int = stored + _described_nbytes(source, source.chunks, pipeline_of(source))
    most -= _described_nbytes(source, plan.chunks, plan.pipeline)
    if most <= 0:
        if pipeline_of(source).stages and (reason := unreadable(plan, source)):  # which is listed, whatever its size
            raise FileError(reason)
        raise LargerError
    if stored <= _HELD_NBYTES:
        return most
    # Values that went through no filter become no larger; of others some chunks are encoded to see.
    if pipeline_of(source).stages and likely_nbytes(plan, source) > most + count * RECORD_NBYTES:
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


def _described_nbytes(source: h5py.Dataset, chunks: tuple[int, ...] | None, pipeline: Pipeline) -> int:
    """Bytes that the index of chunks and the list of filters take."""
    if chunks is None:
        return 0
    count = math.prod(-(-extent // step) for extent, step in zip(source.shape, chunks, strict=True))
    filters = _FILTER_NBYTES * len(pipeline.stages)
    if not has_tree_indexes(file_of(source)):
        return filters + (16 * count if count > 1 else 0)
    # Nodes of a B-tree have room for this many chunks; half of it is used where there are several.
    nodes = 1 if count <= _NODE_CHUNKS else -(-count // (_NODE_CHUNKS // 2))
    rank: int = source.ndim
    return filters + nodes * (24 + 8 * _NODE_CHUNKS + (_NODE_CHUNKS + 1) * 8 * (rank + 2))
