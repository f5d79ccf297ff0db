"""Read values with HDF5 itself, through h5py: for layouts and filters that only HDF5 has, and as a second witness."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import h5py
import numpy as np
from h5py import h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.grid import Region, origin_of
from tamis.arrays.reader import put
from tamis.errors import FileError
from tamis.filters import Filter, UnknownFilter, Zfp
from tamis.filters.unknown import REGISTERED
from tamis.formats.hdf5.lib.datatypes import memory_type
from tamis.formats.hdf5.lib.foreign_filters import decodes
from tamis.safety.library_errors import pass_interrupt
from tamis.stores.protocols import Readers

_EVERYWHERE = frozenset({1, 2, 3, 5, 6})
_SZIP, _LZF = 4, 32000
_HDF5PLUGIN = frozenset({307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028})


def readers_of(filters: Iterable[Filter]) -> Readers:
    """Return which readers can read data with these filters.

    h5py's library also searches the folders of its plugin path for filters.
    """
    unique = tuple(dict.fromkeys(filters))
    absent = [entry for entry in unique if not _has(entry)]
    others = [entry for entry in unique if entry.id not in _EVERYWHERE and entry.id != _SZIP]
    return Readers(
        plugins=tuple(dict.fromkeys(map(_plugin, others))),
        szip=any(entry.id == _SZIP for entry in unique),
        h5py=not absent,
        tamis=not any(isinstance(entry, UnknownFilter) or entry.undecodable() for entry in unique),
        hint=_hint(absent),
    )


def library_failure(applied: Iterable[Filter], error: Exception) -> str:
    """Return why HDF5 could not read a dataset with these filters, and how to get an absent filter."""
    pass_interrupt(error)
    filters = dict.fromkeys(applied)
    absent = [entry.in_words().removeprefix("filter ") for entry in filters if not _has(entry)]
    if not absent:
        return str(error)
    reason = f"HDF5 lacks filter {' and '.join(absent)}"
    if install := [text for entry in filters if (text := entry.undecodable())]:
        return f"{reason}: {' and '.join(install)}"
    if any(isinstance(entry, UnknownFilter) for entry in filters):
        return f"{reason}, and so does tamis: set HDF5_PLUGIN_PATH to a folder with its plugin"
    return (
        f"{reason}, which tamis decodes for values of a fixed size only: set HDF5_PLUGIN_PATH to a folder that has "
        f"it, such as the one that python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)' prints"
    )


def _has(entry: Filter) -> bool:
    if entry.id == Zfp.id and isinstance(entry, UnknownFilter):
        return False  # its parameters are damaged, or of another codec: the plugin refuses them
    return decodes(entry.id)


def _plugin(entry: Filter) -> str:
    if entry.id in REGISTERED:
        return REGISTERED[entry.id]
    name = entry.registered_name or getattr(entry, "label", "").partition(";")[0].strip()
    return f"{name} [{entry.id}]" if name else f"of filter {entry.id}"


def _hint(absent: list[Filter]) -> str:
    if not absent or any(entry.id not in _HDF5PLUGIN or entry.id == Zfp.id for entry in absent):
        return ""
    if "hdf5plugin" in sys.modules or importlib.util.find_spec("hdf5plugin") is None:
        return "pip install hdf5plugin" + (" with this filter" if "hdf5plugin" in sys.modules else "")
    return "import hdf5plugin in the program that reads"


class LibraryReader:
    """A dataset as HDF5 reads it: numbers, or elements of other types as bytes in the file."""

    def __init__(
        self,
        dataset: h5py.Dataset,
        label: str,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        chunk_shape: tuple[int, ...] | None,
        *,
        numeric: bool,
        filters: Sequence[Filter],
        unreadable_empty: bool,
    ) -> None:
        self.dataset, self.label, self.dtype = dataset, label, dtype
        self.shape, self.chunk_shape = shape, chunk_shape
        self._numeric, self._filters, self._unreadable_empty = numeric, filters, unreadable_empty

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        if self._unreadable_empty:
            return put(np.zeros([axis.stop - axis.start for axis in part], self.dtype), out)
        try:
            if self._numeric:
                return put(self._numbers(part), out)
            return put(read_bytes(self.dataset, part, self.dataset.id.get_type()), out)
        except (OSError, RuntimeError) as error:
            reason = library_failure(self._filters, error)
            raise FileError(f"{self.label}: values from {origin_of(part)} on cannot be read: {reason}") from error

    def _numbers(self, part: Region) -> NDArray[Any]:
        """Read numbers as h5py does, by fewer calls of HDF5."""
        shape = tuple(axis.stop - axis.start for axis in part)
        values = np.zeros(shape, self.dtype)  # which HDF5 leaves as they are where nothing was written or defined
        if values.size:
            spaces = (h5s.ALL, h5s.ALL) if shape == self.shape else selected(self.dataset, part)
            self.dataset.id.read(*spaces, values)
        return values

    def close(self) -> None:
        """Do nothing: the owner closes the dataset."""


class TextReader:
    """A dataset of texts of varying length, as objects."""

    dtype: np.dtype[Any] = np.dtype(object)

    def __init__(self, dataset: h5py.Dataset, label: str) -> None:
        self._dataset, self._label = dataset, label
        self.shape, self.chunk_shape = dataset.shape, dataset.chunks

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        values = np.empty(tuple(axis.stop - axis.start for axis in part), object)
        try:
            self._dataset.id.read(*selected(self._dataset, part), values, h5t.py_create(self._dataset.dtype))
            texts = [value.decode() if isinstance(value, bytes) else str(value or "") for value in values.reshape(-1)]
        except (OSError, RuntimeError) as error:
            pass_interrupt(error)
            raise FileError(f"{self._label}: texts from {origin_of(part)} on cannot be read: {error}") from error
        except UnicodeDecodeError as error:
            raise FileError(
                f"{self._label}: expected texts in UTF-8 from {origin_of(part)} on, found {error.object!r}"
            ) from error
        values.reshape(-1)[:] = texts
        return put(values, out)

    def close(self) -> None:
        """Do nothing: the owner closes the dataset."""


class WitnessReader:
    """A dataset as h5py itself reads it, in its own types: a witness that shares no code with tamis."""

    def __init__(self, dataset: h5py.Dataset, label: str) -> None:
        self._dataset, self._label = dataset, label
        self.shape, self.chunk_shape, self.dtype = dataset.shape, dataset.chunks, dataset.dtype

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array; raises FileError if h5py cannot."""
        try:
            return put(self._values(part), out)
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            pass_interrupt(error)
            raise FileError(
                f"{self._label}: values from {origin_of(part)} on cannot be read by h5py: {error}"
            ) from error

    def _values(self, part: Region) -> NDArray[Any]:
        """Read a part like h5py, but opaque values with their tag, because HDF5 does not convert them without it."""
        datatype = self._dataset.id.get_type()
        if not datatype.detect_class(h5t.OPAQUE) and not datatype.detect_class(h5t.BITFIELD):
            return np.asarray(self._dataset[part or ()], self.dtype)
        values = np.zeros(tuple(axis.stop - axis.start for axis in part), self.dtype)
        self._dataset.id.read(*selected(self._dataset, part), values, memory_type(datatype, self.dtype))
        return values

    def close(self) -> None:
        """Do nothing: the owner closes the dataset."""


def read_bytes(dataset: h5py.Dataset, part: Region, datatype: h5t.TypeID) -> NDArray[Any]:
    """Read a part of a dataset through HDF5 as bytes in the file, whatever the type."""
    values = np.zeros(tuple(axis.stop - axis.start for axis in part), np.dtype((np.void, datatype.get_size())))
    dataset.id.read(*selected(dataset, part), values, datatype)
    return values


def selected(dataset: h5py.Dataset, part: Region) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    """Return the dataspaces of a part of a dataset, in memory and in the file."""
    shape, space = tuple(axis.stop - axis.start for axis in part), dataset.id.get_space()
    if not shape:
        return h5s.create(h5s.SCALAR), space
    space.select_hyperslab(origin_of(part), shape)
    return h5s.create_simple(shape), space
