"""How a dataset is stored: its filters as the file has them, and its chunks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class StoredFilter:
    """One filter of a pipeline as the file has it.

    Parameters
    ----------
    id
        HDF5 filter id.
    optional
        Whether a chunk may go unfiltered.
    values
        Stored parameters.
    name
        As the writer called it.
    """

    id: int
    optional: bool
    values: tuple[int, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a dataset, counted.

    Parameters
    ----------
    count
        Chunks that are stored.
    nbytes
        Bytes that they take.
    masks
        How many have each filter mask.
    """

    count: int
    nbytes: int
    masks: dict[int, int]

    def skipping(self, index: int) -> int:
        """Count the chunks that filter number `index` was not applied to."""
        return sum(count for mask, count in self.masks.items() if mask >> index & 1)


def stored_filters(dataset: h5py.Dataset) -> tuple[StoredFilter, ...]:
    """List the filters of a dataset in their order."""
    plist = dataset.id.get_create_plist()
    filters = []
    for index in range(plist.get_nfilters()):
        number, flags, values, name = plist.get_filter(index)
        filters.append(StoredFilter(number, bool(flags & 1), tuple(values), name.decode("utf-8", "replace")))
    return tuple(filters)


def chunks_of(dataset: h5py.Dataset) -> Chunks:
    """Count the chunks of a chunked dataset, in one pass over its index."""
    masks: Counter[int] = Counter()
    nbytes = 0

    def visit(chunk: h5py.h5d.StoreInfo) -> None:
        nonlocal nbytes
        masks[chunk.filter_mask] += 1
        nbytes += chunk.size

    dataset.id.chunk_iter(visit)
    return Chunks(masks.total(), nbytes, dict(masks))


def type_text(dataset: h5py.Dataset) -> str:
    """Name the type of a dataset's values, with the byte order where that is not the machine's."""
    try:
        dtype = dataset.dtype
    except TypeError:
        return "a type that numpy has not"
    if h5py.check_string_dtype(dtype) is not None:
        return "string"
    if dtype.names:
        return "compound"
    if dtype.kind == "O":
        return "variable-length" if h5py.check_vlen_dtype(dtype) else "reference"
    return str(dtype)


def values_nbytes(dataset: h5py.Dataset) -> int:
    """Bytes of all values; 0 for those of varying length, which lie elsewhere in the file where nothing counts them."""
    found = dataset.id.get_type()
    if found.get_class() == h5py.h5t.VLEN or (found.get_class() == h5py.h5t.STRING and found.is_variable_str()):
        return 0
    return (dataset.size or 0) * int(found.get_size())


def number_type(dataset: h5py.Dataset) -> np.dtype[Any] | None:
    """Return the type of the values where they are floats or integers as numpy stores them, otherwise None."""
    found = dataset.id.get_type()
    if not isinstance(found, (h5py.h5t.TypeFloatID, h5py.h5t.TypeIntegerID)):
        return None
    try:
        dtype: np.dtype[Any] = dataset.dtype
        return dtype if h5py.h5t.py_create(dtype).equal(found) else None
    except TypeError:
        return None


def stored_chunks(dataset: h5py.Dataset) -> NDArray[np.bool_]:
    """Tell which chunks are in the file, on the grid of chunks; one cell for all of a dataset without chunks."""
    if dataset.chunks is None:
        return np.full((1,) * dataset.ndim, dataset.id.get_storage_size() > 0)
    steps = dataset.chunks
    grid = np.zeros([-(-extent // step) for extent, step in zip(dataset.shape, steps, strict=True)], bool)

    def visit(chunk: h5py.h5d.StoreInfo) -> None:
        grid[tuple(start // step for start, step in zip(chunk.chunk_offset, steps, strict=True))] = True

    dataset.id.chunk_iter(visit)
    return grid
