"""What stands for a missing value, which values are valid, and how many of an array are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native


class Survey(NamedTuple):
    """What an array is like.

    Parameters
    ----------
    largest
        Largest magnitude of the values that are finite.
    missing
        How many values are missing.
    finite
        Whether all are finite.
    """

    largest: float
    missing: int
    finite: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """What stands for a missing value: some values, and for floats NaN and the infinities. And which others are valid.

    Parameters
    ----------
    values
        Of the type of the data; no two are equal, none is NaN.
    low, high
        Smallest and largest valid value, of the same type; None where there is no limit. A value beyond them is not
        missing: it keeps the bound as others do, and stays where readers take it for invalid.
    """

    values: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None

    def find(self, data: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return for each value whether it is missing; None where none is."""
        found: NDArray[np.bool_] | None = None
        if data.dtype.kind == "f" and not (finite := np.isfinite(data)).all():
            found = ~finite
        for each in self.values:
            equal = data == each
            if equal.any():
                found = equal if found is None else found | equal
        return found

    def survey(self, data: NDArray[Any]) -> Survey:
        """Find out how large values are, and how many of them are missing."""
        if has_native(data.dtype):
            return Survey(*_native.survey(contiguous(data), self.marks(data.dtype)))
        found = self.find(data)
        finite = data[np.isfinite(data)] if data.dtype.kind == "f" else data
        largest = max(float(finite.max(initial=0)), -float(finite.min(initial=0)))
        return Survey(largest, 0 if found is None else int(np.count_nonzero(found)), finite.size == data.size)

    def marks(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the values that stand for missing ones, as an array."""
        return np.array(self.values, dtype) if self.values else np.empty(0, dtype)


def has_native(dtype: np.dtype[Any]) -> bool:
    """Return whether the native kernels take values of a type."""
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative


def contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Copy values that do not lie side by side, each at an address that fits its type."""
    return values if values.flags.c_contiguous and values.flags.aligned else values.copy()
