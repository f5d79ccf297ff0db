"""How far values are from others, and whether missing values stayed what they were."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.missing.definition import Missing, contiguous, has_native

_NO_MARKS = np.empty(0)


def largest_error(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Largest absolute difference; infinite where NaN or an infinity did not stay what it was.

    Parameters
    ----------
    expected, found
        Arrays of one shape and type, float or integer.
    """
    if has_native(expected.dtype):
        return _compare(expected, found, _NO_MARKS)[0]
    if expected.dtype.kind != "f":
        larger, smaller = np.maximum(expected, found), np.minimum(expected, found)
        distance = larger.view(f"u{larger.itemsize}") - smaller.view(f"u{larger.itemsize}")
        return float(distance.max(initial=0))
    finite = np.isfinite(expected)
    if not np.array_equal(expected[~finite], found[~finite], equal_nan=True):
        return float("inf")
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.promote_types(expected.dtype, np.float64)
        error = float(np.abs(expected[finite].astype(wide) - found[finite]).max(initial=0))
    return error if not math.isnan(error) else float("inf")


def same_bits(expected: NDArray[Any], found: NDArray[Any]) -> bool:
    """Return whether two arrays of one type and shape have the same bits, whatever these mean."""
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
        Whether the missing values, and no others, are what they were, bit by bit, and no value crossed a limit.
    missing
        How many there were.
    crossed
        How many values crossed a limit of the valid range, in either direction.
    """

    error: float
    kept: bool
    missing: int
    crossed: int = 0


def compare(expected: NDArray[Any], found: NDArray[Any], missing: Missing | None) -> Comparison:
    """Compare values with what became of them.

    Parameters
    ----------
    expected, found
        Arrays of one shape and type, of numbers or bytes.
    missing
        What stands for missing values; None where every bit should be what it was: `kept` then says whether that is so.
    """
    if missing is not None:
        error, kept, count = _differences(expected, found, missing)
        crossed = count_crossed(expected, found, missing)
        return Comparison(error, kept and not crossed, count, crossed)
    if same_bits(expected, found):
        return Comparison(0.0, True, 0)
    return Comparison(math.inf if expected.dtype.kind == "V" else largest_error(expected, found), False, 0)


def count_crossed(expected: NDArray[Any], found: NDArray[Any], missing: Missing) -> int:
    """Return how many values lie on the other side of a limit of the valid range than before."""
    crossed = 0
    for limit, sign in ((missing.low, np.less), (missing.high, np.greater)):
        # One pass over each for chunks that are inside, as most are; NaN, which stays what it is, hides nothing.
        if limit is not None and any(sign(_extreme(values, sign), limit) for values in (expected, found)):
            crossed += int(np.count_nonzero(sign(expected, limit) != sign(found, limit)))
    return crossed


def _differences(expected: NDArray[Any], found: NDArray[Any], missing: Missing) -> tuple[float, bool, int]:
    """Return the largest error, whether missing values are kept, and how many there are."""
    if has_native(expected.dtype):
        return _compare(expected, found, missing.marks(expected.dtype))
    error = largest_error(expected, found)
    before, after = missing.find(expected), missing.find(found)
    count = 0 if before is None else int(np.count_nonzero(before))
    if before is None or after is None:
        return error, before is after, count
    return error, np.array_equal(before, after) and same_bits(expected[before], found[before]), count


def _extreme(values: NDArray[Any], sign: np.ufunc) -> Any:
    """Return the smallest or largest value, as the sign of a comparison wants it; 0 where there is none."""
    extreme = np.fmin if sign is np.less else np.fmax
    return extreme.reduce(values, axis=None) if values.size else 0


def _compare(expected: NDArray[Any], found: NDArray[Any], marks: NDArray[Any]) -> tuple[float, bool, int]:
    marks = marks.view(expected.dtype) if marks is _NO_MARKS else marks
    return _native.compare(contiguous(expected), contiguous(found), marks)
