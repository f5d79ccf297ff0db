"""Whether two sets of values may come from one distribution: the Kolmogorov-Smirnov test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.bins import Bins, Window, count_values

_MOST_BINS = 1 << 19
_MOST_WAITING_NBYTES = 32 << 20
"""Pairs that wait to be counted together, because all bins are copied for that."""


def _counted_in_bins(before: NDArray[Any], after: NDArray[Any], *, equal: bool, others: Bins | None) -> Bins:
    """Return in which bins values of a countable type are, before and after, with those of others."""
    window = Window.of(before.min(), before.max(), _MOST_BINS, equal=equal)
    window = window.joined(Window.of(after.min(), after.max(), _MOST_BINS, equal=equal))
    counts = Bins.empty(window, 2) if others is None else others.within(window.joined(others.window))
    for values, row in zip((before, after), counts.table, strict=True):
        count_values(values, counts.window, row)
    return counts


def _most_apart(counts: Bins) -> int:
    """Return the largest difference of the cumulative counts before and after, or an upper bound of it."""
    before, after = counts.table
    upper = np.cumsum(before - after)  # at the upper edges of bins
    if not (counts.window.equal or counts.window.step):  # each bin is a single number
        return int(np.abs(upper).max())
    return int(max((upper + after).max(), (before - upper).max()))


@dataclass(frozen=True, slots=True)
class ValueChanges:
    """Pairs of values that changed, before and after."""

    # Pairs that are not counted yet, in arrays of a type that is counted, and their bytes
    waiting: tuple[tuple[NDArray[Any], NDArray[Any]], ...] = ()
    waiting_nbytes: int = 0
    counts: tuple[Bins, ...] = ()  # Counts of the others: of integers in one kind of bins, of floats in both kinds
    # By how much pairs that were left behind make the numbers of values up to any number differ, at most
    apart: int = 0

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any]) -> ValueChanges:
        """Return the pairs of two arrays of one shape and type, of numbers that are not missing."""
        changed = before != after
        if not changed.any():
            return cls()
        pair = _countable(before[changed]), _countable(after[changed])
        return cls((pair,), 2 * pair[0].nbytes)._settled()

    def plus(self, other: ValueChanges) -> ValueChanges:
        """Return these pairs and others, of values of the same type."""
        counts = self.counts or other.counts
        if self.counts and other.counts:
            counts = tuple(one.plus(two) for one, two in zip(self.counts, other.counts, strict=True))
        waiting, nbytes = self.waiting + other.waiting, self.waiting_nbytes + other.waiting_nbytes
        return ValueChanges(waiting, nbytes, counts, self.apart + other.apart)._settled()

    def _settled(self) -> ValueChanges:
        return self if self.waiting_nbytes < _MOST_WAITING_NBYTES else self._counted()

    def _counted(self) -> ValueChanges:
        """Return the same with all pairs counted."""
        if not self.waiting:
            return self
        before, after = (np.concatenate(values) for values in zip(*self.waiting, strict=True))
        kinds = (False, True) if before.dtype.kind == "f" else (False,)
        counts = zip(kinds, self.counts or (None,) * len(kinds), strict=True)
        all_counts = tuple(_counted_in_bins(before, after, equal=equal, others=others) for equal, others in counts)
        return ValueChanges(counts=all_counts, apart=self.apart)

    def without_values(self) -> ValueChanges:
        """Return an equivalent without values; joined with other pairs, it may overestimate."""
        counts = self._counted().counts
        return ValueChanges(apart=self.apart + min(map(_most_apart, counts), default=0))

    def ks_statistic(self, count: int) -> float:
        """Return the Kolmogorov-Smirnov statistic of all values, changed or not, given their number; never too small.

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
