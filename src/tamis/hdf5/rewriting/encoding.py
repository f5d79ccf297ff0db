"""One chunk of a plan encoded, with its missing values counted."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from tamis.chunks import encoding
from tamis.chunks.difference import Missing
from tamis.chunks.grid import Region
from tamis.errors import TamisError
from tamis.hdf5.rewriting.plans import Plan

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
    """

    origin: tuple[int, ...]
    data: bytes
    mask: int
    missing: int


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
        data, mask = encoding.encode_chunk(plan.pipeline, values, plan.chunk, missing=missing)
    except TamisError as error:
        raise type(error)(f"{plan.path}: chunk at {origin}: {error}") from error
    return Encoded(origin, data, mask, missing.survey(values).missing if plan.lossy else 0)
