"""Arrays that are read part by part: the protocol, and readers of contiguous, converted and loaded values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import shape_of
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
        """Read a part of the array into `out`, and return `out`; it may have another type, to which values are cast.

        Without `out`, the result has the type of the array, and may be read-only.
        """

    def close(self) -> None:
        """Close everything opened for reading; the array itself belongs to its owner, who closes it."""


class SourcesReader(ArrayReader, Protocol):
    """The values of an array that are in other arrays."""

    def has_filters(self) -> bool:
        """Return whether the library of the format has the filters of these arrays."""
        ...


def put(values: NDArray[Any], out: NDArray[Any] | None) -> NDArray[Any]:
    """Copy values to `out` and return it; return the values themselves if `out` is None."""
    if out is None:
        return values
    out[...] = values
    return out


_SHORT_NBYTES = 16 << 10
"""Shorter runs are read many at a time."""

_SCATTERED_NBYTES = 2048
"""Shorter runs are read by a library, if one can."""

_AT_ONCE = 1024
"""Short runs that are read at once."""


class ContiguousReader:
    """An array of values that are stored contiguously, or as records at equal distances.

    Parameters
    ----------
    label
        File and name of the array, for messages.
    shape, dtype
        Shape of the array, and type of the result.
    source, offset
        The bytes, and where the values begin.
    record_stride
        Distance of the records along the first axis in bytes; None if the values are contiguous.
    is_swapped
        Whether the stored values have the other byte order than `dtype`.
    read_scattered
        Reads a part of short runs through a library; None if there is none.
    """

    def __init__(
        self,
        label: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        source: ByteSource,
        offset: int,
        *,
        record_stride: int | None = None,
        is_swapped: bool = False,
        read_scattered: Callable[[Region], NDArray[Any]] | None = None,
    ) -> None:
        self.label = label
        self.shape = shape
        self.dtype = dtype
        self.chunk_shape: tuple[int, ...] | None = None
        self._source: ByteSource | None = source
        self._offset = offset
        self._is_swapped = is_swapped
        self._read_scattered = read_scattered
        self._strides = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
        if record_stride is not None:
            self._strides[0] = record_stride
        if (stop_at := getattr(source, "stop_at", None)) and shape:
            stop_at(offset + shape[0] * self._strides[0])

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read the runs of a part, directly into `out` if it has the type of the values."""
        extents = shape_of(part)
        first, nbytes = self._run(extents)
        is_short = nbytes < math.prod(extents) * self.dtype.itemsize and nbytes < _SHORT_NBYTES
        if self._read_scattered is not None and is_short:
            is_short = False
            if nbytes < _SCATTERED_NBYTES:
                return put(self._read_scattered(part), out)
        if out is not None:
            run = out if is_short else out[(0,) * first]
            if out.dtype != self.dtype or not run.flags.c_contiguous:
                return put(self.read(part), out)
        values = np.empty(extents, self.dtype) if out is None else out
        try:
            if values.size:
                self._fill(values, part, first, nbytes, is_short)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.label}: values cannot be read: {error.strerror}") from error
        return values.byteswap(inplace=True) if self._is_swapped else values

    def spans(self, part: Region) -> list[tuple[int, int]]:
        """Return where the runs of a part begin and end in the source."""
        extents = shape_of(part)
        first, nbytes = self._run(extents)
        return [(offset, offset + nbytes) for _, offset in self._runs(part, extents[:first])]

    def _run(self, extents: tuple[int, ...]) -> tuple[int, int]:
        """Return the slowest axis within a run of a part, and the size of a run in bytes."""
        first, nbytes = len(extents), self.dtype.itemsize
        while first and self._strides[first - 1] == nbytes:
            first -= 1
            nbytes *= extents[first]
        return first, nbytes

    def _runs(self, part: Region, extents: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield the index of each run along the axes before it, and its offset."""
        begin = self._offset + sum(span.start * stride for span, stride in zip(part, self._strides, strict=True))
        for index in itertools.product(*map(range, extents)):
            yield index, begin + sum(map(int.__mul__, index, self._strides))

    def _fill(self, values: NDArray[Any], part: Region, first: int, nbytes: int, is_short: bool) -> None:
        """Read all runs of a part into memory, in their order."""
        source = self._source
        if source is None:
            raise FileError(f"{self.label}: the file is closed: open it again")
        runs = self._runs(part, values.shape[:first])
        if not is_short:
            for index, offset in runs:
                run: Any = (*index, ...)  # a view, of a scalar, too
                count = source.read_into(offset, values[run].reshape(-1).view(np.uint8).data)
                self._check(count, nbytes, offset)
            return
        at = 0
        room = values.reshape(-1).view(np.uint8)
        while batch := [offset for _, offset in itertools.islice(runs, _AT_ONCE)]:
            read = source.read_many((offset, nbytes) for offset in batch)
            for data, offset in zip(read, batch, strict=True):
                self._check(len(data), nbytes, offset)
            room[at : at + len(read) * nbytes] = np.frombuffer(b"".join(read), np.uint8)
            at += len(read) * nbytes

    def _check(self, count: int, nbytes: int, offset: int) -> None:
        if count < nbytes:
            raise FileError(f"{self.label}: expected {nbytes} bytes at {offset}, got {count}: the file is truncated")

    def close(self) -> None:
        """Release the source; running reads finish first."""
        self._source = None


class ValuesReader:
    """An array whose values are in memory."""

    def __init__(self, values: NDArray[Any], chunk_shape: tuple[int, ...] | None) -> None:
        self.shape = values.shape
        self.dtype = values.dtype
        self.chunk_shape = chunk_shape
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
        self.shape = reader.shape
        self.chunk_shape = reader.chunk_shape
        self.dtype = dtype
        self._reader = reader
        self._convert = convert

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
