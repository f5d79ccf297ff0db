"""Code shared by several formats: the meaning of an array's attributes and fill value, stores that list all arrays."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.arrays.grid import Grid
from tamis.arrays.index import ChunkIndex, Parts
from tamis.lazy_property import lazy_property
from tamis.meaning.missing import Missing
from tamis.pipeline import Pipeline
from tamis.stores.other_files import OtherFiles
from tamis.stores.protocols import Arrays, StoredArray
from tamis.stores.readers import Readers

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.selection import Selection
    from tamis.filters import Filter
    from tamis.meaning.companions import CompanionFlags
    from tamis.stores.data_model import Translation
    from tamis.stores.other_files import Places

A = TypeVar("A", bound=StoredArray)


class DescribedArray:
    """Members of `tamis.stores.protocols.StoredArray` that follow from type, attributes and fill value."""

    @property
    @abstractmethod
    def attributes(self) -> Mapping[str, Any]:
        """See `StoredArray.attributes`."""

    @property
    @abstractmethod
    def number_type(self) -> np.dtype[Any] | None:
        """See `StoredArray.number_type`."""

    @property
    @abstractmethod
    def fill_value(self) -> NDArray[Any]:
        """See `StoredArray.fill_value`."""

    @property
    def fill_marker(self) -> NDArray[Any] | None:
        """The fill value if it marks missing values by itself, without an attribute; None otherwise."""
        return None

    @property
    def public_attributes(self) -> Mapping[str, Any]:
        """Attributes as readers of the format have them."""
        return self.attributes

    @property
    def can_look_up(self) -> bool:
        """See `StoredArray.can_look_up`."""
        return False

    def open_few(self, selection: Selection) -> ChunkReader | None:
        """See `StoredArray.open_few`."""
        return None

    @property
    def has_own_bytes(self) -> bool:
        """See `StoredArray.has_own_bytes`."""
        return False

    @property
    def unfiltered_reason(self) -> str:
        """See `StoredArray.unfiltered_reason`."""
        return "HDF5 stores such values elsewhere in the file, where filters do not compress them"

    @property
    def reader_package(self) -> str:
        """See `StoredArray.reader_package`."""
        return ""

    @property
    def bars_store(self) -> bool:
        """See `StoredArray.bars_store`."""
        return False

    @property
    def absent_files(self) -> tuple[str, ...]:
        """See `StoredArray.absent_files`."""
        return ()

    @property
    def value_files(self) -> tuple[str, ...]:
        """See `StoredArray.value_files`."""
        return ()

    @property
    def virtual_sources(self) -> tuple[tuple[str, str], ...]:
        """See `StoredArray.virtual_sources`."""
        return ()

    def fill_bytes(self) -> bytes:
        """Return the bytes of the fill value in the store."""
        return self.fill_value.tobytes()

    def attribute_values(self, name: str) -> NDArray[Any]:
        """Return an attribute with its bits, as stored; a text if there is none."""
        return np.asarray(self.attributes.get(name, ""))

    def fill_as(self, dtype: np.dtype[Any]) -> Any:
        """Return the fill value in the type of chunks, numbers or bytes."""
        if dtype.kind == "V":
            return np.frombuffer(self.fill_bytes(), dtype)[0]
        return self.fill_value.astype(dtype)[()]

    @lazy_property
    def missing(self) -> Missing:
        """Markers of missing values and limits of valid ones, by attributes and fill value (`tamis.meaning.variables`).

        NaN and the infinities are always missing, and not among the markers, which have the type of the values in
        native byte order. There are no markers if values are not numbers.
        """
        if self.number_type is None:
            return Missing()
        dtype = self.number_type.newbyteorder("=")
        markers = meaning.missing_values(self.attributes, dtype, self.fill_marker)
        return Missing(markers, *meaning.valid_range(self.attributes, dtype))

    @lazy_property
    def missing_nan(self) -> list[NDArray[Any]]:
        """NaN values of attributes and fill value, with their bits."""
        markers = [self.fill_value, *map(self.attribute_values, meaning.FILL_ATTRIBUTES)]
        return [
            value for marker in markers if marker.dtype.kind == "f" for value in marker.reshape(-1) if value != value
        ]

    @lazy_property
    def packing(self) -> meaning.Packing | None:
        """The packing of the values by their attributes; None if there is none."""
        return None if self.number_type is None else meaning.packing_of(self.attributes)


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

    def linked_files(self) -> Mapping[str, Sequence[str]]:
        """Return nothing."""
        return {}

    def links_elsewhere(self) -> Iterable[str]:
        """Yield nothing."""
        return ()

    def linked(self, path: str) -> tuple[str, str] | None:
        """Return that there are no links into other files."""
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


_FILTER_NBYTES, _RECORD_NBYTES = 32, 16
"""Approximate sizes of a filter and of a chunk in a file that gets them."""


class UnchunkedArray:
    """Members of a `tamis.stores.protocols.StoredArray` without chunks, filters and companion."""

    shape: tuple[int, ...]
    varies: bool
    nbytes: int
    has_named_type = is_bare_dimension = has_companion = is_companion = False
    can_read_chunks = False
    partial_filtered = True
    problem = ""
    chunk_shape: tuple[int, ...] | None = None
    contiguous_offset: int | None = None
    companion: StoredArray | None = None
    companion_flags: CompanionFlags | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def values_nbytes(self) -> int:
        """Bytes of the values; 0 if their lengths vary."""
        return 0 if self.varies else self.nbytes

    @property
    def stored_nbytes(self) -> int:
        """Bytes of the values, which no filter changes."""
        return self.nbytes

    def chunk_index(self) -> ChunkIndex:
        """Return an empty index."""
        nothing = np.empty(0, np.int64)
        return ChunkIndex(Grid(self.shape, self.shape), range(0), nothing, nothing, nothing.astype(np.uint32))

    def parts(self, grid: Grid) -> Parts:
        """Return all parts of a grid: every value is stored."""
        return Parts(grid) if self.size else Parts(grid, range(0))

    def described_nbytes(self, chunk_shape: tuple[int, ...] | None, pipeline: Pipeline) -> int:
        """Return roughly how many bytes a chunk index and a list of filters take in a file of these values."""
        if chunk_shape is None:
            return 0
        return _FILTER_NBYTES * len(pipeline.stages) + _RECORD_NBYTES * Grid(self.shape, chunk_shape).chunk_count

    def check_readable(self) -> None:
        """Do nothing: there are no filters, and values that cannot be computed raise their own error."""
