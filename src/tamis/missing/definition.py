"""Definition of missing and valid values, and a survey of an array."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native


class Survey(NamedTuple):
    """Summary of an array.

    Parameters
    ----------
    largest
        Largest magnitude of all finite values.
    missing
        Number of missing values.
    finite
        Whether all values are finite.
    """

    largest: float
    missing: int
    finite: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """Markers of missing values, in addition to NaN and the infinities for floats, and limits of valid values.

    Parameters
    ----------
    values
        The markers, of the type of the data; no two are equal, none is NaN.
    low, high
        Smallest and largest valid value, of the same type; None if there is no limit. A value beyond a limit is not
        missing: it keeps the bound like others, and stays beyond the limit.
    """

    values: tuple[Any, ...] = ()
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
        if data.dtype.kind == "f" and not (finite := np.isfinite(data)).all():
            mask = ~finite
        for marker in self.values:
            equal = data == marker
            if equal.any():
                mask = equal if mask is None else mask | equal
        return mask

    def survey(self, data: NDArray[Any]) -> Survey:
        """Return how large values are, and how many of them are missing."""
        if has_native(data.dtype):
            return Survey(*_native.survey(contiguous(data), self.marks(data.dtype)))
        mask = self.find(data)
        finite = data[np.isfinite(data)] if data.dtype.kind == "f" else data
        largest = max(float(finite.max(initial=0)), -float(finite.min(initial=0)))
        return Survey(largest, 0 if mask is None else int(np.count_nonzero(mask)), finite.size == data.size)

    def marks(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the markers as an array."""
        return np.array(self.values, dtype) if self.values else np.empty(0, dtype)


NONE_MISSING = Missing()


def _fits(marker: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return True
    limits, value = np.iinfo(dtype), marker.item()
    return bool(math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max)


def has_native(dtype: np.dtype[Any]) -> bool:
    """Return whether native code supports a type."""
    return dtype.kind == "f" and dtype.itemsize in (4, 8) and dtype.isnative


def contiguous(values: NDArray[Any]) -> NDArray[Any]:
    """Return values contiguous and aligned; copied if they are not."""
    return values if values.flags.c_contiguous and values.flags.aligned else values.copy()
