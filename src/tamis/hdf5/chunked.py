"""Chunks of a dataset as they are stored, read outside of HDF5's lock and decoded by tamis."""

from __future__ import annotations

import itertools
import operator
import os
import weakref
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.chunks.blocks import intersection, within
from tamis.chunks.grid import Origin, Region, origin_of
from tamis.chunks.read_many import ManyChunks, goes_over_many
from tamis.chunks.reader import put
from tamis.chunks.zfp_chunks import ZfpChunks
from tamis.errors import FileError, TamisError
from tamis.filters import ChunkType
from tamis.hdf5.facts import (
    datatype_of,
    driver_of,
    file_of,
    is_plain,
    is_read_only,
    layout_plist,
    place_of,
    user_block_nbytes,
)
from tamis.hdf5.lib import calls
from tamis.hdf5.lib.chunk_index import stored_chunks
from tamis.hdf5.storage import chunk_type, fill_value, number_type, pipeline_of, stored_type, zfp_problem
from tamis.store.disk import close_handle, read_at, read_into
from tamis.zfp import blocks
from tamis.zfp.blocks import Run


class Record(NamedTuple):
    """Where a chunk lies in its file.

    Parameters
    ----------
    offset, nbytes
        Of its bytes.
    mask
        Filters that were left out.
    """

    offset: int
    nbytes: int
    mask: int


def records_of(dataset: h5py.Dataset) -> dict[Origin, Record]:
    """Read the index of a chunked dataset, once: its stored chunks by their origins, in their order."""
    if not dataset.size:
        return {}
    base = user_block_nbytes(file_of(dataset))
    if base and _offsets_count_user_block():
        base = 0
    stored = sorted(stored_chunks(dataset.id), key=_origin)
    return {origin: Record(base + offset, nbytes, mask) for origin, mask, offset, nbytes in stored}


_origin = operator.attrgetter("chunk_offset")


@cache
def _offsets_count_user_block() -> bool:
    """Whether this libhdf5 counts offsets of chunks from the file's first byte; others do behind the user block."""
    return _first_offset(512) == _first_offset(0) + 512


def _first_offset(user_block: int) -> int:
    access, create = h5p.create(h5p.FILE_ACCESS), h5p.create(h5p.FILE_CREATE)
    access.set_fapl_core(backing_store=False)
    create.set_userblock(user_block)
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk((1,))
    layout.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    file = h5f.create(b"tamis user block", h5f.ACC_TRUNC, create, access)
    try:
        dataset = h5d.create(file, b"x", h5t.NATIVE_INT8, h5s.create_simple((1,)), layout)
        return int(dataset.get_chunk_info_by_coord((0,)).byte_offset)
    finally:
        file.close()


class Descriptor:
    """A file descriptor that is closed with the last reference to it, so that no read meets one that is closed."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        close_handle(self.number)


_descriptors: weakref.WeakValueDictionary[tuple[int, int], Descriptor] = weakref.WeakValueDictionary()
"""By device and inode: all datasets of a file share one."""


def descriptor_of(file: h5py.File) -> Descriptor:
    """Open a file beside HDF5, to read from it past HDF5."""
    # HDF5's own descriptor leads to its file also where another one has the name now.
    own = driver_of(file) == "sec2"
    number = os.dup(file.id.get_vfd_handle()) if own else os.open(file.filename, os.O_RDONLY)
    made = Descriptor(number)
    status = os.fstat(number)
    return _descriptors.setdefault((status.st_dev, status.st_ino), made)


class ChunkSource:
    """The stored chunks of a dataset of numbers, or of bytes that are none. Threads may share it; none waits for HDF5.

    Parameters
    ----------
    dataset
        Chunked; see `can_read`. It need not stay open.
    """

    def __init__(self, dataset: h5py.Dataset) -> None:
        file = file_of(dataset)
        if not is_read_only(file):
            file.flush()  # what HDF5 has not written yet
        self.place = place_of(dataset)
        self._path, self._name = file.filename, dataset.name
        self.records = records_of(dataset)
        self.pipeline = pipeline_of(dataset)
        if number_type(dataset) is not None:
            self.chunk = chunk_type(dataset)
            self.fill = fill_value(dataset).astype(self.chunk.dtype)
        else:
            self.chunk = ChunkType(stored_type(dataset) or chunk_type(dataset).dtype, dataset.chunks)
            self.fill = _fill_bytes(dataset, self.chunk, self.records)
        self.shape: tuple[int, ...] = dataset.shape
        self._partial_filtered = calls.filters_partial_chunks(layout_plist(dataset))
        self._file: Descriptor | None = descriptor_of(file)
        self._nbytes = os.fstat(self._file.number).st_size  # of the file, which may grow
        self._zfp = ZfpChunks.of(self.pipeline.stages[0], self.chunk) if self.pipeline.stages else None

    @staticmethod
    def can_read(dataset: h5py.Dataset) -> bool:
        """Whether the values are in chunks of one ordinary file, whose filters are all here."""
        return (
            dataset.chunks is not None
            and stored_type(dataset) is not None
            and is_plain(file_of(dataset))
            and not pipeline_of(dataset).missing()
            and not zfp_problem(dataset, pipeline_of(dataset))
        )

    def stored(self, origin: Origin) -> tuple[bytes, int]:
        """Read the bytes and the filter mask of a stored chunk.

        Raises
        ------
        FileError
            If the file ends before, or was closed.
        """
        record = self.records[origin]
        return self._bytes(origin, 0, record.nbytes), record.mask

    def values(self, origin: Origin, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read and decode a chunk: all of it, the part beyond the array included; fill values if it is not stored.

        Parameters
        ----------
        origin
            Of the chunk.
        out
            Where to put them, of the shape of the chunk, if not in a new array.

        Returns
        -------
        array
            `out`, or one that may be read-only.

        Raises
        ------
        FileError
            If it is damaged; names the filter that found it.
        """
        if origin not in self.records:
            return put(np.broadcast_to(self.fill, self.chunk.shape), out)
        if out is not None and out.dtype == self.chunk.dtype and out.flags.c_contiguous and self._is_plain(origin):
            self._bytes(origin, 0, self.chunk.nbytes, out.reshape(-1).view(np.uint8).data)
            return out
        data, mask = self.stored(origin)
        mask = self._true_mask(origin, mask)
        try:
            if out is not None and self._zfp is not None and not mask & 1 and self._zfp.fits(out):
                return self._decoded(self._undone(data, mask), out)
            return put(self.pipeline.decode(data, mask, self.chunk), out)
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def read_many(self, part: Region, out: NDArray[Any], threads: int = 1) -> bool:
        """Read a part of the array in one native call, if it goes over many small chunks and `out` has their type.

        Returns
        -------
        bool
            Whether that was so; otherwise nothing was done.

        Raises
        ------
        FileError
            If a chunk is damaged, as `values`.
        """
        file = self._file
        if file is None or out.dtype != self.chunk.dtype or not goes_over_many(part, self.chunk) or not self._many:
            return False
        for origin in self._many.read(file.number, part, out, threads):
            chunk = tuple([slice(start, start + step) for start, step in zip(origin, self.chunk.shape, strict=True)])
            shared = intersection(part, chunk)
            out[within(shared, part)] = self.values(origin)[within(shared, chunk)]
        return True

    @cached_property
    def _many(self) -> ManyChunks | None:
        filtered = self._partial_filtered
        try:
            return ManyChunks(self.records, self.shape, self.chunk, self.pipeline, self.fill, partial_filtered=filtered)
        except ValueError:
            return None

    def first_output(self, origin: Origin) -> bytes | None:
        """Read what the first filter made of a stored chunk; None where it was left out.

        Raises
        ------
        FileError
            If a filter behind it finds damage.
        """
        data, mask = self.stored(origin)
        mask = self._true_mask(origin, mask)
        try:
            return None if mask & 1 else bytes(self._undone(data, mask))
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def touched_blocks(self, origin: Origin, inside: Sequence[Any]) -> list[Run] | None:
        """Find the blocks of a chunk that a selection touches.

        Parameters
        ----------
        origin
            Of the chunk.
        inside
            Index into the chunk, as `tamis.chunks.selection.Piece` has it.

        Returns
        -------
        list of Run or None
            None unless zfp at a fixed rate is the only filter that the chunk went through, and decoding these blocks
            is less work than decoding all of them.
        """
        if origin not in self.records or self._zfp is None or self._zfp.nbits is None:
            return None
        mask = self._true_mask(origin, self.records[origin].mask)
        if any(not mask >> i & 1 for i in range(1, len(self.pipeline.stages))) or mask & 1:
            return None
        return self._zfp.touched(inside)

    def block_values(self, origin: Origin, runs: Sequence[Run]) -> NDArray[Any]:
        """Read and decode those blocks of a chunk that `touched_blocks` found; the rest of the array is undefined.

        Raises
        ------
        FileError
            If the file or the chunk ends before.
        """
        if self._zfp is None or self._zfp.nbits is None:
            raise ValueError("expected runs that touched_blocks() found")
        start, stop = blocks.nbytes_of(runs, self._zfp.nbits)
        data = self._bytes(origin, start, max(start, min(stop, self.records[origin].nbytes)))
        try:
            return self._zfp.decode_blocks(data, start, runs, np.empty(self.chunk.shape, self.chunk.dtype))
        except TamisError as error:
            self.pipeline.name_filter(0, error)
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def extents(self, origin: Origin) -> tuple[int, ...]:
        """Shape of the part of a chunk that lies inside of the array."""
        steps = zip(origin, self.chunk.shape, self.shape, strict=True)
        return tuple(min(step, extent - start) for start, step, extent in steps)

    def close(self) -> None:
        """Let go of the file; reads that are under way end first."""
        self._file = None

    def _is_plain(self, origin: Origin) -> bool:
        """Whether the bytes of a stored chunk are its values."""
        record, every = self.records[origin], (1 << len(self.pipeline.stages)) - 1
        whole = record.nbytes == self.chunk.nbytes and hasattr(os, "preadv")
        return whole and self._true_mask(origin, record.mask) & every == every

    def _bytes(self, origin: Origin, start: int, stop: int, room: memoryview | None = None) -> Any:
        """Read part of a stored chunk, into `room` if it is given."""
        file, offset = self._file, self.records[origin].offset
        if file is None:
            raise FileError(f"{self.place}: expected an open file, got one that was closed").at(
                path=self._path, dataset=self._name
            )
        # A damaged index may say anything: nothing of that size is made before the file is seen to have it.
        if offset + stop > self._nbytes:
            self._nbytes = os.fstat(file.number).st_size
        left = self._nbytes - offset
        try:
            if stop > left:
                data: Any = b""
            elif room is None:
                data = read_at(file.number, stop - start, offset + start)
            else:
                data = room[: read_into(file.number, room, offset + start)]
        except OSError as error:
            raise self._failure(origin, f" cannot be read: {error.strerror}") from error
        if len(data) != stop - start:
            text = f": expected {stop} bytes at {offset}, got {max(left, 0)}: the file is truncated or damaged"
            raise self._failure(origin, text)
        return data

    def _true_mask(self, origin: Origin, mask: int) -> int:
        """Set every bit where every filter was left out, and HDF5 does not say so."""
        return -1 if not self._partial_filtered and self.extents(origin) != self.chunk.shape else mask

    def _decoded(self, data: Any, out: NDArray[Any]) -> NDArray[Any]:
        try:
            return self._zfp.decode(data, out)  # type: ignore[union-attr]
        except TamisError as error:
            self.pipeline.name_filter(0, error)
            raise

    def _undone(self, data: bytes, mask: int) -> Any:
        """Undo all filters but the first."""
        plain: Any = data
        for i in range(len(self.pipeline.stages) - 1, 0, -1):
            if not mask >> i & 1:
                stage = self.pipeline.stages[i]
                try:
                    plain = stage.filter.decode(plain, self.chunk, stage.stored or ())
                except TamisError as error:
                    self.pipeline.name_filter(i, error)
                    raise
        return plain

    def _failure(self, origin: Origin, text: str) -> FileError:
        error = FileError(f"{self.place}: chunk at {origin}{text}")
        return error.at(path=self._path, dataset=self._name, chunk=origin)


def _fill_bytes(dataset: h5py.Dataset, chunk: ChunkType, records: dict[Origin, Record]) -> NDArray[Any]:
    """Bytes of the fill value: what HDF5 reads where no chunk is; zeros where all are there, and nobody needs it."""
    places = (range(0, extent, step) for extent, step in zip(dataset.shape, chunk.shape, strict=True))
    empty = next((origin for origin in itertools.product(*places) if origin not in records), None)
    if empty is None:
        return np.zeros((), chunk.dtype)
    return read_bytes(dataset, tuple(slice(at, at + 1) for at in empty)).reshape(())


def read_bytes(dataset: h5py.Dataset, part: Region) -> NDArray[Any]:
    """Read a part of a dataset through HDF5 as the file has it: elements of bytes, whatever their type."""
    file_type = datatype_of(dataset)
    values = np.zeros(tuple(each.stop - each.start for each in part), np.dtype((np.void, file_type.get_size())))
    dataset.id.read(*selected(dataset, part), values, file_type)
    return values


def selected(dataset: h5py.Dataset, part: Region) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    """Return the dataspaces of a part of a dataset, in memory and in the file."""
    shape, space = tuple(each.stop - each.start for each in part), dataset.id.get_space()
    if not shape:
        return h5s.create(h5s.SCALAR), space
    space.select_hyperslab(origin_of(part), shape)
    return h5s.create_simple(shape), space
