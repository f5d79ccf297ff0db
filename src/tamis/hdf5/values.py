"""The values of a dataset part by part: past HDF5's lock and filters where that can be, by HDF5 where not."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5z
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.errors import FileError
from tamis.hdf5.chunked import ChunkSource
from tamis.hdf5.storage import check_readable, number_type, pipeline_of


class ChunkedValues:
    """Values of a dataset that `ChunkSource` can read. Threads may share it; none waits for HDF5."""

    def __init__(self, source: ChunkSource) -> None:
        self._source = source
        self.shape, self.dtype = source.shape, source.chunk.dtype
        self.chunks: tuple[int, ...] | None = source.chunk.shape

    def read(self, part: Region) -> NDArray[Any]:
        """Read a part of one chunk."""
        corner = zip(part, self._source.chunk.shape, strict=True)
        origin = tuple(each.start // step * step for each, step in corner)
        inside = (slice(each.start - at, each.stop - at) for each, at in zip(part, origin, strict=True))
        return self._source.values(origin)[tuple(inside)]

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class LibraryValues:
    """Values of any dataset of numbers, by HDF5. Threads may share it, and wait for each other."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        check_readable(dataset)
        self._dataset = dataset
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype
        self.chunks: tuple[int, ...] | None = dataset.chunks

    def read(self, part: Region) -> NDArray[Any]:
        """Read a part."""
        try:
            return np.asarray(self._dataset[part], self.dtype)
        except (OSError, RuntimeError) as error:
            raise _unreadable(self._dataset, part, error) from error

    def close(self) -> None:
        """Do nothing: the file stays with its opener."""


def open_values(dataset: h5py.Dataset) -> closing[ChunkedValues] | closing[LibraryValues]:
    """Give access to the values of a dataset of numbers, in a ``with`` statement.

    Raises
    ------
    FileError
        If they cannot be read right; says why.
    """
    if ChunkSource.can_read(dataset):
        return closing(ChunkedValues(ChunkSource(dataset)))
    return closing(LibraryValues(dataset))


def fill_values(dataset: h5py.Dataset) -> tuple[NDArray[Any], ...]:
    """Values that stand for missing ones in a dataset of numbers, in its native type, each once.

    They are the attributes ``_FillValue`` and ``missing_value``, and HDF5's fill value where the dataset was given one.
    A fill value of 0 that no attribute names is what writers give by default, and a value like others. NaN is left out:
    it is missing in any case.
    """
    dtype = number_type(dataset)
    if dtype is None:
        return ()
    native = dtype.newbyteorder("=")
    found: dict[bytes, NDArray[Any]] = {}
    for name in ("_FillValue", "missing_value"):
        for each in _attribute_numbers(dataset, name):
            with np.errstate(all="ignore"):
                value = each.astype(native)
            # A value that the type does not have is no value of the dataset.
            if value == each or native.kind == "f":
                found[value.tobytes()] = value
    if dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        value = np.asarray(dataset.fillvalue, dtype).astype(native)
        if value != 0:
            found[value.tobytes()] = value
    return tuple(each for each in found.values() if each == each)


def changed_fill(source: h5py.Dataset, target: h5py.Dataset) -> str:
    """Say how HDF5's fill value changed between datasets of numbers of one type; empty where it did not."""
    before, after = (np.asarray(each.fillvalue, each.dtype.newbyteorder("=")) for each in (source, target))
    return "" if before.tobytes() == after.tobytes() else f"HDF5's fill value {before} became {after}"


def _attribute_numbers(dataset: h5py.Dataset, name: str) -> list[NDArray[Any]]:
    if name not in dataset.attrs:
        return []
    try:
        values = np.asarray(dataset.attrs[name])
    except (OSError, TypeError, ValueError, RuntimeError):  # of a type that numpy has not
        return []
    return [np.asarray(each) for each in values.ravel()] if values.dtype.kind in "iuf" else []


def _unreadable(dataset: h5py.Dataset, part: Region, error: Exception) -> FileError:
    absent = [each.in_words() for each in pipeline_of(dataset).filters if not h5z.filter_avail(each.id)]
    advice = f"; HDF5 has no filter {', '.join(absent)}: import hdf5plugin first" if absent else ""
    at = tuple(each.start for each in part)
    return FileError(f"{dataset.file.filename}: {dataset.name}: values from {at} on cannot be read: {error}{advice}")
