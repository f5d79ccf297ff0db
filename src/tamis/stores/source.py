"""A file of a format without chunks and filters: plain data about its variables, and a function that opens values.

A format is a `Source`; what jobs ask of a store and of its arrays follows from the data, once for all such formats.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis import meaning
from tamis.arrays.reader import ArrayReader
from tamis.errors import FileError
from tamis.filters import ChunkType
from tamis.lazy_property import lazy_property
from tamis.stores.arrays import ListedStore, UnchunkedArray
from tamis.stores.data_model import NamedArray, NamedGroup
from tamis.stores.facts import Fill, Storage, ValueType
from tamis.stores.header import Header, header_of

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader

CHAR = np.dtype("S1")


class Source(ABC):
    """A file or folder that a format has read: what is in it, and its values.

    Values are numbers in native byte order, or single characters, of the type that a variable says.
    """

    path: str
    nbytes: int
    """Bytes of the whole file."""

    kind: str
    """The kind of file, as ``ncdump -k`` calls it."""

    groups: Sequence[NamedGroup]
    """All groups, the root first, each before those in it."""

    reader_words: str
    """Who reads the values, for people."""

    is_loose = False
    """Whether numbers of attributes have no types, and dimensions exist only as names of axes."""

    fill_marks_missing = False
    """Whether the fill value of a variable marks missing values by itself, without an attribute."""

    @abstractmethod
    def open_values(self, variable: NamedArray) -> ArrayReader:
        """Open the values of a variable."""

    def byteorder_of(self, variable: NamedArray) -> str:
        """Return the byte order of stored numbers, ``little`` or ``big``."""
        return "little"

    def layout_of(self, variable: NamedArray) -> str:
        """Return how values are stored, in a word."""
        return "contiguous"


class SourceArray(UnchunkedArray):
    """A variable of a source; see `tamis.stores.protocols.StoredArray`."""

    can_read_independently = True

    def __init__(self, source: Source, variable: NamedArray, number: int, maxshape: tuple[int | None, ...]) -> None:
        self.source = source
        self.variable = variable
        self.path = variable.path
        self.label = f"{source.path}: {variable.path}"
        self.address = number
        self.attributes = variable.attributes
        self.shape = variable.stored_shape
        self.maxshape = maxshape
        byteorder = source.byteorder_of(variable) if variable.dtype.itemsize > 1 else ""
        self.type = simple_type(variable.dtype, byteorder)
        self.storage = Storage(source.layout_of(variable), ChunkType(self.type.dtype or CHAR, ()))
        value = np.array(variable.fill_value, variable.dtype)
        self.fill = Fill(value, True, value.tobytes(), value if source.fill_marks_missing else None)

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """Type of the values in native byte order."""
        return self.variable.dtype

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values. Without filters they need no second witness."""
        return self.source.open_values(self.variable)

    def open_chunks(self) -> ChunkReader:
        """Raise FileError: there are no chunks."""
        raise FileError(f"{self.label}: a variable of this format has no chunks")


def simple_type(dtype: np.dtype[Any], byteorder: str) -> ValueType:
    """Return the type of values that are numbers in native byte order, or single characters."""
    if dtype == CHAR:  # as netCDF-4 files have characters
        words = "string of 1 bytes, ASCII, null-terminated"
        return ValueType(None, np.dtype("V1"), dtype, "string", words, byteorder, 1)
    return ValueType(dtype, dtype, dtype, str(dtype), dtype.name, byteorder, dtype.itemsize)


class SourceStore(ListedStore[SourceArray]):
    """A source as a store; see `tamis.stores.protocols.Store`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path
        self.nbytes = source.nbytes
        self.kind = source.kind
        self.is_loose = source.is_loose
        self.reader_words = source.reader_words  # type: ignore[misc]
        self._groups = {group.path: group for group in source.groups}
        variables = (variable for group in source.groups for variable in group.variables.values())
        self._arrays = {
            variable.path: SourceArray(source, variable, number, self._maxshape(variable))
            for number, variable in enumerate(variables)
        }

    def _around(self, path: str) -> Iterator[str]:
        """Yield the paths of the group of a variable, and of those around it, up to the root."""
        while path != "/":
            path = posixpath.dirname(path)
            yield path

    def _owner(self, variable: NamedArray, name: str) -> str:
        """Return the path of the nearest group with a dimension."""
        return next(path for path in self._around(variable.path) if name in self._groups[path].dimensions)

    def _maxshape(self, variable: NamedArray) -> tuple[int | None, ...]:
        """Return the largest extents of a variable; None for an axis that may grow."""
        dimensions = (self._groups[self._owner(variable, name)].dimensions[name] for name in variable.dimensions)
        return tuple(None if dimension.is_unlimited else dimension.size for dimension in dimensions)

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each variable by path."""
        variables = map(self._described, self._arrays.values())
        return meaning.roles_of(variables, {path: group.attributes for path, group in self._groups.items()})

    def _described(self, array: SourceArray) -> meaning.Variable:
        """Return a variable as its role follows from it."""
        dimensions = array.variable.dimensions
        return meaning.Variable(
            array.path,
            array.shape,
            array.type.numbers,
            tuple(posixpath.join(self._owner(array.variable, name), name) for name in dimensions),
            array.attributes,
            is_scale=posixpath.basename(array.path) in dimensions[:1],
        )

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return the group at a path; see `tamis.stores.data_model.DataModel`."""
        group = self._groups.get(path or "/")
        if group is None:
            raise FileError(f"{self.path}: expected one of the groups {', '.join(self._groups)}, got {path!r}")
        return group

    def public_group_attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of a group."""
        return self.group(path).attributes

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it."""
        own = self.group(path).path
        return [other for other in self._groups if other == own or other.startswith(f"{own.rstrip('/')}/")]
