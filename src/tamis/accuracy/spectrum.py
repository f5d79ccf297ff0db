"""Power spectra along the last axis, before and after: whether structures of each length keep their strength."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST = 4
"""Shortest wavelength that counts, in values: that of the blocks of zfp. Shorter ones are noise of the grid."""

_ROUNDING = 1e-24
"""Share of the power that rounding of the transform may leave in a wave that is not there."""


class Spectra(NamedTuple):
    """Sums of power spectra of rows, before and after; by wave number, without the mean.

    Parameters
    ----------
    before, after
        Power of each wave number, from 1 on; empty without rows.
    """

    before: NDArray[np.float64] = np.empty(0)
    after: NDArray[np.float64] = np.empty(0)

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> Spectra:
        """Return the spectra of all rows without missing values, along the last axis."""
        extent = before.shape[-1]
        rows = [values.reshape(-1, extent).astype(np.float64) for values in (before, after)]
        if absent is not None:
            whole = ~absent.reshape(-1, extent).any(axis=1)
            rows = [values[whole] for values in rows]
        last = extent // SHORTEST
        if not last or not len(rows[0]):
            return cls()
        powers = (np.square(np.abs(np.fft.rfft(values, axis=1)[:, 1 : last + 1])).sum(axis=0) for values in rows)
        return cls(*powers)

    def plus(self, other: Spectra) -> Spectra:
        """Return the spectra of these rows and of others of the same length."""
        if not self.before.size or not other.before.size:
            return self if self.before.size else other
        return Spectra(self.before + other.before, self.after + other.after)

    @property
    def difference(self) -> float | None:
        """The largest relative difference of power, of wavelengths from `SHORTEST` on; None without power.

        It is infinite where there is power that was not there before.
        """
        least = _ROUNDING * self.before.sum()
        before, after = (np.where(power > least, power, 0.0) for power in self)
        if not before.any() and not after.any():
            return None
        there = before > 0
        return math.inf if after[~there].any() else float(np.abs(after[there] / before[there] - 1).max())
