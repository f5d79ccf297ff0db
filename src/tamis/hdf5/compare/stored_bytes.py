"""Compare datasets that cannot be decoded, by the stored bytes of their chunks."""

from __future__ import annotations

import numpy as np

from tamis.chunks.index import ChunkIndex
from tamis.chunks.regions import as_array
from tamis.chunks.source import FileSource
from tamis.hdf5.compare.elements import changed_fill
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.file_facts import descriptor_of, filename_of, is_plain
from tamis.hdf5.stored_array import Hdf5Array

_PART_NBYTES = 1 << 20


def same_stored_chunks(source: Hdf5Array, target: Hdf5Array) -> bool:
    """Return whether two datasets of one shape have the same values because all stored bytes are the same.

    Chunk shapes, types, filters with parameters, filter masks, fill values and encoded bytes must be equal. Returns
    False if these bytes do not determine the values: missing values in a companion, or values elsewhere in the file.
    """
    both = (source, target)
    if not all(array.chunk_shape and array.dtype is not None and is_plain(array.file) for array in both):
        return False
    if source.chunk_shape != target.chunk_shape or source.datatype != target.datatype:
        return False
    filters = [[(stage.filter, stage.stored) for stage in array.pipeline.stages] for array in both]
    if filters[0] != filters[1] or source.fill_state != target.fill_state or changed_fill(source, target):
        return False
    if any(array.has_companion for array in both):
        return False
    before, after = map(_index, both)
    tables = [(as_array(index.numbers), index.sizes, index.masks) for index in (before, after)]
    if not all(map(np.array_equal, *tables)):
        return False
    files = [FileSource(descriptor_of(array.file)) for array in both]
    places = zip(before.offsets.tolist(), after.offsets.tolist(), before.sizes.tolist(), strict=True)
    return all(_same_bytes(files, offsets, nbytes) for *offsets, nbytes in places)


def _index(array: Hdf5Array) -> ChunkIndex:
    """Read the chunk index of a dataset; an error names its file, and not both."""
    with reading(filename_of(array.file), dataset=array.path):
        return array.chunk_index()


def _same_bytes(files: list[FileSource], offsets: list[int], nbytes: int) -> bool:
    """Compare two chunks part by part: their sizes come from the files, and may be wrong."""
    for at in range(0, nbytes, _PART_NBYTES):
        count = min(_PART_NBYTES, nbytes - at)
        parts = [file.read(offset + at, count) for file, offset in zip(files, offsets, strict=True)]
        if parts[0] != parts[1] or len(parts[0]) != count:
            return False
    return True
