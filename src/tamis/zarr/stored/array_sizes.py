"""Checks of the sizes in the metadata of a Zarr array, before anything is computed with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_MOST_NBYTES = (1 << 63) - 1


def check_sizes(path: str, array: Any) -> None:
    """Raise ValueError unless an array of zarr-python, its chunks and its shards have sizes that 64 bits hold."""
    shape, nbytes = tuple(array.shape), np.dtype(array.dtype).itemsize
    _check_extents(path, "shape", shape, nbytes)
    for name, steps in (("chunk shape", array.chunks), ("shard shape", getattr(array, "shards", None))):
        if steps is None:
            continue
        _check_extents(path, name, tuple(steps), nbytes)
        if len(steps) != len(shape) or any(extent and not step for step, extent in zip(steps, shape, strict=True)):
            raise ValueError(f"/{path}: expected a {name} of {len(shape)} extents of 1 or more, got {steps!r:.80}")


def _check_extents(path: str, name: str, extents: tuple[Any, ...], nbytes: int) -> None:
    if not all(isinstance(extent, int) and 0 <= extent <= _MOST_NBYTES for extent in extents):
        raise ValueError(f"/{path}: expected a {name} of whole numbers from 0 to 2^63 - 1, got {extents!r:.80}")
    if math.prod(extents) * nbytes > _MOST_NBYTES:
        raise ValueError(f"/{path}: expected a {name} of less than 2^63 bytes, got {extents!r:.80}")
