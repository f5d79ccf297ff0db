"""Rounding of values in front of lossless filters, as netCDF quantizes them: BitRound, granular BitRound and BitGroom.

A rounding is no filter of HDF5: it changes values before any filter gets them, an attribute of the variable records it,
and every reader can read the result.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.errors import ParameterError
from tamis.filters.base import Parameterized, number

_UNLIMITED = (-math.inf, math.inf)


class Rounded(NamedTuple):
    """Rounded values.

    Parameters
    ----------
    values
        The values, in a new array.
    unrounded
        Number of valid values that stay as they are, because rounding would make them missing or let them cross a
        limit.
    """

    values: NDArray[Any]
    unrounded: int


class Rounding(Parameterized, ABC):
    """A way to round floats. Frozen; equal where kind and parameters are.

    Attributes
    ----------
    attribute
        The attribute of a variable in which netCDF records the rounding.
    quantize_mode
        The name that netCDF4-python and xarray have for it.
    most
        Largest parameter for values of 4 and 8 bytes, netCDF's limit.
    """

    __slots__ = ()

    attribute: ClassVar[str]
    quantize_mode: ClassVar[str]
    most: ClassVar[Mapping[int, int]]

    @property
    def number(self) -> int:
        """The parameter: bits or digits."""
        return int(getattr(self, next(iter(self.parameters()))))

    @property
    def relative_bound(self) -> float:
        """Largest error relative to a value.

        Subnormal numbers, below 1.2e-38 for float32 and 2.3e-308 for float64, are excepted: they may become 0, or as
        large as the smallest normal number.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return kind and parameter, attribute and bound, as JSON has them."""
        return {
            "text": str(self),
            "attribute": self.attribute,
            "number": self.number,
            "relative_bound": self.relative_bound,
        }

    def check(self, dtype: np.dtype[Any]) -> None:
        """Raise ParameterError if values of a type cannot be rounded so."""
        if dtype.kind != "f" or dtype.itemsize not in self.most:
            raise ParameterError(
                f"expected float32 or float64 for {self}, got {dtype}, which netCDF does not quantize: use lossless"
                " filters, such as shuffle|deflate(4)"
            ).at(filter=self)
        if self.number > (most := self.most[dtype.itemsize]):
            (name,) = self.parameters()
            raise ParameterError(
                f"expected {name} of 1 to {most} for {dtype}, netCDF's limit, got {self}: more would keep every bit, as"
                " lossless filters alone do"
            ).at(filter=self)

    def round(
        self,
        values: NDArray[Any],
        *,
        missing_values: Sequence[Any] = (),
        valid_range: tuple[Any, Any] = (None, None),
        origin: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
    ) -> NDArray[Any]:
        """Return an array of rounded values, with the bits that ``nc_def_var_quantize`` of netCDF-C gives them.

        NaN, infinities and zeros do not change. Neither do values that rounding would make infinite or one of
        `missing_values`, or let cross a limit of `valid_range`.

        Parameters
        ----------
        values
            Values of float32 or float64.
        missing_values
            Markers of missing values, such as ``_FillValue``, which do not change.
        valid_range
            Smallest and largest valid value; None for no limit.
        origin, shape
            Index of the first value in its array, and shape of that; by default `values` are the whole array. Only
            bitgroom depends on them, which rounds values of even index down and others up.

        Raises
        ------
        ParameterError
            If the type cannot be rounded so.

        Examples
        --------
        >>> BitRound(keepbits=3).round(np.array([1.2345678, -1e9, np.nan], "f4"))
        array([ 1.25e+00, -1.00e+09,       nan], dtype=float32)
        """
        if isinstance(values, np.ma.MaskedArray):
            raise ParameterError("expected plain values, got a masked array: fill it first, values.filled(…)")
        values = np.asarray(values)
        return self.rounded(
            values, missing_values, valid_range, origin, values.shape if shape is None else shape
        ).values

    def rounded(
        self,
        values: NDArray[Any],
        missing_values: Sequence[Any],
        valid_range: tuple[Any, Any],
        origin: Sequence[int] | None,
        shape: Sequence[int],
    ) -> Rounded:
        """Round values as `round` does, and count those that had to stay."""
        self.check(values.dtype)
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        low, high = (end if limit is None else float(limit) for limit, end in zip(valid_range, _UNLIMITED, strict=True))
        result = np.empty(values.shape, native.dtype)
        unrounded = _quantizer(self, native.itemsize).round(
            native if native.flags.aligned else native.copy(),
            result,
            self._odd_rows(values.shape, origin or (0,) * values.ndim, tuple(shape)),
            np.array(missing_values, native.dtype),
            (low, high),
        )
        return Rounded(result.astype(values.dtype, copy=False), unrounded)

    def _odd_rows(self, extents: tuple[int, ...], origin: Sequence[int], shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """Return for each row, contiguous in the whole array, whether its first value has an odd index there."""
        return np.zeros(1, np.uint8)

    def __str__(self) -> str:
        (name,) = self.parameters()
        return f"{self.name}({name}={self.number})"


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


KINDS: tuple[type[Rounding], ...] = (BitGroom, Granular, BitRound)
"""All kinds of rounding, in the order of netCDF's numbers 1 to 3, in which it also looks for their attributes."""

ROUNDING_ATTRIBUTES = tuple(kind.attribute for kind in KINDS)

BY_NAME: Mapping[str, type[Rounding]] = {kind.name: kind for kind in KINDS}


def recorded_rounding(attributes: Mapping[str, Any], dtype: np.dtype[Any] | None) -> Rounding | None:
    """Return the rounding that the attributes of a variable record; None without one, or if it is no valid one.

    Parameters
    ----------
    attributes
        Attributes by name.
    dtype
        Type of the variable, which is rounded only if it is one of floats; None if it has no numbers.
    """
    for kind in KINDS if dtype is not None and dtype.kind == "f" else ():
        if kind.attribute in attributes:
            value = np.asarray(attributes[kind.attribute])
            if value.size == 1 and value.dtype.kind in "iu":
                with suppress(ParameterError):
                    return kind(int(value.reshape(())))  # type: ignore[call-arg]
            return None
    return None


def still_needed(rounding: Rounding, attributes: Mapping[str, Any]) -> Rounding | None:
    """Return a rounding; None if the attributes of a variable of floats record that its values are rounded so already.

    Raises
    ------
    ParameterError
        If they record another rounding: its error and the new one would add up, without a record.
    """
    if recorded_rounding(attributes, np.dtype(float)) == rounding:
        return None
    for kind in KINDS:
        if kind.attribute in attributes:
            raise ParameterError(
                f"expected values that are not rounded yet for {rounding}, found the attribute {kind.attribute} ="
                f" {attributes[kind.attribute]}: another rounding would add its error, and a file records one only; use"
                " lossless filters, or start from the original values"
            ).at(filter=rounding)
    return rounding


def relative_error(expected: NDArray[Any], actual: NDArray[Any]) -> float:
    """Return the largest error relative to a value, as `Rounding.relative_bound` means it; infinite if NaN changed."""
    return _native.relative_error(np.ascontiguousarray(expected), np.ascontiguousarray(actual))


@lru_cache(maxsize=32)
def _quantizer(rounding: Rounding, itemsize: int) -> _native.Quantizer:
    return _native.Quantizer(rounding.name, rounding.number, itemsize)
