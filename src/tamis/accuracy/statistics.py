"""Statistics of errors against a source, added up chunk by chunk."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import crossed, differences, same_values
from tamis.missing.definition import NONE_MISSING, Missing, has_native
from tamis.rounding import relative_error

Array = NDArray[Any]
Index = tuple[int, ...]
Number = int | float

_STEP = 1 << 15
"""Values that are compared at once: they fit into the processor's cache, and memory does not depend on chunks."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that changed.

    Parameters
    ----------
    index
        Index in the array, slowest axis first.
    source, target
        The value in source and target.
    """

    index: Index
    source: Number
    target: Number


@dataclass(frozen=True, slots=True)
class Squares:
    """A sum of squares, ``mantissa * 4**exponent``, that neither overflows nor underflows."""

    mantissa: float = 0.0
    exponent: int = 0

    @classmethod
    def of(cls, values: Array, largest: float) -> Squares:
        """Return the sum of the squares of floats, whose largest magnitude is given; the array is overwritten."""
        exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
        if abs(exponent) > 400:  # otherwise squares are ordinary numbers
            np.ldexp(values, -exponent, out=values)
        else:
            exponent = 0
        np.multiply(values, values, out=values)
        return cls(float(np.add.reduce(values)), exponent)

    def plus(self, other: Squares) -> Squares:
        """Return the sum of two sums; scaling by powers of 2 does not round."""
        if not self.mantissa or not other.mantissa:
            return self if self.mantissa else other
        exponent = max(self.exponent, other.exponent)
        parts = (math.ldexp(term.mantissa, 2 * (term.exponent - exponent)) for term in (self, other))
        return Squares(sum(parts), exponent)

    def root_of_mean(self, count: int) -> float:
        """Return the square root of the mean of `count` squares."""
        try:
            return math.ldexp(math.sqrt(self.mantissa / count), self.exponent)
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class Tally:
    """The statistics of a comparison, of valid values unless stated otherwise.

    A value is missing if it is NaN, infinite, or one of the fill values, and valid otherwise. Errors are differences of
    values that are valid in source and target, in units of the data.

    Parameters
    ----------
    count
        Number of compared values, including missing ones.
    different
        Number of values whose bits differ; if types differ, whose values differ.
    missing
        Number of missing values of the source.
    lost, gained
        Number of missing values of the source with other bits in the target; number of values missing only in the
        target.
    first_different, first_lost, first_gained
        The first of each.
    worst
        The value with the largest error; None if there is no error.
    error
        The largest error: exact for integers, rounded to double precision for floats.
    relative
        The largest error relative to the source's value, for values that are not 0.
    stored_relative
        The largest relative error of stored floats as roundings bound it, without subnormal numbers: see
        `tamis.rounding`. For values of other types, or of two types, the same as `relative`.
    zeros_changed
        Number of zeros of the source that are not 0 in the target, for which there is no relative error.
    squares
        Sum of the squares of the errors.
    low, high
        Range of the source; None if no value is valid.
    compared
        Number of values with errors: valid in source and target.
    crossed, first_crossed
        Number of values that left or entered the valid range, and the first of them.
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
    stored_relative: float = 0.0

    def plus(self, other: Tally) -> Tally:
        """Return the tally of these values and of the values after them; the order affects the rounding of sums."""
        worse = other.error > self.error
        lows = [tally.low for tally in (self, other) if tally.low is not None]
        highs = [tally.high for tally in (self, other) if tally.high is not None]
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
            stored_relative=max(self.stored_relative, other.stored_relative),
        )

    @property
    def rmse(self) -> float | None:
        """Root of the mean square error; None if nothing was compared."""
        return self.squares.root_of_mean(self.compared) if self.compared else None

    @property
    def psnr(self) -> float | None:
        """Peak signal-to-noise ratio, range of the source over RMSE, in dB; None if the source has no range."""
        rmse = self.rmse
        if rmse is None or self.low is None or self.high is None or self.low == self.high:
            return None
        if not self.squares.mantissa:
            return math.inf
        # Halves and separate logarithms, because the range of the values and the ratio may overflow a float.
        half = self.high / 2 - self.low / 2
        mean = math.log10(self.squares.mantissa / self.compared) / 2 + self.squares.exponent * math.log10(2)
        return 20 * (math.log10(half) + math.log10(2) - mean) if half else None


def compare(source: Array, target: Array, origin: Index, missing: Missing = NONE_MISSING, zero: float = 0.0) -> Tally:
    """Compare the values of two arrays of one shape, floats or integers of any byte order.

    Parameters
    ----------
    source, target
        Arrays of floats or integers, not necessarily of one type.
    origin
        Index of the first value in the whole array.
    missing
        Missing values and valid range, in the type of the source.
    zero
        The stored value that means 0.
    """
    flat_source, flat_target = _flat(source), _flat(target)
    both = missing, missing.of_type(flat_target.dtype)
    tally = Tally()
    for start in range(0, source.size, _STEP):
        part = slice(start, start + _STEP)
        tally = tally.plus(_compare(flat_source[part], flat_target[part], start, both, zero))
    return _with_indices(tally, source.shape, origin)


def unchanged(values: Array, missing: Missing = NONE_MISSING) -> Tally:
    """Return what `compare` returns for values that did not change; `missing` is in their type."""
    flat = _flat(values)
    absent = missing.find(flat)
    valid = flat if absent is None else flat[~absent]
    low, high = (_item(valid.min()), _item(valid.max())) if valid.size else (None, None)
    return Tally(flat.size, missing=flat.size - valid.size, low=low, high=high, compared=valid.size)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False).ravel()


def _with_indices(tally: Tally, shape: Index, origin: Index) -> Tally:
    """Convert positions in flat arrays to indices in the whole array."""

    def convert(value: Place | None) -> Place | None:
        if value is None:
            return None
        index = np.unravel_index(value.index[0], shape)
        return replace(value, index=tuple(int(i) + first for i, first in zip(index, origin, strict=True)))

    if not tally.different:
        return tally
    return replace(
        tally,
        worst=convert(tally.worst),
        first_different=convert(tally.first_different),
        first_lost=convert(tally.first_lost),
        first_gained=convert(tally.first_gained),
        first_crossed=convert(tally.first_crossed),
    )


def _compare(source: Array, target: Array, start: int, missing: tuple[Missing, Missing], zero: float) -> Tally:
    same = same_values(source, target)
    different = source.size - int(np.count_nonzero(same))
    absent = missing[0].find(source)
    values = source if absent is None else source[~absent]
    low, high = (_item(values.min()), _item(values.max())) if values.size else (None, None)
    if absent is None and not different:
        return Tally(source.size, low=low, high=high, compared=source.size)
    absent_target = missing[1].find(target)
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
        before, after = (np.zeros(source.shape, bool) if mask is None else mask for mask in (absent, absent_target))
        lost, gained = before & ~_kept(source, target, same), after & ~before
        valid = ~(before | after)
        base = replace(
            base,
            missing=int(np.count_nonzero(before)),
            lost=int(np.count_nonzero(lost)),
            gained=int(np.count_nonzero(gained)),
            first_lost=_first(lost, source, target, start),
            first_gained=_first(gained, source, target, start),
            compared=int(np.count_nonzero(valid)),
        )
    if not different or not base.compared:
        return base
    beyond = crossed(source, target, missing[0])
    if beyond is not None:
        beyond = beyond if valid is None else beyond & valid
        base = replace(base, crossed=int(np.count_nonzero(beyond)), first_crossed=_first(beyond, source, target, start))
    return _with_errors(base, source, target, valid, start, zero)


def _with_errors(base: Tally, source: Array, target: Array, valid: Array | None, start: int, zero: float) -> Tally:
    """Return a tally with the errors of valid values added."""
    sources, targets = (source, target) if valid is None else (source[valid], target[valid])
    errors = differences(sources, targets)
    worst = int(errors.argmax())
    error = _item(errors[worst])
    if not error:
        return base
    position = worst if valid is None else int(np.flatnonzero(valid)[worst])
    wide = errors.dtype if errors.dtype.kind == "f" else np.dtype(np.float64)
    errors = errors.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        relative = sources.astype(wide) - wide.type(zero)
        np.divide(errors, np.abs(relative, out=relative), out=relative)
    zeros = sources == zero
    zeros_changed = 0
    if zeros.any():
        relative[zeros] = 0
        zeros_changed = int(np.count_nonzero(zeros & (targets != zero)))
    relative_largest = float(relative.max())
    native = has_native(sources.dtype) and sources.dtype == targets.dtype
    return replace(
        base,
        worst=Place((start + position,), _item(source[position]), _item(target[position])),
        error=error,
        relative=relative_largest,
        stored_relative=relative_error(sources, targets) if native else relative_largest,
        zeros_changed=zeros_changed,
        squares=Squares.of(errors.astype(np.float64, copy=False), float(error)),
    )


def _kept(source: Array, target: Array, same: Array) -> Array:
    """Return which values are the same, also after conversion to the target's type."""
    if source.dtype == target.dtype:
        return same
    with np.errstate(all="ignore"):
        return same | same_values(source.astype(target.dtype), target)


def _first(mask: Array, source: Array, target: Array, start: int) -> Place | None:
    if not mask.any():
        return None
    position = int(mask.argmax())
    return Place((start + position,), _item(source[position]), _item(target[position]))


def _item(value: Any) -> Number:
    """Return a Python number; longer floats are rounded."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if isinstance(number, int) else float(number)
