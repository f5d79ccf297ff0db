"""Differences between values, and whether missing values are the same."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.meaning.missing import NONE_MISSING, Missing, contiguous, has_native

_COMPARED_COUNT = 1 << 20
"""Values whose bits are compared at a time."""


def largest_error(expected: NDArray[Any], actual: NDArray[Any]) -> float:
    """Return the largest absolute difference; infinite if NaN or an infinity changed."""
    if has_native(expected.dtype):
        return _compare(expected, actual, NONE_MISSING)[0]
    errors = differences(expected, actual)
    if expected.dtype.kind != "f":
        return float(errors.max(initial=0))
    error = float(errors[~_equal(expected, actual)].max(initial=0))
    return error if not math.isnan(error) else math.inf


def differences(source: NDArray[Any], target: NDArray[Any]) -> NDArray[Any]:
    """Return the magnitudes of differences: of integers as unsigned or Python integers, of floats rounded once."""
    if source.dtype.kind != "f" and target.dtype.kind != "f":
        common = np.result_type(source, target)
        if common.kind == "f":  # no integer type holds both int64 and uint64
            return np.asarray(np.abs(source.astype(object) - target.astype(object)))
        source, target = source.astype(common, copy=False), target.astype(common, copy=False)
        unsigned = f"u{common.itemsize}"
        larger, smaller = np.maximum(source, target), np.minimum(source, target)
        return np.asarray(larger.view(unsigned) - smaller.view(unsigned))
    wide = np.promote_types(np.result_type(source, target), np.float64)
    errors = source.astype(wide)
    with np.errstate(over="ignore", invalid="ignore"):
        errors -= target.astype(wide, copy=False)
        return np.asarray(np.abs(errors, out=errors))


def same_values(source: NDArray[Any], target: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values have the same bits; of different types, or with unused bits, which are equal numbers."""
    if source.dtype == target.dtype and source.dtype.itemsize <= 8:
        bits = f"u{source.dtype.itemsize}"
        return np.asarray(source.view(bits) == target.view(bits))
    return _equal(source, target)


def _equal(source: NDArray[Any], target: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are equal, or both NaN."""
    return np.asarray((source == target) | ((source != source) & (target != target)))


def same_bits(expected: NDArray[Any], actual: NDArray[Any]) -> bool:
    """Return whether two arrays of one type and shape have the same bits."""
    if expected.dtype.kind == "V":
        return expected.tobytes() == actual.tobytes()
    if expected.itemsize not in (1, 2, 4, 8):  # numbers of extended precision have unused bits
        return np.array_equal(expected, actual, equal_nan=expected.dtype.kind == "f")
    bits = f"u{expected.itemsize}"
    before, after = (np.ascontiguousarray(values).reshape(-1).view(bits) for values in (expected, actual))
    # In parts, because the result of a comparison takes a byte for each value.
    steps = range(0, before.size, _COMPARED_COUNT)
    return all(np.array_equal(before[at : at + _COMPARED_COUNT], after[at : at + _COMPARED_COUNT]) for at in steps)


def native(values: NDArray[Any]) -> NDArray[Any]:
    """Return contiguous values in native byte order, records without gaps; objects as they are."""
    dtype = values.dtype
    if dtype.hasobject or dtype.kind == "T":
        return values
    return np.array(values, without_gaps(dtype.newbyteorder("=")), order="C", copy=None)


def without_gaps(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of records without gaps; NumPy's `repack_fields` leaves those in arrays of records."""
    if dtype.subdtype is not None:
        return np.dtype((without_gaps(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, without_gaps(dtype[name])) for name in dtype.names])


def as_texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return bytes of a fixed length as texts of varying length; any others unchanged."""
    if values.dtype.kind != "S":
        return values
    texts = np.empty(values.size, object)
    texts[:] = [item.decode("utf-8", "surrogateescape") for item in values.reshape(-1).tolist()]
    return texts.reshape(values.shape)


def equal_values(expected: NDArray[Any], actual: NDArray[Any]) -> bool:
    """Return whether values of any type are the same, bit by bit, whatever their byte order and the gaps in records."""
    first, second = native(expected), native(actual)
    if first.shape != second.shape:
        return False
    if first.dtype.kind in "OT" or second.dtype.kind in "OT":
        return bool(as_texts(first).tolist() == as_texts(second).tolist())
    if first.dtype != second.dtype:
        return False
    return same_bits(first, second) if first.dtype.kind in "iuf" else first.tobytes() == second.tobytes()


class ValueComparison(NamedTuple):
    """The result of comparing values with their source."""

    error: float  # Largest absolute difference, as by `largest_error`
    # Whether missing values have the same bits, no other value became missing, and no value crossed a limit
    kept: bool
    missing: int  # Number of missing values of the source
    crossed: int = 0  # Number of values that crossed a limit of the valid range, in either direction

    def keeps(self, bound: float | None) -> bool:
        """Return whether all values keep an absolute bound (None: any), missing ones and limits."""
        return self.kept and (bound is None or self.error <= bound)


def compare(expected: NDArray[Any], actual: NDArray[Any], missing: Missing | None) -> ValueComparison:
    """Compare values with their source; `missing` is None for values that must keep their bits."""
    if missing is not None:
        error, kept, count = _differences(expected, actual, missing)
        beyond = crossed(expected, actual, missing)
        crossed_count = 0 if beyond is None else int(np.count_nonzero(beyond))
        return ValueComparison(error, kept and not crossed_count, count, crossed_count)
    if same_bits(expected, actual):
        return ValueComparison(0.0, True, 0)
    error = math.inf if expected.dtype.kind == "V" else largest_error(expected, actual)
    return ValueComparison(error, False, 0)


def crossed(source: NDArray[Any], target: NDArray[Any], missing: Missing) -> NDArray[np.bool_] | None:
    """Return which values crossed a limit of the valid range; None if none did."""
    result: NDArray[np.bool_] | None = None
    for limit, beyond in ((missing.low, np.less), (missing.high, np.greater)):
        # Most chunks are inside the limits, which the extremes show in one pass; they ignore NaN.
        if limit is not None and any(beyond(_extreme(values, beyond), limit) for values in (source, target)):
            changed = beyond(source, limit) != beyond(target, limit)
            result = changed if result is None else result | changed
    return result


def _differences(expected: NDArray[Any], actual: NDArray[Any], missing: Missing) -> tuple[float, bool, int]:
    """Return the largest error, whether missing values are kept, and their number."""
    if has_native(expected.dtype):
        return _compare(expected, actual, missing)
    error = largest_error(expected, actual)
    before, after = missing.find(expected), missing.find(actual)
    count = 0 if before is None else int(np.count_nonzero(before))
    if before is None or after is None:
        return error, before is after, count
    return error, np.array_equal(before, after) and same_bits(expected[before], actual[before]), count


def _extreme(values: NDArray[Any], beyond: np.ufunc) -> Any:
    """Return the smallest or largest value, by a comparison; 0 for an empty array."""
    extreme = np.fmin if beyond is np.less else np.fmax
    return extreme.reduce(values, axis=None) if values.size else 0


def _compare(expected: NDArray[Any], actual: NDArray[Any], missing: Missing) -> tuple[float, bool, int]:
    """Return what `_differences` returns, by native code, for types that it supports."""
    return _native.compare(contiguous(expected), contiguous(actual), missing.marks(expected.dtype))


class PairSums(NamedTuple):
    """Sums over the pairs whose first value is not missing."""

    pair_count: int
    # The smallest and the largest value before, if there are pairs
    low: int | float
    high: int | float
    error: int | float  # The largest error: exact for integers, rounded to double precision for floats
    # Sum of the squares of all errors, ``mantissa * 4**exponent``
    mantissa: float
    exponent: int
    # Means, and sums of squared deviations and of their products, if requested
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
    """Return the type in native byte order; for floats, the nearest of 32 and 64 bits."""
    if dtype.kind != "f":
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
