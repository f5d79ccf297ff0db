"""The protocol of arrays that are read part by part, in any storage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.errors import FileError

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.arrays.source import ByteSource


class ArrayReader(Protocol):
    """The values of an array. Threads may share it."""

    # Shape and type of the whole array, as in the file
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    # Shape of the parts that are always decoded together; None if all parts cost the same
    chunk_shape: tuple[int, ...] | None

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""

    def close(self) -> None:
        """Close everything opened for reading; the array itself belongs to its owner, who closes it."""


def put(values: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Copy values to `out` and return it; return the values themselves if `out` is None."""
    if out is None:
        return values
    out[...] = values
    return out


_SHORT_NBYTES = 2048
"""Shorter runs are read faster by a library that reads several at once."""


class ContiguousReader:
    """An array of numbers that are stored contiguously."""

    def __init__(
        self,
        label: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        source: ByteSource,
        offset: int,
        read_scattered: Callable[[Region], NDArray[Any]],
    ) -> None:
        self.label, self.shape, self.dtype = label, shape, dtype
        self.chunk_shape: tuple[int, ...] | None = None
        self._source: ByteSource | None = source
        self._offset, self._read_scattered = offset, read_scattered

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read the runs of a part, directly into `out` if it has the file's type."""
        extents = [axis.stop - axis.start for axis in part]
        axis = len(extents) - 1  # the slowest axis within a run
        while axis and extents[axis] == self.shape[axis]:
            axis -= 1
        run = math.prod(extents[axis:]) * self.dtype.itemsize
        if run < _SHORT_NBYTES and run < math.prod(extents) * self.dtype.itemsize:
            return put(self._read_scattered(part), out)
        if out is not None and not (out.dtype == self.dtype and out[(0,) * axis].flags.c_contiguous):
            return put(self.read(part), out)
        values = np.empty(extents, self.dtype) if out is None else out
        strides = [math.prod(self.shape[i + 1 :]) * self.dtype.itemsize for i in range(len(extents))]
        tail = sum(span.start * stride for span, stride in zip(part[axis:], strides[axis:], strict=True))
        for index in itertools.product(*map(range, extents[:axis])):
            steps = zip(index, part, strides, strict=False)
            offset = self._offset + tail + sum((span.start + i) * stride for i, span, stride in steps)
            self._fill(values[index].reshape(-1).view(np.uint8).data, offset)
        return values

    def _fill(self, room: memoryview, offset: int) -> None:
        if self._source is None:
            raise FileError(f"{self.label}: expected an open file, got one that was closed")
        try:
            count = self._source.read_into(offset, room)
        except OSError as error:
            raise FileError(f"{self.label}: values cannot be read: {error.strerror}") from error
        if count < len(room):
            raise FileError(f"{self.label}: expected {len(room)} bytes at {offset}, got {count}: the file is truncated")

    def close(self) -> None:
        """Release the source; running reads finish first."""
        self._source = None


class ValuesReader:
    """An array whose values are in memory."""

    def __init__(self, values: NDArray[Any], chunk_shape: tuple[int, ...] | None) -> None:
        self.shape, self.dtype, self.chunk_shape = values.shape, values.dtype, chunk_shape
        self._values = values

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Copy a part."""
        return self._values[part].copy() if out is None else put(self._values[part], out)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class ConvertedReader:
    """The values of another reader in another type; see `tamis.arrays.reader.ArrayReader`."""

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
    """Return a reader that treats bytes as values of a type; the reader itself if it has no bytes."""
    if dtype is None or reader.dtype.kind != "V" or reader.dtype == dtype:
        return reader
    return ConvertedReader(reader, dtype, lambda raw: np.ascontiguousarray(raw).reshape(raw.shape).view(dtype))
