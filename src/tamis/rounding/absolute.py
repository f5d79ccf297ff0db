"""Rounding to multiples of a step, which bounds the absolute error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import ParameterError
from tamis.filters.base import real
from tamis.rounding.rounding_base import Rounding


@dataclass(frozen=True, slots=True)
class Absolute(Rounding):
    """Round to multiples of a step, to the nearest; a tie goes to the even multiple.

    The step is a power of two, the largest one with which no value errs by more than the bound, which is half of the
    step or more. Values so large that their type has no finer step do not change.

    Parameters
    ----------
    bound
        Largest absolute error of a value, above 0.

    Examples
    --------
    >>> rounding = Absolute(bound=0.1)
    >>> rounding.step, rounding.absolute_bound
    (0.125, 0.0625)
    >>> rounding.round(np.array([280.3, 0.06, np.nan], "f4"))
    array([280.25,   0.  ,    nan], dtype=float32)
    """

    name = "absolute"
    about = "round to multiples of a power of two"
    attribute = "quantization_step"
    most = {4: 2.0**103, 8: 2.0**970}  # noqa: RUF012 - a class attribute, declared above

    bound: float = real("largest absolute error, in units of the data", math.ulp(0.0), 2.0**969, bounds="above 0")

    @property
    def step(self) -> float:
        """The step, the largest power of two up to twice the bound."""
        return math.ldexp(1.0, math.frexp(self.bound)[1])

    @property
    def number(self) -> float:
        """The step."""
        return self.step

    @property
    def recorded(self) -> dict[str, NDArray[Any]]:
        """The step, in an attribute that the CF conventions leave free."""
        return {self.attribute: np.array([self.step])}

    @property
    def absolute_bound(self) -> float:
        """Half a step."""
        return self.step / 2

    def covers(self, other: Rounding) -> bool:
        """Return whether the other one has the same step or a finer one."""
        return isinstance(other, Absolute) and other.step <= self.step

    def _check_number(self, dtype: np.dtype[Any]) -> None:
        if self.step > (most := self.most[dtype.itemsize]):
            raise ParameterError(f"expected a bound below {most:g} for {dtype}, got {self}").at(filter=self)

    def _native_number(self, itemsize: int) -> int:
        # A step below the smallest number of the type leaves every value as it is, like that number.
        return max(math.frexp(self.step)[1] - 1, -149 if itemsize == 4 else -1074)
