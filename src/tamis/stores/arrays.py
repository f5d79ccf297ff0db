"""Code shared by several formats: arrays that are read part by part, and stores that list all arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from tamis.arrays.grid import Grid
from tamis.arrays.index import ChunkIndex, Parts
from tamis.arrays.reader import ArrayReader, viewed
from tamis.lazy_property import lazy_property
from tamis.meaning.arrays import Meaning, meaning_of
from tamis.pipeline import Pipeline
from tamis.stores.facts import (
    NO_MARKS,
    NOTHING_ELSEWHERE,
    ArrayFacts,
    Elsewhere,
    Fill,
    Marks,
    ValueType,
    array_nbytes,
    size_of,
)
from tamis.stores.other_files import OtherFiles
from tamis.stores.protocols import Arrays, AtOnce, StoredArray
from tamis.stores.readers import Readers

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.selection import Selection
    from tamis.filters import Filter
    from tamis.meaning.companions import CompanionFlags
    from tamis.stores.data_model import Translation
    from tamis.stores.other_files import Places

A = TypeVar("A", bound=StoredArray)


class _Data(ArrayFacts, Protocol):
    """What the members of `DescribedArray` follow from."""

    def open_reader(self, *, independent: bool = False) -> ArrayReader: ...


class _Described(Protocol):
    """What the meaning of values follows from; a dataset of HDF5 has this, and is no `ArrayFacts`."""

    @property
    def attributes(self) -> Mapping[str, Any]: ...

    @property
    def type(self) -> ValueType: ...

    @property
    def fill(self) -> Fill: ...


class WithMeaning:
    """The meaning of the values of a `tamis.stores.protocols.StoredArray`, which follows from its records."""

    @lazy_property
    def meaning(self: _Described) -> Meaning:
        """What the attributes say about the values."""
        return meaning_of(self.attributes, self.type.numbers, self.fill.marker)


class DescribedArray(WithMeaning):
    """Members of a `tamis.stores.protocols.StoredArray` that is read part by part, and whose bytes are the values."""

    has_slow_library = False
    at_once: AtOnce | None = None
    contiguous_offset: int | None = None

    @abstractmethod
    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """See `StoredArray.open_reader`."""

    @property
    def marks(self) -> Marks:
        """Nothing: the array is an ordinary one."""
        return NO_MARKS

    @property
    def elsewhere(self) -> Elsewhere:
        """No other files."""
        return NOTHING_ELSEWHERE

    @property
    def companion(self) -> StoredArray | None:
        """No companion."""
        return None

    @property
    def companion_flags(self) -> CompanionFlags | None:
        """No companion."""
        return None

    @property
    def public_attributes(self: ArrayFacts) -> Mapping[str, Any]:
        """Attributes as readers of the format have them."""
        return self.attributes

    @property
    def chunk_shape(self: _Data) -> tuple[int, ...] | None:
        """See `tamis.reading.listed.TypedArray.chunk_shape`."""
        return self.storage.chunk_shape

    @property
    def can_look_up(self) -> bool:
        """False: only the whole chunk index gives the place of a chunk."""
        return False

    def open_few(self, selection: Selection) -> ChunkReader | None:
        """See `StoredArray.open_few`."""
        return None

    def as_values(self) -> Self:
        """See `StoredArray.as_values`."""
        return self

    def open_values(self: StoredArray) -> ArrayReader:
        """See `StoredArray.open_values`."""
        return viewed(self.open_reader(), self.type.values)

    def open_witness(self: StoredArray) -> ArrayReader:
        """See `StoredArray.open_witness`."""
        return viewed(self.open_reader(independent=True), self.type.values)


class ListedStore(Generic[A]):
    """Members of a `tamis.stores.protocols.Store` that knows all arrays when it is opened, by one path each."""

    has_objects = False
    reader_words: ClassVar[str]
    """The reader of the values, for people."""

    _arrays: Mapping[str, A]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: nothing is open, or it closes with its last user."""

    def take_in(self) -> None:
        """Do nothing: there are no links into other files, or the arrays they lead to are there already."""

    def take_codes(self) -> None:
        """Do nothing: no codecs pack arrays."""

    def linked_files(self) -> Mapping[str, Sequence[str]]:
        """Return nothing."""
        return {}

    def links_elsewhere(self) -> Iterable[str]:
        """Yield nothing."""
        return ()

    def linked(self, path: str) -> tuple[str, str] | None:
        """Return None: there are no links into other files."""
        return None

    def has(self, path: str) -> bool:
        """Return whether there is an array or a group at a path."""
        return path in self._arrays or any(own.startswith(f"{path}/") for own in self._arrays)

    def read_ahead(self) -> None:
        """Do nothing: no array is read faster with others."""

    @lazy_property
    def arrays(self) -> Arrays[A]:
        """All arrays, in the order of the store."""
        return Arrays(self._arrays)

    @property
    def model(self) -> Self:
        """The store in netCDF's data model."""
        return self

    def extras(self) -> Iterable[Translation]:
        """Yield nothing: all parts belong to groups."""
        return ()

    def array(self, path: str) -> A:
        """Return the array at a path."""
        return self._arrays[path]

    def first_path(self, path: str) -> str:
        """Return the path of an array; empty if there is none."""
        return path if path in self._arrays else ""

    def paths(self) -> dict[str, str]:
        """Return the path of each array, by itself."""
        return {path: path for path in self._arrays}

    def check_finished(self) -> None:
        """Do nothing: no program can be seen writing the store."""

    def check_listed(self) -> None:
        """Do nothing: everything is listed."""

    def filtered_groups(self) -> Iterable[tuple[str, Pipeline, str]]:
        """Yield nothing: groups have no filters."""
        return ()

    def readers_of(self, filters: Iterable[Filter]) -> Readers:
        """Return that any reader of the format can read the arrays."""
        return Readers((), szip=False, h5py=False, tamis=True, hint="", words=self.reader_words)

    def survey_other_files(self, target: str, places: Places, rewritten: Collection[str] = ()) -> OtherFiles:
        """Return that a copy leads to no other files."""
        return OtherFiles([], [])


class UnchunkedArray(DescribedArray):
    """Members of a `tamis.stores.protocols.StoredArray` without chunks, filters and companion."""

    can_read_chunks = False

    @property
    def stored_nbytes(self: ArrayFacts) -> int:
        """Bytes of the values, which no filter changes."""
        return array_nbytes(self)

    def chunk_index(self: ArrayFacts) -> ChunkIndex:
        """Return an empty index."""
        nothing = np.empty(0, np.int64)
        return ChunkIndex(Grid(self.shape, self.shape), range(0), nothing, nothing, nothing.astype(np.uint32))

    def parts(self: ArrayFacts, grid: Grid) -> Parts:
        """Return all parts of a grid: every value is stored."""
        return Parts(grid) if size_of(self) else Parts(grid, range(0))

    def check_readable(self) -> None:
        """Do nothing: there are no filters, and values that cannot be computed raise their own error."""
