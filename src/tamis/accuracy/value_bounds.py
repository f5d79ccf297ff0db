"""Limits on each value of an array, in stored units, and whether decoded values meet them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import ValueComparison, compare, crossed, differences
from tamis.errors import BoundError
from tamis.meaning.missing import Missing, has_native
from tamis.rounding import Rounding, relative_error

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin


class RoundedPart(NamedTuple):
    """A rounded part of an array."""

    values: NDArray[Any]
    comparison: ValueComparison  # Their comparison with the values before
    unrounded: int  # Number of valid values that stay unchanged: see `tamis.rounding.Rounded`


@dataclass(frozen=True, slots=True)
class ArrayRounding:
    """The rounding of an array."""

    rounding: Rounding
    shape: tuple[int, ...]  # Shape of the whole array: bitgroom depends on the place of a value in it

    def apply(self, values: NDArray[Any], origin: Origin, missing: Missing) -> RoundedPart:
        """Round the part of the array that begins at an origin, and compare the result with the values before."""
        limits = (missing.low, missing.high)
        rounded, unrounded = self.rounding.rounded(values, missing.values, limits, origin, self.shape)
        return RoundedPart(rounded, self.check(values, rounded, missing), unrounded)

    def within_bound(
        self, given: NDArray[Any], converted: NDArray[Any], rounded: NDArray[Any], missing: Missing
    ) -> NDArray[Any]:
        """Return rounded values that keep the absolute bound from values before they were converted, too.

        Conversion may move a value to or past the middle between two multiples, so that the wrong one is nearest. Such
        a value gets the multiple on its own side, or stays as converted if that multiple is missing or beyond a limit.
        """
        bound = self.rounding.absolute_bound
        if bound is None or np.can_cast(given.dtype, converted.dtype, "safe"):
            return rounded
        with np.errstate(invalid="ignore"):
            far = np.abs(given - rounded) > bound
        if (absent := missing.find(converted)) is not None:
            far &= ~absent
        if not far.any():
            return rounded
        before, after = converted[far], rounded[far]
        others = (after + np.copysign(2 * bound, given[far] - after)).astype(converted.dtype)
        for lost in (missing.find(others), crossed(before, others, missing)):
            if lost is not None:
                others[lost] = before[lost]
        result = rounded.copy()
        result[far] = others
        return result

    def check(self, before: NDArray[Any], after: NDArray[Any], missing: Missing) -> ValueComparison:
        """Compare rounded values with those before."""
        comparison = compare(before, after, missing)
        if (bound := self.rounding.relative_bound) is not None:
            what, error = "a relative error", relative_error(before, after)
        else:
            what, bound, error = "an error", self.rounding.absolute_bound, comparison.error
        if bound is None or not error <= bound:
            raise BoundError(f"expected {what} of at most {bound} by {self.rounding}, found {error:g}")
        if not comparison.kept:
            what = "valid values" if comparison.crossed else "missing values"
            raise BoundError(f"{self.rounding} changed {what} of the source")
        return comparison


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Bounds of each valid value of an array, besides those that always hold: missing values and the valid range."""

    absolute: float | None = None  # Largest absolute error; None without such a bound
    # Largest error relative to a value in units of the variable; None without such a bound
    relative: float | None = None
    sign: bool = False  # Whether no value changes its sign, and none that is not negative becomes negative
    zeros: bool = False  # Whether zeros stay zeros, and no other value becomes zero
    zero: float = 0.0  # The stored value that means 0
    # Whether values in units of the variable fall where stored ones rise: a ``scale_factor`` below 0
    falling: bool = False

    @property
    def needs_values(self) -> bool:
        """True if the largest absolute error alone does not show whether values keep the bounds."""
        return self.relative is not None or self.sign or self.zeros

    def broken(self, before: NDArray[Any], after: NDArray[Any], error: float) -> str:
        """Return in words which bound values break; empty if they keep all."""
        if not error:
            return ""
        if self.absolute is not None and not error <= self.absolute:
            return f"an error of at most {self.absolute:g}, found {error:g}"
        if self.relative is not None and not self._keeps_relative(before, after, self.relative):
            return f"errors of at most {self.relative:g} of each value"
        if self.sign and self._changes_sign(before, after):
            return "the sign of each value"
        if self.zeros and ((before == self._zero) != (after == self._zero)).any():
            return "zeros, and no others"
        return ""

    @property
    def _zero(self) -> Any:
        # A Python number would be rounded to the type of the values.
        return np.float64(self.zero) if self.zero else 0

    def _keeps_relative(self, before: NDArray[Any], after: NDArray[Any], relative: float) -> bool:
        if not self.zero and has_native(before.dtype):
            return relative_error(before, after) <= relative
        errors = differences(before, after)
        sizes = np.abs(before.astype(np.float64) - self.zero)
        with np.errstate(invalid="ignore"):  # missing values may be NaN, before and after
            return not (errors > relative * sizes).any()

    def _changes_sign(self, before: NDArray[Any], after: NDArray[Any]) -> bool:
        if self.falling:
            beyond = ((before <= self._zero) & (after > self._zero)) | ((before > self._zero) & (after < self._zero))
        else:
            beyond = ((before >= self._zero) & (after < self._zero)) | ((before < self._zero) & (after > self._zero))
        return bool(beyond.any())
