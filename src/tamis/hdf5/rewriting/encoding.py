"""One chunk of a plan encoded, with its missing values counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.chunks import encoding
from tamis.chunks.difference import Missing
from tamis.chunks.flags import Flags
from tamis.chunks.gaps import encode_filled
from tamis.chunks.grid import Region
from tamis.errors import TamisError
from tamis.filters import ChunkType
from tamis.hdf5.rewriting.plans import Plan
from tamis.pipeline import Pipeline

FLAGS_PIPELINE = Pipeline.parse("deflate(6)|fletcher32")
"""Of companions: what every reader of HDF5 has. A lower level gives three times the bytes."""

_NONE_MISSING = Missing()


class Encoded(NamedTuple):
    """A chunk as it is to be stored.

    Parameters
    ----------
    origin
        Index of its first value.
    data, mask
        Bytes and filter mask.
    missing
        How many missing values it has; 0 where nothing is lossy.
    flags
        Bytes and filter mask of its companion's chunk; None where there is none to write.
    """

    origin: tuple[int, ...]
    data: bytes
    mask: int
    missing: int
    flags: tuple[bytes, int] | None = None


def encode_chunk(plan: Plan, part: Region, values: NDArray[Any]) -> Encoded:
    """Encode what the array has of a chunk: see `tamis.chunks.encoding.encode_chunk`.

    Raises
    ------
    BoundError, DataError
        If a required filter cannot take the values, or does not keep the bound; names dataset and chunk.
    """
    origin = tuple(each.start for each in part)
    missing = plan.missing if plan.lossy else _NONE_MISSING
    try:
        if plan.flags is not None:
            return _with_flags(plan, plan.flags, origin, values)
        data, mask = encoding.encode_chunk(plan.pipeline, values, plan.chunk, missing=missing)
    except TamisError as error:
        raise type(error)(f"{plan.path}: chunk at {origin}: {error}") from error
    return Encoded(origin, data, mask, missing.survey(values).missing if plan.lossy else 0)


def _with_flags(plan: Plan, table: Flags, origin: tuple[int, ...], values: NDArray[Any]) -> Encoded:
    """Encode a chunk with its gaps filled, and say in another one where they are."""
    found = table.find(values)
    if found is None:
        data, mask = encoding.encode_chunk(plan.pipeline, values, plan.chunk, missing=plan.missing)
        if table.fill == 0:
            return Encoded(origin, data, mask, 0)
        found = np.zeros(values.shape, np.uint8)
    else:
        data, mask = encode_filled(plan.pipeline, values, found, plan.chunk, table, plan.missing)
    flags = encoding.encode_chunk(FLAGS_PIPELINE, found, ChunkType(found.dtype, plan.chunks))
    return Encoded(origin, data, mask, int(np.count_nonzero(found)), (flags.data, flags.mask))
