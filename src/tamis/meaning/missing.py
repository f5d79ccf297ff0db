"""Missing values: the markers of an array, how many there are, and a table that gives each a number, its flag."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.distinct import distinct
from tamis.errors import DataError, ParameterError


class ValueSurvey(NamedTuple):
    """Summary of an array."""

    largest: float  # Largest magnitude of all finite values
    missing: int  # Number of missing values
    finite: bool  # Whether all values are finite


@dataclass(frozen=True, slots=True)
class Missing:
    """Markers of missing values, in addition to NaN and the infinities for floats, and limits of valid values."""

    values: tuple[Any, ...] = ()  # The markers, of the type of the data; no two are equal, none is NaN
    # Smallest and largest valid value, of the same type; None if there is no limit. A value beyond a limit is not
    # missing: it keeps the bound like others, and stays beyond the limit.
    low: Any = None
    high: Any = None

    def of_type(self, dtype: np.dtype[Any]) -> Missing:
        """Return the markers in another type, without those that it cannot hold; floats may round them."""
        if all(marker.dtype == dtype for marker in self.values):
            return self
        return replace(self, values=tuple(marker.astype(dtype) for marker in self.values if _fits(marker, dtype)))

    def find(self, data: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return for each value whether it is missing; None if no value is."""
        mask: NDArray[np.bool_] | None = None
        if data.dtype.kind == "f":
            finite = np.isfinite(data)
            mask = None if finite.all() else ~finite
        for marker in self.values:
            equal = data == marker
            if equal.any():
                mask = equal if mask is None else mask | equal
        return mask

    def valid(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return the values that are not missing in a row; all of them in their shape if none is missing."""
        absent = self.find(data)
        return data if absent is None else data[~absent]

    def survey(self, data: NDArray[Any]) -> ValueSurvey:
        """Return the range of values, and the number of missing ones."""
        if has_native(data.dtype):
            return ValueSurvey(*_native.survey(contiguous(data), self.marks(data.dtype)))
        mask = self.find(data)
        finite = data[np.isfinite(data)] if data.dtype.kind == "f" else data
        largest = max(float(finite.max(initial=0)), -float(finite.min(initial=0)))
        return ValueSurvey(largest, 0 if mask is None else int(np.count_nonzero(mask)), finite.size == data.size)

    def marks(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the markers as an array."""
        return np.array(self.values, dtype) if self.values else np.empty(0, dtype)


NONE_MISSING = Missing()
"""No markers and no limits."""


def _fits(marker: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether a type can hold a marker; floats may round it."""
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    value = marker.item()
    return bool(math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max)


def has_native(dtype: np.dtype[Any]) -> bool:
    """Return whether native code supports a type."""
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative


def contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Return values contiguous and aligned; copied if they are not."""
    return values if values.flags.c_contiguous and values.flags.aligned else values.copy()


MOST_FLAGS = 250
"""Limit of the table: flags stay below 255, the default fill value of netCDF's unsigned bytes."""

_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags of missing values: 0 is a valid value, k has the bits of item k − 1 of a table.

    Floats have one more, `stored_flag`, for NaN with other bits, which stay in the variable.
    """

    values: NDArray[Any]  # The table, of the type of the data; no two items have the same bits
    fill: int = 0  # Flag of values that were never written
    stored_flag: int = field(init=False)
    _bits: NDArray[Any] = field(init=False, repr=False)
    _missing: Missing = field(init=False, repr=False)

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays of values have no single answer

    def __post_init__(self) -> None:
        """Check the table, and derive the other fields."""
        count = len(self.values)
        if count > MOST_FLAGS or not can_flag(self.values.dtype):
            raise ParameterError(
                f"expected at most {MOST_FLAGS} missing values, of 1, 2, 4 or 8 bytes, got {count} of"
                f" {self.values.dtype}"
            )
        finite = self.values[np.isfinite(self.values)] if self.values.dtype.kind == "f" else self.values
        object.__setattr__(self, "stored_flag", count + 1 if self.values.dtype.kind == "f" else 0)
        object.__setattr__(self, "_bits", self.values.view(_bits(self.values.dtype)))
        object.__setattr__(self, "_missing", Missing(tuple(distinct(finite))))

    @classmethod
    def of(cls, values: Iterable[Any], dtype: np.dtype[Any]) -> Self:
        """Return a table of values; for floats also with NaN, the infinities, and zeros of both signs."""
        items = [np.asarray(item, dtype) for item in values]
        if dtype.kind == "f":
            items += [-item for item in items if item == 0]
            nan = np.asarray(np.nan, dtype)
            items += [np.abs(nan), -np.abs(nan), np.asarray(np.inf, dtype), np.asarray(-np.inf, dtype)]
        unique = {item.tobytes(): item for item in items}
        return cls(np.frombuffer(b"".join(unique), dtype))

    def find(self, data: NDArray[Any]) -> NDArray[np.uint8] | None:
        """Return the flag of each value; None if all are valid."""
        if data.dtype.kind == "f" and not self._missing.survey(data).missing:
            return None
        missing = self._missing.find(data)
        if missing is None:
            return None
        bits = data[missing].view(_bits(data.dtype))
        missing_flags = np.full(bits.shape, self.stored_flag, np.uint8)
        for flag, item_bits in enumerate(self._bits, start=1):
            missing_flags[bits == item_bits] = flag
        flags = np.zeros(data.shape, np.uint8)
        flags[missing] = missing_flags
        return flags

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> None:
        """Restore missing values, in place."""
        most = int(flags.max(initial=0))
        if most > max(len(self.values), self.stored_flag):
            raise DataError(f"expected flags up to {max(len(self.values), self.stored_flag)}, got {most}: damaged")
        # Copied as bits, so that NaN keeps its bits.
        bits = _bits(values.dtype) if can_flag(values.dtype) else values.dtype
        target = values.view(bits)
        for flag, item in enumerate(self.values.astype(values.dtype).view(bits)[:most], start=1):
            equal = flags == flag
            if equal.any():
                np.copyto(target, item, where=equal)

    def words(self) -> list[str]:
        """Return a name for each flag, without blanks."""
        names = ["valid", *map(_name, self.values)]
        # Several NaN get their bits as part of the name.
        words = ["valid"]
        for name, bits in zip(names[1:], self._bits, strict=True):
            words.append(f"{name}_0x{int(bits):x}" if names.count(name) > 1 else name)
        if self.stored_flag:
            words.append("other_nan")
        return words


def can_flag(dtype: np.dtype[Any]) -> bool:
    """Return whether values of a type can have flags."""
    return dtype.kind in "iuf" and dtype.itemsize in _SIZES


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of whole numbers with the bits of values of a type."""
    return np.dtype(f"u{dtype.itemsize}")


def _name(value: Any) -> str:
    if np.isnan(value):
        return "negative_nan" if np.signbit(value) else "nan"
    if np.isinf(value):
        return "negative_infinity" if value < 0 else "infinity"
    return f"missing_{value:g}"
