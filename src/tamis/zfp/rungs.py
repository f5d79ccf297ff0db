"""Bytes and errors of an array with many tolerances or precisions, measured together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.zfp.checks import check_shape, refuse
from tamis.zfp.modes import Accuracy, Precision


class Rung(NamedTuple):
    """What `tamis.zfp.encode` makes of an array in one mode.

    Parameters
    ----------
    nbytes
        Bytes of the stream.
    error
        Largest absolute error, as in `tamis.accuracy.difference`.
    squares
        Sum of the squared errors; infinite beyond the range of doubles.
    """

    nbytes: int
    error: float
    squares: float


def rungs_of(
    values: NDArray[Any], modes: Sequence[Accuracy | Precision], valid: NDArray[np.bool_] | None = None
) -> tuple[Rung, ...]:
    """Return what an array takes and loses in each of several modes.

    One pass over the blocks yields all: a stream of fewer bit planes is the beginning of one of more.

    Parameters
    ----------
    values
        Floats of 32 or 64 bits, with 1 to 4 axes.
    modes
        The modes; fastest in order, from loose to tight.
    valid
        Which values have errors that count; None for all.

    Raises
    ------
    DataError
        If a value is NaN or infinite, which lossy modes refuse; names the first.
    """
    check_shape(values.shape)
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    flags = None if valid is None else np.ascontiguousarray(valid, np.bool_)
    found = _native.ladder(native, flags, [mode.params(native.dtype, native.ndim) for mode in modes])
    if isinstance(found, _native.Failure):
        refuse(found, values.dtype, values.shape, modes[0])
    return tuple(Rung(-(-nbits // 8), error, squares) for nbits, error, squares in found)
