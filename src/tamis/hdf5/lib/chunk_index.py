"""Where the chunks of a dataset are, by HDF5's index, and put right where HDF5 says it wrong.

The index of a dataset with one unlimited axis, in the format of HDF5 1.10, is an array in which that axis comes first.
Where it is another one than the first of the dataset, HDF5 (seen in 2.0) goes through the array as if it were
not, and gives chunks the places of others. Looking up one chunk by its place is right.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

from h5py import h5d, h5f, h5p, h5s, h5t

from tamis.errors import FileError
from tamis.hdf5.lib import calls

_MOST_LOOKED_UP = 10_000_000
_NO_CHUNK = h5d.StoreInfo(None, 0, None, 0)


def stored_chunks(dataset: h5d.DatasetID) -> list[h5d.StoreInfo]:
    """List the stored chunks in the order of the index, in one pass: one by one, it would be quadratic.

    Raises
    ------
    FileError
        If it cannot be told where they are.
    """
    found: list[h5d.StoreInfo] = []
    dataset.chunk_iter(found.append)  # returns None, which tells HDF5 to go on
    axis = _moved_axis(dataset)
    return found if axis is None or not found else _put_right(dataset, axis, found)


def first_stored(dataset: h5d.DatasetID) -> tuple[int, ...] | None:
    """Return the origin of a stored chunk, None where there is none, without a walk over the others."""
    if _moved_axis(dataset) is not None:
        return next((each.chunk_offset for each in stored_chunks(dataset)), None)
    found: list[tuple[int, ...]] = []
    dataset.chunk_iter(lambda each: found.append(each.chunk_offset) or True)  # type: ignore[func-returns-value]
    return found[0] if found else None


def chunk_info(dataset: h5d.DatasetID, origin: tuple[int, ...]) -> h5d.StoreInfo:
    """Find one chunk, of size 0 if it is not stored. HDF5 walks over its whole index: not to be asked for many."""
    if _moved_axis(dataset) is None:
        return dataset.get_chunk_info_by_coord(origin)
    return next((each for each in stored_chunks(dataset) if each.chunk_offset == origin), _NO_CHUNK)


def _moved_axis(dataset: h5d.DatasetID) -> int | None:
    """Return the unlimited axis if HDF5 says chunks wrong because of it."""
    limits = dataset.get_space().get_simple_extent_dims(True)
    unlimited = [axis for axis, limit in enumerate(limits) if limit in (None, h5s.UNLIMITED)]
    if len(unlimited) != 1 or unlimited[0] == 0 or not calls.has_extensible_array(dataset):
        return None
    return unlimited[0] if _says_it_wrong() else None


def _put_right(dataset: h5d.DatasetID, axis: int, found: list[h5d.StoreInfo]) -> list[h5d.StoreInfo]:
    """Look up which chunks there are, in the order of the index, which is that of what was found."""
    steps = dataset.get_create_plist().get_chunk()
    grid = [range(0, extent, step) for extent, step in zip(dataset.shape, steps, strict=True)]
    count = math.prod(map(len, grid))
    if count > _MOST_LOOKED_UP:
        raise FileError(f"expected at most {_MOST_LOOKED_UP} chunks where HDF5 reports wrong origins, got {count}")
    turned = itertools.product(grid[axis], *grid[:axis], *grid[axis + 1 :])
    origins = ((*others[:axis], at, *others[axis:]) for at, *others in turned)
    stored = [(origin, nbytes) for origin in origins if (nbytes := calls.stored_nbytes(dataset, origin))]
    if [nbytes for _, nbytes in stored] != [each.size for each in found]:
        raise FileError("expected the chunks that HDF5 lists to be those that it finds, got others: damaged")
    return [each._replace(chunk_offset=origin) for each, (origin, _) in zip(found, stored, strict=True)]


@cache
def _says_it_wrong() -> bool:
    """Return whether this libhdf5 does so: tried out on a file in memory."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fapl_core(backing_store=False)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk((1, 1))
    file = h5f.create(b"tamis moved axis", h5f.ACC_TRUNC, fapl=access)
    try:
        space = h5s.create_simple((2, 1), (2, h5s.UNLIMITED))
        dataset = h5d.create(file, b"x", h5t.NATIVE_INT8, space, layout)
        for at in (0, 1):
            dataset.write_direct_chunk((at, 0), b"\0")
        found: list[tuple[int, ...]] = []
        dataset.chunk_iter(lambda each: found.append(each.chunk_offset))
        return found != [(0, 0), (1, 0)]
    finally:
        file.close()
