"""An array of a file that xarray reads when it needs values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from xarray.backends import BackendArray, CachingFileManager
from xarray.backends.locks import HDF5_LOCK
from xarray.core import indexing

from tamis.store.data_model import NamedArray

Key = tuple[Any, ...]


class LazyArray(BackendArray):
    """A variable of a file that may be closed and opened again, and pickled.

    HDF5 is locked while it says where the chunks are; they are read and decoded without it.

    Parameters
    ----------
    manager
        xarray's manager of the file.
    variable
        The variable.
    """

    def __init__(self, manager: CachingFileManager[Any], variable: NamedArray) -> None:
        self._manager, self._path, self._fill_value = manager, variable.path, variable.fill_value
        self._stored_shape, self._is_text = variable.stored_shape, variable.is_text
        self._prepared: _Prepared | None = None
        self.shape = variable.shape
        self.dtype = np.dtype("O", metadata={"vlen": str}) if variable.is_text else _value_type(variable.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self.read)

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
            if prepared is not None and prepared.file is file:
                return self._with_objects(prepared.array[key])
            with HDF5_LOCK:
                array = file[self._path]
                if not array.prepare():
                    values = array[key]
                    return _decoded(values) if self._is_text else values
            self._prepared = _Prepared(file, array)
            return self._with_objects(array[key])

    def _with_objects(self, values: Any) -> Any:
        """Return texts as Python objects, which zarr-python has in a type of NumPy's that others do not convert."""
        return np.asarray(values, object)[()] if self._is_text else values

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": None}


def _value_type(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which xarray gets values: records in native byte order, because it converts numbers alone."""
    return stored.newbyteorder("=") if stored.names and not stored.isnative else stored


class ComplexArray(BackendArray):
    """Complex numbers of an array whose last axis has their real and imaginary parts.

    Parameters
    ----------
    parts
        The array of floats.
    """

    def __init__(self, parts: LazyArray) -> None:
        self._parts, self.shape = parts, parts.shape[:-1]
        self.dtype = np.result_type(parts.dtype, np.complex64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read)

    def _read(self, key: Key) -> Any:
        parts = self._parts.read((*key, slice(None)))
        return np.ascontiguousarray(parts, parts.dtype.newbyteorder("=")).view(self.dtype)[..., 0]


class _Prepared(NamedTuple):
    """An array that is read without HDF5's lock, kept for Dask's many tasks, and the open file that it belongs to."""

    file: Any
    array: Any


class _Part(NamedTuple):
    """The selected indices of an axis: their number (None for a single index), and the first ones, which are stored."""

    length: int | None
    stored_count: int
    key: Any


def _stored_part(key: Any, extent: int, end: int) -> _Part:
    """Return the selected indices of an axis of `extent`, of which only those below `end` are stored."""
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
