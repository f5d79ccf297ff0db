"""A chunk as ZFP sees it: its values without unit axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import zfp
from tamis.errors import ParameterError
from tamis.filters.base import ChunkType, Data


def chunk_values(data: Data, chunk: ChunkType) -> NDArray[Any]:
    """Return the bytes of a chunk as an array without unit axes; a view."""
    if len(data) != chunk.nbytes:
        raise ParameterError(f"expected the {chunk.nbytes} bytes of a chunk, got {len(data)}")
    return np.frombuffer(data, chunk.dtype).reshape(squeezed(chunk))


def squeezed(chunk: ChunkType) -> tuple[int, ...]:
    """Return the shape of a chunk without unit axes, as ZFP encodes it.

    Raises
    ------
    ParameterError
        If no axis or more than four are left; names an alternative.
    """
    shape = tuple(extent for extent in chunk.shape if extent > 1)
    if not shape:
        raise ParameterError(
            f"expected a chunk of more than one value, got {chunk.shape}: use chunks of at least 4 values along an axis"
        )
    if len(shape) > zfp.MAX_RANK:
        instead, surplus = list(chunk.shape), len(shape) - zfp.MAX_RANK
        for axis, extent in enumerate(chunk.shape):
            if extent > 1 and surplus:
                instead[axis], surplus = 1, surplus - 1
        raise ParameterError(
            f"expected a chunk with 1 to 4 axes longer than 1, got {chunk.shape} with {len(shape)}:"
            f" use {tuple(instead)}"
        )
    return shape
