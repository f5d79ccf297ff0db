"""The steps that the values of an array go through before its filters: rounding, packing, filling of gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import ValueComparison, compare, crossed
from tamis.errors import BoundError
from tamis.rewrite.packed_array import PackedArray
from tamis.rounding import Rounding, relative_error

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin
    from tamis.meaning.missing import Flags, Missing
    from tamis.rounding import Codes
    from tamis.stores.protocols import StoredArray


class ValueStep:
    """A step of a `tamis.rewrite.plan.Recode`; what it leaves out here, it does not do."""

    __slots__ = ()

    @property
    def asked(self) -> Rounding | None:
        """What was asked for, in front of the filters; None for a step that follows from other options."""
        return None

    def source_of(self, array: StoredArray) -> StoredArray:
        """Return the array whose values the filters get, in place of another one."""
        return array

    def stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what the filters get for values in units of the variable."""
        return values

    def undone(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return decoded values as readers have them."""
        return values

    def attributes_of(self, array: StoredArray) -> Mapping[str, Any]:
        """Return the attributes that say what was done to an array; None for one to remove."""
        return {}


class RoundedPart(NamedTuple):
    """A rounded part of an array."""

    values: NDArray[Any]
    comparison: ValueComparison  # Their comparison with the values before
    unrounded: int  # Number of valid values that stay unchanged: see `tamis.rounding.Rounded`


@dataclass(frozen=True, slots=True)
class RoundStep(ValueStep):
    """Rounds values, which keep their type."""

    rounding: Rounding
    shape: tuple[int, ...]  # Shape of the whole array: bitgroom depends on the place of a value in it

    @property
    def asked(self) -> Rounding:
        """The rounding."""
        return self.rounding

    def attributes_of(self, array: StoredArray) -> Mapping[str, Any]:
        """Return the attributes that record the rounding."""
        return self.rounding.recorded

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
class PackStep(ValueStep):
    """Packs values to integers, which are read from the source in their place."""

    codes: Codes

    @property
    def asked(self) -> Rounding | None:
        """The packing."""
        return self.codes.asked

    def source_of(self, array: StoredArray) -> StoredArray:
        """Return the array of codes."""
        return cast("StoredArray", PackedArray(array, self.codes))

    def stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of values."""
        return self.codes.pack(values)[0]

    def undone(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values that codes stand for."""
        return self.codes.unpack(values)

    def attributes_of(self, array: StoredArray) -> Mapping[str, Any]:
        """Return the attributes by which readers unpack the codes, and those that are outdated."""
        return PackedArray(array, self.codes).new_attributes


@dataclass(frozen=True, slots=True)
class FillStep(ValueStep):
    """Fills gaps from neighbouring values; the missing values go to a companion, as flags."""

    flags: Flags
