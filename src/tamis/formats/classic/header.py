"""The header of a netCDF classic file (CDF-1, 64-bit offset, CDF-5): dimensions, attributes, variables.

The format: https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html. Every count is checked
against the available bytes before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tamis.errors import FileError
from tamis.formatting import printable
from tamis.meaning import FILL_ATTRIBUTES
from tamis.stores.first_bytes import CLASSIC_KINDS
from tamis.stores.source import CHAR

if TYPE_CHECKING:
    from tamis.arrays.source import ByteSource

TYPES = {
    1: np.dtype(">i1"),
    2: CHAR,
    3: np.dtype(">i2"),
    4: np.dtype(">i4"),
    5: np.dtype(">f4"),
    6: np.dtype(">f8"),
    7: np.dtype(">u1"),
    8: np.dtype(">u2"),
    9: np.dtype(">u4"),
    10: np.dtype(">i8"),
    11: np.dtype(">u8"),
}
"""Types by their numbers in the file. The specification has those from 7 on in CDF-5 only; netCDF-C reads all of them
in every format."""

_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_ALIGNMENT = 4

_MOST_NBYTES = 256 << 20
"""Limit of the header, which is in memory as a whole."""

_MOST_RANK = 1024  # NC_MAX_VAR_DIMS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClassicVariable:
    """A variable as the header describes it."""

    # Name, and type in the file
    name: str
    dtype: np.dtype[Any]
    dimensions: tuple[str, ...]  # Names of the dimensions, slowest axis first
    shape: tuple[int, ...]  # Extents; that of a record variable begins with the number of records
    attributes: Mapping[str, Any]
    offset: int  # Offset of the first value in the file
    # Bytes from the values of one record to those of the next; None if the variable has no records
    record_stride: int | None

    @property
    def end(self) -> int:
        """Offset of the first byte after the last value."""
        if self.record_stride is None or not self.shape[0]:
            return self.offset + math.prod(self.shape) * self.dtype.itemsize
        return self.offset + (self.shape[0] - 1) * self.record_stride + _run_nbytes(self.shape[1:], self.dtype)


@dataclass(frozen=True, slots=True)
class ClassicHeader:
    """The header of a file."""

    version: int  # Format, one of `CLASSIC_KINDS`
    # Sizes by name, in the order of the file; of the unlimited one, the number of records
    dimensions: Mapping[str, int]
    unlimited: str  # Name of the unlimited dimension; empty if there is none
    attributes: Mapping[str, Any]  # Attributes of the file
    variables: tuple[ClassicVariable, ...]  # In the order of the file


def read_header(source: ByteSource, path: str) -> ClassicHeader:
    """Read the header of a file, and check that all values are in the file."""
    cursor = _Cursor(source, path)
    cursor.take(3)
    version = cursor.take(1)[0]
    cursor.use_version(version)
    record_count = cursor.count()
    dimensions = cursor.named(_DIMENSIONS, "dimensions", cursor.count)
    attributes = cursor.named(_ATTRIBUTES, "attributes", cursor.attribute)
    unlimited = [name for name, size in dimensions.items() if size == 0]
    if len(unlimited) > 1:
        raise cursor.damaged(f"expected one unlimited dimension, found {', '.join(unlimited)}")
    entries = cursor.named(_VARIABLES, "variables", lambda: cursor.variable(len(dimensions)))
    strides = _strides(entries, dimensions, cursor)
    if record_count == cursor.streaming:
        record_count = _records_there(entries, dimensions, strides, source.nbytes)
    sizes = {name: size or record_count for name, size in dimensions.items()}
    extents = tuple(sizes.items())
    variables = tuple(_variable(name, entry, extents, strides[name]) for name, entry in entries.items())
    for variable in variables:
        if 0 not in variable.shape and variable.end > source.nbytes:
            raise FileError(
                f"{path}: truncated: its header promises {max(other.end for other in variables)} bytes, and it "
                f"has {source.nbytes} (the values of {printable(variable.name)} end at {variable.end}): copy it "
                "again"
            ).at(path=path, dataset=f"/{variable.name}")
    return ClassicHeader(version, sizes, "".join(unlimited), attributes, variables)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A variable in the list of the header."""

    dimension_ids: tuple[int, ...]
    attributes: Mapping[str, Any]
    dtype: np.dtype[Any]
    offset: int


def _variable(
    name: str, entry: _Entry, extents: Sequence[tuple[str, int]], record_stride: int | None
) -> ClassicVariable:
    """Return the variable of an entry; `extents` has name and size of each dimension, by its number."""
    own = [extents[number] for number in entry.dimension_ids]
    return ClassicVariable(
        name=name,
        dtype=entry.dtype,
        dimensions=tuple(dimension for dimension, _ in own),
        shape=tuple(size for _, size in own),
        attributes=entry.attributes,
        offset=entry.offset,
        record_stride=record_stride,
    )


def _run_nbytes(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize


def _padded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _strides(entries: Mapping[str, _Entry], dimensions: Mapping[str, int], cursor: _Cursor) -> dict[str, int | None]:
    """Return the size of a record for each record variable; None for others."""
    extents = tuple(dimensions.values())
    sizes: dict[str, int] = {}
    for name, entry in entries.items():
        shape = [extents[number] for number in entry.dimension_ids]
        if 0 in shape[1:]:
            raise cursor.damaged(f"expected the unlimited dimension of {name} first, found it elsewhere")
        if 0 in shape[:1]:
            sizes[name] = _run_nbytes(shape[1:], entry.dtype)
    # The values of a single record variable are not padded, of whatever type.
    stride = sum(sizes.values()) if len(sizes) == 1 else sum(map(_padded, sizes.values()))
    return {name: stride if name in sizes else None for name in entries}


def _records_there(
    entries: Mapping[str, _Entry], dimensions: Mapping[str, int], strides: Mapping[str, int | None], nbytes: int
) -> int:
    """Return the number of whole records in a file whose writer did not count them."""
    first = min((entry.offset for name, entry in entries.items() if strides[name] is not None), default=nbytes)
    stride = next((stride for stride in strides.values() if stride), 0)
    return max(nbytes - first, 0) // stride if stride else 0


class _Cursor:
    """A position in a header."""

    def __init__(self, source: ByteSource, path: str) -> None:
        self._source, self._path = source, path
        self._nbytes = min(source.nbytes, _MOST_NBYTES)
        self._data, self._at = b"", 0
        self._count_nbytes = self._offset_nbytes = 4

    def use_version(self, version: int) -> None:
        """Read counts and offsets as a format has them."""
        if version not in CLASSIC_KINDS:
            raise self.damaged(f"expected one of the versions {', '.join(map(str, CLASSIC_KINDS))}, found {version}")
        self._offset_nbytes = 4 if version == 1 else 8
        self._count_nbytes = 8 if version == 5 else 4

    @property
    def streaming(self) -> int:
        """The count of records that means "as many as there are"."""
        return (1 << 8 * self._count_nbytes) - 1

    def damaged(self, text: str) -> FileError:
        """Return the error of a damaged header."""
        return FileError(f"{self._path}: damaged or truncated header of a netCDF classic file: {printable(text)}").at(
            path=self._path
        )

    def take(self, nbytes: int) -> bytes:
        """Return the next bytes."""
        end = self._at + nbytes
        if end > self._nbytes:
            limit = "256 MiB" if end > _MOST_NBYTES else f"the {self._nbytes} bytes of the file"
            raise self.damaged(f"expected it to end within {limit}, found that it continues to byte {end}")
        if end > len(self._data):
            room = min(max(end, 2 * len(self._data), 1 << 16), self._nbytes)
            self._data += self._source.read(len(self._data), room - len(self._data))
            if end > len(self._data):
                raise self.damaged(f"expected {end} bytes, found {len(self._data)}")
        data = self._data[self._at : end]
        self._at = end
        return data

    def _number(self, nbytes: int) -> int:
        return int.from_bytes(self.take(nbytes), "big")

    def count(self) -> int:
        """Return a count or size: 32 bits are unsigned in netCDF-C, so a dimension may have 3 billion elements."""
        count = self._number(self._count_nbytes)
        if count >> 63 and count != self.streaming:
            raise self.damaged(f"expected a count of 0 or more before byte {self._at}, found a negative one")
        return count

    def _few(self, what: str, least_nbytes: int) -> int:
        """Return the count of items that follow, each of which takes some bytes."""
        count = self.count()
        if count * least_nbytes > self._nbytes - self._at:
            left = self._nbytes - self._at
            raise self.damaged(f"expected {what} in the {left} bytes that are left, found a count of {count}")
        return count

    def named(self, tag: int, what: str, read: Callable[[], T]) -> dict[str, T]:
        """Return a list of items by name."""
        actual, count = self._number(4), self._few(what, 2 * self._count_nbytes)
        if actual != tag and (actual or count):
            raise self.damaged(f"expected a list of {what} before byte {self._at}, found the tag {actual}")
        items: dict[str, T] = {}
        for _ in range(count):
            name = self._name()
            if name in items:
                raise self.damaged(f"expected different names of {what}, found {name!r} twice")
            items[name] = read()
        return items

    def _name(self) -> str:
        # Some writers also count the zero bytes after a name; netCDF-C's names end at the first one.
        data = self._bytes(self._few("a name", 1)).partition(b"\0")[0]
        name = data.decode("utf-8", "surrogateescape")
        if not name or "/" in name or name in (".", ".."):
            raise self.damaged(f"expected a name without '/', found {name!r}")
        return name

    def _bytes(self, nbytes: int) -> bytes:
        """Return bytes, and skip those that fill the last word."""
        return self.take(_padded(nbytes))[:nbytes]

    def _type(self) -> np.dtype[Any]:
        number = self._number(4)
        if number not in TYPES:
            raise self.damaged(f"expected a type from 1 to {len(TYPES)}, found {number}")
        return TYPES[number]

    def attribute(self) -> Any:
        """Return the value of an attribute: text, bytes that are not UTF-8, a number, or an array of numbers."""
        dtype = self._type()
        data = self._bytes(self._few("an attribute", dtype.itemsize) * dtype.itemsize)
        if dtype == CHAR:
            data = data.rstrip(b"\0")  # some C programs store the end of a string, too; no reader shows it
            try:
                return data.decode()
            except UnicodeDecodeError:
                return data
        values = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
        return values[0] if values.size == 1 else values

    def variable(self, dimension_count: int) -> _Entry:
        """Return an entry of the list of variables."""
        rank = self._few("dimensions of a variable", self._count_nbytes)
        if rank > _MOST_RANK:
            raise self.damaged(f"expected at most {_MOST_RANK} dimensions of a variable, found {rank}")
        numbers = tuple(self.count() for _ in range(rank))
        if wrong := [number for number in numbers if number >= dimension_count]:
            raise self.damaged(f"expected dimension numbers below {dimension_count}, found {wrong[0]}")
        attributes = self.named(_ATTRIBUTES, "attributes", self.attribute)
        dtype = self._type()
        self._number(self._count_nbytes)  # the size, which follows from the shape, and is wrong beyond 4 GiB
        offset = self._number(self._offset_nbytes)
        if offset >> 63:
            raise self.damaged("expected an offset of 0 or more, found a negative one")
        texts = {name: attributes[name] for name in FILL_ATTRIBUTES if name in attributes}
        marks = {name: text.encode() for name, text in texts.items() if isinstance(text, str) and len(text) <= 1}
        return _Entry(numbers, attributes | marks, dtype, offset)  # a mark is a character, as in netCDF-4
