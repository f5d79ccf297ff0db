"""A netCDF classic file as a source of variables; see `tamis.stores.source.Source`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tamis.arrays.reader import ArrayReader, ContiguousReader
from tamis.arrays.source import ByteSource, Descriptor, FileSource
from tamis.errors import FileError
from tamis.formats.classic.header import ClassicVariable, read_header
from tamis.pipeline import Pipeline
from tamis.remote.address import Address
from tamis.stores.data_model import Dimension, NamedArray, NamedGroup
from tamis.stores.first_bytes import CLASSIC_KINDS, opened_remote
from tamis.stores.source import CHAR, Source, SourceStore
from tamis.system.files import open_file

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


class ClassicSource(Source):
    """A file for reading. Threads share its one descriptor."""

    reader_words = "any netCDF"
    fill_marks_missing = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        try:
            self._bytes = _opened(self.path)
            self.header = read_header(self._bytes, self.path)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror}").at(path=self.path) from error
        self.nbytes, self.kind = self._bytes.nbytes, CLASSIC_KINDS[self.header.version]
        self._variables = {f"/{variable.name}": variable for variable in self.header.variables}
        dimensions = {
            name: Dimension(size, name == self.header.unlimited) for name, size in self.header.dimensions.items()
        }
        variables = {variable.name: _named(path, variable) for path, variable in self._variables.items()}
        self.groups = (NamedGroup("/", dimensions, variables, self.header.attributes, {}),)

    def open_values(self, variable: NamedArray) -> ArrayReader:
        """Open the values of a variable, in native byte order; characters as bytes."""
        stored = self._variables[variable.path]
        dtype = np.dtype("V1") if variable.dtype == CHAR else variable.dtype
        return ContiguousReader(
            f"{self.path}: {variable.path}",
            variable.shape,
            dtype,
            self._bytes,
            stored.offset,
            record_stride=stored.record_stride,
            is_swapped=not stored.dtype.isnative,
        )

    def byteorder_of(self, variable: NamedArray) -> str:
        """Return the byte order of all numbers of the format."""
        return "big"

    def layout_of(self, variable: NamedArray) -> str:
        """Return ``records`` if the values of a record are between those of other variables."""
        return "contiguous" if self._variables[variable.path].record_stride is None else "records"


def _opened(path: str) -> ByteSource:
    """Return the bytes of a file, here or elsewhere."""
    if isinstance(path, Address):
        return opened_remote(path)
    return FileSource(Descriptor(open_file(path)))


def _named(path: str, variable: ClassicVariable) -> NamedArray:
    """Return a variable in netCDF's data model."""
    return NamedArray(
        path=path,
        dimensions=variable.dimensions,
        shape=variable.shape,
        stored_shape=variable.shape,
        dtype=variable.dtype.newbyteorder("="),
        fill_value=_fill_value(variable),
        attributes=variable.attributes,
        chunk_shape=None,
        pipeline=Pipeline(()),
    )


def _fill_value(variable: ClassicVariable) -> Any:
    """Return the value of ``_FillValue`` if it has the type of the variable, otherwise that of netCDF for the type."""
    value, dtype = variable.attributes.get("_FillValue"), variable.dtype.newbyteorder("=")
    if dtype == CHAR and isinstance(value, (str, bytes)) and len(value) == 1:
        return np.array(value.encode() if isinstance(value, str) else value, CHAR)[()]
    if isinstance(value, np.generic) and value.dtype == dtype:
        return value
    return np.array(_DEFAULT_FILL[dtype.str[1:]], dtype)[()]


def open_classic(path: str | os.PathLike[str]) -> SourceStore:
    """Open a netCDF classic file as a store."""
    return SourceStore(ClassicSource(path))
