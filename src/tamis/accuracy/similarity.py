"""How alike two fields are to the eye of a scientist: DSSIM, as the package ldcpy defines it for climate data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_REACH = 5
"""Values on each side of one in its window, and rows and columns at the edge that have no whole window."""
_SIGMA = 1.5
_LEVELS = 255
_STABLE = 1e-8

WINDOW = 2 * _REACH + 1
"""Least extents of a field."""

Field = NDArray[np.float64]


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
    inner = present[_REACH:-_REACH, _REACH:-_REACH]
    if not inner.any():
        return None
    first, second = _levels(source.astype(np.float64), target.astype(np.float64), present)
    weights = _blurred(present.astype(np.float64)) if valid is not None else np.ones(inner.shape)
    weights[~inner] = 1  # not used

    def mean(values: Field) -> Field:
        return np.asarray(_blurred(values) / weights)

    mean_1, mean_2 = mean(first), mean(second)
    variances = mean(first * first) - mean_1 * mean_1 + mean(second * second) - mean_2 * mean_2
    covariance = mean(first * second) - mean_1 * mean_2
    luminance = (2 * mean_1 * mean_2 + _STABLE) / (mean_1 * mean_1 + mean_2 * mean_2 + _STABLE)
    structure = (2 * covariance + _STABLE) / (variances + _STABLE)
    return float((luminance * structure)[inner].mean())


def _levels(source: Field, target: Field, present: NDArray[np.bool_]) -> tuple[Field, Field]:
    """Return both fields scaled by their common range to 256 levels; 0 for missing values."""
    both = source[present], target[present]
    low, high = min(part.min() for part in both), max(part.max() for part in both)
    span, base = (high - low, low) if high > low else (high or 1.0, 0.0)
    first, second = (
        np.round((np.where(present, field, base) - base) / span * _LEVELS) / _LEVELS for field in (source, target)
    )
    return np.where(present, first, 0), np.where(present, second, 0)


def _blurred(values: Field) -> Field:
    """Return the weighted sums of all whole windows."""
    steps = np.arange(-_REACH, _REACH + 1)
    weights = np.exp(-0.5 * (steps / _SIGMA) ** 2)
    weights /= weights.sum()
    rows, columns = (extent - 2 * _REACH for extent in values.shape)
    down = sum(weight * values[i : i + rows] for i, weight in enumerate(weights))
    return np.asarray(sum(weight * down[:, i : i + columns] for i, weight in enumerate(weights)))
