"""How alike two fields are to the eye of a scientist: DSSIM, as the package ldcpy defines it for climate data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.accuracy.difference import same_bits

_REACH = 5
"""Values on each side of one in its window, and rows and columns at the edge that have no whole window."""

WINDOW = 2 * _REACH + 1
"""Least extents of a field."""


def has_windows(shape: Sequence[int]) -> bool:
    """Return whether the fields of an array, its last two axes, are large enough."""
    return len(shape) >= 2 and min(shape[-2:]) >= WINDOW


def dssim(source: NDArray[Any], target: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> float | None:
    """Return the data structural similarity of a field with two axes, 1 if both are the same.

    Both fields are scaled together to 0 … 1, rounded to 256 levels and compared in windows of 11 x 11 values with
    Gaussian weights; the result is the mean of all whole windows around a valid value.

    Parameters
    ----------
    source, target
        Two fields of one shape.
    valid
        Values that are valid in both; None if all are. Missing values have no weight.

    Returns
    -------
    float or None
        None if the field has no whole window around a valid value.
    """
    if not has_windows(source.shape):
        return None
    present = np.ones(source.shape, bool) if valid is None else valid
    if not present[_REACH:-_REACH, _REACH:-_REACH].any():
        return None
    if source.dtype == target.dtype and same_bits(source, target):
        return 1.0
    dtype = np.float32 if source.dtype == target.dtype == np.float32 else np.float64
    first, second = (np.ascontiguousarray(field, dtype) for field in (source, target))
    return _native.dssim(first, second, None if valid is None else np.ascontiguousarray(valid))
