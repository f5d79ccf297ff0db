"""Datasets compared by the stored bytes of their chunks, for those that cannot be decoded."""

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

    The chunks, types, filters with their parameters, filter masks, fill values and encoded bytes must be equal. False
    where bytes do not say what the values are: missing values in a companion, or values elsewhere in the file.
    """
    both = (source, target)
    if not all(each.chunks and stored_type(each) is not None and is_plain(file_of(each)) for each in both):
        return False
    if source.chunks != target.chunks or source.id.get_type() != target.id.get_type():
        return False
    filters = [[(stage.filter, stage.stored) for stage in pipeline_of(each).stages] for each in both]
    fills = [layout_plist(each).fill_value_defined() for each in both]
    if filters[0] != filters[1] or fills[0] != fills[1] or changed_fill(source, target):
        return False
    if any(companion_of(each) is not None for each in both):
        return False
    before, after = map(_index, both)
    if before.keys() != after.keys():
        return False
    files = [descriptor_of(file_of(each)) for each in both]
    return all(_same(files[0].number, before[at], files[1].number, after[at]) for at in before)


def _index(dataset: h5py.Dataset) -> dict[Origin, Record]:
    """Read the chunk index of a dataset; an error names its file, and not both."""
    with reading(file_of(dataset).filename, dataset=str(dataset.name)):
        return records_of(dataset)


def _same(source: int, before: Record, target: int, after: Record) -> bool:
    """Compare two chunks part by part: their sizes come from the files, and may be wrong."""
    if (before.nbytes, before.mask) != (after.nbytes, after.mask):
        return False
    for at in range(0, before.nbytes, _PART_NBYTES):
        count = min(_PART_NBYTES, before.nbytes - at)
        parts = os.pread(source, count, before.offset + at), os.pread(target, count, after.offset + at)
        if parts[0] != parts[1] or len(parts[0]) != count:
            return False
    return True
