"""How errors lie in fields: spectra, autocorrelation, gradients and similarity; added up block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.fields import dssim

Floats = NDArray[np.float64]

MOST_LAG = 32
"""Longest lag of the autocorrelation, in values."""

_OCTAVES = 40
"""Bins of gradients that are shown, each twice as wide as the one before; smaller ones are in the first."""

_MANTISSA_NBITS = 52
_EXPONENTS = 2048
_BIAS = 1023
"""Of float64: bits of the mantissa, number of exponents, and the exponent of 1."""

_LEAST_PEAK = 0.15
"""By how much the autocorrelation at multiples of a period exceeds that at other lags."""

_ABOUT = 0.7
"""A period that is this share as strong as the strongest one is about as strong."""

_PIECE_COUNT = 1 << 16
"""Values that are worked on at once: they fit into the processor's cache."""

_LEAST_VARIANCE = 1e-12
"""Variance relative to the square of the mean, below which it is rounding."""

_PERIODS = range(2, 17)


class Lags(NamedTuple):
    """Products of errors at distances along one axis."""

    products: Floats  # Sum of the products of the errors of pairs, by lag from 0 on
    counts: Floats  # Number of pairs

    @classmethod
    def of(cls, errors: Floats, valid: NDArray[np.bool_] | None, axis: int) -> Lags:
        """Return the products along an axis of three; errors of values that are not valid are 0."""
        extent = errors.shape[axis]
        ahead = np.moveaxis(errors, axis, 0)
        flags = None if valid is None else np.moveaxis(valid, axis, 0)
        products, counts = np.zeros(MOST_LAG + 1), np.zeros(MOST_LAG + 1)
        for lag in range(min(MOST_LAG, extent - 1) + 1):
            products[lag] = np.einsum("abc,abc->", ahead[: extent - lag], ahead[lag:])
            pairs = ahead[lag:].size if flags is None else np.count_nonzero(flags[: extent - lag] & flags[lag:])
            counts[lag] = pairs
        return cls(products, counts)

    def plus(self, other: Lags) -> Lags:
        """Return the products of these errors and of others."""
        return Lags(self.products + other.products, self.counts + other.counts)

    def correlation(self, mean: float) -> list[float]:
        """Return the autocorrelation of errors with this mean, by lag from 0 on; empty without a variance.

        It is the mean product of pairs minus the square of the mean, over the variance.
        """
        if not self.counts[0]:
            return []
        known = self.counts > 0
        covariance = self.products[known] / self.counts[known] - mean * mean
        is_constant = covariance[0] <= _LEAST_VARIANCE * mean * mean
        return [] if is_constant else (covariance / covariance[0]).tolist()


def period_of(correlation: list[float]) -> tuple[int, float] | None:
    """Return the period of an autocorrelation, and how strong it is there; None if it has none."""
    values = np.array(correlation)
    candidates: list[tuple[int, float, float]] = []  # Period, how strong it is, and by how much above other lags
    for period in _PERIODS:
        if len(values) <= 2 * period:
            break
        at = np.arange(period, len(values), period)
        peaks = values[at]
        between = (values[at - 1] + values[np.minimum(at + 1, len(values) - 1)]) / 2
        excess = float((peaks - between)[:2].min())
        if excess > _LEAST_PEAK and float(peaks[:2].min()) > _LEAST_PEAK:
            candidates.append((period, float(peaks[:2].mean()), excess))
    most = max((excess for _, _, excess in candidates), default=0.0)
    # The first one, because multiples of a period are as strong as the period itself.
    return next(((period, peak) for period, peak, excess in candidates if excess >= _ABOUT * most), None)


class Gradients(NamedTuple):
    """Differences of neighbours along one axis, before and after."""

    pair_count: int
    squares: tuple[float, float, float]  # Sums of squares: before, after, and of the difference of both
    largest: float  # Largest difference of both
    flat: tuple[int, int]  # Number of differences that are 0, before and after
    sizes: NDArray[np.int64]  # Number of differences in each octave, before and after

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, axis: int) -> Gradients:
        """Return the gradients along one of the last two of three axes."""
        # In bands along the other axis, so that temporary arrays stay small.
        other = 3 - axis
        step = max(1, _PIECE_COUNT * before.shape[other] // max(before.size, 1))

        def gradients_of(start: int) -> Gradients:
            band = (slice(None),) * other + (slice(start, start + step),)
            return cls._of_band(before[band], after[band], None if valid is None else valid[band], axis)

        return reduce(cls.plus, map(gradients_of, range(0, before.shape[other], step)))

    @classmethod
    def _of_band(
        cls, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, axis: int
    ) -> Gradients:
        """Return the gradients of a part with all values along the axis."""
        before, after = (values.astype(np.float64) for values in (before, after))
        first, second = np.diff(before, axis=axis), np.diff(after, axis=axis)
        if valid is not None:
            ahead = np.moveaxis(valid, axis, 0)
            pairs = np.moveaxis(ahead[:-1] & ahead[1:], 0, axis)
            first, second = first[pairs], second[pairs]
        first, second = np.abs(first.reshape(-1)), np.abs(second.reshape(-1))
        signed = np.abs(np.diff(after - before, axis=axis))
        signed = (signed if valid is None else signed[pairs]).reshape(-1)
        squares = tuple(float(np.einsum("i,i", values, values)) for values in (first, second, signed))
        sizes = np.stack([_octaves(values) for values in (first, second)])
        flat = first.size - np.count_nonzero(first), second.size - np.count_nonzero(second)
        return cls(first.size, squares, float(signed.max(initial=0.0)), flat, sizes)  # type: ignore[arg-type]

    def plus(self, other: Gradients) -> Gradients:
        """Return the gradients of these values and of others."""
        return Gradients(
            self.pair_count + other.pair_count,
            tuple(map(sum, zip(self.squares, other.squares, strict=True))),  # type: ignore[arg-type]
            max(self.largest, other.largest),
            (self.flat[0] + other.flat[0], self.flat[1] + other.flat[1]),
            self.sizes + other.sizes,
        )

    def octaves(self) -> tuple[Floats, NDArray[np.int64]]:
        """Return the geometric middles of octaves, and how many differences are in each, before and after."""
        used = np.flatnonzero(self.sizes.any(axis=0))
        if not used.size:
            return np.empty(0), self.sizes[:, :0]
        first = max(used[0], used[-1] + 1 - _OCTAVES)
        counts = self.sizes[:, first : used[-1] + 1].copy()
        counts[:, 0] += self.sizes[:, :first].sum(axis=1)
        exponents = np.arange(first, used[-1] + 1) - (_BIAS - 0.5)
        return np.exp2(exponents), counts

    @property
    def roots(self) -> tuple[float, float, float]:
        """Roots of the mean squares: before, after, and of the difference of both."""
        one, two, three = (math.sqrt(total / self.pair_count) if self.pair_count else 0.0 for total in self.squares)
        return one, two, three


def _octaves(sizes: Floats) -> NDArray[np.int64]:
    """Return how many sizes have each exponent; zeros are left out."""
    counts = np.bincount(sizes.view(np.int64) >> _MANTISSA_NBITS, minlength=_EXPONENTS).astype(np.int64)
    counts[0] -= sizes.size - np.count_nonzero(sizes)
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class FieldProfile:
    """The errors of some fields, in their last two axes."""

    field_count: int
    # Mean power of each wave number along the last axis, summed over rows: of source, target, and errors
    power: Floats
    row_count: int  # Number of rows without missing values
    lags: tuple[Lags, Lags]  # Along the last axis, and along the one before
    gradients: tuple[Gradients, Gradients]
    similarities: tuple[float, ...] = field(default=())  # DSSIM of each field that has one

    @classmethod
    def of(
        cls, before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None, *, whole: bool
    ) -> FieldProfile:
        """Return the profile of a block of fields, or of parts of them that have whole rows."""
        shape = (1, 1, *before.shape)[-2:] if before.ndim < 2 else before.shape[-2:]
        one, two = (values.reshape(-1, *shape) for values in (before, after))
        flags = None if valid is None else valid.reshape(-1, *shape)
        similarities = _similarities(one, two, flags) if whole else ()  # first, while nothing else takes memory
        errors = two.astype(np.float64)
        errors -= one
        if flags is not None:
            errors[~flags] = 0.0
        power, rows = _power(one, two, errors, flags)
        lags = Lags.of(errors, flags, 2), Lags.of(errors, flags, 1)
        gradients = Gradients.of(one, two, flags, 2), Gradients.of(one, two, flags, 1)
        return cls(len(one), power, rows, lags, gradients, similarities)

    def plus(self, other: FieldProfile) -> FieldProfile:
        """Return the profile of these fields and of others."""
        return FieldProfile(
            self.field_count + other.field_count,
            self.power + other.power,
            self.row_count + other.row_count,
            (self.lags[0].plus(other.lags[0]), self.lags[1].plus(other.lags[1])),
            (self.gradients[0].plus(other.gradients[0]), self.gradients[1].plus(other.gradients[1])),
            self.similarities + other.similarities,
        )

    @property
    def mean_power(self) -> Floats:
        """Mean power of each wave number from 1 on, of source, target and errors; empty without rows."""
        return self.power[:, 1:] / self.row_count if self.row_count else np.empty((3, 0))


def _power(
    before: NDArray[Any], after: NDArray[Any], errors: Floats, valid: NDArray[np.bool_] | None
) -> tuple[Floats, int]:
    """Return sums of the power of each wave number, as in scipy's periodogram, with the scaling ``spectrum``."""
    extent = before.shape[-1]
    kept = None if valid is None else valid.reshape(-1, extent).all(axis=1)
    power = np.zeros((3, extent // 2 + 1))
    rows = 0
    for number, values in enumerate((before, after, errors)):
        table = values.reshape(-1, extent)
        if kept is not None:
            table = table[kept]
        rows = len(table)
        step = max(1, _PIECE_COUNT // extent)
        for start in range(0, rows, step):
            waves = np.fft.rfft(table[start : start + step].astype(np.float64, copy=False), axis=1)
            power[number] += (np.square(waves.real) + np.square(waves.imag)).sum(axis=0) / extent**2
    last = -1 if extent % 2 == 0 else None
    power[:, 1:last] *= 2  # a wave and its mirror
    return power, rows


def _similarities(before: NDArray[Any], after: NDArray[Any], valid: NDArray[np.bool_] | None) -> tuple[float, ...]:
    """Return the DSSIM of each field that has one."""
    similarities = []
    for number in range(len(before)):
        similarity = dssim(before[number], after[number], None if valid is None else valid[number])
        if similarity is not None:
            similarities.append(float(similarity))
    return tuple(similarities)
