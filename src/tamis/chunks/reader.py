"""The protocol of arrays that are read part by part, however they are stored."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region


class ArrayReader(Protocol):
    """The values of an array. Threads may share it.

    Attributes
    ----------
    shape, dtype
        Shape and type of the whole array, as in the file.
    chunk_shape
        Shape of the parts that are decoded at once, whatever part is read; None if all parts cost the same.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...] | None

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array.

        Parameters
        ----------
        part
            Region of the array.
        out
            Array to fill, of the shape of the part, or a view into a larger array; values are converted to its type.

        Returns
        -------
        array
            `out`, or another array, which may be read-only.

        Raises
        ------
        FileError
            If the part cannot be read.
        """

    def close(self) -> None:
        """Close what was opened to read; the array itself belongs to its owner, who closes it."""


def put(values: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Copy values to `out` and return it; return the values themselves if `out` is None."""
    if out is None:
        return values
    out[...] = values
    return out
