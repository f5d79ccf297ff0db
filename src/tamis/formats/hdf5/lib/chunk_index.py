"""The chunk index of a dataset, corrected where libhdf5 reports wrong origins.

The index of a dataset with one unlimited axis, in the format of HDF5 1.10, is an array in which that axis comes first.
If it is not the first axis of the dataset, HDF5 (observed in 2.0) walks the array with the axes in the wrong order, and
reports origins of other chunks. Looking up a single chunk by its origin works.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.index import ChunkIndex, UnsureIndexError
from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.quick_facts import libhdf5

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid

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


def _records(dataset: h5d.DatasetID, grid: Grid) -> NDArray[np.int64] | None:
    """Return number, offset, size and mask of all chunks, in rows; None if native code is not certain."""
    if (library := libhdf5()) is None:
        return None
    with calls.lock:
        records = library.chunk_records(dataset.id, (grid.shape, grid.chunk_shape))
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


def first_stored(dataset: h5d.DatasetID) -> tuple[int, ...] | None:
    """Return the origin of a stored chunk, None if there is none, without a walk over all chunks."""
    if _moved_axis(dataset) is not None:
        return next((record.chunk_offset for record in stored_chunks(dataset)), None)
    origins: list[tuple[int, ...]] = []
    dataset.chunk_iter(lambda record: origins.append(record.chunk_offset) or True)  # type: ignore[func-returns-value]
    return origins[0] if origins else None


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
        raise FileError(f"expected at most {_MOST_LOOKED_UP} chunks where HDF5 reports wrong origins, got {count}")
    turned = itertools.product(grid[axis], *grid[:axis], *grid[axis + 1 :])
    origins = ((*others[:axis], start, *others[axis:]) for start, *others in turned)
    stored = [(origin, nbytes) for origin in origins if (nbytes := calls.stored_nbytes(dataset, origin))]
    if [nbytes for _, nbytes in stored] != [record.size for record in records]:
        raise UnsureIndexError(
            f"damaged chunk index: expected HDF5 to find the {len(records)} chunks that it lists, got {len(stored)}; it"
            " reads the fill value for the others"
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
