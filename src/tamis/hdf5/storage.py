"""How a dataset is stored: its filters as the file has them, and its chunks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import h5py


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


def is_numeric(dataset: h5py.Dataset) -> bool:
    """Tell whether the values are plain floats or integers."""
    return isinstance(dataset.id.get_type(), (h5py.h5t.TypeFloatID, h5py.h5t.TypeIntegerID))
