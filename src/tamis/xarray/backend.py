"""A file as xarray reads it: its groups as datasets, whose values are read when they are needed."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, CachingFileManager, StoreBackendEntrypoint
from xarray.backends.file_manager import FILE_CACHE
from xarray.backends.locks import HDF5_LOCK
from xarray.core import indexing

from tamis import library_lock, meaning
from tamis.arguments import FLAG, LOCATION, MAPPING, NAMES, TEXT, WHOLE
from tamis.caller import warn_caller
from tamis.errors import ParameterError
from tamis.forks import free_in_each_process
from tamis.remote.address import Address, located_path, with_outside
from tamis.stores.data_model import own_name
from tamis.xarray.filter_encoding import filter_encoding

if TYPE_CHECKING:
    from tamis.reading.file import File
    from tamis.stores.data_model import NamedArray, NamedGroup

Key = tuple[Any, ...]

_FEW_NBYTES = 16 << 10
"""Values of arrays of this size are read at once, which takes less time than to prepare the array."""


class LazyArray(BackendArray):
    """A variable of a file that may be closed and opened again, and pickled.

    HDF5 is locked while it locates the chunks; they are read and decoded without it.
    """

    def __init__(self, manager: CachingFileManager[Any], variable: NamedArray) -> None:
        self._manager, self._path, self._fill_value = manager, variable.path, variable.fill_value
        self._stored_shape, self._is_text = variable.stored_shape, variable.is_text and variable.dtype.kind == "O"
        self._prepared: _Prepared | None = None
        self.shape = variable.shape
        self.dtype = np.dtype("O", metadata={"vlen": str}) if self._is_text else _value_type(variable.dtype)
        nbytes = math.prod(self.shape) * self.dtype.itemsize
        self._is_small = self.dtype.kind in "iuf" and 0 < nbytes <= _FEW_NBYTES
        support = indexing.IndexingSupport
        self.support = support.BASIC if self._is_small else support.OUTER_1VECTOR  # NumPy has others, but other rules

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, self.support, self.read)

    def read(self, key: Key) -> Any:
        """Return a selection by integers, slices, and at most one array of increasing indices."""
        values = self._read_stored(key) if self._stored_shape == self.shape else self._read_grown(key)
        if self.dtype.names:
            values = values.astype(self.dtype, copy=False)
        if self.dtype.kind != "O" or self._is_text or not all(isinstance(index, (int, np.integer)) for index in key):
            return values
        element = np.empty((), object)  # a sequence, which stays one value
        element[()] = values
        return element

    def _read_grown(self, key: Key) -> Any:
        """Return a selection of an array that is smaller than its dimensions, which ends in fill values."""
        parts = [_stored_part(*axis) for axis in zip(key, self.shape, self._stored_shape, strict=True)]
        lengths = [part.length for part in parts if part.length is not None]
        values = np.full(lengths, "" if self._is_text else self._fill_value, self.dtype)
        if all(part.stored_count for part in parts):
            inside = tuple(slice(0, part.stored_count) for part in parts if part.length is not None)
            values[inside] = self._read_stored(tuple(part.key for part in parts))
        return values[()]

    def _read_stored(self, key: Key) -> Any:
        with self._manager.acquire_context(needs_lock=False) as file:
            prepared = self._prepared
            if prepared is None or prepared.file is not file:
                with _lock_of(file.path):
                    prepared = self._open(file)
                    if not prepared.is_free:
                        values = prepared.array[key]
                        return _decoded(values) if self._is_text else values
                self._prepared = prepared
            values = prepared.array[key]
            return values.copy() if self._is_small else self._with_objects(values)

    def prepare(self) -> None:
        """Read what reading needs of HDF5, so that other threads can read while this one waits with HDF5's lock."""
        with self._manager.acquire_context(needs_lock=False) as file:
            prepared = self._open(file)
            self._prepared = prepared if prepared.is_free else None

    def _open(self, file: File) -> _Prepared:
        """Return the array, or all its values if they are few."""
        values = file.reader.small_values(self._path) if self._is_small else None
        if values is not None and values.dtype == self.dtype:
            return _Prepared(file, values.view(np.dtype(values.dtype.str)), is_free=True)
        array = file[self._path]
        return _Prepared(file, array, array.prepare())

    def _with_objects(self, values: Any) -> Any:
        """Return texts as Python objects, because others do not convert zarr-python's NumPy type."""
        return np.asarray(values, object)[()] if self._is_text else values

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": None}


def _value_type(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which xarray gets values: records in native byte order, because it only converts numbers."""
    return stored.newbyteorder("=") if stored.names and not stored.isnative else stored


class ComplexArray(BackendArray):
    """Complex numbers of an array whose last axis has their real and imaginary parts."""

    def __init__(self, parts: LazyArray) -> None:
        self._parts, self.shape = parts, parts.shape[:-1]
        self.dtype = np.result_type(parts.dtype, np.complex64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, self._parts.support, self._read)

    def _read(self, key: Key) -> Any:
        parts = self._parts.read((*key, slice(None)))
        return np.ascontiguousarray(parts, parts.dtype.newbyteorder("=")).view(self.dtype)[..., 0]


class _Prepared(NamedTuple):
    """An open file, and an array of it, or all its values: for Dask's many tasks."""

    file: Any
    array: Any
    is_free: bool  # Whether it is read without HDF5's lock


class _Part(NamedTuple):
    """The selected indices of an axis: their number (None for a single index), and the first ones, which are stored."""

    length: int | None
    stored_count: int
    key: Any


def _stored_part(key: Any, extent: int, end: int) -> _Part:
    """Return the selected indices of an axis of `extent`, where only indices below `end` are stored."""
    if isinstance(key, slice):
        chosen = range(*key.indices(extent))
        stored = range(*slice(chosen.start, min(chosen.stop, end), chosen.step).indices(extent))
        return _Part(len(chosen), len(stored), slice(stored.start, stored.stop, stored.step))
    if np.ndim(key) == 0:
        index = int(key) % extent
        return _Part(None, int(index < end), index)
    count = int((np.asarray(key) < end).sum())  # the indices increase
    return _Part(len(key), count, np.asarray(key)[:count])


def _decoded(values: Any) -> Any:
    """Return texts as `str`."""
    if isinstance(values, bytes):
        return values.decode("utf-8", "surrogateescape")
    texts = [text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text for text in values.flat]
    return np.array([*texts, None], object)[:-1].reshape(values.shape)  # the last one keeps it one-dimensional


_COMPLEX_DIMENSIONS = ("_pfnc_complex", "complex", "ri")
"""Names of the dimension of real and imaginary parts that netCDF4 knows (``auto_complex``)."""


class FileStore(AbstractDataStore):
    """A group of an open file."""

    def __init__(
        self,
        path: str,
        manager: CachingFileManager[Any],
        group: NamedGroup,
        auto_complex: bool = False,
        masked: bool = True,
    ) -> None:
        self._path, self._manager, self._group = path, manager, group
        self._auto_complex, self._masked = auto_complex, masked

    def get_variables(self) -> dict[str, Variable]:
        """Return the variables by name."""
        for name, reason in self._group.left_out.items():
            warn_caller(f"{self._path}: {self._group.path}: {name} is left out: {reason}")
        return {name: self._variable(item) for name, item in _with_one_length(self._group).items()}

    def _variable(self, item: NamedArray) -> Variable:
        data, encoding = LazyArray(self._manager, item), self._encoding(item)
        if library_lock.is_held():
            data.prepare()
        if self._auto_complex and _has_parts(item):
            return self._complex_variable(item, ComplexArray(data), encoding)
        attributes = item.shown
        if item.dtype.kind == "S" and isinstance(fill := attributes.get("_FillValue"), str):
            attributes["_FillValue"] = fill.encode("latin-1" if len(fill) == 1 else "utf-8")  # as in netCDF files
        # xarray compares values with these one by one, which opaque values and records do not support.
        if self._masked and item.dtype.kind == "V":
            encoding |= {name: attributes.pop(name) for name in meaning.FILL_ATTRIBUTES if name in attributes}
        return Variable(item.dimensions, indexing.LazilyIndexedArray(data), attributes, encoding)

    def _complex_variable(self, item: NamedArray, data: ComplexArray, encoding: dict[str, Any]) -> Variable:
        dimensions, chunks = item.dimensions[:-1], item.chunk_shape
        encoding |= {"dtype": data.dtype, "original_shape": data.shape}
        if chunks is not None:
            encoding["chunksizes"] = chunks[:-1]
            encoding["preferred_chunks"] = dict(zip(dimensions, chunks[:-1], strict=True))
        return Variable(dimensions, indexing.LazilyIndexedArray(data), item.shown, encoding)

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        return self._group.shown

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the group's own dimensions."""
        return {name: dimension.size for name, dimension in self._group.dimensions.items()}

    def get_encoding(self) -> dict[str, Any]:
        """Return which dimensions are unlimited."""
        return {"unlimited_dims": {name for name, own in self._group.dimensions.items() if own.is_unlimited}}

    def close(self) -> None:
        """Close the file."""
        self._manager.close()

    def _encoding(self, item: NamedArray) -> dict[str, Any]:
        """Return how a variable is stored."""
        encoding: dict[str, Any] = {"source": self._path, "original_shape": item.shape}
        if item.dtype.kind not in "mM":  # times of h5py, which xarray stores as numbers with units
            encoding["dtype"] = _dtype(item)
        chunks = item.chunk_shape
        encoding |= {"contiguous": chunks is None, "chunksizes": chunks}
        if chunks is not None:
            encoding["preferred_chunks"] = dict(zip(item.dimensions, chunks, strict=True))
        return encoding if chunks is None else encoding | filter_encoding(item.pipeline)


def _with_one_length(group: NamedGroup) -> dict[str, NamedArray]:
    """Return the variables of a group; axes of one name with several lengths get names of their own, for xarray.

    Arrays of Zarr may have any, such as the levels of a pyramid.
    """
    sizes = {name: dimension.size for name, dimension in group.dimensions.items()}
    variables = {}
    for key, item in group.variables.items():
        names = []
        for name, extent in zip(item.dimensions, item.shape, strict=True):
            names.append(name if sizes.setdefault(name, extent) == extent else own_name(name, extent))
        variables[key] = item if tuple(names) == item.dimensions else replace(item, dimensions=tuple(names))
    return variables


def _has_parts(item: NamedArray) -> bool:
    """Return whether the last axis of a variable has the real and imaginary parts of complex numbers."""
    is_pair = item.shape[-1:] == (2,) and item.dimensions[-1] in _COMPLEX_DIMENSIONS
    return is_pair and item.dtype.kind == "f" and item.dtype.itemsize in (4, 8)


def _dtype(item: NamedArray) -> Any:
    """Return the type that an engine of xarray will store."""
    if item.enum is not None:
        return np.dtype(item.dtype, metadata={"enum": dict(item.enum.members), "enum_name": item.enum.name})
    return str if item.is_text and item.dtype.kind == "O" else item.dtype


def _opened(path: str, threads: int | None, restore: bool, mode: str) -> File:
    """Open a file for reading; a pickled manager of xarray always passes a mode."""
    from tamis.formats import opening

    return opening.open(path, threads, restore=restore)


# Threads of the parent may hold them, and reading needs them: HDF5's, and that of xarray's open files.
free_in_each_process(HDF5_LOCK.lock, FILE_CACHE._lock)


def _lock_of(path: str) -> AbstractContextManager[Any]:
    """Return HDF5's lock in xarray, which other engines hold while they wait for h5py's.

    There is none for a file that is elsewhere, because others would wait for its server.
    """
    return nullcontext() if isinstance(path, Address) else library_lock.unless_held(HDF5_LOCK)


class FileOfDatasets:
    """A newly opened file whose groups become datasets."""

    def __init__(
        self,
        path: Any,
        phony_dims: str,
        threads: int | None,
        restore: bool,
        auto_complex: bool,
        storage_options: Mapping[str, Any] | None = None,
        *,
        allow_outside: bool = False,
    ) -> None:
        TEXT.check("phony_dims", phony_dims)
        WHOLE.check_optional("threads", threads)
        FLAG.check("restore", restore)
        FLAG.check("auto_complex", auto_complex)
        MAPPING.check_optional("storage_options", storage_options)
        FLAG.check("allow_outside", allow_outside)
        self._auto_complex = auto_complex
        if not LOCATION.fits(path):
            raise ParameterError(f"expected a path or address, got {path!r}: engine='h5netcdf' opens files in memory")
        place = located_path(path, with_outside(storage_options, is_allowed=allow_outside))
        self._path = place if isinstance(place, Address) else os.path.abspath(os.path.expanduser(place))
        self._manager = CachingFileManager(_opened, self._path, threads, restore, mode="r")
        try:
            with _lock_of(self._path):
                self._model = self._manager.acquire(needs_lock=False).data_model(phony_dims)
        except Exception:
            self._manager.close()
            raise

    def close(self) -> None:
        """Close the file, for all of its datasets."""
        self._manager.close()

    def dataset(self, path: str, **decoders: Any) -> Dataset:
        """Return the dataset of a group."""
        try:
            _check(path, decoders)
            with _lock_of(self._path):
                group = self._model.group(path)
            masked = bool(decoders.get("mask_and_scale", True))
            store = FileStore(self._path, self._manager, group, self._auto_complex, masked)
            return StoreBackendEntrypoint().open_dataset(store, **decoders)
        except Exception:
            self._manager.close()
            raise

    def groups(self, path: str, **decoders: Any) -> dict[str, Dataset]:
        """Return the datasets of a group and of all groups in it, by path from the first."""
        try:
            _check(path, decoders)
            with _lock_of(self._path):
                paths = self._model.group_paths(path)
        except Exception:
            self._manager.close()
            raise
        start = paths[0].rstrip("/")
        return {inner.removeprefix(start) or "/": self.dataset(inner, **decoders) for inner in paths}


def _check(path: object, decoders: Mapping[str, Any]) -> None:
    TEXT.check("group", path)
    NAMES.check_optional("drop_variables", decoders.get("drop_variables"))
