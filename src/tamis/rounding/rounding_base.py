"""The base class of roundings, and the errors of rounded values."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.arguments import DTYPE, WHOLES, Kind
from tamis.errors import ParameterError
from tamis.filters.base import Parameterized
from tamis.formatting import relative_text

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


_NUMBERS = Kind("numbers such as (-999.0,)", lambda value: np.asarray(value).dtype.kind in "biuf")
_PAIR = Kind(
    "two numbers such as (0.0, 1.0), each of which may be None",
    lambda value: isinstance(value, tuple | list) and len(value) == 2,
)


class RoundingDict(TypedDict):
    """A rounding in JSON."""

    text: str
    attribute: str
    number: float
    relative_bound: float | None
    absolute_bound: float | None


class Rounding(Parameterized, ABC):
    """A way to round floats. Frozen; equal where kind and parameters are.

    Attributes
    ----------
    attribute
        The attribute of a variable that records the rounding; netCDF's, if netCDF has it.
    quantize_mode
        Its name in netCDF4-python and xarray; empty if they lack it.
    algorithm
        Its name in the CF conventions; empty if they lack it.
    count
        The attribute of the CF conventions with its number; empty if there is none.
    most
        Largest parameter for values of 4 and 8 bytes.
    in_place
        Whether the rounded values have the type of those before; otherwise only `tamis.repack` writes them.
    """

    __slots__ = ()

    attribute: ClassVar[str]
    quantize_mode: ClassVar[str] = ""
    algorithm: ClassVar[str] = ""
    count: ClassVar[str] = ""
    most: ClassVar[Mapping[int, float]]
    in_place: ClassVar[bool] = True

    @property
    def number(self) -> float:
        """The number that the attribute records: bits, digits or a step."""
        return int(getattr(self, next(iter(self.parameters()))))

    @property
    def recorded(self) -> dict[str, NDArray[Any]]:
        """Attributes that record it, with one number each, as netCDF-C writes them."""
        names = (self.attribute, self.count) if self.count else (self.attribute,)
        return dict.fromkeys(names, np.array([self.number], np.int32))

    @property
    def relative_bound(self) -> float | None:
        """Largest error relative to a value; None if there is an absolute bound instead.

        Subnormal numbers, below 1.2e-38 for float32 and 2.3e-308 for float64, are excepted: they may become 0, or as
        large as the smallest normal number.
        """
        return None

    @property
    def absolute_bound(self) -> float | None:
        """Largest absolute error of a value; None if there is a relative bound instead."""
        return None

    @property
    def bound_text(self) -> str:
        """The bound in words."""
        if self.relative_bound is not None:
            return f"relative error at most {relative_text(self.relative_bound)}"
        return f"error at most {self.absolute_bound:g}"

    def covers(self, other: Rounding) -> bool:
        """Return whether another rounding leaves values of this one unchanged."""
        return self == other

    def stored_type(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type that the filters get for values of a type."""
        return dtype

    def to_dict(self) -> RoundingDict:
        """Return kind and parameter, attribute and bound, for JSON."""
        return {
            "text": str(self),
            "attribute": self.attribute,
            "number": self.number,
            "relative_bound": self.relative_bound,
            "absolute_bound": self.absolute_bound,
        }

    def refuse_packing(self, reason: str) -> None:
        """Raise ParameterError, with a reason, if the rounded values have another type than those before."""
        if not self.in_place:
            raise ParameterError(
                f"expected filters, or a rounding such as absolute({self.absolute_bound}), got {self}, {reason}:"
                " tamis repack packs a saved file"
            ).at(filter=self)

    def check(self, dtype: np.dtype[Any]) -> None:
        """Raise ParameterError if values of a type cannot be rounded this way."""
        DTYPE.check("dtype", dtype)
        if dtype.kind != "f" or dtype.itemsize not in self.most:
            raise ParameterError(
                f"expected float32 or float64 for {self}, got {dtype}, which cannot be rounded: use lossless"
                " filters, such as shuffle|deflate(4)"
            ).at(filter=self)
        self._check_number(dtype)

    def _check_number(self, dtype: np.dtype[Any]) -> None:
        """Raise ParameterError if the type has no such bits or digits."""
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
        """Return an array of rounded values; netCDF's roundings give the same bits as ``nc_def_var_quantize``.

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
            Index of the first value in its array, and shape of the array; by default `values` are the whole array. Only
            bitgroom depends on them: it rounds values of even index down and others up.

        Raises
        ------
        ParameterError
            If the type cannot be rounded this way.

        Examples
        --------
        >>> BitRound(keepbits=3).round(np.array([1.2345678, -1e9, np.nan], "f4"))
        array([ 1.25e+00, -1.00e+09,       nan], dtype=float32)
        """
        _NUMBERS.check("missing_values", missing_values)
        _PAIR.check("valid_range", valid_range)
        WHOLES.check_optional("origin", origin)
        WHOLES.check_optional("shape", shape)
        if isinstance(values, np.ma.MaskedArray):
            raise ParameterError("expected plain values, got a masked array: fill it first, values.filled(…)")
        values = np.asarray(values)
        for name, extents in (("origin", origin), ("shape", shape)):
            if extents is not None and len(extents) != values.ndim:
                raise ParameterError(f"expected {values.ndim} numbers as {name}, one for each axis, got {extents!r}")
        shape = values.shape if shape is None else shape
        return self.rounded(values, missing_values, valid_range, origin, shape).values

    def rounded(
        self,
        values: NDArray[Any],
        missing_values: Sequence[Any],
        valid_range: tuple[Any, Any],
        origin: Sequence[int] | None,
        shape: Sequence[int],
    ) -> Rounded:
        """Round values like `round`, and count those that had to stay."""
        self.check(values.dtype)
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        low, high = (end if limit is None else float(limit) for limit, end in zip(valid_range, _UNLIMITED, strict=True))
        first = (0,) * values.ndim if origin is None else origin
        result = np.empty(values.shape, native.dtype)
        unrounded = _quantizer(self, native.itemsize).round(
            native if native.flags.aligned else native.copy(),
            result,
            self._odd_rows(values.shape, first, tuple(shape)),
            np.array(missing_values, native.dtype),
            (low, high),
        )
        return Rounded(result.astype(values.dtype, copy=False), unrounded)

    def _odd_rows(self, extents: tuple[int, ...], origin: Sequence[int], shape: tuple[int, ...]) -> NDArray[np.uint8]:
        """Return for each row, contiguous in the whole array, whether its first value has an odd index there."""
        return np.zeros(1, np.uint8)

    def _native_number(self, itemsize: int) -> int:
        """Return the number that native code takes for values of so many bytes."""
        return int(self.number)

    def __str__(self) -> str:
        (name,) = self.parameters()
        return f"{self.name}({name}={getattr(self, name)})"


def relative_error(expected: NDArray[Any], actual: NDArray[Any]) -> float:
    """Return the largest error relative to a value, as in `Rounding.relative_bound`; infinite if NaN changed."""
    native = (np.ascontiguousarray(values, values.dtype.newbyteorder("=")) for values in (expected, actual))
    return _native.relative_error(*native)


@lru_cache(maxsize=32)
def _quantizer(rounding: Rounding, itemsize: int) -> _native.Quantizer:
    """Return the native twin of a rounding for values of so many bytes."""
    return _native.Quantizer(rounding.name, rounding._native_number(itemsize), itemsize)
