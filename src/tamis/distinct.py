"""The distinct values of an array, without NumPy's masked arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value", bound=np.generic)


def distinct(values: NDArray[Value]) -> NDArray[Value]:
    """Return the distinct values of an array in order.

    `numpy.unique` does the same, and imports `numpy.ma` for it when it is first called. That takes longer than most
    reads, and no thread may import anything while it reads (see `tamis`).
    """
    ordered = np.sort(values, axis=None)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
