"""How far values are from others, and which of them stand for missing ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROWS_SIZE = 65536
"""Values that are compared at once, about."""


def largest_error(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Largest absolute difference; infinite where NaN or an infinity did not stay what it was.

    Parameters
    ----------
    expected, found
        Arrays of one shape and type, float or integer.
    """
    if expected.dtype.kind != "f":
        larger, smaller = np.maximum(expected, found), np.minimum(expected, found)
        distance = larger.view(f"u{larger.itemsize}") - smaller.view(f"u{larger.itemsize}")
        return float(distance.max(initial=0))
    error = _distance(expected, found)
    if math.isfinite(error):
        return error
    finite = np.isfinite(expected)
    if not np.array_equal(expected[~finite], found[~finite], equal_nan=True):
        return float("inf")
    error = _distance(expected[finite], found[finite])
    return error if not math.isnan(error) else float("inf")


def _distance(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Largest absolute difference; NaN or infinite where a value is, or the difference is too large."""
    if not expected.size:
        return 0.0
    # Some rows after the other, so that what is between stays in the processor's cache.
    rows = max(1, _ROWS_SIZE * len(expected) // expected.size)
    room = np.empty((min(rows, len(expected)), *expected.shape[1:]), np.float64)
    largest = np.float64(0)
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, len(expected), rows):
            error = room[: len(expected[at : at + rows])]
            # In double precision, so that the difference of two floats of like size is not rounded.
            np.subtract(expected[at : at + rows], found[at : at + rows], out=error, dtype=np.float64)
            # A minimum and a maximum take less time than absolute values; NaN comes through both.
            largest = np.maximum(largest, np.maximum(error.max(), -error.min()))
    return float(largest)


def same_bits(expected: NDArray[Any], found: NDArray[Any]) -> bool:
    """Whether two arrays of one type and shape have the same bits, whatever these mean."""
    if expected.dtype.kind == "V":
        return expected.tobytes() == found.tobytes()
    if expected.itemsize not in (1, 2, 4, 8):  # those of extended precision hold bits that mean nothing
        return np.array_equal(expected, found, equal_nan=expected.dtype.kind == "f")
    bits = f"u{expected.itemsize}"
    return np.array_equal(expected.view(bits), found.view(bits))


class Comparison(NamedTuple):
    """How values differ from what they were.

    Parameters
    ----------
    error
        As `largest_error` gives it.
    kept
        Whether the missing values, and no others, are what they were, bit by bit.
    missing
        How many there were.
    """

    error: float
    kept: bool
    missing: int


@dataclass(frozen=True, slots=True)
class Missing:
    """What stands for a missing value: some values, and for floats NaN and the infinities.

    Parameters
    ----------
    values
        Of the type of the data; no two are equal, none is NaN.
    """

    values: tuple[Any, ...] = ()

    def find(self, data: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Tell for each value whether it is missing; None where none is."""
        return self._find(data, finite=data.dtype.kind != "f")

    def compare(self, expected: NDArray[Any], found: NDArray[Any]) -> Comparison:
        """Compare values with others of their shape and type."""
        error = largest_error(expected, found) if expected.dtype.kind != "f" else _distance(expected, found)
        finite = math.isfinite(error)  # and then all values are
        if not finite:
            error = largest_error(expected, found)
        was, now = self._find(expected, finite=finite), self._find(found, finite=finite)
        count = 0 if was is None else int(np.count_nonzero(was))
        if was is None or now is None:
            return Comparison(error, was is now, count)
        return Comparison(error, np.array_equal(was, now) and same_bits(expected[was], found[was]), count)

    def _find(self, data: NDArray[Any], *, finite: bool) -> NDArray[np.bool_] | None:
        found: NDArray[np.bool_] | None = None
        if not finite and not (whole := np.isfinite(data)).all():
            found = ~whole
        for each in self.values:
            equal = data == each
            if equal.any():
                found = equal if found is None else found | equal
        return found
