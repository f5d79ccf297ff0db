"""Sums over pairs of values, before and after, in one native pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.missing.definition import NONE_MISSING, Missing, contiguous


class PairSums(NamedTuple):
    """What is added up about the pairs whose first value is not missing.

    Parameters
    ----------
    pair_count
        Number of pairs.
    low, high
        The smallest and the largest value before, if there are pairs.
    error
        The largest error: exact for integers, rounded to double precision for floats.
    mantissa, exponent
        Sum of the squares of all errors, ``mantissa * 4**exponent``.
    mean_1, mean_2, square_1, square_2, product
        Means, and sums of squared deviations and of their products, if they were asked for.
    """

    pair_count: int
    low: int | float
    high: int | float
    error: int | float
    mantissa: float
    exponent: int
    mean_1: float
    mean_2: float
    square_1: float
    square_2: float
    product: float

    @classmethod
    def of(
        cls, before: NDArray[Any], after: NDArray[Any], missing: Missing = NONE_MISSING, *, moments: bool = False
    ) -> PairSums:
        """Return the sums over two arrays of one shape and type."""
        dtype = _native_type(before.dtype)
        one, two = (contiguous(values.astype(dtype, copy=False)) for values in (before, after))
        return cls(*_native.statistics(one, two, np.array(missing.values, dtype), moments))


def _native_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in native byte order, of floats the nearest of 32 and 64 bits."""
    if dtype.kind != "f":
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
