"""Find out whether chunks can be copied as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.errors import TamisError
from tamis.filters import ChunkType, Filter, Stage
from tamis.pipeline import Pipeline
from tamis.store.array import StoredArray


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
