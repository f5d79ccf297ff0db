"""Bytes and errors of an array with many tolerances of accuracy mode, measured together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.zfp.checks import check_shape, refuse
from tamis.zfp.modes import Accuracy

LEAST_EXPONENT = _native.min_exp
"""Binary exponent of the smallest tolerance."""


class Rung(NamedTuple):
    """An array as `tamis.zfp.encode` encodes it with a tolerance that is a power of two.

    Parameters
    ----------
    tolerance
        The tolerance.
    nbytes
        Bytes of the stream.
    error
        Largest absolute error, as in `tamis.accuracy.difference`.
    squares
        Sum of the squared errors; infinite beyond the range of doubles.
    """

    tolerance: float
    nbytes: int
    error: float
    squares: float


def rungs_of(values: NDArray[Any], high: int, low: int, valid: NDArray[np.bool_] | None = None) -> tuple[Rung, ...]:
    """Return what an array takes and loses with each tolerance from ``2**high`` down to ``2**low``.

    One pass over the blocks yields all: streams of coarser tolerances are beginnings of finer ones.

    Parameters
    ----------
    values
        Floats of 32 or 64 bits, with 1 to 4 axes.
    high, low
        Binary exponents of the loosest and the tightest tolerance, at most 1023 and at least `LEAST_EXPONENT`.
    valid
        Which values have errors that count; None for all.

    Raises
    ------
    DataError
        If a value is NaN or infinite, which accuracy mode refuses; names the first.
    """
    check_shape(values.shape)
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    flags = None if valid is None else np.ascontiguousarray(valid, np.bool_)
    found = _native.ladder(native, flags, high, high - low + 1)
    if isinstance(found, _native.Failure):
        refuse(found, values.dtype, values.shape, Accuracy(2.0**high))
    return tuple(
        Rung(2.0**exponent, -(-nbits // 8), error, squares)
        for exponent, (nbits, error, squares) in zip(range(high, low - 1, -1), found, strict=True)
    )
