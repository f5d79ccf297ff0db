"""Whether an error is small for the values that it changes: far below their spread, and none becomes zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.statistics import Moments
from tamis.formatting import percent_text
from tamis.meaning.missing import NONE_MISSING

if TYPE_CHECKING:
    from tamis.meaning.missing import Missing

LARGE_SHARE = 0.1
"""A bound beyond this share of the standard deviation of the values is large for them."""
ZEROED_SHARE = 0.01
"""More non-zero values than this share should not become zero."""


class Effects(NamedTuple):
    """What shows whether an error is small for values; the effects on parts of an array add up by `plus`."""

    moments: Moments = Moments()  # Of the valid values before and after, in stored units
    nonzero_count: int = 0  # Number of valid values before that are not zero
    zeroed_count: int = 0  # How many of these are zero after

    @classmethod
    def of(
        cls, before: NDArray[Any], after: NDArray[Any], missing: Missing = NONE_MISSING, zero: float = 0.0
    ) -> Effects:
        """Return the effects of a change of values.

        Parameters
        ----------
        before, after
            Values of one shape, both in the units of `before`: unpack what was packed.
        missing
            Missing values of `before`, which do not count.
        zero
            The stored value that means 0: see `tamis.meaning.Packing.stored_zero`.
        """
        valid = np.isfinite(after) if after.dtype.kind == "f" else np.ones(after.shape, bool)
        absent = missing.find(before)
        if absent is not None:
            valid &= ~absent
        first, second = before[valid], after[valid]
        nonzero = first != zero
        zeroed = nonzero & (second == zero)
        moments = Moments.of(first.astype(np.float64), second.astype(np.float64))
        return cls(moments, int(np.count_nonzero(nonzero)), int(np.count_nonzero(zeroed)))

    @classmethod
    def expected(
        cls, values: NDArray[Any], bound: float, missing: Missing = NONE_MISSING, zero: float = 0.0
    ) -> Effects:
        """Return the effects that a bound of stored values allows: it lets each value become zero that is not larger.

        This is for a dry run, in which there are no values after the change.
        """
        wide = values.astype(np.float64)
        after = np.where(np.abs(wide - zero) <= bound, np.float64(zero), wide)
        return cls.of(values, after, missing, zero)

    def plus(self, other: Effects) -> Effects:
        """Return the effects on these values and on others."""
        return Effects(
            self.moments.plus(other.moments),
            self.nonzero_count + other.nonzero_count,
            self.zeroed_count + other.zeroed_count,
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of the values before, in stored units; 0 for equal values, and without values."""
        return self.moments.deviation or 0.0

    @property
    def zeroed_share(self) -> float:
        """Share of the non-zero values that become zero."""
        return self.zeroed_count / self.nonzero_count if self.nonzero_count else 0.0

    def warnings(self, bound: float | None, scale: float = 1.0, *, may: bool = False) -> tuple[str, ...]:
        """Return in words why an error is large for these values; empty if it is not.

        Parameters
        ----------
        bound
            The largest error allowed, in units of the variable; None if there is no absolute bound.
        scale
            Size of a step of the stored values in units of the variable.
        may
            Whether the values after the change are those of `expected`.
        """
        texts = []
        deviation = self.deviation * abs(scale)
        if bound is not None and deviation and bound > LARGE_SHARE * deviation:
            texts.append(f"the bound {bound:g} is {_times(bound / deviation)} the standard deviation, {deviation:.3g}")
        if self.zeroed_share > ZEROED_SHARE:
            verb = "may become" if may else "become"
            texts.append(f"{percent_text(self.zeroed_share)} of the values that are not zero {verb} zero")
        return tuple(texts)


def _times(factor: float) -> str:
    """Return how often a number contains another one, in words that follow "is"."""
    if factor < 1:
        return f"{factor:.2g} of"
    return f"{factor:.3g} times" if factor < 1000 else f"{factor:.0f} times"
