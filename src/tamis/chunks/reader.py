"""What reads an array part by part, however it is stored."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region


class Values(Protocol):
    """Numbers of an array. Threads may share it.

    Attributes
    ----------
    shape, dtype
        Of all of them, as the file has them.
    chunks
        Shape of the parts that are decoded at once, whatever is asked for; None where any part is as good as another.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array.

        Parameters
        ----------
        part
            Of the array.
        out
            Where to put it, converted to its type: of the shape of the part, and anywhere in a larger array.

        Returns
        -------
        array
            `out`, or one that may be read-only.

        Raises
        ------
        FileError
            If it cannot be read.
        """
        ...

    def close(self) -> None:
        """Close what was opened for them; the array stays with its owner, who closes it later."""
        ...


def put(values: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Copy values to where they were asked for, if anywhere."""
    if out is None:
        return values
    out[...] = values
    return out
