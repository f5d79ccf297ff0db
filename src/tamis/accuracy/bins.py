"""Numbers counted in neighbouring bins, which grow as more numbers come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis import _native

_LEAST_EXPONENT = -1074
"""All floats are multiples of two to this power."""
_WORD = 62
"""Bits of the numbers of bins, without the sign."""


class Window(NamedTuple):
    """Neighbouring bins."""

    # If true, all bins have the width ``2**step``; otherwise each has ``2**step`` neighbouring floats or integers. Two
    # bins of a step make one of the next step.
    equal: bool
    # Size of the bins, and numbers of the first and the last
    step: int
    first: int
    last: int
    most: int  # Number of bins at most

    @classmethod
    def of(cls, low: np.generic, high: np.generic, most: int, *, equal: bool = True) -> Self:
        """Return the smallest bins that cover numbers from `low` to `high`, as few as allowed."""
        if equal:
            window = cls(equal, _LEAST_EXPONENT, _multiple(low), _multiple(high), most)
        else:
            window = cls(equal, 0, _ordered(low), _ordered(high), most)
        return window._allowed()

    def coarser(self, steps: int) -> Self:
        """Return bins that cover those of a window, coarser by a number of steps."""
        return self._replace(step=self.step + steps, first=self.first >> steps, last=self.last >> steps)

    def joined(self, other: Self) -> Self:
        """Return bins that hold those of both windows, which may be larger."""
        step = max(self.step, other.step)
        one, two = self.coarser(step - self.step), other.coarser(step - other.step)
        return one._replace(first=min(one.first, two.first), last=max(one.last, two.last))._allowed()

    def _allowed(self) -> Self:
        """Return bins with small numbers, as few as allowed."""
        bits = max(abs(self.first).bit_length(), abs(self.last).bit_length())
        window = self.coarser(max(0, bits - _WORD, (self.last - self.first).bit_length() - self.most.bit_length()))
        while window.bin_count > self.most:
            window = window.coarser(1)
        return window

    @property
    def bin_count(self) -> int:
        """Number of bins."""
        return self.last - self.first + 1

    @property
    def width(self) -> float:
        """Width of bins of equal width."""
        return math.ldexp(1.0, self.step)

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle of each bin of equal width."""
        return np.asarray(np.ldexp(np.arange(self.first, self.last + 1) + 0.5, self.step), np.float64)

    def numbers_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the bin of each value, from 0 on, in bins of equal width."""
        # Two factors, since one of them may be no double.
        scaled = values * math.ldexp(1.0, -(self.step // 2))
        scaled *= math.ldexp(1.0, -(self.step - self.step // 2))
        return np.floor(scaled, out=scaled).astype(np.int64) - self.first


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


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Sums over the numbers in each bin of a window."""

    window: Window
    table: NDArray[Any]  # A row for each kind of sum

    @classmethod
    def empty(cls, window: Window, rows: int) -> Self:
        """Return bins with counts of 0."""
        return cls(window, np.zeros((rows, window.bin_count), np.int64))

    def within(self, window: Window) -> Self:
        """Return the sums in bins that hold these: a copy."""
        table = np.zeros((len(self.table), window.bin_count), self.table.dtype)
        steps = window.step - self.window.step
        moved, sums = self.window.coarser(steps), self.table
        if steps:
            # Bins begin at multiples of their size.
            step = min(1 << steps, self.window.bin_count)
            first = min(((moved.first + 1) << steps) - self.window.first, self.window.bin_count)
            starts = np.arange(first - step, self.window.bin_count, step)
            starts[0] = 0
            sums = np.add.reduceat(sums, starts, axis=1)
        at = moved.first - window.first
        table[:, at : at + moved.bin_count] = sums
        return type(self)(window, table)

    def plus(self, other: Self) -> Self:
        """Return the sums over these numbers and others."""
        window = self.window.joined(other.window)
        both = self.within(window)
        both.table[:] += other.table if other.window == window else other.within(window).table
        return both


def count_values(values: NDArray[Any], window: Window, counts: NDArray[np.int64]) -> None:
    """Add contiguous values of a countable type, all in the window, to the counts of its bins."""
    _native.count_in_bins(values, window.equal, window.step, window.first, counts)
