"""Values of a Zarr array, read by zarr-python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.chunks.reader import put
from tamis.errors import FileError


class ZarrReader:
    """A Zarr array part by part; see `tamis.chunks.reader.ArrayReader`.

    Parameters
    ----------
    array
        The array of zarr-python.
    label
        Store and path, for messages.
    dtype
        Type of the values that are returned: numbers, or bytes of the same size.
    """

    def __init__(self, array: Any, label: str, dtype: np.dtype[Any]) -> None:
        self._array, self._label = array, label
        self.shape, self.dtype = tuple(array.shape), dtype
        self.chunk_shape: tuple[int, ...] | None = tuple(array.chunks) if array.shape else None

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part; raises FileError if zarr-python cannot."""
        if self._array is None:
            raise FileError(f"{self._label}: expected an open array, got one that was closed")
        try:
            values = np.asarray(self._array[part] if part else self._array[...], self._array.dtype)
        except Exception as error:  # codecs and stores raise many kinds
            raise FileError(f"{self._label}: cannot be read: {error}") from error
        if values.dtype != self.dtype and self.dtype.kind == "V" and not self.dtype.names:
            values = np.array(values, values.dtype.newbyteorder("="), order="C").view(self.dtype)
        return put(values.astype(self.dtype, copy=False), out)

    def close(self) -> None:
        """Release the array; running reads finish first."""
        self._array = None
