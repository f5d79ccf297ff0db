"""What a format knows about an array, as plain data: type, storage, fill value, marks, other files.

A format fills a record in one call, the first time that it is asked for; `Elsewhere` alone looks at files each time.
What follows from the data alone is a function below, once for all formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import Grid
from tamis.meaning.arrays import Meaning
from tamis.meaning.variables import Packing
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.filters import ChunkType


class ValueType(NamedTuple):
    """The type of the values of an array."""

    numbers: np.dtype[Any] | None  # Type of numbers in a form that NumPy has; None for all other values
    # Type in which chunks are copied: numbers or bytes; None if the bytes are not the values
    dtype: np.dtype[Any] | None
    values: np.dtype[Any] | None  # Type for readers of the format; None if NumPy has none, or lengths vary
    text: str  # The type for people
    words: str  # The type in words: equal texts mean equal types, in any byte order
    byteorder: str  # ``little`` or ``big``; empty if the values have no byte order, or several
    nbytes: int  # Bytes of a value in the store
    varies: bool = False  # Whether values have variable lengths, in any part of them
    is_counted: bool = True  # Whether `nbytes` are all bytes of a value, and not those of a reference to it
    is_named: bool = False  # Whether the type is an object in the store


class PackedTo(NamedTuple):
    """The integers to which codecs of a format pack floats, before the other filters; readers get the floats."""

    dtype: np.dtype[Any]
    packing: Packing  # The relation of the integers to the floats


ChunkRecords = Literal["array", "tree", "files", "any"]
"""How a store knows where chunks are.

A list of places (a single chunk has its own in the header), a B-tree of HDF5, the names of files, or unknown because
the store has no chunks.
"""


class Storage(NamedTuple):
    """How the values of an array are stored."""

    layout: str  # In a word; one of `ELSEWHERE` if the values are in other files
    chunk: ChunkType  # Type and shape of the chunks
    chunk_shape: tuple[int, ...] | None = None  # Chunk shape; None if there are no chunks
    pipeline: Pipeline = Pipeline(())  # Filters with stored parameters
    partial_filtered: bool = True  # Whether chunks that extend beyond the array are filtered
    chunk_records: ChunkRecords = "any"
    problem: str = ""  # Why the values cannot be read correctly, judging by filters and layout
    # Whether chunks have other bytes than those of HDF5 with the same filters, as `open_chunks` gives them
    has_own_bytes: bool = False
    reader_package: str = ""  # The package that the library of the format needs for the codecs; empty if it needs none
    bars_store: bool = False  # Whether that library cannot open the store as a whole without `reader_package`
    # Why the library of the format could not confirm the values here, in words; empty if it could
    unread_here: str = ""
    packed_to: PackedTo | None = None  # What codecs pack the values to; None without such codecs
    # Values that readers get for codes of missing ones, where these integers are what codecs pack floats to: see
    # `Store.take_codes`. None for all other arrays
    codec_marks: Mapping[int, float] | None = None
    # Why values of varying length get no filters
    unfiltered_reason: str = "HDF5 stores such values elsewhere in the file, where filters do not compress them"


ELSEWHERE = ("virtual", "external")
"""Layouts whose values are in other files."""

IN_MEMORY = "in memory"
"""Layout of variables that are not in a file."""


class Fill(NamedTuple):
    """The value of elements that were never written."""

    value: NDArray[Any]  # In the type of the values
    is_chosen: bool  # Whether a user chose it
    stored: bytes  # Its bytes in the store; empty stands for zeros
    # The value that the store records, which marks missing ones without an attribute, even where it is never used; None
    # if there is none
    marker: NDArray[Any] | None = None


class Marks(NamedTuple):
    """What the attributes of an array mark it as."""

    has_companion: bool = False  # Whether it names a companion, so that some values only fill the place of missing ones
    is_companion: bool = False  # Whether it is the companion of another array
    is_bare_dimension: bool = False  # Whether it only represents a dimension, and has no values


NO_MARKS = Marks()


class Elsewhere:
    """The other files that an array refers to: none. A format whose arrays may refer to some looks when it is asked."""

    __slots__ = ()

    @property
    def absent_files(self) -> tuple[str, ...]:
        """Missing files that have some of the values: readers may get fill values instead."""
        return ()

    @property
    def value_files(self) -> tuple[str, ...]:
        """Files that decide on the values: those that have some, and those on the way to them."""
        return ()

    @property
    def virtual_sources(self) -> tuple[tuple[str, str], ...]:
        """Files, empty for its own, and paths of the arrays that have the values of a virtual one."""
        return ()


NOTHING_ELSEWHERE = Elsewhere()


class ArrayFacts(Protocol):
    """What a format knows about an array, as plain data.

    The data do not change, and are read once.
    """

    @property
    def path(self) -> str:
        """Path in the store."""

    @property
    def label(self) -> str:
        """Store and path, for messages."""

    @property
    def address(self) -> int:
        """Number that identifies the array in its store under any path."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name, at least those that can be read and for which `tamis.meaning.is_known` is True."""

    @property
    def shape(self) -> Any:
        """Extents, slowest axis first; None if there are no values at all."""

    @property
    def maxshape(self) -> Any:
        """Largest extents; None for an unlimited axis."""

    @property
    def type(self) -> ValueType:
        """Type of the values."""
        ...

    @property
    def storage(self) -> Storage:
        """Layout, chunks and filters."""
        ...

    @property
    def fill(self) -> Fill:
        """The value of elements that were never written."""
        ...

    @property
    def meaning(self) -> Meaning:
        """What the attributes say about the values; see `tamis.meaning.arrays.meaning_of`."""
        ...

    @property
    def marks(self) -> Marks:
        """What attributes mark the array as."""
        ...

    @property
    def elsewhere(self) -> Elsewhere:
        """The other files that the array refers to."""
        ...


def size_of(array: ArrayFacts) -> int:
    """Return the number of values of an array; 0 if there are none at all."""
    return 0 if array.shape is None else prod(array.shape)


def array_nbytes(array: ArrayFacts) -> int:
    """Return the bytes of all values."""
    return size_of(array) * array.type.nbytes


def values_nbytes_of(array: ArrayFacts) -> int:
    """Return the bytes of all values; 0 if their lengths vary, because values elsewhere are not counted."""
    return array_nbytes(array) if array.type.is_counted else 0


def fill_as(fill: Fill, dtype: np.dtype[Any]) -> Any:
    """Return a fill value in the type of chunks, numbers or bytes."""
    if dtype.kind != "V":
        return fill.value.astype(dtype)[()]
    return np.frombuffer(fill.stored, dtype)[0] if fill.stored else np.zeros((), dtype)[()]


_FILTER_NBYTES = 32
"""Approximate size of a filter in the header of an array."""

_RECORD_NBYTES = 16
"""Approximate size of the place of a chunk in a list."""

_NODE_CHUNKS = 64
"""Most chunks in a node of a B-tree of HDF5."""


def described_nbytes(
    shape: tuple[int, ...], storage: Storage, chunk_shape: tuple[int, ...] | None, pipeline: Pipeline
) -> int:
    """Return roughly how many bytes a chunk index and a list of filters take in a store that is like an array's."""
    if chunk_shape is None or storage.chunk_records == "files":  # names of files take no space in the store
        return 0
    count = Grid(shape, chunk_shape).chunk_count
    filters = _FILTER_NBYTES * len(pipeline.stages)
    if storage.chunk_records == "tree":
        # A node of a B-tree has room for this many chunks; several nodes are half full.
        nodes = 1 if count <= _NODE_CHUNKS else -(-count // (_NODE_CHUNKS // 2))
        return filters + nodes * (24 + 8 * _NODE_CHUNKS + (_NODE_CHUNKS + 1) * 8 * (len(shape) + 2))
    if storage.chunk_records == "array" and count <= 1:
        return filters
    return filters + _RECORD_NBYTES * count
