"""Values of an array that are converted after they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.chunks.reader import ArrayReader, put


class ConvertedReader:
    """The values of another reader in another type; see `tamis.chunks.reader.ArrayReader`.

    Parameters
    ----------
    reader
        The other reader.
    dtype
        Type of the values.
    convert
        Converts what the other reader returns.
    """

    def __init__(
        self, reader: ArrayReader, dtype: np.dtype[Any], convert: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> None:
        self.shape, self.chunk_shape, self.dtype = reader.shape, reader.chunk_shape, dtype
        self._reader, self._convert = reader, convert

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read and convert a part."""
        return put(self._convert(self._reader.read(part)), out)

    def close(self) -> None:
        """Close the other reader."""
        self._reader.close()


def viewed(reader: ArrayReader, dtype: np.dtype[Any] | None) -> ArrayReader:
    """Return a reader whose bytes are taken for values of a type; the reader itself if it has no bytes."""
    if dtype is None or reader.dtype.kind != "V" or reader.dtype == dtype:
        return reader
    return ConvertedReader(reader, dtype, lambda raw: np.ascontiguousarray(raw).reshape(raw.shape).view(dtype))
