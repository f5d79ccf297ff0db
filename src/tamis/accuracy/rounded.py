"""Round a part of an array in front of its filters, and prove the bound of the rounding, value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import Comparison, compare, crossed
from tamis.chunks.grid import Origin
from tamis.errors import BoundError
from tamis.missing.definition import Missing
from tamis.rounding import Rounding, relative_error


class RoundedPart(NamedTuple):
    """A rounded part of an array.

    Parameters
    ----------
    values
        The rounded values.
    comparison
        Their comparison with the values before.
    unrounded
        Number of valid values that stay as they are: see `tamis.rounding.Rounded`.
    """

    values: NDArray[Any]
    comparison: Comparison
    unrounded: int


@dataclass(frozen=True, slots=True)
class ArrayRounding:
    """The rounding of an array.

    Parameters
    ----------
    rounding
        Kind and parameter.
    shape
        Shape of the whole array: bitgroom depends on the place of a value in it.
    """

    rounding: Rounding
    shape: tuple[int, ...]

    def apply(self, values: NDArray[Any], origin: Origin, missing: Missing) -> RoundedPart:
        """Round the part of the array that begins at an origin, and compare the result with the values before.

        Raises
        ------
        BoundError
            If the result breaks the bound, which would be a defect of tamis.
        """
        limits = (missing.low, missing.high)
        rounded, unrounded = self.rounding.rounded(values, missing.values, limits, origin, self.shape)
        return RoundedPart(rounded, self.check(values, rounded, missing), unrounded)

    def within_bound(
        self, given: NDArray[Any], converted: NDArray[Any], rounded: NDArray[Any], missing: Missing
    ) -> NDArray[Any]:
        """Return rounded values that keep the absolute bound from values before they were converted, too.

        A conversion may move a value to the middle between two multiples, or beyond, from where the other one is the
        nearest. Such a value gets the multiple on its own side; or stays as it is converted, if that means missing or
        lies beyond a limit.

        Parameters
        ----------
        given, converted, rounded
            The values as they are given, in the type of the file, within the bound, and rounded.
        missing
            Missing values and valid range.
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

    def check(self, before: NDArray[Any], after: NDArray[Any], missing: Missing) -> Comparison:
        """Compare rounded values with those before.

        Raises
        ------
        BoundError
            If an error is larger than the bound, a missing value changed, or a value crossed a limit.
        """
        comparison = compare(before, after, missing)
        if (bound := self.rounding.relative_bound) is not None:
            what, found = "a relative error", relative_error(before, after)
        else:
            what, bound, found = "an error", self.rounding.absolute_bound, comparison.error
        if bound is None or not found <= bound:
            raise BoundError(f"expected {what} of at most {bound} by {self.rounding}, found {found:g}")
        if not comparison.kept:
            what = "valid values" if comparison.crossed else "missing values"
            raise BoundError(f"expected the {what} of the source after {self.rounding}, found others")
        return comparison
