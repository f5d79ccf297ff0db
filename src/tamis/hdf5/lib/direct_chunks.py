"""Chunks written past HDF5's filters, and what HDF5 makes of that: its record of a chunk, and what it remembers.

HDF5 (1.10 to 2.0) keeps the old filter mask of a chunk that is written again with the same size. Reading the chunk that
was written last, it takes the mask that it had before, 0 if there was none, until it has looked at another chunk or all
handles of the dataset are closed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import h5py
from h5py import h5d

from tamis.chunks.grid import Origin
from tamis.errors import FileError
from tamis.hdf5.lib import calls, chunk_index
from tamis.hdf5.lib.chunk_index import chunk_info, stored_chunks


def check_recorded(dataset: h5py.Dataset, expected: Mapping[Origin, tuple[int, int]], *, others: bool = False) -> None:
    """Compare what HDF5 has recorded of all chunks with what was written.

    A chunk that is written a second time with the same size keeps its old mask, and then reads as something else.

    Parameters
    ----------
    dataset
        May still be open for writing: its index of chunks is right when its reads are not.
    expected
        Size in bytes and filter mask of each chunk, by its origin.
    others
        Whether there may be chunks that were not written.

    Raises
    ------
    FileError
        If a chunk is missing, is there without having been written, or has another size or mask; names it.
    """
    found = {
        each.chunk_offset: (each.size, each.filter_mask)
        for each in stored_chunks(dataset.id)
        if not others or each.chunk_offset in expected
    }
    if found == expected:
        return
    for origin in sorted(expected.keys() | found.keys()):
        _compare(dataset, origin, expected.get(origin), found.get(origin))


def first_stored(dataset: h5py.Dataset) -> Origin | None:
    """Return the origin of a stored chunk, None where there is none."""
    if not dataset.size:
        return None
    dataset.flush()  # a chunk that HDF5 still holds in memory is not in its index
    return chunk_index.first_stored(dataset.id)


def record_of(dataset: h5py.Dataset, origin: Origin) -> tuple[int, int] | None:
    """Return size in bytes and filter mask of a chunk as HDF5 has recorded them, None if it is not stored.

    HDF5 walks over its whole index for that: not to be asked for each chunk of many.
    """
    found = chunk_info(dataset.id, origin)
    return (found.size, found.filter_mask) if found.size else None


def put_chunk(dataset: h5py.Dataset, origin: Origin, data: bytes, mask: int) -> None:
    """Write a chunk that may be stored already, in a way that makes HDF5 take its mask.

    Whether it did is for `check_recorded` to see, for all chunks at once.
    """
    same_size = calls.stored_nbytes(dataset.id, origin) == len(data)
    if same_size and record_of(dataset, origin) != (len(data), mask):
        # Another size makes HDF5 take the new mask.
        dataset.id.write_direct_chunk(origin, data + b"\0", mask)
    dataset.id.write_direct_chunk(origin, data, mask)


def settle(dataset: h5py.Dataset, last: Origin, mask: int, *, again: bool = False) -> None:
    """Make HDF5 forget what it takes the chunk that was written last for.

    Hold `calls.lock` from before the chunk is written, so that no other thread reads it in between.

    Parameters
    ----------
    dataset
        The object gets a new handle where nothing else helps; other objects of the same dataset keep theirs.
    last, mask
        Origin and filter mask of the chunk.
    again
        Whether it had been stored before.

    Warns
    -----
    UserWarning
        If HDF5 does not forget it since other objects hold the dataset open: what was written is right, and reads
        right as soon as they are closed.
    """
    if mask == 0 and not again:
        return
    for axis, (extent, step) in enumerate(zip(dataset.shape, dataset.chunks, strict=True)):
        if extent > step:  # there is a chunk beside it
            other = tuple(0 if at else step for at in last[axis : axis + 1])
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


def _compare(
    dataset: h5py.Dataset, origin: Origin, wanted: tuple[int, int] | None, got: tuple[int, int] | None
) -> None:
    if wanted != got:
        raise FileError(
            f"{dataset.name}: expected size and filter mask {wanted} for the chunk at {origin}, found {got}: HDF5"
            " did not record it as it was written"
        )
