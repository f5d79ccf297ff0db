"""The values of a dataset, part by part and in threads: past HDF5's lock where that can be, through h5py elsewhere."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import h5py
import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from tamis.chunks.grid import Origin, Region, origin_of
from tamis.chunks.reader import Values, put
from tamis.errors import FileError
from tamis.hdf5.chunked import ChunkSource, Descriptor, descriptor_of, read_bytes
from tamis.hdf5.companions import RestoredValues, companion_of
from tamis.hdf5.facts import file_of, is_plain, is_read_only, layout_plist, place_of
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.readers import library_failure
from tamis.hdf5.storage import check_readable, is_unreadable_empty, number_type, stored_type

_SHORT_NBYTES = 2048
"""Runs shorter than this are read faster by HDF5, which takes more than one at once."""


def open_values(dataset: h5py.Dataset) -> Values:
    """Choose how to read a dataset of numbers, or of bytes that are none (see `stored_type`).

    Close what is returned in the end, and the dataset after it.

    Missing values that are in a companion of the dataset are put back.

    Raises
    ------
    FileError
        If they cannot be read right; says why.
    """
    with reading(dataset.file.filename, dataset=dataset.name or ""):
        companion = companion_of(dataset)
        values = _stored_values(dataset)
        return values if companion is None else RestoredValues(values, companion, _stored_values(companion.dataset))


def _stored_values(dataset: h5py.Dataset) -> Values:
    if not is_read_only(file_of(dataset)):
        file_of(dataset).flush()  # so that what was written can be read past HDF5
    if ChunkSource.can_read(dataset):
        return ChunkedValues(dataset)
    return ContiguousValues(dataset) if ContiguousValues.can_read(dataset) else LibraryValues(dataset)


class ChunkedValues:
    """Chunks read raw and decoded by tamis."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._source = ChunkSource(dataset)
        self.shape, self.dtype = self._source.shape, self._source.chunk.dtype
        self.chunks: tuple[int, ...] | None = self._source.chunk.shape

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Decode the chunks that share an element with the part."""
        steps = self._source.chunk.shape
        # Lists, since this is done for each chunk, and a generator takes longer to make than to run.
        origin = tuple([each.start // step * step for each, step in zip(part, steps, strict=True)])
        if all(each.stop <= at + step for each, at, step in zip(part, origin, steps, strict=True)):
            return self._read_one(origin, part, out)
        firsts = [range(at, each.stop, step) for each, at, step in zip(part, origin, steps, strict=True)]
        if out is None:
            out = np.empty([each.stop - each.start for each in part], self.dtype)
        if self._source.read_many(part, out):
            return out
        begin = origin_of(part)
        for origin in itertools.product(*firsts):
            shared = tuple(
                slice(max(each.start, at), min(each.stop, at + step))
                for each, at, step in zip(part, origin, steps, strict=True)
            )
            self._read_one(origin, shared, out[_inside(shared, begin)])
        return out

    def _read_one(self, origin: Origin, part: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Decode a part of one chunk: all of it to its place, if it was asked for."""
        if tuple([each.stop - each.start for each in part]) == self._source.chunk.shape:
            return self._source.values(origin, out)
        return put(self._source.values(origin)[_inside(part, origin)], out)

    def close(self) -> None:
        """Close the file."""
        self._source.close()


class ContiguousValues:
    """Numbers that lie in their file one after the other."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.place = place_of(dataset)
        self.dataset = dataset
        self.dtype = dataset.dtype
        self.shape = dataset.shape
        self.chunks: tuple[int, ...] | None = None
        self._offset = dataset.id.get_offset()
        self._file: Descriptor | None = descriptor_of(file_of(dataset))

    @staticmethod
    def can_read(dataset: h5py.Dataset) -> bool:
        """Whether the values lie in one run of an ordinary file."""
        plist = layout_plist(dataset)
        return (
            plist.get_layout() == h5d.CONTIGUOUS
            and not plist.get_external_count()
            and number_type(dataset) is not None
            and bool(dataset.ndim and dataset.size)
            and dataset.id.get_storage_size() == dataset.size * dataset.dtype.itemsize
            and dataset.id.get_offset() is not None
            and hasattr(os, "preadv")
            and is_plain(file_of(dataset))
        )

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read the runs of a part, straight to their places where these are of the file's type."""
        extents = [each.stop - each.start for each in part]
        axis = len(extents) - 1  # the first one of those that a run goes over
        while axis and extents[axis] == self.shape[axis]:
            axis -= 1
        run = math.prod(extents[axis:]) * self.dtype.itemsize
        if run < _SHORT_NBYTES and run < math.prod(extents) * self.dtype.itemsize:
            return put(read_by_library(self.dataset, part), out)
        if out is not None and not (out.dtype == self.dtype and out[(0,) * axis].flags.c_contiguous):
            return put(self.read(part), out)
        values = np.empty(extents, self.dtype) if out is None else out
        strides = [math.prod(self.shape[at + 1 :]) * self.dtype.itemsize for at in range(len(extents))]
        tail = sum(each.start * stride for each, stride in zip(part[axis:], strides[axis:], strict=True))
        for index in itertools.product(*map(range, extents[:axis])):
            places = zip(index, part, strides, strict=False)
            offset = self._offset + tail + sum((each.start + i) * stride for i, each, stride in places)
            self._fill(values[index].reshape(-1).view(np.uint8).data, offset)
        return values

    def _fill(self, room: memoryview, offset: int) -> None:
        file, done = self._file, 0
        if file is None:
            raise FileError(f"{self.place}: expected an open file, got one that was closed")
        while done < len(room):
            try:
                count = os.preadv(file.number, [room[done:]], offset + done)
            except OSError as error:
                raise FileError(f"{self.place}: values cannot be read: {error.strerror}") from error
            if not count:
                raise FileError(
                    f"{self.place}: expected {len(room)} bytes at {offset}, got {done}: the file is truncated"
                )
            done += count

    def close(self) -> None:
        """Let go of the file; reads that are under way end first."""
        self._file = None


class LibraryValues:
    """Anything that HDF5 reads: virtual and external datasets, filters that only it has."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        check_readable(dataset)
        self.dataset = dataset
        self.shape, self.dtype, self.chunks = dataset.shape, stored_type(dataset) or dataset.dtype, dataset.chunks

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read by h5py."""
        return put(read_by_library(self.dataset, part), out)

    def close(self) -> None:
        """Do nothing: the dataset is its owner's."""


def read_by_library(dataset: h5py.Dataset, part: Region) -> NDArray[Any]:
    """Read a part of a dataset through HDF5: numbers, or what is none as the bytes that the file has.

    Raises
    ------
    FileError
        If it cannot be read; names what is missing.
    """
    if is_unreadable_empty(dataset):
        return np.zeros([each.stop - each.start for each in part], stored_type(dataset) or dataset.dtype)
    try:
        values = read_bytes(dataset, part) if number_type(dataset) is None else np.asarray(dataset[part], dataset.dtype)
    except (OSError, RuntimeError) as error:
        reason = library_failure(dataset, error)
        raise FileError(f"{place_of(dataset)}: values from {origin_of(part)} on cannot be read: {reason}") from error
    return values


def _inside(part: Region, origin: tuple[int, ...]) -> Region:
    return tuple([slice(each.start - at, each.stop - at) for each, at in zip(part, origin, strict=True)])
