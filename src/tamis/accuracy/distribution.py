"""Whether two sets of values may come from one distribution: the Kolmogorov-Smirnov test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native

_MOST_BINS = 1 << 19
_MOST_WAITING_NBYTES = 32 << 20
"""Pairs that wait to be counted together, because all bins are copied for that."""

_LEAST_EXPONENT = -1074
"""All floats are multiples of two to this power."""
_WORD = 62
"""Bits of the numbers of bins, without the sign."""


class _Window(NamedTuple):
    """Neighbouring bins."""

    # Whether bins have one width, ``2**step``, or else ``2**step`` neighbouring floats or integers each. Two bins of
    # one step are one of the next.
    equal: bool
    # Size of the bins, and numbers of the first and the last
    step: int
    first: int
    last: int

    @classmethod
    def of(cls, low: np.generic, high: np.generic, *, equal: bool) -> _Window:
        """Return the smallest bins that cover numbers from `low` to `high`, as few as allowed."""
        ends = (_multiple(end) if equal else _ordered(end) for end in (low, high))
        return cls(equal, _LEAST_EXPONENT if equal else 0, *ends)._allowed()

    def coarser(self, steps: int) -> _Window:
        """Return bins that cover those of a window, coarser by a number of steps."""
        return self._replace(step=self.step + steps, first=self.first >> steps, last=self.last >> steps)

    def joined(self, other: _Window) -> _Window:
        """Return bins that hold those of both windows, which may be larger."""
        one, two = (
            distribution.coarser(max(self.step, other.step) - distribution.step) for distribution in (self, other)
        )
        return one._replace(first=min(one.first, two.first), last=max(one.last, two.last))._allowed()

    def _allowed(self) -> _Window:
        """Return bins with small numbers, as few as allowed."""
        bits = max(abs(self.first).bit_length(), abs(self.last).bit_length())
        window = self.coarser(max(0, bits - _WORD, (self.last - self.first).bit_length() - _MOST_BINS.bit_length()))
        while window.bin_count > _MOST_BINS:
            window = window.coarser(1)
        return window

    @property
    def bin_count(self) -> int:
        """Number of bins."""
        return self.last - self.first + 1


def _multiple(value: np.generic) -> int:
    """Return a float as a multiple of the smallest one."""
    numerator, denominator = float(value).as_integer_ratio()
    return (numerator << -_LEAST_EXPONENT) // denominator


def _ordered(value: np.generic) -> int:
    """Return a whole number that rises by one to the next larger float or integer."""
    if value.dtype.kind != "f":
        return int(value)
    bits = int(value.view(f"i{value.dtype.itemsize}"))
    return bits if bits >= 0 else -(1 << 8 * value.dtype.itemsize - 1) - bits


@dataclass(frozen=True, slots=True)
class _Counts:
    """How many values are in each bin of a window."""

    window: _Window
    table: NDArray[np.int64]  # A row for the values before, and one for those after

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], *, equal: bool, others: _Counts | None = None) -> _Counts:
        """Return the counts of values of a countable type, plus counts of others."""
        window = _Window.of(before.min(), before.max(), equal=equal)
        window = window.joined(_Window.of(after.min(), after.max(), equal=equal))
        if others is None:
            counts = cls(window, np.zeros((2, window.bin_count), np.int64))
        else:
            counts = others.within(window.joined(others.window))
        window = counts.window
        for values, row in zip((before, after), counts.table, strict=True):
            _native.count_in_bins(values, equal, window.step, window.first, row)
        return counts

    def within(self, window: _Window) -> _Counts:
        """Return the counts in bins that hold these: a copy."""
        steps = window.step - self.window.step
        moved = self.window.coarser(steps)
        table = np.zeros((2, window.bin_count), np.int64)
        # Bins begin at multiples of their size.
        first = min(((moved.first + 1) << steps) - self.window.first, self.window.bin_count)
        starts = [0, *range(first, self.window.bin_count, 1 << steps)]
        at = moved.first - window.first
        table[:, at : at + moved.bin_count] = np.add.reduceat(self.table, starts, axis=1) if steps else self.table
        return _Counts(window, table)

    def plus(self, other: _Counts) -> _Counts:
        """Return the counts of these values and of others."""
        window = self.window.joined(other.window)
        return _Counts(window, self.within(window).table + other.within(window).table)

    @property
    def most_apart(self) -> int:
        """The largest difference of the cumulative counts, or an upper bound of it."""
        before, after = self.table
        upper = np.cumsum(before - after)  # at the upper edges of bins
        if not (self.window.equal or self.window.step):  # each bin is a single number
            return int(np.abs(upper).max())
        return int(max((upper + after).max(), (before - upper).max()))


@dataclass(frozen=True, slots=True)
class Changes:
    """Pairs of values that changed, before and after."""

    # Pairs that are not counted yet, in arrays of a type that is counted, and their bytes
    waiting: tuple[tuple[NDArray[Any], NDArray[Any]], ...] = ()
    waiting_nbytes: int = 0
    counts: tuple[_Counts, ...] = ()  # Counts of the others: of integers in one kind of bins, of floats in both kinds
    # By how much pairs that were left behind make the numbers of values up to any number differ, at most
    apart: int = 0

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any]) -> Changes:
        """Return the pairs of two arrays of one shape and type, of numbers that are not missing."""
        changed = before != after
        if not changed.any():
            return cls()
        pair = _countable(before[changed]), _countable(after[changed])
        return cls((pair,), 2 * pair[0].nbytes)._settled()

    def plus(self, other: Changes) -> Changes:
        """Return these pairs and others, of values of the same type."""
        counts = self.counts or other.counts
        if self.counts and other.counts:
            counts = tuple(one.plus(two) for one, two in zip(self.counts, other.counts, strict=True))
        waiting, nbytes = self.waiting + other.waiting, self.waiting_nbytes + other.waiting_nbytes
        return Changes(waiting, nbytes, counts, self.apart + other.apart)._settled()

    def _settled(self) -> Changes:
        return self if self.waiting_nbytes < _MOST_WAITING_NBYTES else self._counted()

    def _counted(self) -> Changes:
        """Return the same with all pairs counted."""
        if not self.waiting:
            return self
        before, after = (np.concatenate(values) for values in zip(*self.waiting, strict=True))
        kinds = (False, True) if before.dtype.kind == "f" else (False,)
        counts = zip(kinds, self.counts or (None,) * len(kinds), strict=True)
        all_counts = tuple(_Counts.of(before, after, equal=equal, others=others) for equal, others in counts)
        return Changes(counts=all_counts, apart=self.apart)

    def without_values(self) -> Changes:
        """Return an equivalent without values; joined with other pairs, it may overestimate."""
        counts = self._counted().counts
        return Changes(apart=self.apart + min((count.most_apart for count in counts), default=0))

    def ks_statistic(self, count: int) -> float:
        """Return the Kolmogorov-Smirnov statistic of so many values, changed or not; never too small.

        It is exact for integers of up to 19 bits.
        """
        apart = self.without_values().apart
        return min(apart / count, 1.0) if apart else 0.0


def _countable(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in an order-preserving type that is counted: float32, float64 or int64."""
    if values.dtype == np.uint64:
        return (values ^ np.uint64(1 << 63)).view(np.int64)
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    return values.astype(np.float32 if values.dtype.itemsize <= 4 else np.float64, copy=False)


_TERMS = 100
_CERTAIN = 0.2
"""Below this, the probability differs from 1 by less than rounding, and its series converges slowly."""


def ks_probability(statistic: float, count: int) -> float:
    """Return the probability of this distance or more between two sets of `count` values of one distribution.

    This is Kolmogorov's limit for large sets, which scipy's ``ks_2samp`` uses for more than 10,000 values. With more
    values, smaller distances become improbable.
    """
    reach = statistic * math.sqrt(count / 2)
    if reach < _CERTAIN:
        return 1.0
    terms = ((-1.0) ** (k - 1) * math.exp(-2 * (k * reach) ** 2) for k in range(1, _TERMS))
    return min(max(2 * math.fsum(terms), 0.0), 1.0)
