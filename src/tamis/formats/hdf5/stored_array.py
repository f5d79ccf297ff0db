"""An HDF5 dataset as a stored array: chunk index, readers, companion (docs/missing.md), values for other formats."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5t
from numpy.typing import NDArray

from tamis.arrays.chunk_reader import ChunkedReader, ChunkReader
from tamis.arrays.grid import Grid, grid_of
from tamis.arrays.index import ChunkIndex, Parts, UnsureIndexError, joined
from tamis.arrays.reader import ArrayReader, ContiguousReader, ConvertedReader, SourcesReader, ValuesReader
from tamis.errors import FileError
from tamis.filters import ChunkType
from tamis.formats.hdf5.dataset import Hdf5Dataset, has_companion, is_companion
from tamis.formats.hdf5.lib import calls, datatypes, elsewhere
from tamis.formats.hdf5.lib.attributes import text_attribute
from tamis.formats.hdf5.lib.chunks import has_moved_axis, look_up, read_index
from tamis.formats.hdf5.lib.datatypes import Conversion
from tamis.formats.hdf5.lib.files import (
    filename_of,
    first_offset,
    is_plain,
    is_read_only,
    remote_of,
    source_of,
)
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.lib.quick_facts import Columns, Depth, QuickFacts, quick_facts
from tamis.formats.hdf5.library_reader import LibraryReader, TextReader, WitnessReader, read_bytes
from tamis.formats.hdf5.tree.scope import object_at, scope_of
from tamis.lazy_property import lazy_property
from tamis.library_lock import imported
from tamis.meaning import companions as companion_attributes
from tamis.meaning.companions import ANCILLARY, MARK, TABLE, CompanionFlags, RestoredReader
from tamis.meaning.missing import MOST_FLAGS, Flags, can_flag
from tamis.safety.library_errors import reading
from tamis.stores.facts import ELSEWHERE, Elsewhere, Fill, Storage, ValueType, array_nbytes, size_of
from tamis.stores.protocols import Alike, StoredArray

if TYPE_CHECKING:
    from tamis.arrays.selection import Selection


def find_companion(variable: h5py.Dataset, label: str) -> h5py.Dataset:
    """Return the companion of a variable that names one."""
    path = text_attribute(variable, MARK)
    if path is None:
        raise FileError(
            f"{label}: expected the path of its missing-value mask in the attribute {MARK!r}, found no text"
        )
    companion = _at(variable, path)
    if companion is None:
        raise FileError(
            f"{label}: its missing values are in the mask {path!r}, which does not exist: restore or rename it,"
            " or read invented values in their place: tamis.open(…, restore=False)"
        )
    if has_companion(companion):
        raise FileError(
            f"{_not_companion(variable, companion)}: expected flags, found a dataset that has a missing-value mask"
            " itself"
        )
    dtype = datatypes.numpy_type(companion)
    numbers = datatypes.number_type(companion.id.get_type(), dtype)
    if numbers != np.uint8 or companion.shape is None or len(companion.shape) != variable.ndim:
        raise FileError(
            f"{_not_companion(variable, companion)}: expected uint8 with {variable.ndim} axes, as shape"
            f" {variable.shape} has, found {datatypes.dtype_text(dtype)} of shape {companion.shape}"
        )
    return companion


def read_flags(variable: h5py.Dataset, dtype: np.dtype[Any] | None, companion: h5py.Dataset) -> CompanionFlags:
    """Return the flags of a companion, with their meaning."""
    label = f"{variable.file.filename}: {companion.name}"
    table = _table(dtype, companion, _not_companion(variable, companion), variable)
    return CompanionFlags(Flags(table), label, str(companion.name), companion.shape)


def other_ancillary(dataset: h5py.Dataset) -> list[str]:
    """Return the names of the ancillary variables of a dataset, except its companion."""
    return companion_attributes.other_ancillary(
        text_attribute(dataset, ANCILLARY) or "", text_attribute(dataset, MARK) or ""
    )


def without_companion(attributes: Mapping[str, Any], dataset: h5py.Dataset) -> dict[str, Any]:
    """Return the attributes of a dataset with a companion, without references to the companion."""
    return companion_attributes.without_companion(attributes, other_ancillary(dataset))


def about_companion(name: str, source: Any, target: Any) -> bool:
    """Return whether an attribute of a dataset in two files differs only because it names a companion."""
    if name not in (MARK, ANCILLARY) or not isinstance(source, h5d.DatasetID):
        return False
    before, after = h5py.Dataset(source), h5py.Dataset(target)
    marked = has_companion(before) or has_companion(after)
    return marked and (name == MARK or other_ancillary(before) == other_ancillary(after))


def _not_companion(variable: h5py.Dataset, companion: h5py.Dataset) -> str:
    return f"{variable.file.filename}: {companion.name}: damaged, or not the missing-value mask of {variable.name}"


def _at(dataset: h5py.Dataset, path: str) -> h5py.Dataset | None:
    """Return a companion, from the variable's own group first, because groups may have been moved."""
    for candidate in companion_attributes.companion_paths(str(dataset.name or "/"), path):
        try:
            item = dataset.file.get(candidate.encode("utf-8", "surrogateescape"))
        except (OSError, RuntimeError, ValueError):
            continue
        if isinstance(item, h5py.Dataset) and item.file == dataset.file:
            return item
    return None


def _table(stored: np.dtype[Any] | None, companion: h5py.Dataset, refusal: str, variable: h5py.Dataset) -> NDArray[Any]:
    if stored is None or not can_flag(stored):
        text = datatypes.dtype_text(datatypes.numpy_type(variable))
        raise FileError(f"{refusal}: expected it to have numbers of 1, 2, 4 or 8 bytes, found {text}")
    dtype = stored.newbyteorder("=")
    if not is_companion(companion):
        raise FileError(f"{refusal}: expected the attribute {TABLE!r}, found none")
    attribute = h5a.open(companion.id, TABLE.encode())
    kind, shape = attribute.get_type(), attribute.shape
    fits = isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID)) and kind.dtype.newbyteorder("=") == dtype
    if not fits or shape is None or len(shape) > 1 or not 0 < int(np.prod(shape)) <= MOST_FLAGS:
        raise FileError(f"{refusal}: expected up to {MOST_FLAGS} values of {dtype} in {TABLE!r}, found others")
    values = np.empty(shape, kind.dtype)
    attribute.read(values, mtype=kind)
    return values.reshape(-1).astype(dtype)


_FEW_NBYTES = 16 << 10
"""Values of datasets of this size are read at once, which takes less time than to open the dataset."""


class Hdf5Array(Hdf5Dataset):
    """A dataset with chunks, values and companion; see `tamis.stores.protocols.StoredArray`."""

    has_slow_library = False

    _columns: Columns | None = None
    """The chunk index, if it was read with all facts."""

    _content: QuickFacts | None = None
    """Facts with values, if these were read with them, until the first use of the values."""

    @staticmethod
    def at(file: h5py.File, path: str) -> Hdf5Array | None:
        """Find the dataset of this file that a path in netCDF leads to, through any links; None if there is none."""
        stored, scope = stored_path(file, path), scope_of(file)
        dataset = object_at(file, stored, h5py.Dataset)
        if dataset is None:
            return None
        own_file, own_path = scope.stored(stored)
        address = scope.address(dataset.id) if scope.is_linked else None
        return Hdf5Array(own_file, path, dataset, stored_path=own_path, address=address)

    def take(self, facts: QuickFacts, *, with_attributes: bool = True) -> None:
        """Take over facts that were read at once, also the chunk index."""
        super().take(facts, with_attributes=with_attributes)
        self._columns = facts.chunks
        if facts.values is not None:
            self._content = facts

    @property
    def at_once(self) -> Hdf5Array | None:
        """The array itself: native code reads all of a small one in one call."""
        return self

    @lazy_property
    def companion(self) -> Hdf5Array | None:
        """The dataset of flags of missing values; None if there is none."""
        if not self.marks.has_companion:
            return None
        flags = find_companion(self.dataset, self.label)
        address = calls.address_of(flags.id) | self.address & ~calls.LARGEST_ADDRESS  # in the same file
        return Hdf5Array(self.file, str(flags.name), flags, stored_path=str(flags.name), address=address)

    @lazy_property
    def companion_flags(self) -> CompanionFlags | None:
        """The flags of the companion, with their meaning; raises the errors of `companion`."""
        if self.companion is None:
            return None
        return read_flags(self.dataset, self.type.numbers, self.companion.dataset)

    def chunk_index(self) -> ChunkIndex:
        """Return the chunk index."""
        return self._index

    @lazy_property
    def _index(self) -> ChunkIndex:
        if self._columns is not None and self.storage.chunk_shape is not None:
            grid = grid_of(self.shape, self.storage.chunk_shape)
            numbers, *places, masks = self._columns
            stored = range(len(numbers)) if len(numbers) == grid.chunk_count else np.array(numbers, np.int64)
            offsets, sizes = np.array(places, np.int64)
            return ChunkIndex(grid, stored, offsets, sizes, np.array(masks, np.uint32))
        grid = Grid(self.shape, self.storage.chunk_shape or self.shape)
        if not size_of(self):
            nothing = np.empty(0, np.int64)
            return ChunkIndex(grid, range(0), nothing, nothing, nothing.astype(np.uint32))
        try:
            self.fetch_index()
            return read_index(self.dataset.id, grid, first_offset(self.file))
        except FileError as error:
            raise type(error)(f"{self.label}: {error}") from error

    def stored_parts(self) -> Parts:
        """Return the parts that have values in the file: chunks, or the whole array."""
        if self.storage.chunk_shape is not None and self._is_index_sure:
            return self.chunk_index().parts
        # A virtual dataset has values in other files, and no bytes in this one.
        anything = size_of(self) and (self.storage.layout == "virtual" or self.stored_nbytes > 0)
        grid = Grid(self.shape, tuple(max(extent, 1) for extent in self.shape))
        return Parts(grid) if anything else Parts(grid, range(0))

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the file, or missing values in the companion."""
        stored = self.stored_parts().touching(grid)
        return stored if self.companion is None else joined(stored, self.companion.stored_parts().touching(grid))

    @lazy_property
    def can_read_chunks(self) -> bool:
        """True if the values are chunks in one ordinary file, at known places, and tamis has all filters."""
        return (
            self.storage.chunk_shape is not None
            and self.type.dtype is not None
            and is_plain(self.file)
            and not self.storage.pipeline.missing()
            and not self.storage.problem
            and self._is_index_sure
        )

    @lazy_property
    def _is_index_sure(self) -> bool:
        """True unless HDF5 lists other chunks than it finds by lookup: then only reading through HDF5 is right."""
        if self._columns is None and size_of(self) and has_moved_axis(self.dataset.id):
            try:
                self.chunk_index()
            except UnsureIndexError:
                return False
            except FileError:
                return True  # a reader of the chunks says what is damaged
        return True

    @property
    def can_read_independently(self) -> bool:
        """True if HDF5 itself has all filters, also those of the sources of a virtual dataset."""
        if (values := self.open_virtual()) is not None:
            with closing(values):
                return values.has_filters()
        return all(is_available(stage.filter.id) for stage in self.storage.pipeline.stages)

    @property
    def elsewhere(self) -> Elsewhere:
        """The other files that a virtual or external dataset refers to."""
        return _Elsewhere(self)

    def open_virtual(self, *, fills_absent: bool = False) -> SourcesReader | None:
        """Open a virtual dataset, whose sources tamis reads; None for any other, and if only HDF5 can read it.

        Raises
        ------
        FileError
            If a source is no file, or does not exist, unless the fill value is to be read instead.
        """
        if (
            self.storage.layout != "virtual"
            or self.storage.problem
            or not is_plain(self.file)
            or not is_read_only(self.file)
        ):
            return None
        self._check_kinds()  # the reader looks for circles where a source is virtual, too
        if not fills_absent and (absent := self.elsewhere.absent_files):
            raise FileError(f"{self.label}: No such file or directory: {absent[0]}, a source of this virtual dataset")
        if self.companion_flags is not None:
            return None
        module = imported("tamis.formats.hdf5.virtual_reader")  # late: few files have virtual datasets
        found: SourcesReader | None = module.virtual_reader(self, filename_of(self.file), _open_shown, self.check_files)
        return found

    def check_files(self) -> None:
        """Raise FileError if HDF5 may wait for a pipe, device or folder, or crash in a circle of virtual datasets."""
        self._check_kinds()
        if self._circle:
            raise FileError(f"{self.label}: {self._circle}")

    def _check_kinds(self) -> None:
        if self.storage.layout in ELSEWHERE and remote_of(self.file) is None:
            elsewhere.check_files(self.dataset, filename_of(self.file), self.label)

    @lazy_property
    def _circle(self) -> str:
        """Why a virtual dataset leads to no values: it shows itself; empty if it does not, and for any other."""
        if self.storage.layout != "virtual" or remote_of(self.file) is not None:
            return ""
        return elsewhere.circle_of(self.dataset, filename_of(self.file))

    def check_readable(self) -> None:
        """Raise FileError if HDF5 would silently read wrong values.

        HDF5 does not check how many bytes a filter returns, and reads fill values for absent files of a virtual
        dataset.
        """
        self.check_files()
        filename = filename_of(self.file)
        if self.storage.layout == "virtual" and not self.storage.problem:
            absent = elsewhere.unreadable_source(self.dataset, filename)
            if absent:
                raise FileError(f"{self.label}: No such file or directory: {absent}")
        if self.storage.layout == "external" and (raw := elsewhere.misplaced_raw_file(self.dataset, filename)):
            raise FileError(
                f"{self.label}: its values are in {raw}, where HDF5 does not look: run in the folder of the file, "
                "or set HDF5_EXTFILE_PREFIX='${ORIGIN}'"
            )
        if self.storage.problem:
            raise FileError(f"{self.label}: {self.storage.problem}")

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Return a reader of the values, numbers or bytes, without HDF5's lock if possible.

        The caller closes the reader. Missing values in a companion are restored.
        """
        with reading(filename_of(self.file), dataset=self.path):
            flags = self.companion_flags
            values = self.open_stored(independent)
            if flags is None or self.companion is None:
                return values
            return RestoredReader(values, flags, self.companion.open_stored(independent))

    @lazy_property
    def conversion(self) -> Conversion | None:
        """The conversion of bytes to values; None if there is none."""
        if self.type.values is None:
            return None
        return Conversion.of(self.type.dtype, self.numpy_type, self.datatype, self.type.numbers is not None)

    def as_values(self) -> Hdf5Array:
        """Return the array with values instead of bytes, if these differ; see `StoredArray.as_values`."""
        if self.type.numbers is not None or self.conversion is None:
            return self
        dtype = self.conversion.dtype
        packed = imported("tamis.accuracy.difference").without_gaps(dtype)  # late: few arrays need it
        return ConvertedArray(self, packed) if self.conversion.is_needed or packed != dtype else self

    def open_values(self) -> ArrayReader:
        """Open the values in their type, if h5py has it; otherwise the same as `open_reader`."""
        reader = self.open_reader()
        if self.type.numbers is not None or self.conversion is None:
            return reader
        return ConvertedReader(reader, self.conversion.dtype, self.conversion)

    def open_witness(self) -> ArrayReader:
        """Open the values as h5py has them."""
        if self.type.numbers is not None or self.type.values is None or self.is_unreadable_empty:
            return self.open_reader(independent=True)
        self.check_files()
        return WitnessReader(self)

    @property
    def can_look_up(self) -> bool:
        """True if the file is elsewhere; see `tamis.reading.listed.TypedArray.can_look_up`."""
        return remote_of(self.file) is not None

    def open_few(self, selection: Selection) -> ChunkReader | None:
        """See `StoredArray.open_few`."""
        if (remote := remote_of(self.file)) is None:
            return None
        grid = Grid(self.shape, self.storage.chunk_shape or self.shape)
        numbers = selection.numbers(grid)
        if not remote.looks_up(self.address, len(numbers), grid.chunk_count):
            return None
        parts = Parts(grid, numbers)
        remote.prefetch_index(self.address, [*parts.origins()], grid, self.maxshape)
        return self._chunk_reader(look_up(self.dataset.id, parts, remote.place_of))

    def open_chunks(self) -> ChunkReader:
        """Open the stored chunks; see `can_read_chunks`. The dataset may be closed meanwhile."""
        self._flush()
        return self._chunk_reader(self.chunk_index())

    def _chunk_reader(self, index: ChunkIndex) -> ChunkReader:
        if self.type.numbers is not None:
            chunk = self.storage.chunk
            fill = self.fill.value.astype(chunk.dtype)
        else:
            chunk = ChunkType(self.type.dtype or self.storage.chunk.dtype, self.storage.chunk_shape or ())
            fill = self._fill_bytes(chunk, index)
        return ChunkReader(
            self.filename,
            self.path,
            index,
            self.storage.pipeline,
            chunk,
            fill,
            source_of(self.file),
            partial_filtered=self.storage.partial_filtered,
        )

    def small_values(self) -> NDArray[Any] | None:
        """Return all values, decoded by tamis in one native call; None if they are too many, unusual or damaged."""
        if self.form is None or self.marks.has_companion or self.type.numbers is None:
            return None
        content = self._quick_content(Depth.values)
        return None if content is None else self._as_array(content)

    def alike(self, other: StoredArray, *, independent: bool = False) -> Alike | None:
        """Read a small dataset and that of the same path in another HDF5 file, each in one native call.

        Chunks are decoded by tamis; with `independent`, HDF5 also reads both datasets. None if they are not alike, or
        it is uncertain: then compare them part by part.
        """
        if not isinstance(other, Hdf5Array) or self.path != other.path:
            return None
        depth = Depth.twice if independent else Depth.values
        before = self._quick_content(depth)
        after = None if before is None else other._quick_content(depth)
        if before is None or after is None or not before.is_like(after) or self.type.numbers is None:
            return None
        if self.marks.has_companion or other.marks.has_companion:
            return None
        values = self._as_array(before)
        others = values if before.values == after.values else self._as_array(after)
        return Alike(values, others, before.new_attributes(after))

    def _quick_content(self, depth: Depth) -> QuickFacts | None:
        """Return facts with values, decoded by tamis, and attributes; None if the dataset is not small."""
        content, self._content = self._content, None
        if content is not None and depth == Depth.values:
            return content
        facts = quick_facts(self.file, self.stored_path, depth)
        if facts is None or facts.values is None:
            return None
        if self.form is None:
            self.take(facts)
            self._content = None
        return facts

    def _as_array(self, content: QuickFacts) -> NDArray[Any]:
        return np.frombuffer(content.values or b"", self.type.numbers).reshape(self.shape)

    def open_stored(self, independent: bool = False) -> ArrayReader:
        """Open the values as stored: missing ones in a companion are not restored."""
        self._flush()
        if self.type.varies and h5py.check_string_dtype(self.dataset.dtype) is not None:
            return TextReader(self)
        if not independent:
            if (values := self._few_values()) is not None:
                return ValuesReader(values, self.storage.chunk_shape)
            if self.can_read_chunks:
                return ChunkedReader(self.open_chunks())
            if (offset := self.contiguous_offset) is not None and self.type.numbers is not None:
                by_library = LibraryReader(self).read if remote_of(self.file) is None else None
                source = source_of(self.file)
                return ContiguousReader(
                    self.label, self.shape, self.type.numbers, source, offset, read_scattered=by_library
                )
            if (virtual := self.open_virtual()) is not None:
                return virtual
            self.check_readable()
        self.fetch_index()
        return LibraryReader(self)

    def _few_values(self) -> NDArray[Any] | None:
        """Return all values of a small dataset, read in one native call, which opens nothing; None for others."""
        is_small = self.type.numbers is not None and self.shape and array_nbytes(self) <= _FEW_NBYTES
        return self.small_values() if is_small and is_read_only(self.file) else None

    @property
    def contiguous_offset(self) -> int | None:
        """Offset of values that are contiguous in an ordinary file; None if they are not."""
        in_one_run = (
            self.storage.layout == "contiguous"
            and self.type.numbers is not None
            and bool(self.shape and size_of(self))
            and self.stored_nbytes == array_nbytes(self)
            and is_plain(self.file)
        )
        offset = self.dataset.id.get_offset() if in_one_run else None
        return None if offset is None else int(offset)

    def _flush(self) -> None:
        """Make HDF5 write its cached data, so that it can be read without HDF5."""
        if not is_read_only(self.file):
            self.file.flush()

    def _fill_bytes(self, chunk: ChunkType, index: ChunkIndex) -> NDArray[Any]:
        """Return the fill value as bytes, as HDF5 reads it for an absent chunk; zeros if all chunks are stored."""
        if index.parts.are_all:
            return np.zeros((), chunk.dtype)
        starts = (range(0, extent, step) for extent, step in zip(self.shape, chunk.shape, strict=True))
        empty = next(origin for origin in itertools.product(*starts) if origin not in index)
        part = tuple(slice(origin, origin + 1) for origin in empty)
        return read_bytes(self.dataset, part, self.datatype).reshape(())


class _Elsewhere(Elsewhere):
    """The other files that a dataset refers to. None are looked for over a network."""

    __slots__ = ("_array",)

    def __init__(self, array: Hdf5Array) -> None:
        self._array = array

    def _has(self, *layouts: str) -> bool:
        return self._array.storage.layout in layouts and remote_of(self._array.file) is None

    @property
    def absent_files(self) -> tuple[str, ...]:
        """Missing files, and datasets in this file, that a virtual or external dataset refers to."""
        if not self._has(*ELSEWHERE):
            return ()
        return tuple(elsewhere.absent_sources(self._array.dataset, self._array.filename))

    @property
    def value_files(self) -> tuple[str, ...]:
        """Other files that decide on the values of a virtual or external dataset."""
        if not self._has(*ELSEWHERE):
            return ()
        return tuple(elsewhere.value_files(self._array.dataset, self._array.filename))

    @property
    def virtual_sources(self) -> tuple[tuple[str, str], ...]:
        """Files, empty for its own, and paths of the datasets that have all values of a virtual dataset."""
        if not self._has("virtual"):
            return ()
        return tuple(elsewhere.found_sources(self._array.dataset, self._array.filename))


def _open_shown(file: h5py.File, path: str) -> tuple[Hdf5Array, ArrayReader] | None:
    """Open a dataset that a virtual one shows; None if it is no dataset of numbers in this file."""
    array = Hdf5Array.at(file, path)
    if array is None or array.type.numbers is None:
        return None
    array.check_files()
    return array, array.open_stored()


class ConvertedArray(Hdf5Array):
    """A dataset as an array of values: text padded with zeros, records without gaps. No chunk is stored like this."""

    can_read_chunks = False
    contiguous_offset = None
    at_once: None = None

    def __init__(self, source: Hdf5Array, dtype: np.dtype[Any]) -> None:
        super().__init__(source.file, source.path, address=source.address)
        self._source, self._is_surveyed = source, True
        self._values = dtype
        self._bytes = np.dtype((np.void, dtype.itemsize))

    @lazy_property
    def type(self) -> ValueType:
        """Type of the values, and bytes of the size of a value."""
        return self._source.type._replace(values=self._values, dtype=self._bytes, nbytes=self._values.itemsize)

    @lazy_property
    def storage(self) -> Storage:
        """The storage of the dataset, with chunks of values."""
        own = self._source.storage
        return own._replace(chunk=ChunkType(self._bytes, own.chunk_shape or ()))

    @lazy_property
    def fill(self) -> Fill:
        """The fill value as a value."""
        value = np.asarray(self._source.fill.value).astype(self._values)
        return self._source.fill._replace(value=value, stored=value.tobytes())

    def as_values(self) -> ConvertedArray:
        """Return the array itself."""
        return self

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values as bytes; `independent` reads by h5py."""
        values = self._source.open_witness() if independent else self._source.open_values()
        return ConvertedReader(values, self._bytes, self._bytes_of)

    def open_values(self) -> ArrayReader:
        """Open the values."""
        return ConvertedReader(self._source.open_values(), self._values, self._packed)

    def _packed(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.astype(self._values)

    def _bytes_of(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.array(values, self._values, order="C").view(self._bytes)
