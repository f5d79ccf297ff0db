"""Measures of a whole array against its source, added up part by part."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import PairSums
from tamis.accuracy.distribution import ValueChanges, ks_probability
from tamis.accuracy.fields import FieldMeasures
from tamis.accuracy.statistics import Moments, Squares, Tally

if TYPE_CHECKING:
    from tamis.meaning.missing import Missing


class Measured(NamedTuple):
    """What is known of the valid values of some parts, in stored units."""

    tally: Tally = Tally()
    moments: Moments = Moments()  # Moments of the values before and after
    changes: ValueChanges = ValueChanges()  # The values that changed, if their distribution was requested
    fields: FieldMeasures = FieldMeasures()  # Measures of whole fields and rows, if requested

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], missing: Missing, words: Collection[str]) -> Measured:
        """Return what the measures with these words need from a part whose missing values stayed the same."""
        sums = PairSums.of(before, after, missing, moments="corr" in words)
        if not sums.pair_count:
            return cls()
        tally = Tally(
            sums.pair_count,
            error=sums.error,
            low=sums.low,
            high=sums.high,
            compared=sums.pair_count,
            squares=Squares(sums.mantissa, sums.exponent),
        )
        moments = Moments.from_sums(sums) if "corr" in words else Moments()
        changes = _changes(before, after, missing) if "ks" in words else ValueChanges()
        return cls(tally, moments, changes)

    @classmethod
    def unchanged(cls, values: NDArray[Any], missing: Missing, *, moments: bool = True) -> Measured:
        """Return what is known of a part that did not change; on request, with moments."""
        valid = missing.valid(values).reshape(-1)
        if not valid.size:
            return cls()
        tally = Tally(valid.size, low=valid.min().item(), high=valid.max().item(), compared=valid.size)
        if not moments:
            return cls(tally)
        wide = valid.astype(np.float64)
        mean = float(wide.mean())
        wide -= mean
        square = float(np.einsum("i,i", wide, wide))
        return cls(tally, Moments(valid.size, mean, mean, square, square, square))

    @classmethod
    def repeated(cls, value: NDArray[Any], count: int, missing: Missing) -> Measured:
        """Return what is known of a number of equal values that did not change."""
        if not count or missing.find(value.reshape(1)) is not None:
            return cls()
        number = value.item()
        mean = float(number)
        return cls(Tally(count, low=number, high=number, compared=count), Moments(count, mean, mean))

    def plus(self, other: Measured) -> Measured:
        """Return the combination with other parts."""
        return Measured(
            self.tally.plus(other.tally),
            self.moments.plus(other.moments),
            self.changes.plus(other.changes),
            self.fields.plus(other.fields),
        )

    @property
    def span(self) -> float | None:
        """Range of the source; None if no value is valid."""
        low, high = self.tally.low, self.tally.high
        return None if low is None or high is None else float(high - low)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the source; None if no value is valid."""
        return self.moments.deviation

    @property
    def ks_probability(self) -> float | None:
        """Probability by the Kolmogorov-Smirnov test, or less; None if no value is valid."""
        count = self.tally.compared
        return ks_probability(self.changes.ks_statistic(count), count) if count else None


def _changes(before: NDArray[Any], after: NDArray[Any], missing: Missing) -> ValueChanges:
    """Return how valid values changed."""
    absent = missing.find(before)
    if absent is None:
        return ValueChanges.of(before, after)
    return ValueChanges.of(before[~absent], after[~absent])


AT_MOST = ("rmse", "spectrum")
"""Measures that are better where they are smaller; others are better where they are larger."""


def reached(measured: Measured, words: Collection[str], scale: float) -> dict[str, float | None]:
    """Return the measures with these words that follow from sums over values; None for those that are not defined."""
    tally, rmse = measured.tally, measured.tally.rmse
    values = {
        "rmse": None if rmse is None else rmse * abs(scale),
        "psnr": tally.psnr,
        "corr": measured.moments.correlation,
        "ks": measured.ks_probability,
    }
    return {word: values[word] for word in words if word in values}


def is_missed(word: str, asked: float, value: float | None) -> bool:
    """Return whether a measure of changed values is worse than required, or not defined."""
    return value is None or not (value <= asked if word in AT_MOST else value >= asked)
