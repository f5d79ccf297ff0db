"""How errors are distributed: over their size, over values, and along the first axis; added up block by block."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.bins import Bins, Window, count_values

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

ERROR_BINS = 101
"""Bins of a histogram of errors, an odd number, so that the middle one has zero at its centre."""

_MOST_ERROR_BINS = 1 << 14
_MOST_VALUE_BINS = 1 << 15
"""Bins of values, fine enough for quantiles."""

_MOST_LEVELS = 96
"""Coarser bins of the source's values, each with the mean error of its values."""

MOST_STEPS = 512
"""Steps along the first axis that are kept apart; more are joined."""

_PIECE_COUNT = 1 << 16
"""Values that are counted at once: they fit into the processor's cache."""

QUANTILES = (0.0001, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 0.9999)
"""Quantiles of the values that are told before and after."""


@dataclass(frozen=True, slots=True, eq=False)
class ErrorProfile:
    """Errors of some blocks, target minus source, in units of the variable; of values valid in both."""

    extent: int  # Extent of the first axis of the whole array
    count: int
    total: float  # Sum of the errors
    squares: float  # Sum of their squares
    # None without values
    errors: Bins | None  # Number of errors
    values: Bins | None  # Number of values in the source, and in the target
    levels: Bins | None  # By the source's values: number, sum of errors, sum of squares
    steps: NDArray[Any]  # For each step along the first axis: number, sum of errors, sum of squares, largest magnitude
    # Ends of the values, and how many values are exactly there; before and after
    lows: tuple[tuple[float, int], tuple[float, int]]
    highs: tuple[tuple[float, int], tuple[float, int]]
    # Values with another sign, zeros that became other values, and new zeros
    sign_changes: int
    zeros_lost: int
    zeros_new: int

    @classmethod
    def of(
        cls, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, start: int, extent: int
    ) -> ErrorProfile:
        """Return the profile of a block whose first axis begins at an index of the whole array, of some extent."""
        rows = before.shape[0] if before.ndim else 1
        one, two = before.reshape(rows, -1), after.reshape(rows, -1)
        flags = None if valid is None else valid.reshape(rows, -1)
        columns = one.shape[1]
        step = max(1, _PIECE_COUNT // max(columns, 1))

        def profile_of(corner: tuple[int, int]) -> ErrorProfile:
            row, column = corner
            piece = slice(row, row + step), slice(column, column + _PIECE_COUNT)
            return cls._of_piece(one[piece], two[piece], None if flags is None else flags[piece], start + row, extent)

        corners = itertools.product(range(0, rows, step), range(0, columns, _PIECE_COUNT))
        return reduce(cls.plus, map(profile_of, corners))

    @classmethod
    def _of_piece(
        cls, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, start: int, extent: int
    ) -> ErrorProfile:
        """Return the profile of a few rows, in float64."""
        one, two = (values.reshape(-1).astype(np.float64, copy=False) for values in (before, after))
        with np.errstate(over="ignore"):
            errors = two - one
            squared = errors * errors
        if valid is not None:
            errors[~valid.reshape(-1)] = 0.0
        steps = _steps(extent, errors.reshape(len(before), -1), valid, start)
        if valid is not None:
            kept = valid.reshape(-1)
            one, two, errors, squared = (values[kept] for values in (one, two, errors, squared))
        if not one.size:
            none = ((math.inf, 0), (math.inf, 0)), ((-math.inf, 0), (-math.inf, 0))
            return cls(extent, 0, 0.0, 0.0, None, None, None, steps, *none, 0, 0, 0)
        lows = _end(one, np.min), _end(two, np.min)
        highs = _end(one, np.max), _end(two, np.max)
        has_zero = min(lows)[0] <= 0 <= max(highs)[0]
        sign_changes, zeros_lost, zeros_new = cls._signs(one, two) if has_zero else (0, 0, 0)
        return cls(
            extent,
            len(one),
            float(errors.sum()),
            float(squared.sum()),
            _counted(_MOST_ERROR_BINS, errors),
            _counted(_MOST_VALUE_BINS, one, two),
            _levels(one, errors, squared),
            steps,
            lows,
            highs,
            sign_changes,
            zeros_lost,
            zeros_new,
        )

    @staticmethod
    def _signs(before: Floats, after: Floats) -> tuple[int, int, int]:
        """Return the numbers of changed signs, lost zeros and new zeros."""
        zero, zero_after = before == 0, after == 0
        signs = int(np.count_nonzero((before < 0) & (after > 0)) + np.count_nonzero((before > 0) & (after < 0)))
        return signs, int(np.count_nonzero(zero & ~zero_after)), int(np.count_nonzero(zero_after & ~zero))

    def plus(self, other: ErrorProfile) -> ErrorProfile:
        """Return the profile of these blocks and of others."""
        steps = self.steps + other.steps
        np.maximum(self.steps[3], other.steps[3], out=steps[3])
        return ErrorProfile(
            self.extent,
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            _both(self.errors, other.errors),
            _both(self.values, other.values),
            _both(self.levels, other.levels),
            steps,
            (_joined(self.lows[0], other.lows[0], min), _joined(self.lows[1], other.lows[1], min)),
            (_joined(self.highs[0], other.highs[0], max), _joined(self.highs[1], other.highs[1], max)),
            self.sign_changes + other.sign_changes,
            self.zeros_lost + other.zeros_lost,
            self.zeros_new + other.zeros_new,
        )

    @property
    def bias(self) -> float | None:
        """Mean error; None if nothing was compared."""
        return self.total / self.count if self.count else None

    @property
    def rmse(self) -> float | None:
        """Root of the mean square error; None if nothing was compared."""
        return math.sqrt(self.squares / self.count) if self.count else None

    def histogram(self, reach: float) -> tuple[Floats, Counts]:
        """Return centres of `ERROR_BINS` bins from -reach to reach, and the number of errors in each."""
        width = 2 * reach / ERROR_BINS
        counts = np.zeros(ERROR_BINS, np.int64)
        if self.errors is not None:
            window = self.errors.window
            numbers = np.rint(window.centres / width) if width else np.zeros(window.bin_count)
            at = np.clip(numbers + ERROR_BINS // 2, 0, ERROR_BINS - 1).astype(np.intp)
            np.add.at(counts, at, self.errors.table[0])
        return np.asarray((np.arange(ERROR_BINS) - ERROR_BINS // 2) * width, np.float64), counts

    def quantiles(self) -> list[tuple[float, float, float]]:
        """Return `QUANTILES`, each as a share, and its value in source and target to the width of a bin."""
        if self.values is None:
            return []
        centres = self.values.window.centres
        found = []
        for counts, low, high in zip(self.values.table, self.lows, self.highs, strict=True):
            sums = np.cumsum(counts)
            at = np.searchsorted(sums, np.array(QUANTILES) * sums[-1])
            found.append(np.clip(centres[at], low[0], high[0]).tolist())
        before, after = found
        return [*zip(QUANTILES, before, after, strict=True)]


def _counted(most: int, *rows: Floats) -> Bins:
    """Return in which bins numbers are, a row of counts for each array; differences may be infinite."""
    if not all(math.isfinite(values.sum()) for values in rows):
        rows = tuple(map(np.nan_to_num, rows))
    low, high = min(values.min() for values in rows), max(values.max() for values in rows)
    counts = Bins.empty(Window.of(low, high, most), len(rows))
    for values, row in zip(rows, counts.table, strict=True):
        count_values(values, counts.window, row)
    return counts


def _levels(values: Floats, errors: Floats, squared: Floats) -> Bins:
    """Return number, sum and sum of squares of errors by the values of the source."""
    window = Window.of(values.min(), values.max(), _MOST_LEVELS)
    numbers = window.numbers_of(values)
    return Bins(window, np.stack([np.bincount(numbers, part, window.bin_count) for part in (None, errors, squared)]))


def _both(one: Bins | None, other: Bins | None) -> Bins | None:
    """Return the bins of both; None if neither has any."""
    if one is None or other is None:
        return one or other
    return one.plus(other)


def _steps(extent: int, errors: Floats, valid: NDArray[np.bool_] | None, start: int) -> NDArray[Any]:
    """Return number, sum, sum of squares and largest magnitude of the errors of each step."""
    rows = len(errors)
    counts = np.full(rows, errors.shape[1]) if valid is None else valid.reshape(rows, -1).sum(axis=1)
    largest = np.abs(errors).max(axis=1, initial=0.0)
    step_count = min(extent, MOST_STEPS)
    step = np.arange(start, start + rows) * step_count // max(extent, 1)
    table = np.zeros((4, step_count))
    for row, values in enumerate((counts, errors.sum(axis=1), np.einsum("ij,ij->i", errors, errors))):
        table[row] = np.bincount(step, values, step_count)
    np.maximum.at(table[3], step, largest)
    return table


def _end(values: Floats, extreme: Any) -> tuple[float, int]:
    """Return the smallest or largest value, and how often it occurs."""
    end = extreme(values)
    return float(end), int(np.count_nonzero(values == end))


def _joined(one: tuple[float, int], other: tuple[float, int], extreme: Any) -> tuple[float, int]:
    """Return the smaller or larger end, and how many values of both are there."""
    end = extreme(one[0], other[0])
    return end, sum(count for value, count in (one, other) if value == end)
