"""Chunks written without HDF5's filters, and how HDF5 records and caches their masks.

HDF5 (1.10 to 2.0) keeps the old filter mask of a chunk that is written again with the same size. It also reads the last
written chunk by its previous mask, 0 if there was none, until it has looked at another chunk or all handles of the
dataset are closed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from tamis.arrays.grid import ChunkNotes, Grid, Origin
from tamis.arrays.index import as_array
from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls, chunk_index
from tamis.formats.hdf5.lib.chunk_index import chunk_info
from tamis.formats.hdf5.lib.quick_facts import libhdf5, quick_chunks

if TYPE_CHECKING:
    from tamis.stores.protocols import EncodedChunk

SIZE_AND_MASK = "qI"
"""Columns of `ChunkNotes`."""


def noted(grid: Grid, chunks: Mapping[Origin, tuple[int, int]]) -> ChunkNotes:
    """Return sizes and filter masks of chunks, given by their origins, as `check_recorded` takes them."""
    notes = ChunkNotes(SIZE_AND_MASK)
    for origin, sizes in chunks.items():
        notes.add(grid.number_of(origin), *sizes)
    return notes


def check_recorded(dataset: h5py.Dataset, grid: Grid, written: ChunkNotes, *, others: bool = False) -> None:
    """Compare the records of all chunks in HDF5 with what was written.

    A chunk that is written again with the same size keeps its old mask, and then reads as wrong values.
    """
    if not grid.chunk_count:
        return
    expected = written.columns()
    if (chunks := quick_chunks(dataset.id)) is not None:
        numbers, _, sizes, masks = chunks
        if [column.tolist() for column in expected] == [[*numbers], [*sizes], [*masks]]:
            return
    index = chunk_index.read_index(dataset.id, grid, 0)
    recorded: list[NDArray[Any]] = [as_array(index.numbers), index.sizes, index.masks]
    if others:
        recorded = [column[np.isin(recorded[0], expected[0])] for column in recorded]
    if all(np.array_equal(*columns) for columns in zip(expected, recorded, strict=True)):
        return
    tables = (expected, recorded)
    before, after = (
        {int(number): tuple(map(int, rest)) for number, *rest in zip(*columns, strict=True)} for columns in tables
    )
    number = min(number for number in before.keys() | after if before.get(number) != after.get(number))
    raise FileError(
        f"{dataset.name}: expected size and filter mask {before.get(number)} for the chunk at"
        f" {grid.origin_of(number)}, found {after.get(number)}: HDF5's record differs from what was written"
    )


def write_chunks(
    dataset: h5d.DatasetID, grid: Grid, path: str | None, chunks: Sequence[EncodedChunk]
) -> Sequence[int] | None:
    """Write chunks of a dataset in one native call; None, and nothing is written, if libhdf5 is too old.

    Returns the size of the file at a path after each chunk; -1 without a path.
    """
    if (library := libhdf5()) is None:
        return None
    with calls.lock:
        encoded_path = None if path is None else os.fsencode(path)
        return library.write_chunks(dataset.id, (grid.shape, grid.chunk_shape), encoded_path, chunks)


def first_stored(dataset: h5py.Dataset) -> Origin | None:
    """Return the origin of a stored chunk, None if there is none."""
    if not dataset.size:
        return None
    dataset.flush()  # the index does not have chunks that are still in memory
    return chunk_index.first_stored(dataset.id)


def record_of(dataset: h5py.Dataset, origin: Origin) -> tuple[int, int] | None:
    """Return size in bytes and filter mask of a chunk in HDF5's record, None if it is not stored.

    Slow, because HDF5 walks over its whole index.
    """
    record = chunk_info(dataset.id, origin)
    return (record.size, record.filter_mask) if record.size else None


def put_chunk(dataset: h5py.Dataset, origin: Origin, data: bytes, mask: int) -> None:
    """Write a chunk that may be stored already, so that HDF5 records its mask.

    `check_recorded` checks the records of all chunks at once.
    """
    same_size = calls.stored_nbytes(dataset.id, origin) == len(data)
    if same_size and record_of(dataset, origin) != (len(data), mask):
        # HDF5 records the new mask if the size changes.
        dataset.id.write_direct_chunk(origin, data + b"\0", mask)
    dataset.id.write_direct_chunk(origin, data, mask)


def settle(dataset: h5py.Dataset, last: Origin, mask: int, *, again: bool = False) -> None:
    """Make HDF5 forget the cached mask of the last written chunk.

    Hold `calls.lock` from before the chunk is written, so that no other thread reads it in between.
    """
    if mask == 0 and not again:
        return
    for axis, (extent, step) in enumerate(zip(dataset.shape, dataset.chunks, strict=True)):
        if extent > step:  # there is another chunk along this axis
            other = tuple(0 if first else step for first in last[axis : axis + 1])
            origin = (*last[:axis], *other, *last[axis + 1 :])
            if calls.stored_nbytes(dataset.id, origin):
                dataset.id.read_direct_chunk(origin)
            else:
                dataset[tuple(slice(start, start + 1) for start in origin)]
            return
    parent, name = dataset.file, dataset.name
    dataset.id.close()
    # h5py has no other way to give an object a new handle.
    dataset._id = h5d.open(parent.id, name.encode("utf-8", "surrogateescape"))
    if dataset.id.read_direct_chunk(last)[0] != mask:
        warnings.warn(
            f"{parent.filename}: another object holds {name} open, and HDF5 misreads its only chunk until that is"
            " closed; the file itself is correct",
            stacklevel=3,
        )
