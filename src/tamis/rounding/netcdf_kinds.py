"""The roundings of netCDF: BitRound, granular BitRound and BitGroom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis.filters.base import number
from tamis.rounding.rounding_base import Rounding


@dataclass(frozen=True, slots=True)
class BitRound(Rounding):
    """Round to a number of bits of the significand, to the nearest; a tie goes away from 0.

    Parameters
    ----------
    keepbits
        Bits that are kept after the first one, which is implicit. The error is at most ``2**-(keepbits + 1)`` of a
        value: half a unit of the last kept bit.
    """

    name = "bitround"
    about = "round to bits of the significand"
    attribute = "_QuantizeBitRoundNumberOfSignificantBits"
    quantize_mode = "BitRound"
    algorithm = "bitround"
    count = "quantization_nsb"
    most = {4: 23, 8: 52}  # noqa: RUF012 - a class attribute, declared above

    keepbits: int = number("bits to keep after the implicit first one", 1, 52)

    @property
    def relative_bound(self) -> float:
        """Half a unit of the last kept bit."""
        return math.ldexp(1.0, -(self.keepbits + 1))


@dataclass(frozen=True, slots=True)
class Granular(Rounding):
    """Round to a number of decimal digits, with as few bits as each value needs: netCDF's granular BitRound.

    Parameters
    ----------
    digits
        Significant decimal digits. The error is at most half a unit of the last of them, ``5 * 10**-digits`` of a
        value.
    """

    name = "granular"
    about = "round to decimal digits, with the bits that each value needs"
    attribute = "_QuantizeGranularBitRoundNumberOfSignificantDigits"
    quantize_mode = "GranularBitRound"
    algorithm = "granular_bitround"
    count = "quantization_nsd"
    most = {4: 6, 8: 15}  # noqa: RUF012

    digits: int = number("significant decimal digits", 1, 15)

    @property
    def relative_bound(self) -> float:
        """Half a unit of the last digit of the smallest value with as many digits."""
        return 5.0 / 10.0**self.digits


@dataclass(frozen=True, slots=True)
class BitGroom(Rounding):
    """Cut off the bits that a number of decimal digits does not need, by turns to zeros and to ones.

    A value of even index in the whole array, counted in C order, is rounded towards 0, others away from it. This is
    what netCDF-C does if one call writes the whole variable; it counts from the first value of each call.

    Parameters
    ----------
    digits
        Significant decimal digits. The error is less than a unit of the last bit that they need,
        ``2**-(ceil(digits * log2(10)) + 1)`` of a value.
    """

    name = "bitgroom"
    about = "cut off bits that decimal digits do not need, by turns to zeros and ones"
    attribute = "_QuantizeBitGroomNumberOfSignificantDigits"
    quantize_mode = "BitGroom"
    algorithm = "bitgroom"
    count = "quantization_nsd"
    most = {4: 6, 8: 15}  # noqa: RUF012

    digits: int = number("significant decimal digits", 1, 15)

    @property
    def relative_bound(self) -> float:
        """A unit of the last kept bit."""
        return math.ldexp(1.0, -(math.ceil(self.digits * math.log2(10)) + 1))

    def _odd_rows(self, extents: tuple[int, ...], origin: Sequence[int], shape: tuple[int, ...]) -> NDArray[np.uint8]:
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        begin = max(len(shape) - 1, 0)
        while begin and extents[begin] == shape[begin]:
            begin -= 1
        first = sum(index * stride for index, stride in zip(origin, strides, strict=True)) & 1
        odd = np.full(extents[:begin], first, np.uint8)
        for axis, (count, stride) in enumerate(zip(extents[:begin], strides, strict=False)):
            if stride & 1:
                odd ^= (np.arange(count) & 1).astype(np.uint8).reshape([-1, *[1] * (begin - axis - 1)])
        return odd.reshape(-1)
