"""Roundings of floats that stay floats: to multiples of a step, and the three of netCDF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import ParameterError
from tamis.filters.base import number, real
from tamis.rounding.rounding_base import Rounding


@dataclass(frozen=True, slots=True)
class Absolute(Rounding):
    """Round to multiples of a step, to the nearest; a tie goes to the even multiple.

    The step is the largest power of two with which no value errs by more than the bound, so the bound is half the step
    or more. Values so large that their type has no finer step do not change.

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

    # Largest absolute error of a value, above 0
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
        """The step, in an attribute that the CF conventions do not define."""
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
        # A step below the smallest number of the type leaves every value unchanged, like that number.
        return max(math.frexp(self.step)[1] - 1, -149 if itemsize == 4 else -1074)


@dataclass(frozen=True, slots=True)
class BitRound(Rounding):
    """Round to a number of bits of the significand, to the nearest; a tie goes away from 0."""

    name = "bitround"
    about = "round to bits of the significand"
    attribute = "_QuantizeBitRoundNumberOfSignificantBits"
    quantize_mode = "BitRound"
    algorithm = "bitround"
    count = "quantization_nsb"
    most = {4: 23, 8: 52}  # noqa: RUF012 - a class attribute, declared above

    # Bits that are kept after the first one, which is implicit. The error is at most ``2**-(keepbits + 1)`` of a
    # value: half a unit of the last kept bit.
    keepbits: int = number("bits to keep after the implicit first one", 1, 52)

    @property
    def relative_bound(self) -> float:
        """Half a unit of the last kept bit."""
        return math.ldexp(1.0, -(self.keepbits + 1))


@dataclass(frozen=True, slots=True)
class Granular(Rounding):
    """Round to a number of decimal digits, with as few bits as each value needs: netCDF's granular BitRound."""

    name = "granular"
    about = "round to decimal digits, with the bits that each value needs"
    attribute = "_QuantizeGranularBitRoundNumberOfSignificantDigits"
    quantize_mode = "GranularBitRound"
    algorithm = "granular_bitround"
    count = "quantization_nsd"
    most = {4: 6, 8: 15}  # noqa: RUF012

    # Significant decimal digits. The error is at most half a unit of the last of them, ``5 * 10**-digits`` of a
    # value.
    digits: int = number("significant decimal digits", 1, 15)

    @property
    def relative_bound(self) -> float:
        """Half a unit of the last digit of the smallest value with as many digits."""
        return 5.0 / 10.0**self.digits


@dataclass(frozen=True, slots=True)
class BitGroom(Rounding):
    """Cut off the bits that a number of decimal digits does not need, alternately to zeros and to ones.

    A value of even index in the whole array, in C order, is rounded towards 0, others away from it. netCDF-C does the
    same if one call writes the whole variable; it counts from the first value of each call.
    """

    name = "bitgroom"
    about = "cut off bits that decimal digits do not need, alternately to zeros and to ones"
    attribute = "_QuantizeBitGroomNumberOfSignificantDigits"
    quantize_mode = "BitGroom"
    algorithm = "bitgroom"
    count = "quantization_nsd"
    most = {4: 6, 8: 15}  # noqa: RUF012

    # Significant decimal digits. The error is less than a unit of the last bit that they need, ``2**-(ceil(digits *
    # log2(10)) + 1)`` of a value.
    digits: int = number("significant decimal digits", 1, 15)

    @property
    def relative_bound(self) -> float:
        """A unit of the last kept bit."""
        return math.ldexp(1.0, -(math.ceil(self.digits * math.log2(10)) + 1))

    def _odd_rows(self, extents: tuple[int, ...], origin: Sequence[int], shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """See `Rounding._odd_rows`; rows go over all last axes that are whole."""
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        begin = max(len(shape) - 1, 0)
        while begin and extents[begin] == shape[begin]:
            begin -= 1
        first = sum(index * stride for index, stride in zip(origin, strides, strict=True)) & 1
        odd = np.full(extents[:begin], first, np.uint8)
        for axis, (count, stride) in enumerate(zip(extents[:begin], strides, strict=False)):
            if stride & 1:
                along = (np.arange(count) & 1).astype(np.uint8)
                odd ^= along.reshape((-1,) + (1,) * (begin - axis - 1))
        return odd.reshape(-1)
