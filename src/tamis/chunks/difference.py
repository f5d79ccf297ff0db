"""How far values are from others, and which of them stand for missing ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native

_NO_MARKS = np.empty(0)


def largest_error(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Largest absolute difference; infinite where NaN or an infinity did not stay what it was.

    Parameters
    ----------
    expected, found
        Arrays of one shape and type, float or integer.
    """
    if _native_has(expected.dtype):
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


class Survey(NamedTuple):
    """What an array is like.

    Parameters
    ----------
    largest
        Largest magnitude of the values that are finite.
    missing
        How many values are missing.
    finite
        Whether all are finite.
    """

    largest: float
    missing: int
    finite: bool


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


@dataclass(frozen=True, slots=True)
class Missing:
    """What stands for a missing value: some values, and for floats NaN and the infinities. And which others are valid.

    Parameters
    ----------
    values
        Of the type of the data; no two are equal, none is NaN.
    low, high
        Smallest and largest valid value, of the same type; None where there is no limit. A value beyond them is not
        missing: it keeps the bound as others do, and stays where readers take it for invalid.
    """

    values: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None

    def find(self, data: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return for each value whether it is missing; None where none is."""
        found: NDArray[np.bool_] | None = None
        if data.dtype.kind == "f" and not (finite := np.isfinite(data)).all():
            found = ~finite
        for each in self.values:
            equal = data == each
            if equal.any():
                found = equal if found is None else found | equal
        return found

    def survey(self, data: NDArray[Any]) -> Survey:
        """Find out how large values are, and how many of them are missing."""
        if _native_has(data.dtype):
            return Survey(*_native.survey(_plain(data), self._marks(data.dtype)))
        found = self.find(data)
        finite = data[np.isfinite(data)] if data.dtype.kind == "f" else data
        largest = max(float(finite.max(initial=0)), -float(finite.min(initial=0)))
        return Survey(largest, 0 if found is None else int(np.count_nonzero(found)), finite.size == data.size)

    def compare(self, expected: NDArray[Any], found: NDArray[Any]) -> Comparison:
        """Compare values with others of their shape and type."""
        error, kept, count = self._differences(expected, found)
        crossed = self.count_crossed(expected, found)
        return Comparison(error, kept and not crossed, count, crossed)

    def count_crossed(self, expected: NDArray[Any], found: NDArray[Any]) -> int:
        """Count the values that a limit of the valid range lies between and those that they became."""
        crossed = 0
        for limit, sign in ((self.low, np.less), (self.high, np.greater)):
            # One pass over each for chunks that are inside, as most are; NaN, which stays what it is, hides nothing.
            if limit is not None and any(sign(_extreme(each, sign), limit) for each in (expected, found)):
                crossed += int(np.count_nonzero(sign(expected, limit) != sign(found, limit)))
        return crossed

    def _differences(self, expected: NDArray[Any], found: NDArray[Any]) -> tuple[float, bool, int]:
        """Return the largest error, whether missing values are kept, and how many there were."""
        if _native_has(expected.dtype):
            return _compare(expected, found, self._marks(expected.dtype))
        error = largest_error(expected, found)
        was, now = self.find(expected), self.find(found)
        count = 0 if was is None else int(np.count_nonzero(was))
        if was is None or now is None:
            return error, was is now, count
        return error, np.array_equal(was, now) and same_bits(expected[was], found[was]), count

    def _marks(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.array(self.values, dtype) if self.values else _NO_MARKS.view(dtype)


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
        return missing.compare(expected, found)
    if same_bits(expected, found):
        return Comparison(0.0, True, 0)
    return Comparison(math.inf if expected.dtype.kind == "V" else largest_error(expected, found), False, 0)


def _extreme(values: NDArray[Any], sign: np.ufunc) -> Any:
    """Return the smallest or largest value, as the sign of a comparison wants it; 0 where there is none."""
    extreme = np.fmin if sign is np.less else np.fmax
    return extreme.reduce(values, axis=None) if values.size else 0


def _native_has(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Copy values that do not lie side by side, each at an address that fits its type."""
    return values if values.flags.c_contiguous and values.flags.aligned else values.copy()


def _compare(expected: NDArray[Any], found: NDArray[Any], marks: NDArray[Any]) -> tuple[float, bool, int]:
    marks = marks.view(expected.dtype) if marks is _NO_MARKS else marks
    return _native.compare(_plain(expected), _plain(found), marks)
