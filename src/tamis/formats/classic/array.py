"""A variable of a netCDF classic file as a stored array; see `tamis.stores.protocols.StoredArray`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import Grid, Region
from tamis.arrays.reader import ArrayReader, put
from tamis.errors import FileError
from tamis.filters import ChunkType
from tamis.formats.classic.header import CHAR, ClassicVariable
from tamis.pipeline import Pipeline
from tamis.stores.arrays import DescribedArray, UnchunkedArray
from tamis.stores.data_model import NamedArray
from tamis.stores.protocols import PartByPart

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.source import ByteSource

_SHORT_NBYTES = 16 << 10
"""Shorter runs are read many at a time."""

_AT_ONCE = 1024


class ClassicReader:
    """The values of a variable, in native byte order. Threads may share it. See `tamis.arrays.reader.ArrayReader`."""

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
        """Read the runs of a part, directly into `out` if it has the type of the values."""
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


_DEFAULT_FILL = {
    "i1": -127,
    "S1": b"\0",
    "i2": -32767,
    "i4": -2147483647,
    "f4": 9.9692099683868690e36,
    "f8": 9.9692099683868690e36,
    "u1": 255,
    "u2": 65535,
    "u4": 4294967295,
    "i8": -9223372036854775806,
    "u8": 18446744073709551614,
}
"""NC_FILL_BYTE and so on of netcdf.h: the value of elements that were never written, without ``_FillValue``."""

_FILTER_NBYTES, _RECORD_NBYTES = 32, 16


class ClassicArray(UnchunkedArray, PartByPart, DescribedArray):
    """A variable of a file. Numbers are in native byte order, characters are single bytes."""

    varies = False
    has_fill = can_read_independently = True

    def __init__(self, file_path: str, source: ByteSource, variable: ClassicVariable, number: int, unlimited: str):
        self.variable, self.address = variable, number
        self.path, self.label = f"/{variable.name}", f"{file_path}: /{variable.name}"
        self.shape: tuple[int, ...] = variable.shape
        self.maxshape = tuple(
            None if name == unlimited else extent
            for name, extent in zip(variable.dimensions, variable.shape, strict=True)
        )
        self.pipeline = Pipeline(())
        self._source = source

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name."""
        return self.variable.attributes

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """Type of the values in native byte order."""
        return self.variable.dtype.newbyteorder("=")

    @property
    def number_type(self) -> np.dtype[Any] | None:
        """Type of the values in native byte order; None for characters."""
        return None if self.numpy_type == CHAR else self.numpy_type

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type in which values are copied to another array."""
        return self.number_type or np.dtype("V1")

    @property
    def value_type(self) -> np.dtype[Any] | None:
        """Type of the values: numbers, or characters."""
        return self.numpy_type

    @property
    def type_text(self) -> str:
        """Type of the values, for people."""
        return "string" if self.number_type is None else str(self.number_type)

    @property
    def type_words(self) -> str:
        """Type of the values in words."""
        if self.number_type is None:
            return "string of 1 bytes, ASCII, null-terminated"  # as netCDF-4 files have characters
        return self.number_type.name

    @property
    def byteorder(self) -> str:
        """Byte order of the values; empty for single bytes."""
        return "big" if self.numpy_type.itemsize > 1 else ""

    @property
    def layout(self) -> str:
        """``records`` if the values of a record are between those of other variables, otherwise ``contiguous``."""
        return "contiguous" if self.variable.record_stride is None else "records"

    @property
    def chunk(self) -> ChunkType:
        """Type of the values."""
        return ChunkType(self.dtype or CHAR, ())

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self.size * self.numpy_type.itemsize

    @property
    def values_nbytes(self) -> int:
        """Bytes of the values."""
        return self.nbytes

    @property
    def stored_nbytes(self) -> int:
        """Bytes of the values in the file."""
        return self.nbytes

    @cached_property
    def fill_value(self) -> NDArray[Any]:
        """The value of ``_FillValue`` if it has the type of the variable, otherwise that of netCDF for the type."""
        value = self.attributes.get("_FillValue")
        if self.number_type is None and isinstance(value, (str, bytes)) and len(value) == 1:
            return np.array(value.encode() if isinstance(value, str) else value, CHAR)
        if isinstance(value, np.generic) and value.dtype == self.numpy_type:
            return np.array(value)
        return np.array(_DEFAULT_FILL[self.numpy_type.str[1:]], self.numpy_type)

    @property
    def fill_marker(self) -> NDArray[Any]:
        """The fill value, which marks missing values."""
        return self.fill_value

    def described_nbytes(self, chunk_shape: tuple[int, ...] | None, pipeline: Pipeline) -> int:
        """Return roughly how many bytes a chunk index and a list of filters take in a file made from this one."""
        if chunk_shape is None:
            return 0
        return _FILTER_NBYTES * len(pipeline.stages) + _RECORD_NBYTES * Grid(self.shape, chunk_shape).chunk_count

    def check_readable(self) -> None:
        """Do nothing: all values are in the file, without filters."""

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values in native byte order. Values without filters need no second witness."""
        return ClassicReader(self.label, self.variable, self._source)

    def open_chunks(self) -> ChunkReader:
        """Raise FileError: there are no chunks."""
        raise FileError(f"{self.label}: expected chunks, found a netCDF classic variable, which has none")

    def named(self) -> NamedArray:
        """Return the variable in netCDF's data model."""
        return NamedArray(
            path=self.path,
            dimensions=self.variable.dimensions,
            shape=self.shape,
            stored_shape=self.shape,
            dtype=self.numpy_type,
            fill_value=self.fill_value[()],
            attributes=self.attributes,
            chunk_shape=None,
            pipeline=self.pipeline,
        )
