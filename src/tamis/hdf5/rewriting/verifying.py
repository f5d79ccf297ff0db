"""Read what was written again, all of it, and compare it with its source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import h5py
import numpy as np
from h5py import h5z
from numpy.typing import NDArray

from tamis.chunks.difference import largest_error, same_bits
from tamis.chunks.engine import ordered_map
from tamis.chunks.grid import Origin, Region, touched
from tamis.chunks.rechunking import within
from tamis.chunks.values import Values
from tamis.errors import BoundError
from tamis.hdf5.chunked import ChunkSource, records_of
from tamis.hdf5.companions import regions_of, restored
from tamis.hdf5.missing import fill_value
from tamis.hdf5.rewriting.gathering import over_chunks
from tamis.hdf5.rewriting.plans import Plan
from tamis.hdf5.storage import number_type, pipeline_of
from tamis.hdf5.values import open_values, read_by_library


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found.

    Parameters
    ----------
    largest_error
        Largest absolute difference to the source, in units of the data.
    read_by_hdf5
        Chunks that HDF5 itself was seen to read as tamis does; 0 where it has not the filters.
    """

    largest_error: float
    read_by_hdf5: int


def verify(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, progress: Callable[[int, int], None], jobs: int = 1
) -> Verified:
    """Read a dataset from its file and compare it with its source, value by value.

    Chunks are read past HDF5 and decoded in threads. One chunk of each filter mask, the first and the last one are read
    by HDF5 too, as other programs do, and compared with what it reads of the source there.

    Parameters
    ----------
    plan
        What the target should be.
    source, target
        Datasets; the file of the target is best opened anew.
    progress
        Called in this thread, before the first chunk and after each.
    jobs
        Threads that read, decode and compare.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows, or a missing value is not what it was; names the chunk.
    FileError
        If a chunk cannot be read.
    """
    # Also what `write` may have left out, or put where nothing was.
    parts = touched((*regions_of(source), *regions_of(target)), source.shape, plan.chunks)
    if number_type(source) is not None and not np.array_equal(fill_value(source), fill_value(target), equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fillvalue}, found {target.fillvalue}")
    largest = 0.0
    progress(0, len(parts))
    with (
        closing(open_values(source)) as before,
        closing(open_values(target)) as after,
        closing(
            over_chunks(before, parts, source.shape, plan.chunks, plan.dtype, partial(_compared, plan, after), jobs)
        ) as errors,
    ):
        for done, error in enumerate(errors, start=1):
            largest = max(largest, error)
            progress(done, len(parts))
        samples = _samples(target, parts) if _filters_available(source) and _filters_available(target) else []
        for part in samples:
            _check_library(plan, source, target, after, part)
    return Verified(largest, len(samples))


def verify_copied(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, progress: Callable[[int, int], None], jobs: int = 1
) -> list[int]:
    """Compare the chunks of two datasets as they are stored, and return the masks: their places, masks and bytes.

    Raises
    ------
    BoundError
        If they are not the same; names the chunk.
    """
    expected, found = records_of(source), records_of(target)
    progress(0, len(expected))
    if strange := expected.keys() ^ found.keys():
        raise BoundError(f"{plan.path}: expected the chunks of the source, found others at {min(strange)}")

    def compare(origin: Origin) -> None:
        if old.stored(origin) != new.stored(origin):
            raise BoundError(f"{plan.path}: expected the bytes of the source, found others in the chunk at {origin}")

    with (
        closing(ChunkSource(source)) as old,
        closing(ChunkSource(target)) as new,
        closing(ordered_map(compare, expected, jobs)) as compared,
    ):
        for done, _ in enumerate(compared, start=1):
            progress(done, len(expected))
    return [each.mask for each in expected.values()]


def _compared(plan: Plan, target: Values, part: Region, before: NDArray[Any]) -> float:
    return _error(plan, part, before, target.read(part).astype(plan.dtype, copy=False))


def _error(plan: Plan, part: Region, before: NDArray[Any], after: NDArray[Any]) -> float:
    """Largest error of a chunk; raises BoundError where that is too much."""
    if plan.bound == 0 and same_bits(before, after):
        return 0.0
    origin = tuple(each.start for each in part)
    if plan.dtype.kind == "V":
        raise BoundError(f"{plan.path}: expected the same bytes, found others in the chunk at {origin}")
    error, kept, _ = plan.missing.compare(before, after) if plan.lossy else (largest_error(before, after), True, 0)
    if plan.bound == 0 and error == 0 and plan.dtype.itemsize <= 8:
        raise BoundError(f"{plan.path}: expected the same bits, found others in the chunk at {origin}")
    if plan.bound is not None and not error <= plan.bound:
        raise BoundError(
            f"{plan.path}: expected an error of at most {plan.bound:g}, found {error:g} in the chunk at"
            f" {origin}: nothing was kept"
        )
    if not kept:
        raise BoundError(
            f"{plan.path}: expected the missing values of the source, found others in the chunk at {origin}"
        )
    return error


def _check_library(plan: Plan, source: h5py.Dataset, target: h5py.Dataset, after: Values, part: Region) -> None:
    origin = tuple(each.start for each in part)
    read = restored(target, part, read_by_library).astype(plan.dtype, copy=False)
    if not same_bits(after.read(part).astype(plan.dtype, copy=False), read):
        raise BoundError(
            f"{plan.path}: expected HDF5 and tamis to read the same, found others in the chunk at {origin}"
        )
    # As much of it as one chunk of the source holds: HDF5 would decode all others for the rest.
    steps = source.chunks or plan.chunks
    shared = tuple(
        slice(each.start, min(each.stop, (each.start // step + 1) * step))
        for each, step in zip(part, steps, strict=True)
    )
    before = restored(source, shared, read_by_library).astype(plan.dtype, copy=False)
    _error(plan, shared, before, read[within(shared, part)])


def _samples(target: h5py.Dataset, parts: list[Region]) -> list[Region]:
    """Chunks that HDF5 reads too: one of each mask, the first and the last."""
    places = {tuple(each.start for each in part): part for part in parts}
    if not places:
        return []
    chosen: dict[int, Origin] = {}
    if target.chunks is not None:
        for origin, record in records_of(target).items():
            if origin in places:
                chosen.setdefault(record.mask, origin)
    return [places[origin] for origin in sorted({*chosen.values(), min(places), max(places)})]


def _filters_available(dataset: h5py.Dataset) -> bool:
    return all(h5z.filter_avail(each.id) for each in pipeline_of(dataset).filters)
