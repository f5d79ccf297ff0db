"""Read the values of a variable of a netCDF classic file, part by part: big-endian, in one run or record by record."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.chunks.reader import put
from tamis.chunks.source import ByteSource
from tamis.errors import FileError
from tamis.netcdf.classic.classic_header import CHAR, ClassicVariable

_SHORT_NBYTES = 16 << 10
"""Shorter runs are read many at a time."""

_AT_ONCE = 1024


class ClassicReader:
    """The values of a variable, in native byte order. Threads may share it. See `tamis.chunks.reader.ArrayReader`.

    Parameters
    ----------
    label
        File and variable, for messages.
    variable
        The variable.
    source
        The file.
    """

    def __init__(self, label: str, variable: ClassicVariable, source: ByteSource) -> None:
        self.label, self.shape = label, variable.shape
        self.dtype: np.dtype[Any] = np.dtype("V1") if variable.dtype == CHAR else variable.dtype.newbyteorder("=")
        self.chunk_shape: tuple[int, ...] | None = None
        self._swapped = not variable.dtype.isnative
        self._source: ByteSource | None = source
        self._offset = variable.offset
        strides = [math.prod(self.shape[axis + 1 :]) * self.dtype.itemsize for axis in range(len(self.shape))]
        if variable.record_stride is not None:
            strides[0] = variable.record_stride
        self._strides = strides

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read the runs of a part, directly into `out` if it has the type of the values.

        Raises
        ------
        FileError
            If the file is closed, or shorter than it was.
        """
        extents = [axis.stop - axis.start for axis in part]
        direct = out is not None and out.dtype == self.dtype and out.flags.c_contiguous
        if out is not None and not direct:
            return put(self.read(part), out)
        values = np.empty(extents, self.dtype) if out is None else out
        if values.size:
            self._fill(values.reshape(-1).view(np.uint8), part, extents)
            if self._swapped:
                values.byteswap(inplace=True)
        return values

    def _fill(self, room: NDArray[np.uint8], part: Region, extents: list[int]) -> None:
        try:
            self._read_runs(room, part, extents)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.label}: values cannot be read: {error.strerror}") from error

    def _read_runs(self, room: NDArray[np.uint8], part: Region, extents: list[int]) -> None:
        """Read all runs of a part into memory, in their order."""
        first, nbytes = len(extents), self.dtype.itemsize  # the slowest axis within a run, and the size of a run
        while first and self._strides[first - 1] == nbytes:
            first -= 1
            nbytes *= extents[first]
        begin = self._offset + sum(span.start * stride for span, stride in zip(part, self._strides, strict=True))
        steps = itertools.product(*map(range, extents[:first]))
        offsets = (begin + sum(map(int.__mul__, index, self._strides)) for index in steps)
        if nbytes >= _SHORT_NBYTES or not first:
            for at, offset in enumerate(offsets):
                memory = room[at * nbytes : (at + 1) * nbytes].data
                self._check(self._opened().read_into(offset, memory), nbytes, offset)
            return
        at = 0
        while batch := list(itertools.islice(offsets, _AT_ONCE)):
            runs = self._opened().read_many((offset, nbytes) for offset in batch)
            for run, offset in zip(runs, batch, strict=True):
                self._check(len(run), nbytes, offset)
            data = b"".join(runs)
            room[at : at + len(data)] = np.frombuffer(data, np.uint8)
            at += len(data)

    def _opened(self) -> ByteSource:
        if self._source is None:
            raise FileError(f"{self.label}: expected an open file, got one that was closed")
        return self._source

    def _check(self, count: int, nbytes: int, offset: int) -> None:
        if count < nbytes:
            raise FileError(f"{self.label}: expected {nbytes} bytes at {offset}, got {count}: the file is truncated")

    def close(self) -> None:
        """Release the file; running reads finish first."""
        self._source = None
