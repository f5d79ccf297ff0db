"""Read values with HDF5 itself, through h5py: for layouts and filters that only HDF5 has, and as a second witness."""

from __future__ import annotations

import importlib.util
import sys
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.grid import Origin, Region, origin_of, shape_of
from tamis.arrays.reader import put
from tamis.errors import FileError
from tamis.filters import Filter, UnknownFilter, Zfp
from tamis.filters.registry import is_known
from tamis.filters.unknown import REGISTERED
from tamis.formats.hdf5.lib.datatypes import memory_type
from tamis.formats.hdf5.lib.foreign_filters import decodes, decodes_alone
from tamis.safety.library_errors import pass_interrupt
from tamis.stores.readers import NCO, NOT_OF_NCO, Readers

if TYPE_CHECKING:
    from tamis.formats.hdf5.dataset import Hdf5Dataset

_EVERYWHERE = frozenset({1, 2, 3, 5, 6})
_SZIP, _LZF = 4, 32000
_HDF5PLUGIN = frozenset({307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028, 32033})


def readers_of(filters: Iterable[Filter]) -> Readers:
    """Return which readers can read data with these filters.

    h5py's library also searches the folders of its plugin path for filters.
    """
    unique = tuple(dict.fromkeys(filters))
    absent = [entry for entry in unique if not (_has(entry) and decodes_alone(entry.id))]
    others = [entry for entry in unique if entry.id not in _EVERYWHERE and entry.id != _SZIP]
    return Readers(
        plugins=tuple(dict.fromkeys(map(_plugin, others))),
        szip=any(entry.id == _SZIP for entry in unique),
        h5py=not absent,
        tamis=all(map(_reads, unique)),
        hint=_hint(absent),
        not_by=(NCO,) if NOT_OF_NCO & {entry.name for entry in unique} else (),
    )


def library_failure(applied: Iterable[Filter], error: Exception, *, is_open_to_write: bool = False) -> str:
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
    if is_open_to_write:
        return f"{reason}, and it reads what this process has open for writing: close the file, or import hdf5plugin"
    return (
        f"{reason}, which tamis decodes for values of a fixed size only: set HDF5_PLUGIN_PATH to a folder that has "
        f"it, such as the one that python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)' prints"
    )


def _has(entry: Filter) -> bool:
    if entry.id == Zfp.id and isinstance(entry, UnknownFilter):
        return False  # its parameters are damaged, or of another codec: the plugin refuses them
    return decodes(entry.id)


def _reads(entry: Filter) -> bool:
    """Return whether tamis decodes a filter, by itself or by a plugin in a process of its own."""
    if isinstance(entry, UnknownFilter):
        return not is_known(entry.id) and decodes(entry.id)
    return not entry.undecodable()


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


class _DatasetReader:
    """A dataset that h5py reads; see `tamis.arrays.reader.ArrayReader`."""

    errors: tuple[type[Exception], ...] = (OSError, RuntimeError)
    """Errors that become a FileError."""

    def __init__(self, array: Hdf5Dataset, dtype: np.dtype[Any]) -> None:
        self.array, self.dataset, self.dtype = array, array.dataset, dtype  # which stays open
        self.shape, self.chunk_shape = array.shape, array.storage.chunk_shape

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        try:
            return put(self.values(part), out)
        except self.errors as error:
            pass_interrupt(error)
            raise FileError(f"{self.array.label}: {self.failure(origin_of(part), error)}") from error

    @abstractmethod
    def values(self, part: Region) -> NDArray[Any]:
        """Return the values of a part."""

    @abstractmethod
    def failure(self, start: Origin, error: Exception) -> str:
        """Return why a part from `start` on cannot be read."""

    def close(self) -> None:
        """Do nothing: the owner closes the dataset."""


class LibraryReader(_DatasetReader):
    """A dataset as HDF5 reads it: numbers, or elements of other types as bytes in the file."""

    def __init__(self, array: Hdf5Dataset) -> None:
        super().__init__(array, array.type.dtype or array.dataset.dtype)

    def values(self, part: Region) -> NDArray[Any]:
        """Read numbers as h5py does, by fewer calls of HDF5, or bytes; zeros if there is nothing to read."""
        is_empty, dataset = self.array.is_unreadable_empty, self.dataset
        if self.array.type.numbers is None and not is_empty:
            return read_bytes(dataset, part, dataset.id.get_type())
        shape = shape_of(part)
        values = np.zeros(shape, self.dtype)  # which HDF5 leaves as they are where nothing was written or defined
        if values.size and not is_empty:
            spaces = (h5s.ALL, h5s.ALL) if shape == self.shape else selected(dataset, part)
            dataset.id.read(*spaces, values)
        return values

    def failure(self, start: Origin, error: Exception) -> str:
        """Return why a part cannot be read, and how to get an absent filter."""
        return f"values from {start} on cannot be read: {library_failure(self.array.storage.pipeline.filters, error)}"


class TextReader(_DatasetReader):
    """A dataset of texts of varying length, as objects."""

    errors = (OSError, RuntimeError, UnicodeDecodeError)

    def __init__(self, array: Hdf5Dataset) -> None:
        super().__init__(array, np.dtype(object))

    def values(self, part: Region) -> NDArray[Any]:
        """Return texts."""
        dataset, values = self.dataset, np.empty(shape_of(part), object)
        dataset.id.read(*selected(dataset, part), values, h5t.py_create(dataset.dtype))
        texts = [value.decode() if isinstance(value, bytes) else str(value or "") for value in values.reshape(-1)]
        values.reshape(-1)[:] = texts
        return values

    def failure(self, start: Origin, error: Exception) -> str:
        """Return why texts cannot be read, or the one that is not UTF-8."""
        if isinstance(error, UnicodeDecodeError):
            return f"expected texts in UTF-8 from {start} on, found {error.object!r}"
        return f"texts from {start} on cannot be read: {error}"


class WitnessReader(_DatasetReader):
    """A dataset as h5py itself reads it, in its own types: a witness that shares no code with tamis."""

    errors = (OSError, RuntimeError, TypeError, ValueError)

    def __init__(self, array: Hdf5Dataset) -> None:
        super().__init__(array, array.dataset.dtype)

    def values(self, part: Region) -> NDArray[Any]:
        """Read a part like h5py, but opaque values with their tag, because HDF5 does not convert them without it."""
        dataset, datatype = self.dataset, self.dataset.id.get_type()
        if not datatype.detect_class(h5t.OPAQUE) and not datatype.detect_class(h5t.BITFIELD):
            return np.asarray(dataset[part or ()], self.dtype)
        values = np.zeros(shape_of(part), self.dtype)
        dataset.id.read(*selected(dataset, part), values, memory_type(datatype, self.dtype))
        return values

    def failure(self, start: Origin, error: Exception) -> str:
        """Return the error of h5py."""
        return f"values from {start} on cannot be read by h5py: {error}"


def read_bytes(dataset: h5py.Dataset, part: Region, datatype: h5t.TypeID) -> NDArray[Any]:
    """Read a part of a dataset through HDF5 as bytes in the file, whatever the type."""
    values = np.zeros(shape_of(part), np.dtype((np.void, datatype.get_size())))
    dataset.id.read(*selected(dataset, part), values, datatype)
    return values


def selected(dataset: h5py.Dataset, part: Region) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    """Return the dataspaces of a part of a dataset, in memory and in the file."""
    shape, space = shape_of(part), dataset.id.get_space()
    if not shape:
        return h5s.create(h5s.SCALAR), space
    space.select_hyperslab(origin_of(part), shape)
    return h5s.create_simple(shape), space
