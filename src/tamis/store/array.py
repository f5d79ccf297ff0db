"""What a store gives and takes, whatever its format: arrays whose facts are read once, and writers of chunks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.cf import Packing
from tamis.chunks.chunk_reader import ChunkReader
from tamis.chunks.grid import Grid, Origin
from tamis.chunks.index import ChunkIndex
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts
from tamis.missing.definition import Missing
from tamis.missing.restore import CompanionFlags
from tamis.missing.table import Flags
from tamis.pipeline import Pipeline


class StoredArray(Protocol):
    """An array in a store. Its facts do not change, and each is asked for once."""

    @property
    def path(self) -> str:
        """Where it is in its store."""
        ...

    @property
    def label(self) -> str:
        """Store and path, for messages."""
        ...

    @property
    def shape(self) -> Any:
        """Extents, slowest axis first; None where there are no values at all."""
        ...

    @property
    def maxshape(self) -> Any:
        """Extents that it can grow to; None along an axis without end."""
        ...

    @property
    def number_type(self) -> np.dtype[Any] | None:
        """Type of the values where they are numbers as NumPy stores them."""
        ...

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type in which chunks go from one array to another: numbers, or bytes; None where bytes are not the values."""
        ...

    @property
    def type_text(self) -> str:
        """Type of the values, for people."""
        ...

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Shape of a chunk; None where there are none."""
        ...

    @property
    def pipeline(self) -> Pipeline:
        """Filters with the parameters that are stored."""
        ...

    @property
    def partial_filtered(self) -> bool:
        """Whether chunks that reach beyond the array go through the filters."""
        ...

    @property
    def has_named_type(self) -> bool:
        """Whether its type is an object of the store of its own."""
        ...

    @property
    def fill_value(self) -> NDArray[Any]:
        """What is read where nothing was written."""
        ...

    @property
    def missing(self) -> Missing:
        """What stands for missing values, and which others are valid."""
        ...

    @property
    def missing_nan(self) -> list[NDArray[Any]]:
        """NaN with the bits that attributes and fill value give it."""
        ...

    @property
    def packing(self) -> Packing | None:
        """How stored values become those in units of the variable."""
        ...

    @property
    def companion_flags(self) -> CompanionFlags | None:
        """What the flags of its companion stand for."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        ...

    @property
    def stored_nbytes(self) -> int:
        """Bytes that they take in the store."""
        ...

    @property
    def can_read_chunks(self) -> bool:
        """Whether `open_chunks` works: tamis decodes all of its filters."""
        ...

    @property
    def can_read_independently(self) -> bool:
        """Whether the library of the format can read it here."""
        ...

    def chunk_index(self) -> ChunkIndex:
        """Return where the chunks are."""
        ...

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the store; what is left reads as fill value."""
        ...

    def described_nbytes(self, chunk_shape: tuple[int, ...] | None, pipeline: Pipeline) -> int:
        """Return the bytes, about, that the index of such chunks and the list of filters take in such a store."""
        ...

    def check_readable(self) -> None:
        """Raise FileError where a reader would get something else than its values, without a word."""
        ...

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values, with missing ones put back; `independent`: read by the library of the format itself."""
        ...

    def open_chunks(self) -> ChunkReader:
        """Open the chunks as they are stored."""
        ...


class ArrayWriter(Protocol):
    """A new array that takes encoded chunks."""

    @property
    def grid(self) -> Grid:
        """Its chunks."""
        ...

    @property
    def recorded(self) -> Pipeline:
        """The filters as the store recorded them, by which readers decode."""
        ...

    @property
    def stored_nbytes(self) -> int:
        """Bytes of the chunks that were written."""
        ...

    def put(self, origin: Origin, data: bytes, mask: int) -> None:
        """Write a chunk; a store without masks refuses any but 0."""
        ...

    def last_offset(self) -> int | None:
        """Return where in the file the chunk that was written last begins; None where that cannot be told."""
        ...

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> ArrayWriter:
        """Create the companion of the array, which gets its name when all other names are known."""
        ...

    def finish(self) -> None:
        """Raise FileError unless the store recorded all chunks as they were written, and no others."""
        ...
