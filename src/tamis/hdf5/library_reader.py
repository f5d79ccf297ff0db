"""Read values by HDF5 itself, through h5py: for layouts and filters that only it has, and as a second witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np
from h5py import h5s, h5t
from numpy.typing import NDArray

from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import put
from tamis.errors import FileError
from tamis.filters import Filter
from tamis.hdf5.lib.damage import pass_interrupt
from tamis.hdf5.lib.datatypes import memory_type
from tamis.hdf5.readers import library_failure


class LibraryReader:
    """A dataset as HDF5 reads it: numbers, or elements of other types as the bytes in the file.

    Parameters
    ----------
    dataset
        The dataset, which its owner closes.
    label
        File and dataset, for messages.
    dtype
        Type of the returned values.
    shape, chunk_shape
        Shapes of the dataset and of its chunks.
    numeric
        Whether the values are numbers.
    filters
        Filters of the dataset, for messages.
    unreadable_empty
        Whether there are neither values nor a fill value: HDF5 then refuses to read, and zeros are returned.
    """

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
        """Read a part of the array.

        Raises
        ------
        FileError
            If the part cannot be read; names missing filters.
        """
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
    """A dataset of texts of varying length, as objects.

    Parameters
    ----------
    dataset
        The dataset, which its owner closes.
    label
        File and dataset, for messages.
    """

    dtype: np.dtype[Any] = np.dtype(object)

    def __init__(self, dataset: h5py.Dataset, label: str) -> None:
        self._dataset, self._label = dataset, label
        self.shape, self.chunk_shape = dataset.shape, dataset.chunks

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array.

        Raises
        ------
        FileError
            If the part cannot be read, or a text is no UTF-8.
        """
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
    """A dataset as h5py gives it to anybody, in its own types: a witness that shares no code with tamis.

    Parameters
    ----------
    dataset
        The dataset, which its owner closes.
    label
        File and dataset, for messages.
    """

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
        """Read a part as h5py does, but opaque values by their tag, without which HDF5 does not convert them."""
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
