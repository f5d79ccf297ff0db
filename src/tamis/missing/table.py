"""Which bits each missing value has, by a small number that stands for it. Knows no file format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis.errors import DataError, ParameterError
from tamis.missing.definition import Missing

MOST_FLAGS = 250
"""Below 255, the default fill value of netCDF's unsigned bytes."""

_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class Flags:
    """Numbers for missing values: 0 is a valid one, k the bits of item k − 1 of a table.

    For floats there is one more, `stored_flag`, for NaN of any other bits, which are left where they are.

    Parameters
    ----------
    values
        The table, of the type of the data: no two items have the same bits.
    fill
        Flag of what was never written.

    Raises
    ------
    ParameterError
        If the table is too long, or of a type whose bits cannot be told apart.
    """

    values: NDArray[Any]
    fill: int = 0
    stored_flag: int = field(init=False)
    _bits: NDArray[Any] = field(init=False, repr=False)
    _missing: Missing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the table, and find out what follows from it."""
        count = len(self.values)
        if count > MOST_FLAGS or not can_flag(self.values.dtype):
            raise ParameterError(
                f"expected at most {MOST_FLAGS} missing values, of 1, 2, 4 or 8 bytes, got {count} of"
                f" {self.values.dtype}"
            )
        finite = self.values[np.isfinite(self.values)] if self.values.dtype.kind == "f" else self.values
        object.__setattr__(self, "stored_flag", count + 1 if self.values.dtype.kind == "f" else 0)
        object.__setattr__(self, "_bits", self.values.view(_bits(self.values.dtype)))
        object.__setattr__(self, "_missing", Missing(tuple(np.unique(finite))))

    @classmethod
    def of(cls, values: Iterable[Any], dtype: np.dtype[Any]) -> Self:
        """Return a table for values of a type; for floats it has NaN and the infinities too, zeros with both signs.

        Parameters
        ----------
        values
            Of that type; NaN may have any bits.
        dtype
            In native byte order.
        """
        wanted = [np.asarray(each, dtype) for each in values]
        if dtype.kind == "f":
            wanted += [-each for each in wanted if each == 0]
            nan = np.asarray(np.nan, dtype)
            wanted += [np.abs(nan), -np.abs(nan), np.asarray(np.inf, dtype), np.asarray(-np.inf, dtype)]
        unique = {each.tobytes(): each for each in wanted}
        return cls(np.frombuffer(b"".join(unique), dtype))

    def find(self, data: NDArray[Any]) -> NDArray[np.uint8] | None:
        """Return the flag of each value; None where all are valid."""
        if data.dtype.kind == "f" and not self._missing.survey(data).missing:
            return None
        missing = self._missing.find(data)
        if missing is None:
            return None
        bits = data[missing].view(_bits(data.dtype))
        some = np.full(bits.shape, self.stored_flag, np.uint8)
        for flag, each in enumerate(self._bits, start=1):
            some[bits == each] = flag
        found = np.zeros(data.shape, np.uint8)
        found[missing] = some
        return found

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> None:
        """Put missing values back.

        Parameters
        ----------
        values
            Changed in place; of the table's type, or of one that it is cast to.
        flags
            Of these values.

        Raises
        ------
        DataError
            If there is a flag that the table has not.
        """
        most = int(flags.max(initial=0))
        if most > max(len(self.values), self.stored_flag):
            raise DataError(f"expected flags up to {max(len(self.values), self.stored_flag)}, got {most}: damaged")
        # As bits: NaN stays what it is.
        bits = _bits(values.dtype) if can_flag(values.dtype) else values.dtype
        room = values.view(bits)
        for flag, each in enumerate(self.values.astype(values.dtype).view(bits)[:most], start=1):
            equal = flags == flag
            if equal.any():
                np.copyto(room, each, where=equal)

    def words(self) -> list[str]:
        """Return what each flag stands for, without blanks."""
        named = ["valid", *map(_word, self.values)]
        # Other bits of a NaN than the usual ones tell it from others.
        unique = [
            f"{name}_0x{int(bits):x}" if named.count(name) > 1 else name
            for name, bits in zip(named[1:], self._bits, strict=True)
        ]
        return ["valid", *unique, *(["other_nan"] if self.stored_flag else [])]


def can_flag(dtype: np.dtype[Any]) -> bool:
    """Return whether the bits of such values are told apart."""
    return dtype.kind in "iuf" and dtype.itemsize in _SIZES


def _bits(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")


def _word(value: Any) -> str:
    if np.isnan(value):
        return "negative_nan" if np.signbit(value) else "nan"
    if np.isinf(value):
        return "negative_infinity" if value < 0 else "infinity"
    return f"missing_{value:g}"
