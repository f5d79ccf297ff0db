"""A netCDF classic file as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.arrays.reader import ArrayReader, ContiguousReader
from tamis.arrays.source import Descriptor, FileSource
from tamis.errors import FileError
from tamis.filters import ChunkType
from tamis.formats.classic.header import CHAR, ClassicVariable, read_header
from tamis.lazy_property import lazy_property
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.stores.arrays import DescribedArray, ListedStore, UnchunkedArray
from tamis.stores.data_model import Dimension, NamedArray, NamedGroup
from tamis.stores.first_bytes import CLASSIC_KINDS, opened_remote
from tamis.stores.header import Header, header_of
from tamis.stores.protocols import PartByPart

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.source import ByteSource


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
        self.nbytes = self.size * variable.dtype.itemsize
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
    def dtype(self) -> np.dtype[Any]:
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
        return ChunkType(self.dtype, ())

    @lazy_property
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

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values in native byte order. Values without filters need no second witness."""
        place = self.label, self.shape, self.dtype, self._source, self.variable.offset
        is_swapped = not self.variable.dtype.isnative
        return ContiguousReader(*place, record_stride=self.variable.record_stride, is_swapped=is_swapped)

    def open_chunks(self) -> ChunkReader:
        """Raise FileError: there are no chunks."""
        raise FileError(f"{self.label}: a netCDF classic variable has no chunks")

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


class ClassicStore(ListedStore[ClassicArray]):
    """A file for reading. Threads share its one descriptor."""

    is_loose = False
    reader_words = "any netCDF"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        try:
            self._source: ByteSource = (
                opened_remote(self.path)
                if isinstance(self.path, Address)
                else FileSource(Descriptor(os.open(self.path, os.O_RDONLY)))
            )
            self.classic_header = read_header(self._source, self.path)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror}").at(path=self.path) from error
        self._arrays = {
            f"/{variable.name}": ClassicArray(self.path, self._source, variable, number, self.classic_header.unlimited)
            for number, variable in enumerate(self.classic_header.variables)
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._source.nbytes

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each variable by path."""
        variables = (
            meaning.Variable(
                path,
                array.shape,
                array.number_type,
                tuple(f"/{name}" for name in array.variable.dimensions),
                array.attributes,
                is_scale=array.variable.name in array.variable.dimensions[:1],
            )
            for path, array in self._arrays.items()
        )
        return meaning.roles_of(variables, {"/": self.classic_header.attributes})

    @property
    def kind(self) -> str:
        """The format, as ``ncdump -k`` calls it."""
        return CLASSIC_KINDS[self.classic_header.version]

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return the root group; see `tamis.stores.data_model.DataModel`."""
        if path.strip("/"):
            raise FileError(f"{self.path}: has no group {path!r}, because netCDF classic files have no groups")
        dimensions = {
            name: Dimension(size, name == self.classic_header.unlimited)
            for name, size in self.classic_header.dimensions.items()
        }
        variables = {array.variable.name: array.named() for array in self._arrays.values()}
        return NamedGroup("/", dimensions, variables, self.classic_header.attributes, {})

    def public_group_attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of the file, whose only group is the root."""
        return self.classic_header.attributes

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the path of the only group."""
        self.group(path)
        return ["/"]
