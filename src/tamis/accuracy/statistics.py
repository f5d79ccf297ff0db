"""How far values lie from those that they came from, summed up chunk by chunk. Knows no file format."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Index = tuple[int, ...]
Number = int | float

_STEP = 1 << 15
"""Values compared at once: few enough for the cache, so that memory is the same for any chunk."""


@dataclass(frozen=True, slots=True)
class Frame:
    """How valid values of an array are measured.

    Parameters
    ----------
    low, high
        Smallest and largest valid value; None where there is no limit.
    zero
        The value that stands for 0.
    """

    low: Any = None
    high: Any = None
    zero: float = 0.0

    def crossed(self, source: Array, target: Array) -> Array | None:
        """Tell values that a limit lies between; None where there is no limit."""
        found = None
        for limit, beyond in ((self.low, np.less), (self.high, np.greater)):
            if limit is not None:
                crossed = beyond(source, limit) != beyond(target, limit)
                found = crossed if found is None else found | crossed
        return found


FRAME = Frame()


@dataclass(frozen=True, slots=True)
class Place:
    """A value that is not what it was.

    Parameters
    ----------
    index
        In the array, slowest axis first.
    source, target
        What it was, and what it is.
    """

    index: Index
    source: Number
    target: Number


@dataclass(frozen=True, slots=True)
class Squares:
    """A sum of squares, ``mantissa * 4**exponent``, that neither overflows nor vanishes."""

    mantissa: float = 0.0
    exponent: int = 0

    @classmethod
    def of(cls, values: Array, largest: float) -> Squares:
        """Sum the squares of floats, of which the largest magnitude is known; they are changed."""
        exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
        if abs(exponent) > 400:  # squares of others are ordinary numbers
            np.ldexp(values, -exponent, out=values)
        else:
            exponent = 0
        np.multiply(values, values, out=values)
        return cls(float(np.add.reduce(values)), exponent)

    def plus(self, other: Squares) -> Squares:
        """Add two sums; scaling by powers of 2 rounds nothing."""
        if not self.mantissa or not other.mantissa:
            return self if self.mantissa else other
        exponent = max(self.exponent, other.exponent)
        parts = (math.ldexp(each.mantissa, 2 * (each.exponent - exponent)) for each in (self, other))
        return Squares(sum(parts), exponent)

    def root_of_mean(self, count: int) -> float:
        """Square root of the mean of so many squares."""
        try:
            return math.ldexp(math.sqrt(self.mantissa / count), self.exponent)
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class Tally:
    """What comparing values found; of valid values, where it says nothing else.

    A value is missing where it is NaN, infinite, or one of the fill values, and valid otherwise. Errors are those of
    values that are valid in source and target, in units of the data.

    Parameters
    ----------
    count
        Values compared, missing ones included.
    different
        Those of them whose bits differ; where types differ, whose values do.
    missing
        Values that are missing in the source.
    lost, gained
        Values missing in the source that are not the same bits in the target; values missing in the target only.
    first_different, first_lost, first_gained
        The first of each.
    worst
        The value with the largest error; None where there is no error.
    error
        The largest error: exact for integers, rounded to double precision for others.
    relative
        The largest error relative to the source's value, of those that are not 0.
    zeros_changed
        Zeros of the source that are not 0 in the target, for which there is no relative error.
    squares
        Sum of the squares of the errors.
    low, high
        Range of the source; None where no value is valid.
    compared
        Values that errors are of.
    crossed
        Values that were in the valid range and are beyond it, or the other way round, and the first of them.
    """

    count: int = 0
    different: int = 0
    missing: int = 0
    lost: int = 0
    gained: int = 0
    first_different: Place | None = None
    first_lost: Place | None = None
    first_gained: Place | None = None
    worst: Place | None = None
    error: Number = 0
    relative: float = 0.0
    zeros_changed: int = 0
    squares: Squares = Squares()
    low: Number | None = None
    high: Number | None = None
    compared: int = 0
    crossed: int = 0
    first_crossed: Place | None = None

    def plus(self, other: Tally) -> Tally:
        """Add what was found in values that come after these. The order decides how sums are rounded."""
        worse = other.error > self.error
        lows = [each.low for each in (self, other) if each.low is not None]
        highs = [each.high for each in (self, other) if each.high is not None]
        return Tally(
            count=self.count + other.count,
            different=self.different + other.different,
            missing=self.missing + other.missing,
            lost=self.lost + other.lost,
            gained=self.gained + other.gained,
            first_different=self.first_different or other.first_different,
            first_lost=self.first_lost or other.first_lost,
            first_gained=self.first_gained or other.first_gained,
            worst=other.worst if worse else self.worst,
            error=other.error if worse else self.error,
            relative=max(self.relative, other.relative),
            zeros_changed=self.zeros_changed + other.zeros_changed,
            squares=self.squares.plus(other.squares),
            low=min(lows, default=None),
            high=max(highs, default=None),
            compared=self.compared + other.compared,
            crossed=self.crossed + other.crossed,
            first_crossed=self.first_crossed or other.first_crossed,
        )

    @property
    def rmse(self) -> float | None:
        """Root of the mean square error; None where nothing was compared."""
        return self.squares.root_of_mean(self.compared) if self.compared else None

    @property
    def psnr(self) -> float | None:
        """Peak signal-to-noise ratio, range of the source over RMSE, in dB; None where the source has no range."""
        rmse = self.rmse
        if rmse is None or self.low is None or self.high is None or self.low == self.high:
            return None
        if not self.squares.mantissa:
            return math.inf
        # Halves, since the range of floats may exceed them; logarithms one by one, since their ratio may too.
        half = self.high / 2 - self.low / 2
        mean = math.log10(self.squares.mantissa / self.compared) / 2 + self.squares.exponent * math.log10(2)
        return 20 * (math.log10(half) + math.log10(2) - mean) if half else None


def compare(source: Array, target: Array, origin: Index, fills: tuple[Array, ...] = (), frame: Frame = FRAME) -> Tally:
    """Compare the values of two arrays of one shape, floats or integers of any byte order.

    Parameters
    ----------
    source, target
        Real floats or integers, not necessarily of one type.
    origin
        Index that the first value has in the array that these are a part of.
    fills
        Values, in the source's native type, that stand for missing ones.
    frame
        Of values that are not missing.
    """
    before, after = _flat(source), _flat(target)
    found = Tally()
    for start in range(0, source.size, _STEP):
        found = found.plus(_compare(before[start : start + _STEP], after[start : start + _STEP], start, fills, frame))
    return _placed(found, source.shape, origin)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False).ravel()


def _placed(found: Tally, shape: Index, origin: Index) -> Tally:
    """Turn places in flat arrays into those of the whole array."""

    def place(each: Place | None) -> Place | None:
        if each is None:
            return None
        index = np.unravel_index(each.index[0], shape)
        return replace(each, index=tuple(int(i) + first for i, first in zip(index, origin, strict=True)))

    if not found.different:
        return found
    return replace(
        found,
        worst=place(found.worst),
        first_different=place(found.first_different),
        first_lost=place(found.first_lost),
        first_gained=place(found.first_gained),
        first_crossed=place(found.first_crossed),
    )


def _compare(source: Array, target: Array, start: int, fills: tuple[Array, ...], frame: Frame) -> Tally:
    same = _same(source, target)
    different = source.size - int(np.count_nonzero(same))
    absent, low, high = _missing(source, fills)
    if absent is None and not different:
        return Tally(source.size, low=low, high=high, compared=source.size)
    absent_target, *_ = _missing(
        target, tuple(each.astype(target.dtype) for each in fills if _fits(each, target.dtype))
    )
    base = Tally(
        source.size,
        different,
        first_different=_first(~same, source, target, start) if different else None,
        low=low,
        high=high,
        compared=source.size,
    )
    valid = None
    if absent is not None or absent_target is not None:
        gone, gone_target = (np.zeros(source.shape, bool) if each is None else each for each in (absent, absent_target))
        lost, gained, valid = gone & ~_kept(source, target, same), gone_target & ~gone, ~(gone | gone_target)
        base = replace(
            base,
            missing=int(np.count_nonzero(gone)),
            lost=int(np.count_nonzero(lost)),
            gained=int(np.count_nonzero(gained)),
            first_lost=_first(lost, source, target, start),
            first_gained=_first(gained, source, target, start),
            compared=int(np.count_nonzero(valid)),
        )
    if not different or not base.compared:
        return base
    crossed = frame.crossed(source, target)
    if crossed is not None:
        crossed = crossed if valid is None else crossed & valid
        first = _first(crossed, source, target, start)
        base = replace(base, crossed=int(np.count_nonzero(crossed)), first_crossed=first)
    return _with_errors(base, source, target, valid, start, frame.zero)


def _with_errors(base: Tally, source: Array, target: Array, valid: Array | None, start: int, zero: float) -> Tally:
    """Add the errors of valid values."""
    before, after = (source, target) if valid is None else (source[valid], target[valid])
    errors = _errors(before, after)
    at = int(errors.argmax())
    error = _item(errors[at])
    if not error:
        return base
    place = at if valid is None else int(np.flatnonzero(valid)[at])
    wide = errors.dtype if errors.dtype.kind == "f" else np.dtype(np.float64)
    errors = errors.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        relative = before.astype(wide) - wide.type(zero)
        np.divide(errors, np.abs(relative, out=relative), out=relative)
    zeros = before == zero
    zeros_changed = 0
    if zeros.any():
        relative[zeros] = 0
        zeros_changed = int(np.count_nonzero(zeros & (after != zero)))
    return replace(
        base,
        worst=Place((start + place,), _item(source[place]), _item(target[place])),
        error=error,
        relative=float(relative.max()),
        zeros_changed=zeros_changed,
        squares=Squares.of(errors.astype(np.float64, copy=False), float(error)),
    )


def _same(source: Array, target: Array) -> Array:
    """Return which values have the same bits; for types that differ, or have bits without meaning, which are equal."""
    if source.dtype == target.dtype and source.dtype.itemsize <= 8:
        bits = f"u{source.dtype.itemsize}"
        return np.asarray(source.view(bits) == target.view(bits))
    return np.asarray((source == target) | ((source != source) & (target != target)))


def _kept(source: Array, target: Array, same: Array) -> Array:
    """Return which values are the same, or would be if the source had the target's type."""
    if source.dtype == target.dtype:
        return same
    with np.errstate(all="ignore"):
        return same | _same(source.astype(target.dtype), target)


def _missing(values: Array, fills: tuple[Array, ...]) -> tuple[Array | None, Number | None, Number | None]:
    """Return which values are missing, or None where none is, and the range of the others."""
    with np.errstate(invalid="ignore"):
        low, high = values.min(), values.max()
    finite = values.dtype.kind != "f" or (np.isfinite(low) and np.isfinite(high))
    if finite and not any(low <= each <= high for each in fills):
        return None, _item(low), _item(high)
    absent = np.zeros(values.shape, bool) if finite else ~np.isfinite(values)
    for each in fills:
        absent |= values == each
    valid = values[~absent]
    return absent, *((_item(valid.min()), _item(valid.max())) if valid.size else (None, None))


def _fits(fill: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether another type has a fill value too, rounded where it is a float."""
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    value = fill.item()
    return bool(math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max)


def _first(where: Array, source: Array, target: Array, start: int) -> Place | None:
    if not where.any():
        return None
    at = int(where.argmax())
    return Place((start + at,), _item(source[at]), _item(target[at]))


def _errors(source: Array, target: Array) -> Array:
    """Magnitudes of the differences: unsigned integers or Python's for integers, otherwise floats, rounded once."""
    if source.dtype.kind != "f" and target.dtype.kind != "f":
        common = np.result_type(source, target)
        if common.kind == "f":  # no type has all of int64 and uint64
            return np.asarray(np.abs(source.astype(object) - target.astype(object)))
        source, target = source.astype(common, copy=False), target.astype(common, copy=False)
        unsigned = f"u{common.itemsize}"
        larger, smaller = np.maximum(source, target), np.minimum(source, target)
        return np.asarray(larger.view(unsigned) - smaller.view(unsigned))
    wide = np.promote_types(np.result_type(source, target), np.float64)
    errors = source.astype(wide)
    with np.errstate(over="ignore"):
        errors -= target.astype(wide, copy=False)
        return np.asarray(np.abs(errors, out=errors))


def _item(value: Any) -> Number:
    """Return a Python number; longer floats than Python's are rounded."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if isinstance(number, int) else float(number)
