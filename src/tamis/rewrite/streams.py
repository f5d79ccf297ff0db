"""Find out what can be kept: chunks as they are stored, or zfp streams while the filters after zfp change."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from tamis.chunks.chunk_reader import ChunkReader
from tamis.chunks.gather import bounded_threads, chunks_at_once
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.regions import Parts
from tamis.chunks.threads import ordered_map
from tamis.errors import BoundError, TamisError
from tamis.filters import ChunkType, Filter, Stage, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import encode_stream
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray


def has_streams(array: StoredArray, pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> bool:
    """Return whether an array has this type, chunk shape and the zfp of the pipeline, whatever filters follow zfp."""
    if array.chunk_shape != chunk_shape or array.dtype != dtype or not array.can_read_chunks:
        return False
    old, new = (filters.stages[0] if filters.stages else None for filters in (array.pipeline, pipeline))
    if not (old and new and isinstance(old.filter, Zfp) and isinstance(new.filter, Zfp)):
        return False
    stored, requested = old.stored or (), new.filter.stored(ChunkType(dtype, chunk_shape))
    # The version of the writer does not matter. Both tolerances are rounded down to a power of two.
    return is_stored(stored) and _without_version(stored) == _without_version(requested)


def _without_version(stored: tuple[int, ...]) -> tuple[object, ...]:
    header = StoredZfp.parse(stored)
    return header.filter, header.dtype, header.shape, header.swapped


def encode_streams(plan: Plan, source: StoredArray, parts: Parts, threads: int) -> Generator[NewChunk, None, None]:
    """Undo the filters after zfp, chunk by chunk in threads, and apply those of the plan to the zfp streams.

    A chunk without zfp goes through the other filters of the plan.

    Raises
    ------
    FileError
        If a chunk of the source is damaged, as far as the filters after zfp detect it.
    BoundError
        If the source has a chunk without zfp, and the plan allows none.
    """
    at_once, threads = chunks_at_once(plan.chunk.nbytes), bounded_threads(plan.chunk.nbytes, threads)
    tasks = (parts[at : at + at_once] for at in range(0, len(parts), at_once))
    with closing(source.open_chunks()) as chunks:

        def encode(task: Sequence[Region]) -> list[NewChunk]:
            return [_encode(plan, chunks, part) for part in task]

        with closing(ordered_map(encode, tasks, threads)) as batches:
            for batch in batches:
                yield from batch


def _encode(plan: Plan, chunks: ChunkReader, part: Region) -> NewChunk:
    origin = origin_of(part)
    stream = chunks.first_output(origin)
    if stream is None and not plan.pipeline.stages[0].optional:
        raise BoundError(
            f"{plan.path}: chunk at {origin}: expected it to be stored through zfp, found it without: as an optional"
            f" filter, {plan.pipeline.filters[0]}?, zfp is left out of such a chunk"
        ).at(dataset=plan.path, chunk=origin, filter=plan.pipeline.filters[0])
    try:
        if stream is None:
            data, mask = plan.pipeline.encode(chunks.values(origin), skip=(Zfp,))
        else:
            data, mask = encode_stream(plan.pipeline, stream, plan.chunk)
    except TamisError as error:
        error.at(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin)
        raise
    return NewChunk(origin, data, mask)


def is_stored_so(array: StoredArray, pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> bool:
    """Return whether an array is already stored with this type, chunk shape, filters and parameters.

    Whether a filter is optional matters only if it is not the filter's default.
    """
    if array.chunk_shape != chunk_shape or array.dtype != dtype or array.has_named_type:
        return False
    if len(array.pipeline.stages) != len(pipeline.stages) or not array.partial_filtered:
        return False
    chunk = ChunkType(dtype, chunk_shape)
    pairs = zip(pipeline.stages, array.pipeline.stages, strict=True)
    return all(_same(asked, stored, chunk) for asked, stored in pairs)


def are_stored_alike(array: StoredArray, other: StoredArray) -> bool:
    """Return whether two arrays have the same type, chunks and filters."""
    return (array.dtype, array.chunk_shape, array.pipeline) == (other.dtype, other.chunk_shape, other.pipeline)


def _same(asked: Stage, stored: Stage, chunk: ChunkType) -> bool:
    if asked.optional not in (asked.filter.optional, stored.optional) or asked.filter.id != stored.filter.id:
        return False
    try:
        return asked.filter == stored.filter or _as_stored(asked.filter, chunk) == stored.filter
    except TamisError:
        return False


def _as_stored(asked: Filter, chunk: ChunkType) -> Filter:
    """Return the filter as read from a file after writing, which rounds a tolerance."""
    return type(asked).from_values(asked.stored(chunk))
