"""One chunk of a plan encoded, decoded again and compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Origin, Region, origin_of
from tamis.errors import TamisError
from tamis.filters import ChunkType, Deflate, Fletcher32
from tamis.missing.table import Flags
from tamis.pipeline import Pipeline
from tamis.rewrite.bound_check import checked
from tamis.rewrite.encode import encode_chunk, encode_compared, encode_filled
from tamis.rewrite.padding import Padding
from tamis.rewrite.plan import Plan

FLAGS_PIPELINE = Pipeline([Deflate(6), Fletcher32()])
"""Of companions: what every reader of HDF5 has. A lower level gives three times the bytes."""


class NewChunk(NamedTuple):
    """A chunk as it is to be stored.

    Parameters
    ----------
    origin
        Index of its first value.
    data, mask
        Bytes and filter mask.
    missing
        How many missing values it has; 0 where nothing is lossy.
    crossed
        How many values made zfp be left out, since it would have moved them across a limit of the valid range.
    error
        Largest error of what the bytes decode to; None where they were not decoded and compared.
    flags
        Bytes and filter mask of its companion's chunk; None where there is none to write.
    """

    origin: Origin
    data: bytes
    mask: int
    missing: int = 0
    crossed: int = 0
    error: float | None = None
    flags: tuple[bytes, int] | None = None


def make_chunk(plan: Plan, part: Region, values: NDArray[Any]) -> NewChunk:
    """Encode what the array has of a chunk: see `tamis.rewrite.encode.encode_chunk`.

    What was encoded is decoded and compared at once, while it is in the processor's cache; with a companion it is not,
    since only both of them give the values.

    Raises
    ------
    BoundError, DataError
        If a required filter cannot take the values, or does not keep the bound; names dataset and chunk.
    """
    origin = origin_of(part)
    try:
        if plan.flags is not None:
            return _with_flags(plan, plan.flags, origin, values)
        made, found = encode_compared(plan.pipeline, values, plan.chunk, plan.padding, plan.missing)
    except TamisError as error:
        error.at(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin)
        raise
    largest = checked(plan, origin, found)
    return NewChunk(origin, made.data, made.mask, found.missing, found.crossed, largest)


def _with_flags(plan: Plan, table: Flags, origin: tuple[int, ...], values: NDArray[Any]) -> NewChunk:
    """Encode a chunk with its gaps filled, and say in another one where they are."""
    found = table.find(values)
    if found is None:
        made = encode_chunk(plan.pipeline, values, plan.chunk, padding=plan.padding, missing=plan.missing)
        if table.fill == 0:
            return NewChunk(origin, made.data, made.mask, crossed=_near_limits(plan, made.mask, values))
        found = np.zeros(values.shape, np.uint8)
    else:
        made = encode_filled(plan.pipeline, values, found, plan.chunk, table, plan.missing, plan.padding)
    # What lies beyond the array now is valid if something makes it longer.
    beyond = Padding((True,) * found.ndim, np.uint8(0))
    flags = encode_chunk(FLAGS_PIPELINE, found, ChunkType(found.dtype, plan.chunk_shape), padding=beyond)
    missing = int(np.count_nonzero(found))
    near = _near_limits(plan, made.mask, values[found == 0])
    return NewChunk(origin, made.data, made.mask, missing, near, flags=(flags.data, flags.mask))


def _near_limits(plan: Plan, mask: int, valid: NDArray[Any]) -> int:
    """Count the values of a chunk without zfp that it could have moved across a limit of the valid range."""
    limits = [float(each) for each in (plan.missing.low, plan.missing.high) if each is not None]
    if not mask & 1 or not limits:
        return 0
    reach = np.inf if plan.bound is None else plan.bound
    return int(np.count_nonzero(np.any([np.abs(valid.astype(np.float64) - each) <= reach for each in limits], axis=0)))
