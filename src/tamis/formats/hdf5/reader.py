"""An HDF5 file for `tamis.open`, and its datasets as arrays that are read in parallel, without a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5l
from numpy.typing import NDArray

from tamis.arrays.chunk_reader import ChunkReader
from tamis.arrays.grid import region
from tamis.arrays.reader import SourcesReader
from tamis.arrays.selection import Piece, Points, Selection, select
from tamis.errors import FileError, MissingFilterError, located
from tamis.filters.registry import import_own
from tamis.formats.hdf5.lib.attributes import all_attributes
from tamis.formats.hdf5.lib.calls import address_of
from tamis.formats.hdf5.lib.datatypes import Conversion, in_native_order
from tamis.formats.hdf5.lib.elsewhere import check_links
from tamis.formats.hdf5.lib.files import open_source, remote_of
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths, stored_path, stored_paths
from tamis.formats.hdf5.lib.quick_facts import Depth, quick_facts
from tamis.formats.hdf5.library_reader import library_failure
from tamis.formats.hdf5.model.hdf5_model import Hdf5Model
from tamis.formats.hdf5.stored_array import Hdf5Array, without_companion
from tamis.formats.hdf5.tree.links import group_id, links_of
from tamis.lazy_property import lazy_property
from tamis.library_lock import imported
from tamis.reading.array import Array, SelectedChunks
from tamis.safety.library_errors import reading
from tamis.stores.facts import ELSEWHERE
from tamis.stores.protocols import NotFoundError

if TYPE_CHECKING:
    from tamis.reading.file import File

import_own()
imported("tamis.formats.hdf5.virtual_reader")  # reading imports nothing


class DatasetArray(Array):
    """A dataset of a file, sliced like a NumPy array. Returned by `tamis.open`.

    Chunks with values of a fixed size are read and decoded in threads, without HDF5; h5py reads anything else. An array
    can be pickled and used in many threads at once, and dask, xarray and NumPy accept it as an array. Missing values in
    a missing-value mask of the dataset are restored.

    Parameters
    ----------
    file
        The file, which must stay open.
    dataset
        The h5py dataset.
    name
        The path by which it was opened.

    Attributes
    ----------
    shape, dtype
        Shape and type of the values, as in h5py; the shape is () for a null dataspace, which has no values.
    chunks
        Chunk shape, or None.
    """

    def __init__(self, file: File, dataset: h5py.Dataset, name: str) -> None:
        super().__init__(file, name, dataset.shape or (), dataset.dtype, dataset.chunks)
        self._dataset = dataset
        self._null = dataset.shape is None
        # If this process writes to the file, some chunks may only be in HDF5's memory.
        self._array = array = Hdf5Array.of(dataset)
        readable = self._array.can_read_chunks and dataset.file.mode == "r"
        stored = array.type.dtype if readable else None
        self._conversion = Conversion.of(stored, array.numpy_type, array.datatype, array.type.numbers is not None)
        self._companion = self._array.companion_flags if file.restore else None
        self._flags: DatasetArray | None = None
        if self._companion is not None and self._array.companion is not None:
            self._flags = DatasetArray(file, self._array.companion.dataset, self._companion.path)
        # Missing values are restored piece by piece if their flags have the same chunks, else in the whole selection.
        flags = self._flags
        alike = flags is not None and (flags.chunks, flags.shape) == (self.chunks, self.shape)
        self._by_piece = bool(alike and self._conversion and flags and flags._conversion)

    @property
    def size(self) -> int:
        """Number of values."""
        return 0 if self._null else super().size

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the dataset, without those about its missing-value mask if missing values are restored."""
        self._file.check_open()
        with reading(self._file.path, dataset=self.name):
            attributes = all_attributes(self._dataset)
        return attributes if self._companion is None else without_companion(attributes, self._dataset)

    def __getitem__(self, key: Any) -> Any:
        with located(path=self._file.path, dataset=self.name):
            return self._read(key)

    def _read(self, key: Any) -> Any:
        self._file.check_open()
        if self._conversion and not _needs_h5py(key):
            fields, key = _split_fields(key)
            selection = select(key, self.shape)
            out = np.empty(selection.full_shape, self._conversion.stored)
            self._fill(out, selection)
            values = _only_fields(self._conversion(out.reshape(selection.shape)), fields)
            values = values if self._by_piece else self._restored(values, key)
            return values if selection.shape else values[()]
        if self._is_remote_run and not _needs_h5py(key) and isinstance(found := select(key, self.shape), Selection):
            # libhdf5 would ask for one run after the other.
            with closing(self._array.open_reader()) as reader:
                if (region := found.region) is not None:
                    values = reader.read(region).reshape(found.shape).astype(self.dtype, copy=False)
                    return values if found.shape else values[()]
        if self._is_elsewhere:
            values = self._by_sources(key)
            if values is not None:
                return values
        values = self._by_h5py(key)
        return values if self._flags is None else self._restored(np.array(values), key)[()]

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values; see `Array.read`. Raises FileError for a null dataspace, which has none."""
        self._file.check_open()
        if self._null:
            raise FileError(f"{self._place}: has no values, only a null dataspace")
        if out is None:
            if not self._direct:
                return np.asarray(self[()], self.dtype.base)
            out = np.empty(self.shape, self.dtype)
        self._check_out(out)
        if not self._direct:
            out[...] = self[()]
            return out
        self._fill(out, select((), self.shape))
        return out if self._by_piece else self._restored(out, ())

    def prepare(self) -> bool:
        """Read the chunk index, and return whether selections can be read without HDF5 and its lock."""
        self._file.check_open()
        if self._conversion is None:
            return False
        if not self._is_remote:
            self._file.source(self.name, self._open_chunks)
        return self._flags is None or self._flags.prepare()

    def _fill(self, out: NDArray[Any], selection: Selection | Points) -> None:
        """Read a selection into an array of its full shape, in threads."""
        self._chunks(selection).fill(out, selection, self._file.threads)

    def _open_chunks(self) -> ChunkReader:
        with reading(self._file.path, dataset=self.name):
            return self._array.open_chunks()

    def _chunks(self, selection: Selection | Points | None = None) -> SelectedChunks:
        source = None
        if isinstance(selection, Selection) and self._is_remote:
            with reading(self._file.path, dataset=self.name):
                source = self._array.open_few(selection)
        source = source or self._file.source(self.name, self._open_chunks)
        return SelectedChunks(source, self.name, self._file.cache, self._restore_piece if self._by_piece else None)

    def _restored(self, values: NDArray[Any], key: Any) -> NDArray[Any]:
        """Return the values of a selection with restored missing values; may change `values`."""
        if self._companion is None or self._flags is None:
            return values
        if self._flags.shape == self.shape:
            return self._companion.restore(values, np.asarray(self._flags[key]))
        if _needs_h5py(key):
            note = self._companion.other_shape(self.shape)
            raise FileError(f"{self._place}: {note}: expected numbers, slices or arrays as an index, got {key!r}")
        selection, read = select(key, self.shape), self._flags.__getitem__
        flags = np.zeros(selection.full_shape, np.uint8)
        for piece in selection.pieces(steps := self._flags.chunks or self.shape):
            box = region(piece.origin, self.shape, steps)
            flags[piece.outside] = self._companion.read(box, read)[piece.inside]
        return self._companion.restore(values, flags.reshape(selection.shape))

    def _restore_piece(self, piece: Piece, out: NDArray[Any]) -> None:
        """Restore missing values in a part of a chunk, from the companion's flags."""
        if self._companion is None or self._flags is None:
            return
        chunks = self._flags._chunks()
        if piece.origin not in chunks.source.index and not chunks.source.fill:
            return
        values = out[piece.outside]
        flags = np.empty(values.shape, np.uint8)
        chunks.place(replace(piece, outside=(...,)), flags)
        out[piece.outside] = self._companion.restore(values, flags)

    def _by_sources(self, key: Any) -> Any:
        """Return a selection of a virtual dataset, read by tamis; None if only HDF5 can read it."""
        left_to_hdf5 = self._virtual is None or _needs_h5py(key) or bool(_split_fields(key)[0])
        selection = None if left_to_hdf5 else select(key, self.shape)
        if self._virtual is None or not isinstance(selection, Selection):
            with reading(self._file.path, dataset=self.name):
                self._array.check_files()
            return None
        values = _selected(self._virtual, selection).astype(self.dtype, copy=False)
        return values if selection.shape else values[()]

    @property
    def _is_elsewhere(self) -> bool:
        """True if the values are in other files of this machine."""
        return self._array.storage.layout in ELSEWHERE and remote_of(self._array.file) is None

    @lazy_property
    def _virtual(self) -> SourcesReader | None:
        """The reader of a virtual dataset whose sources tamis reads; None for any other."""
        with reading(self._file.path, dataset=self.name):
            return self._array.open_virtual(fills_absent=True) if self._flags is None else None

    @lazy_property
    def _is_remote_run(self) -> bool:
        """True if the values are numbers in one run of a file that is elsewhere."""
        return self._is_remote and self._array.contiguous_offset is not None

    @property
    def _is_remote(self) -> bool:
        """True if the file is elsewhere, and no other dataset has missing values."""
        return self._flags is None and self._array.can_look_up

    @property
    def _direct(self) -> bool:
        """True if chunks decode to the values themselves."""
        return self._conversion is not None and self._conversion.is_plain

    @property
    def _place(self) -> str:
        return f"{self._file.path}: {self.name}"

    def _by_h5py(self, key: Any) -> Any:
        with reading(self._file.path, dataset=self.name):
            if self._array.storage.problem:
                raise FileError(f"{self._place}: {self._array.storage.problem}")
            self._array.fetch_index()
            empty = self._array.is_unreadable_empty
        if empty or 0 in (self.shape or ()):  # HDF5 cannot find the bounds of an empty virtual dataset
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)[key].copy()
        fields, _ = _split_fields(key)
        dtype = self.dtype[fields[0]] if len(fields) == 1 and self.dtype.names else self.dtype
        try:
            return in_native_order(self._dataset[key], dtype)
        except (OSError, RuntimeError, SystemError) as error:  # other errors are about the key
            is_written = self._dataset.file.mode != "r"
            reason = library_failure(self._array.storage.pipeline.filters, error, is_open_to_write=is_written)
            raise FileError(f"{self._place}: cannot be read: {reason}") from error

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the identity of the values for dask: the file as opened, and the name."""
        return (*super().__dask_tokenize__(), self._companion is not None)


def _selected(reader: SourcesReader, selection: Selection) -> NDArray[Any]:
    """Read a selection: each run of indices along the first axis, with the box around those along the others."""
    out = np.empty(selection.full_shape, reader.dtype)
    if not out.size:
        return out.reshape(selection.shape)
    first, *others = [np.asarray(axis, np.int64) for axis in selection.axes]
    box = [slice(int(axis[0]), int(axis[-1]) + 1) for axis in others]
    inside = np.ix_(*(axis - axis[0] for axis in others))
    for run in np.split(np.arange(len(first)), np.flatnonzero(np.diff(first) != 1) + 1):
        values = reader.read((slice(int(first[run[0]]), int(first[run[-1]]) + 1), *box))
        out[run[0] : run[-1] + 1] = values[(slice(None), *inside)]
    return out.reshape(selection.shape)


def _needs_h5py(key: Any) -> bool:
    """Return whether a key has region references or block slices, which only h5py supports."""
    kinds = (h5py.RegionReference, h5py.MultiBlockSlice)
    return any(isinstance(part, kinds) for part in (key if isinstance(key, tuple) else (key,)))


def _split_fields(key: Any) -> tuple[list[str], Any]:
    """Return the names of fields in a key, and the rest of the key."""
    parts = key if isinstance(key, tuple) else (key,)
    fields = [part for part in parts if isinstance(part, str)]
    return (fields, tuple(part for part in parts if not isinstance(part, str))) if fields else ([], key)


def _only_fields(values: NDArray[Any], fields: list[str]) -> NDArray[Any]:
    """Return fields of records: the values of one field, or records of several."""
    if not fields:
        return values
    if absent := [name for name in fields if name not in (values.dtype.names or ())]:
        raise ValueError(f"expected fields of {values.dtype}, got {absent[0]!r}")
    if len(fields) == 1:
        return values[fields[0]].copy()
    result = np.empty(values.shape, [(name, values.dtype[name]) for name in fields])
    for name in fields:
        result[name] = values[name]
    return result


class Hdf5Reader:
    """A file that is open for reading; see `tamis.reading.file.Reader`. Nothing is read before it is requested."""

    def __init__(self, path: str) -> None:
        self._path, self._root = path, open_source(path)
        self._stored_path = stored_paths(self._root)

    def array(self, file: File, path: str) -> DatasetArray | None:
        """Return the array of the dataset at a path; None for a group."""
        target = None if "\0" in path else self._object(path)  # HDF5 would cut the name there
        if isinstance(target, h5py.Group):
            return None
        if not isinstance(target, h5py.Dataset):
            raise NotFoundError("none" if target is None else "a named type")
        with reading(self._path, dataset=path):
            try:
                return DatasetArray(file, target, path)
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(f"{self._path}: {path}: expected values of a type that NumPy has: {error}") from error

    def _object(self, path: str) -> Any:
        with reading(self._path, dataset=path):
            stored = stored_path(self._root, path)
            if remote_of(self._root) is None:
                check_links(self._root, stored)
            return self._root.get(_key(stored))

    def small_values(self, path: str) -> NDArray[Any] | None:
        """Return all values of a small dataset of numbers, read in one native call; None for others."""
        with reading(self._path, dataset=path):
            array = Hdf5Array(self._root, path, stored_path=self._stored_path(path))
            if (facts := quick_facts(self._root, array.stored_path, Depth.values)) is not None:
                array.take(facts, with_attributes=False)
            return array.small_values()

    def array_paths(self, group: str) -> list[str]:
        """Return the paths of the datasets in a group and its inner groups, each dataset once, in order."""
        start = self._object(group)
        try:
            with reading(self._path):
                paths = [*_datasets(start, "", {address_of(start.id)})]
        except MissingFilterError as error:
            raise FileError(f"{self._path}: {error}").at(path=self._path) from error
        names = renamed_paths(start, paths)
        return sorted(names.get(path, path) for path in paths)

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""
        group = self._object(path)
        with reading(self._path, dataset=path):
            return all_attributes(group)

    def data_model(self, phony_dims: str, *, restore: bool) -> Hdf5Model:
        """Return the file in netCDF's data model."""
        return Hdf5Model(self._root, phony_dims, restore=restore, follow=True)

    def close(self) -> None:
        """Close the file."""
        self._root.close()


def _datasets(group: h5py.Group, start: str, seen: set[int]) -> Iterator[str]:
    """Yield the paths of datasets below a group; HDF5's own visit reads all chunk indexes, too."""
    for link in sorted(links_of(group_id(group)), key=attrgetter("name")):
        if link.kind != h5l.TYPE_HARD or link.address in seen:
            continue
        seen.add(link.address)
        item = group[link.name]
        if isinstance(item, h5py.Group):
            yield from _datasets(item, f"{start}{link.text}/", seen)
        elif isinstance(item, h5py.Dataset):
            yield f"{start}{link.text}"


def _key(name: str) -> str | bytes:
    """Return a name in the form that h5py finds."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape")
