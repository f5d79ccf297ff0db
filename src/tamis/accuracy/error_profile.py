"""How errors are distributed: over their size, over values, and along the first axis; added up block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

ERROR_BINS = 101
"""Bins of errors, an odd number, so that the middle one has zero at its centre."""

VALUE_BINS = 1 << 14
"""Bins of values, fine enough for quantiles."""

LEVELS = 64
"""Coarser bins of the source's values, each with the mean error of its values."""

MOST_STEPS = 512
"""Steps along the first axis that are kept apart; more are joined."""

_PIECE_COUNT = 1 << 16
"""Values that are counted at once: they fit into the processor's cache."""

QUANTILES = (0.0001, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 0.9999)


class Scale(NamedTuple):
    """Ranges and extents that are known before the first block."""

    reach: float  # Largest error that the bins hold; 0 if there is none
    low: float  # Range of the values, in source and target
    high: float
    extent: int = 1  # Extent of the first axis

    @property
    def step_count(self) -> int:
        """Number of steps along the first axis."""
        return min(self.extent, MOST_STEPS)

    def step_of(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the step that each index along the first axis belongs to."""
        return index * self.step_count // max(self.extent, 1)

    def bins_of(self, values: Floats, low: float, high: float, count: int) -> NDArray[np.intp]:
        """Return the bin of each value between two ends; values beyond them are in the first or last bin."""
        factor = count / (high - low) if high > low else 0.0
        if not math.isfinite(factor):
            factor = 0.0
        numbers = (values - low) * factor
        return np.clip(numbers, 0, count - 1, out=numbers).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorProfile:
    """Errors of some blocks, target minus source, in units of the variable; of values valid in both."""

    scale: Scale
    count: int
    total: float  # Sum of the errors
    squares: float  # Sum of their squares
    errors: Counts  # Number of errors in each bin from -reach to reach
    before: Counts  # Number of values in each bin from low to high, in the source
    after: Counts  # The same in the target
    levels: NDArray[Any]  # For each level of the source: number, sum of errors, sum of squares
    steps: NDArray[Any]  # For each step along the first axis: number, sum of errors, sum of squares, largest magnitude
    # Ends of the values, and how many values are exactly there; before and after
    lows: tuple[tuple[float, int], tuple[float, int]]
    highs: tuple[tuple[float, int], tuple[float, int]]
    # Values with another sign, zeros that are none any more, and new zeros
    sign_changes: int
    zeros_lost: int
    zeros_new: int

    @classmethod
    def of(
        cls, scale: Scale, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, start: int
    ) -> ErrorProfile:
        """Return the profile of a block whose first axis begins at an index of the whole array."""
        rows = before.shape[0] if before.ndim else 1
        tables = [None if part is None else part.reshape(rows, -1) for part in (before, after, valid)]
        one, two, flags = tables
        assert one is not None
        assert two is not None
        step = max(1, _PIECE_COUNT // max(one.shape[1], 1))
        pieces = (
            (slice(row, row + step), slice(column, column + _PIECE_COUNT))
            for row in range(0, rows, step)
            for column in range(0, one.shape[1], _PIECE_COUNT)
        )
        profiles = (
            cls._of_piece(scale, one[at], two[at], None if flags is None else flags[at], start + at[0].start)
            for at in pieces
        )
        return reduce(cls.plus, profiles)

    @classmethod
    def _of_piece(
        cls, scale: Scale, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, start: int
    ) -> ErrorProfile:
        """Return the profile of a few rows, in float64."""
        one, two = (values.reshape(-1).astype(np.float64, copy=False) for values in (before, after))
        errors = two - one
        if valid is not None:
            errors[~valid.reshape(-1)] = 0.0
        steps = _steps(scale, errors.reshape(len(before), -1), valid, start)
        if valid is not None:
            kept = valid.reshape(-1)
            one, two, errors = one[kept], two[kept], errors[kept]
        bins = scale.bins_of(errors, -scale.reach, scale.reach, ERROR_BINS)
        fine = scale.bins_of(one, scale.low, scale.high, VALUE_BINS)
        squared = errors * errors
        level = fine // (VALUE_BINS // LEVELS)
        levels = [np.bincount(level, weights, LEVELS) for weights in (None, errors, squared)]
        signs = cls._signs(one, two) if scale.low <= 0 <= scale.high else (0, 0, 0)
        return cls(
            scale,
            len(one),
            float(errors.sum()),
            float(squared.sum()),
            np.bincount(bins, minlength=ERROR_BINS),
            np.bincount(fine, minlength=VALUE_BINS),
            np.bincount(scale.bins_of(two, scale.low, scale.high, VALUE_BINS), minlength=VALUE_BINS),
            np.stack(levels),
            steps,
            (_end(one, np.min, math.inf), _end(two, np.min, math.inf)),
            (_end(one, np.max, -math.inf), _end(two, np.max, -math.inf)),
            *signs,
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
            self.scale,
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            self.errors + other.errors,
            self.before + other.before,
            self.after + other.after,
            self.levels + other.levels,
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

    @property
    def error_centres(self) -> Floats:
        """The middle of each bin of errors."""
        width = 2 * self.scale.reach / ERROR_BINS
        return np.asarray((np.arange(ERROR_BINS) - ERROR_BINS // 2) * width, np.float64)

    @property
    def level_centres(self) -> Floats:
        """The middle of each level of values."""
        width = (self.scale.high - self.scale.low) / LEVELS
        return np.asarray(self.scale.low + (np.arange(LEVELS) + 0.5) * width, np.float64)

    def quantiles(self, counts: Counts) -> list[float]:
        """Return `QUANTILES` of values that are counted in bins, to the width of a bin."""
        sums = np.cumsum(counts)
        width = (self.scale.high - self.scale.low) / VALUE_BINS
        at = np.searchsorted(sums, np.array(QUANTILES) * sums[-1])
        return [self.scale.low + (int(number) + 0.5) * width for number in at]


def _steps(scale: Scale, errors: Floats, valid: NDArray[np.bool_] | None, start: int) -> NDArray[Any]:
    """Return number, sum, sum of squares and largest magnitude of the errors of each step."""
    rows = len(errors)
    counts = np.full(rows, errors.shape[1]) if valid is None else valid.reshape(rows, -1).sum(axis=1)
    largest = np.abs(errors).max(axis=1, initial=0.0)
    step = scale.step_of(np.arange(start, start + rows))
    table = np.zeros((4, scale.step_count))
    for row, values in enumerate((counts, errors.sum(axis=1), np.einsum("ij,ij->i", errors, errors))):
        table[row] = np.bincount(step, values, scale.step_count)
    np.maximum.at(table[3], step, largest)
    return table


def _end(values: Floats, extreme: Any, none: float) -> tuple[float, int]:
    """Return the smallest or largest value, and how often it occurs."""
    if not values.size:
        return none, 0
    end = extreme(values)
    return float(end), int(np.count_nonzero(values == end))


def _joined(one: tuple[float, int], other: tuple[float, int], extreme: Any) -> tuple[float, int]:
    end = extreme(one[0], other[0])
    return end, sum(count for value, count in (one, other) if value == end)
