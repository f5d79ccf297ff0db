"""Compare datasets that cannot be decoded, by the stored bytes of their chunks."""

from __future__ import annotations

import os

import h5py

from tamis.chunks.grid import Origin
from tamis.hdf5.chunked import Record, descriptor_of, records_of
from tamis.hdf5.companions import companion_of
from tamis.hdf5.facts import file_of, is_plain, layout_plist
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.meaning import changed_fill
from tamis.hdf5.storage import pipeline_of, stored_type

_PART_NBYTES = 1 << 20


def same_stored_chunks(source: h5py.Dataset, target: h5py.Dataset) -> bool:
    """Return whether two datasets of one shape have the same values because all stored bytes are the same.

    Chunk shapes, types, filters with parameters, filter masks, fill values and encoded bytes must be equal. Returns
    False if these bytes do not determine the values: missing values in a companion, or values elsewhere in the file.
    """
    both = (source, target)
    if not all(dataset.chunks and stored_type(dataset) is not None and is_plain(file_of(dataset)) for dataset in both):
        return False
    if source.chunks != target.chunks or source.id.get_type() != target.id.get_type():
        return False
    filters = [[(stage.filter, stage.stored) for stage in pipeline_of(dataset).stages] for dataset in both]
    fills = [layout_plist(dataset).fill_value_defined() for dataset in both]
    if filters[0] != filters[1] or fills[0] != fills[1] or changed_fill(source, target):
        return False
    if any(companion_of(dataset) is not None for dataset in both):
        return False
    source_index, target_index = map(_index, both)
    if source_index.keys() != target_index.keys():
        return False
    files = [descriptor_of(file_of(dataset)) for dataset in both]
    return all(
        _same(files[0].number, source_index[origin], files[1].number, target_index[origin]) for origin in source_index
    )


def _index(dataset: h5py.Dataset) -> dict[Origin, Record]:
    """Return the chunk index of a dataset; errors name its file."""
    with reading(file_of(dataset).filename, dataset=str(dataset.name)):
        return records_of(dataset)


def _same(source: int, record: Record, target: int, other: Record) -> bool:
    """Compare two chunks part by part, because sizes in the files may be wrong."""
    if (record.nbytes, record.mask) != (other.nbytes, other.mask):
        return False
    for start in range(0, record.nbytes, _PART_NBYTES):
        count = min(_PART_NBYTES, record.nbytes - start)
        parts = os.pread(source, count, record.offset + start), os.pread(target, count, other.offset + start)
        if parts[0] != parts[1] or len(parts[0]) != count:
            return False
    return True
