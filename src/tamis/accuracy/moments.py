"""Moments of pairs of values, added up part by part: the correlation of data with their compressed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tamis.accuracy.pair_sums import PairSums


@dataclass(frozen=True, slots=True)
class Moments:
    """Means and central moments of pairs of values.

    Parameters
    ----------
    count
        Number of pairs.
    mean_1, mean_2
        Means of the first and of the second values.
    square_1, square_2, product
        Sums of squared deviations from the means, and of the products of both deviations.
    """

    count: int = 0
    mean_1: float = 0.0
    mean_2: float = 0.0
    square_1: float = 0.0
    square_2: float = 0.0
    product: float = 0.0

    @classmethod
    def of(cls, first: NDArray[Any], second: NDArray[Any]) -> Moments:
        """Return the moments of two arrays of one shape and type, of finite numbers."""
        return cls.from_sums(PairSums.of(first, second, moments=True))

    @classmethod
    def from_sums(cls, sums: PairSums) -> Moments:
        """Return the moments of pairs whose sums are known."""
        return cls(sums.pair_count, sums.mean_1, sums.mean_2, sums.square_1, sums.square_2, sums.product)

    def plus(self, other: Moments) -> Moments:
        """Return the moments of these pairs and of others."""
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        apart_1, apart_2 = other.mean_1 - self.mean_1, other.mean_2 - self.mean_2
        share, weight = other.count / count, self.count * other.count / count
        return Moments(
            count,
            self.mean_1 + apart_1 * share,
            self.mean_2 + apart_2 * share,
            self.square_1 + other.square_1 + apart_1 * apart_1 * weight,
            self.square_2 + other.square_2 + apart_2 * apart_2 * weight,
            self.product + other.product + apart_1 * apart_2 * weight,
        )

    @property
    def correlation(self) -> float | None:
        """Pearson's r; None if either side is constant, or a number overflows."""
        size = math.sqrt(self.square_1) * math.sqrt(self.square_2)
        if not size or not math.isfinite(size) or not math.isfinite(self.product):
            return None
        return min(max(self.product / size, -1.0), 1.0)
