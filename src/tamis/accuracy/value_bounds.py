"""Limits on each value of an array, in stored units, and whether decoded values meet them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import differences
from tamis.meaning.missing import has_native
from tamis.rounding import relative_error


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
