"""Carry stored chunks over into another store, byte by byte."""

from __future__ import annotations

from contextlib import closing

from tamis.pipeline import Pipeline
from tamis.rewrite.plan import Create, Plan
from tamis.store.array import StoredArray


def as_stored(array: StoredArray) -> Plan | None:
    """Return the plan by which the chunks of an array are carried over; None if their bytes cannot be read."""
    if array.chunk_shape is None or array.dtype is None or not array.can_read_chunks or array.has_companion:
        return None
    return Plan(array.path, array.pipeline, array.chunk.dtype, array.chunk_shape, copied=True)


def masks_of(array: StoredArray) -> set[int]:
    """Return the filter masks of the stored chunks of an array."""
    with closing(array.open_chunks()) as chunks:
        return {chunks.true_mask(origin) for origin, _ in array.chunk_index().records()}


def carry(plan: Plan, source: StoredArray, create: Create) -> None:
    """Create an array and write the stored chunks of another one to it, as they are.

    Raises
    ------
    FileError
        If a chunk cannot be read.
    """
    target = create(plan)
    with closing(source.open_chunks()) as chunks:
        for origin, _ in source.chunk_index().records():
            target.put(origin, chunks.stored(origin)[0], chunks.true_mask(origin))
    target.finish()


def applied(pipeline: Pipeline, mask: int) -> list[tuple[int, tuple[int, ...] | None]]:
    """Return ids and stored parameters of the filters that a chunk with a filter mask went through."""
    stages = enumerate(pipeline.stages)
    return [(stage.filter.id, stage.stored) for at, stage in stages if not mask >> at & 1]
