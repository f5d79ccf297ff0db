"""Keep encoded data: chunks as stored, or zfp streams while the filters after zfp change."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.arrays.gather import bounded_threads, tasks_of
from tamis.arrays.index import Parts
from tamis.arrays.threads import ordered_map
from tamis.errors import BoundError, TamisError
from tamis.filters import ChunkType, Filter, Stage, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.rewrite.create import Create
from tamis.rewrite.encode import encode_stream
from tamis.rewrite.new_chunk import NewChunk, flags_pipeline
from tamis.rewrite.plan import ArrayPlan, Copy

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.grid import Origin
    from tamis.pipeline import Pipeline
    from tamis.stores.facts import ArrayFacts
    from tamis.stores.protocols import ArrayWriter, StoredArray


def has_streams(array: StoredArray, pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> bool:
    """Return whether an array has this type, chunk shape and the zfp of the pipeline, whatever filters follow zfp."""
    if array.storage.chunk_shape != chunk_shape or array.type.dtype != dtype or not array.can_read_chunks:
        return False
    old, new = (filters.stages[0] if filters.stages else None for filters in (array.storage.pipeline, pipeline))
    if not (old and new and isinstance(old.filter, Zfp) and isinstance(new.filter, Zfp)):
        return False
    stored, requested = old.stored or (), new.filter.stored(ChunkType(dtype, chunk_shape))
    # The version of the writer does not matter. Both tolerances are rounded down to a power of two.
    return is_stored(stored) and _without_version(stored) == _without_version(requested)


def _without_version(stored: tuple[int, ...]) -> tuple[object, ...]:
    header = StoredZfp.parse(stored)
    return header.filter, header.dtype, header.shape, header.swapped


def encode_streams(plan: ArrayPlan, source: StoredArray, parts: Parts, threads: int) -> Generator[NewChunk, None, None]:
    """Undo the filters after zfp, chunk by chunk in threads, and apply those of the plan to the zfp streams.

    A chunk without zfp goes through the other filters of the plan.
    """
    tasks, threads = tasks_of(parts, plan.chunk.nbytes), bounded_threads(plan.chunk.nbytes, threads)
    with closing(source.open_chunks()) as chunks:

        def encode(task: Parts) -> list[NewChunk]:
            return [_encode(plan, chunks, number, origin) for number, origin in task.numbered()]

        with closing(ordered_map(encode, tasks, threads)) as batches:
            for batch in batches:
                yield from batch


def _encode(plan: ArrayPlan, chunks: ChunkReader, number: int, origin: Origin) -> NewChunk:
    stream = chunks.first_output(origin)
    if stream is None and not plan.pipeline.stages[0].optional:
        raise BoundError(
            f"{plan.path}: chunk at {origin}: the source stores it without zfp: with zfp as an optional "
            f"filter, {plan.pipeline.filters[0]}?, such a chunk stays without it"
        ).at(dataset=plan.path, chunk=origin, filter=plan.pipeline.filters[0])
    try:
        if stream is None:
            data, mask = plan.pipeline.encode(chunks.values(origin), skip=(Zfp,))
        else:
            data, mask = encode_stream(plan.pipeline, stream, plan.chunk)
    except TamisError as error:
        error.at(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin)
        raise
    return NewChunk(number, data, mask)


def is_stored_so(array: ArrayFacts, pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> bool:
    """Return whether an array is already stored with this type, chunk shape, filters and parameters.

    Whether a filter is optional matters only if it is not the filter's default.
    """
    if array.storage.chunk_shape != chunk_shape or array.type.dtype != dtype or array.type.is_named:
        return False
    stored_type = array.storage.chunk.dtype  # that of their bytes, for records and the like
    if stored_type.kind in "iufc" and dtype.kind in "iufc" and stored_type != dtype:
        return False  # the bytes of the chunks have another order than the values
    if len(array.storage.pipeline.stages) != len(pipeline.stages) or not array.storage.partial_filtered:
        return False
    chunk = ChunkType(dtype, chunk_shape)
    pairs = zip(pipeline.stages, array.storage.pipeline.stages, strict=True)
    return all(_same(asked, stored, chunk) for asked, stored in pairs)


def are_stored_alike(array: ArrayFacts, other: ArrayFacts) -> bool:
    """Return whether two arrays have the same type, chunks and filters."""
    return (array.type.dtype, array.storage.chunk_shape, array.storage.pipeline) == (
        other.type.dtype,
        other.storage.chunk_shape,
        other.storage.pipeline,
    )


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


def as_stored(array: StoredArray) -> Copy | None:
    """Return the plan for carrying over the chunks of an array; None if their bytes cannot be read."""
    if array.storage.chunk_shape is None or array.type.dtype is None or not array.can_read_chunks:
        return None
    return Copy(array.path, array.storage.pipeline, array.storage.chunk.dtype, array.storage.chunk_shape)


def skips_first(array: StoredArray) -> bool:
    """Return whether a chunk of an array skips the first filter."""
    return any(mask & 1 for mask in masks_of(array))


def masks_of(array: StoredArray) -> set[int]:
    """Return the filter masks of the stored chunks of an array."""
    with closing(array.open_chunks()) as chunks:
        return {record.mask for _, record in chunks.true_records()}


def carry(plan: ArrayPlan, source: StoredArray, create: Create) -> ArrayWriter | None:
    """Create an array and write the stored chunks of another one to it, unchanged."""
    target = create(plan)
    with closing(source.open_chunks()) as chunks:
        for origin, record in chunks.true_records():
            data, mask = chunks.stored(origin)
            mask = mask if source.storage.has_own_bytes else record.mask
            if target.has_whole_chunks and not source.storage.has_own_bytes:
                data = chunks.completed(origin) or data
            target.put([NewChunk(target.grid.number_of(origin), data, mask)])
    target.finish()
    return carry_flags(source, target)


def carry_flags(source: StoredArray, target: ArrayWriter) -> ArrayWriter | None:
    """Write the flags of missing values to a new companion, in the chunks of its array; None if there are none."""
    known = source.companion_flags
    if known is None or source.companion is None:
        return None
    grid = target.grid
    companion = target.create_companion(flags_pipeline(grid.chunk_shape), known.flags)
    with closing(source.companion.open_reader()) as reader:
        for number, part in enumerate(Parts(grid)):
            flags = np.zeros(grid.chunk_shape, np.uint8)
            flags[tuple(slice(axis.stop - axis.start) for axis in part)] = known.read(part, reader.read)
            companion.put([NewChunk(number, *companion.recorded.encode(flags))])
    companion.finish()
    return companion


def applied(pipeline: Pipeline, mask: int) -> list[tuple[int, tuple[int, ...] | None]]:
    """Return ids and stored parameters of the filters that a chunk with a filter mask went through."""
    stages = enumerate(pipeline.stages)
    return [(stage.filter.id, stage.stored) for at, stage in stages if not mask >> at & 1]
