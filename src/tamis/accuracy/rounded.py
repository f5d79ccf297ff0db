"""Round a part of an array in front of its filters, and prove the bound of the rounding, value by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tamis.accuracy.difference import Comparison, compare
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
    relative
        Largest relative error.
    unrounded
        Number of valid values that stay as they are: see `tamis.rounding.Rounded`.
    """

    values: NDArray[Any]
    comparison: Comparison
    relative: float
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
        return RoundedPart(rounded, *self.check(values, rounded, missing), unrounded)

    def check(self, before: NDArray[Any], after: NDArray[Any], missing: Missing) -> tuple[Comparison, float]:
        """Compare rounded values with those before; return the comparison and the largest relative error.

        Raises
        ------
        BoundError
            If a relative error is larger than the bound, a missing value changed, or a value crossed a limit.
        """
        comparison, relative = compare(before, after, missing), relative_error(before, after)
        bound = self.rounding.relative_bound
        if not relative <= bound:
            raise BoundError(f"expected a relative error of at most {bound:g} by {self.rounding}, found {relative:g}")
        if not comparison.kept:
            what = "valid values" if comparison.crossed else "missing values"
            raise BoundError(f"expected the {what} of the source after {self.rounding}, found others")
        return comparison, relative
