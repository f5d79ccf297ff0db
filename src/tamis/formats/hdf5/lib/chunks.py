"""The chunk index of a dataset, corrected where libhdf5 reports wrong origins, and chunks written without its filters.

The index of a dataset with one unlimited axis, in the format of HDF5 1.10, is an array in which that axis comes first.
If it is not the first axis of the dataset, HDF5 (observed in 2.0) walks the array with the axes in the wrong order, and
reports origins of other chunks. Looking up a single chunk by its origin works.

HDF5 (1.10 to 2.0) keeps the old filter mask of a chunk that is written again with the same size. It also reads the last
written chunk by its previous mask, 0 if there was none, until it has looked at another chunk or all handles of the
dataset are closed.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.grid import ChunkNotes, Grid, Origin
from tamis.arrays.index import ChunkIndex, Parts, UnsureIndexError, as_array
from tamis.caller import warn_caller
from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.quick_facts import ask, quick_chunks

if TYPE_CHECKING:
    from tamis.stores.protocols import EncodedChunk


_MOST_LOOKED_UP = 10_000_000
_NO_CHUNK = h5d.StoreInfo(None, 0, None, 0)


_AT_ONCE = 4096
"""Entries of the index that are Python objects at a time."""

_FEW = 8
"""Chunks of a small dataset."""


def read_index(dataset: h5d.DatasetID, grid: Grid, base: int) -> ChunkIndex:
    """Read the places of a dataset's chunks in one pass."""
    has_moved = _moved_axis(dataset) is not None
    table = None if has_moved else _records(dataset, grid)
    if table is None:
        table = _rows(stored_chunks(dataset), grid) if has_moved else _visited(dataset, grid)
    if len(table) > 1 and np.any(np.diff(table[:, 0]) <= 0):
        table = table[np.argsort(table[:, 0], kind="stable")]
        if np.any(np.diff(table[:, 0]) == 0):
            raise FileError("damaged: two chunks at one origin")
    complete = len(table) == grid.chunk_count
    numbers = range(len(table)) if complete else np.ascontiguousarray(table[:, 0])
    offsets, sizes = (np.ascontiguousarray(table[:, at]) for at in (1, 2))
    return ChunkIndex(grid, numbers, offsets + base, sizes, table[:, 3].astype(np.uint32))


def look_up(dataset: h5d.DatasetID, parts: Parts, place_of: Callable[..., tuple[Any, int]]) -> ChunkIndex:
    """Return the places of some chunks, which libhdf5 looks up; see `MetadataFile.place_of`."""
    rows: list[Any] = []
    sizes_in_order = calls.stored_sizes(dataset, parts.origins())
    for number, origin in parts.numbered():
        with calls.lock:
            if nbytes := next(sizes_in_order):
                (mask, _), offset = place_of(partial(dataset.read_direct_chunk, origin), nbytes)
                rows.append((number, offset, nbytes, mask))
    table = np.array(rows, np.int64).reshape(-1, 4)
    stored, offsets, sizes = map(np.ascontiguousarray, table.T[:3])
    return ChunkIndex(parts.grid, stored, offsets, sizes, table[:, 3].astype(np.uint32))


def _records(dataset: h5d.DatasetID, grid: Grid) -> NDArray[np.int64] | None:
    """Return number, offset, size and mask of all chunks, in rows; None if native code is not certain."""
    records = ask("chunk_records", dataset.id, (grid.shape, grid.chunk_shape))
    return None if records is None else np.frombuffer(records, np.int64).reshape(-1, 4)


def _visited(dataset: h5d.DatasetID, grid: Grid) -> Any:
    """Return the same as `_records`, through h5py."""
    rows: list[Any] = []
    batch: list[h5d.StoreInfo] = []

    def visit(chunk: h5d.StoreInfo) -> None:  # returns None, which tells HDF5 to go on
        batch.append(chunk)
        if len(batch) == _AT_ONCE:
            rows.append(_rows(batch, grid))
            batch.clear()

    dataset.chunk_iter(visit)
    return np.concatenate([*rows, _rows(batch, grid)]) if rows else _rows(batch, grid)


def _rows(batch: Sequence[h5d.StoreInfo], grid: Grid) -> Any:
    """Return number, offset, size and mask of some chunks, in rows."""
    if len(batch) <= _FEW and all(_is_origin(chunk.chunk_offset, grid) for chunk in batch):
        # For few chunks Python is faster than NumPy.
        rows = [
            (grid.number_of(record.chunk_offset), record.byte_offset, record.size, record.filter_mask)
            for record in batch
        ]
        with suppress(OverflowError):
            return np.array(rows, np.int64).reshape(-1, 4)
    chunks = [(chunk.byte_offset, chunk.size, chunk.filter_mask) for chunk in batch]
    table = np.empty((len(chunks), 4), np.int64)
    if not chunks:
        return table
    unsigned = np.array([chunk.chunk_offset for chunk in batch], np.uint64)
    furthest = unsigned.max(axis=0)
    if np.any(furthest >= np.array(grid.shape, np.uint64)):
        raise FileError(f"damaged: chunk at {furthest.tolist()}, outside of shape {grid.shape}")
    origins = unsigned.astype(np.int64)
    if np.any(origins % grid.chunk_shape):
        raise FileError(f"damaged: chunk origins that are not multiples of {grid.chunk_shape}")
    table[:, 0] = np.ravel_multi_index(tuple((origins // grid.chunk_shape).T), grid.counts)
    try:
        table[:, 1:] = chunks
    except OverflowError as error:
        raise FileError("damaged: a chunk beyond the end of any file") from error
    return table


def _is_origin(origin: Sequence[int], grid: Grid) -> bool:
    axes = zip(origin, grid.shape, grid.chunk_shape, strict=True)
    return all(start < extent and not start % step for start, extent, step in axes)


def stored_chunks(dataset: h5d.DatasetID) -> list[h5d.StoreInfo]:
    """Return the stored chunks in the order of the index, in one pass, because single lookups would be quadratic."""
    records: list[h5d.StoreInfo] = []
    dataset.chunk_iter(records.append)  # append returns None, which tells HDF5 to continue
    axis = _moved_axis(dataset)
    return records if axis is None or not records else _corrected(dataset, axis, records)


def chunk_info(dataset: h5d.DatasetID, origin: tuple[int, ...]) -> h5d.StoreInfo:
    """Return the record of one chunk, of size 0 if it is not stored. Slow: HDF5 walks over its whole index."""
    if _moved_axis(dataset) is None:
        return dataset.get_chunk_info_by_coord(origin)
    return next((record for record in stored_chunks(dataset) if record.chunk_offset == origin), _NO_CHUNK)


def has_moved_axis(dataset: h5d.DatasetID) -> bool:
    """Return whether HDF5 reports wrong origins of chunks, so that each must be looked up."""
    return _moved_axis(dataset) is not None


def _moved_axis(dataset: h5d.DatasetID) -> int | None:
    """Return the unlimited axis if HDF5 reports wrong origins because of it."""
    limits = dataset.get_space().get_simple_extent_dims(True)
    unlimited = [axis for axis, limit in enumerate(limits) if limit in (None, h5s.UNLIMITED)]
    if len(unlimited) != 1 or unlimited[0] == 0 or not calls.has_extensible_array(dataset):
        return None
    return unlimited[0] if _has_defect() else None


def _corrected(dataset: h5d.DatasetID, axis: int, records: list[h5d.StoreInfo]) -> list[h5d.StoreInfo]:
    """Return records with the right origins, by looking up all chunks in the order of the index."""
    steps = dataset.get_create_plist().get_chunk()
    grid = [range(0, extent, step) for extent, step in zip(dataset.shape, steps, strict=True)]
    count = math.prod(map(len, grid))
    if count > _MOST_LOOKED_UP:
        raise FileError(
            f"HDF5 reports wrong origins of these chunks, and tamis looks up at most {_MOST_LOOKED_UP}, got "
            f"{count}: repack the file with h5repack first"
        )
    turned = itertools.product(grid[axis], *grid[:axis], *grid[axis + 1 :])
    origins = ((*others[:axis], start, *others[axis:]) for start, *others in turned)
    stored = [(origin, nbytes) for origin in origins if (nbytes := calls.stored_nbytes(dataset, origin))]
    if [nbytes for _, nbytes in stored] != [record.size for record in records]:
        raise UnsureIndexError(
            f"damaged chunk index: HDF5 lists {len(records)} chunks, but finds {len(stored)}; it reads the "
            "fill value for the others"
        )
    return [record._replace(chunk_offset=origin) for record, (origin, _) in zip(records, stored, strict=True)]


@cache
def _has_defect() -> bool:
    """Return whether this libhdf5 reports wrong origins, by trying a file in memory."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fapl_core(backing_store=False)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk((1, 1))
    file = h5f.create(b"tamis moved axis", h5f.ACC_TRUNC, fapl=access)
    try:
        space = h5s.create_simple((2, 1), (2, h5s.UNLIMITED))
        dataset = h5d.create(file, b"x", h5t.NATIVE_INT8, space, layout)
        for row in (0, 1):
            dataset.write_direct_chunk((row, 0), b"\0")
        origins: list[tuple[int, ...]] = []
        dataset.chunk_iter(lambda record: origins.append(record.chunk_offset))
        return origins != [(0, 0), (1, 0)]
    finally:
        file.close()


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
    index = read_index(dataset.id, grid, 0)
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
        f"{dataset.name}: HDF5's record of the chunk at {grid.origin_of(number)} differs from what was "
        f"written: expected size and filter mask {before.get(number)}, found {after.get(number)}"
    )


def write_chunks(
    dataset: h5d.DatasetID, grid: Grid, path: str | None, chunks: Sequence[EncodedChunk]
) -> Sequence[int] | None:
    """Write chunks of a dataset in one native call; None, and nothing is written, if libhdf5 is too old.

    Returns the size of the file at a path after each chunk; -1 without a path.
    """
    place = dataset.id, (grid.shape, grid.chunk_shape), None if path is None else os.fsencode(path)
    return ask("write_chunks", *place, chunks)  # type: ignore[no-any-return]


def first_stored(dataset: h5py.Dataset) -> Origin | None:
    """Return the origin of a stored chunk, None if there is none, without a walk over all chunks."""
    if not dataset.size:
        return None
    dataset.flush()  # the index does not have chunks that are still in memory
    if has_moved_axis(dataset.id):
        return next((record.chunk_offset for record in stored_chunks(dataset.id)), None)
    origins: list[Origin] = []
    dataset.id.chunk_iter(lambda record: origins.append(record.chunk_offset) or True)  # type: ignore[func-returns-value]
    return origins[0] if origins else None


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
            other = 0 if last[axis] else step
            origin = (*last[:axis], other, *last[axis + 1 :])
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
        warn_caller(
            f"{parent.filename}: another object holds {name} open, and HDF5 misreads its only chunk until that is"
            " closed; the file itself is correct"
        )
