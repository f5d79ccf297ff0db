"""The protocols of stores of any format: stored arrays, whose facts are read once, and writers of chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.cf import Packing, Role
from tamis.chunks.chunk_reader import ChunkReader
from tamis.chunks.grid import Grid, Origin
from tamis.chunks.index import ChunkIndex
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts
from tamis.missing.definition import Missing
from tamis.missing.restore import CompanionFlags
from tamis.missing.table import Flags
from tamis.pipeline import Pipeline


class Store(Protocol):
    """A file or folder of arrays for reading. Use it in a ``with``, or close it."""

    @property
    def path(self) -> str:
        """Path of the file or folder."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        ...

    @property
    def roles(self) -> Mapping[str, Role]:
        """What each array is for, by path; no values are read."""
        ...

    def array(self, path: str) -> StoredArray:
        """Return the array at a path."""
        ...

    def first_path(self, path: str) -> str:
        """Return the path by which an array is known here, for any path that leads to it; empty if none does."""
        ...

    def copy_to(
        self,
        target: Path,
        recreate: Mapping[str, Callable[[Any, Callable[[Any], Any]], object]],
        dropped: Collection[str],
        companions: Callable[[], Mapping[str, ArrayWriter | None]],
        created: Callable[[], None],
    ) -> list[str]:
        """Copy everything to a new store of the same format, except the arrays that functions create, and return notes.

        A function gets an array and what creates the `ArrayWriter` of a plan.
        """
        ...

    def close(self) -> None:
        """Close the store."""
        ...


class StoredArray(Protocol):
    """An array in a store. Its facts do not change, and each is read once."""

    @property
    def path(self) -> str:
        """Path in the store."""
        ...

    @property
    def label(self) -> str:
        """Store and path, for messages."""
        ...

    @property
    def shape(self) -> Any:
        """Extents, slowest axis first; None if there are no values at all."""
        ...

    @property
    def maxshape(self) -> Any:
        """Largest extents; None for an unlimited axis."""
        ...

    @property
    def number_type(self) -> np.dtype[Any] | None:
        """Type of the values, if they are numbers in a form that NumPy has."""
        ...

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type in which chunks are copied to another array: numbers or bytes; None if bytes are not the values."""
        ...

    @property
    def type_text(self) -> str:
        """Type of the values, for people."""
        ...

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Chunk shape; None if there are no chunks."""
        ...

    @property
    def pipeline(self) -> Pipeline:
        """Filters with stored parameters."""
        ...

    @property
    def partial_filtered(self) -> bool:
        """Whether chunks that extend beyond the array are filtered."""
        ...

    @property
    def has_named_type(self) -> bool:
        """Whether the type is an object in the store."""
        ...

    @property
    def fill_value(self) -> NDArray[Any]:
        """The value of elements that were never written."""
        ...

    @property
    def missing(self) -> Missing:
        """Markers of missing values, and limits of valid ones."""
        ...

    @property
    def missing_nan(self) -> list[NDArray[Any]]:
        """NaN values of attributes and fill value, with their bits."""
        ...

    @property
    def packing(self) -> Packing | None:
        """The relation of stored values to values in units of the variable; None if they are not packed."""
        ...

    @property
    def companion_flags(self) -> CompanionFlags | None:
        """The flags of the companion, with their meaning; None if there is no companion."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        ...

    @property
    def stored_nbytes(self) -> int:
        """Bytes of the values in the store."""
        ...

    @property
    def can_read_chunks(self) -> bool:
        """Whether `open_chunks` works: tamis can decode all filters."""
        ...

    @property
    def can_read_independently(self) -> bool:
        """Whether the library of the format can read the array here."""
        ...

    def chunk_index(self) -> ChunkIndex:
        """Return the chunk index."""
        ...

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the store; all others read as the fill value."""
        ...

    def described_nbytes(self, chunk_shape: tuple[int, ...] | None, pipeline: Pipeline) -> int:
        """Return roughly how many bytes a chunk index and a list of filters take in such a store."""
        ...

    def check_readable(self) -> None:
        """Raise FileError if a reader would silently get wrong values."""
        ...

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values, with missing ones restored; `independent` reads by the library of the format itself."""
        ...

    def open_chunks(self) -> ChunkReader:
        """Open the stored chunks."""
        ...


class ArrayWriter(Protocol):
    """A new array, written chunk by chunk."""

    @property
    def grid(self) -> Grid:
        """The grid of its chunks."""
        ...

    @property
    def recorded(self) -> Pipeline:
        """The filters in the store, by which readers decode."""
        ...

    @property
    def stored_nbytes(self) -> int:
        """Bytes of all written chunks."""
        ...

    def put(self, origin: Origin, data: bytes, mask: int) -> None:
        """Write an encoded chunk; a store without masks refuses a mask other than 0."""
        ...

    def last_offset(self) -> int | None:
        """Return the offset of the last written chunk in the file; None if it is not known."""
        ...

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> ArrayWriter:
        """Create the companion of the array, which gets its name after all other arrays."""
        ...

    def finish(self) -> None:
        """Raise FileError unless the store's records of all chunks match what was written, without others."""
        ...
