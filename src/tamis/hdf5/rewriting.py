"""Write one dataset anew, chunk by chunk, and compare what is in the file with its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import h5py
import numpy as np
from h5py import h5z
from numpy.typing import NDArray

from tamis.chunks.grid import Region, touched
from tamis.errors import BoundError, FileError, MissingFilterError, ParameterError
from tamis.filters import ChunkType, Stage, Zfp
from tamis.hdf5 import library
from tamis.hdf5.creating import create_like
from tamis.hdf5.storage import check_readable, pipeline_of, read_chunk, stored_regions
from tamis.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of one dataset.

    Parameters
    ----------
    path
        In both files.
    pipeline
        Through which it goes.
    dtype
        Of the target, in native byte order.
    chunks
        Of the target, slowest axis first.
    notes
        What the user should know.
    """

    path: str
    pipeline: Pipeline
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def bound(self) -> float | None:
        """Largest absolute error allowed, in units of the data; 0 if lossless; None where a filter gives none."""
        return self.pipeline.error_bound


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did.

    Parameters
    ----------
    chunks
        Chunks written; what was never written to the source is not.
    lossless_chunks
        Those of them stored without zfp, since it could not keep their values or the bound.
    skipped
        Chunks that each other filter could not be applied to, by its text.
    """

    chunks: int
    lossless_chunks: int
    skipped: Mapping[str, int]


def write(
    plan: Plan, source: h5py.Dataset, parent: h5py.Group, name: str, progress: Callable[[int, int], None]
) -> tuple[h5py.Dataset, Written]:
    """Create the dataset of a plan and fill it from its source.

    Memory: a few chunks, and a record of each. `progress` gets chunks done and chunks in all. Reopen the file before
    you read what was written: HDF5 2.0 forgets the mask of a chunk that was written directly for as long as the
    dataset is open.

    Raises
    ------
    FileError
        If the source cannot be read, or HDF5 recorded a chunk otherwise than it was written.
    ParameterError, MissingFilterError
        If HDF5 makes no dataset with these filters, or one cannot be encoded here.
    """
    plan.pipeline.check_encodable()
    check_readable(source)
    chunk = ChunkType(plan.dtype, plan.chunks)
    target = _created(plan, source, parent, name, chunk)
    plan = replace(plan, pipeline=_as_recorded(plan.pipeline, target))
    parts = touched(stored_regions(source), source.shape, plan.chunks)
    recorded: dict[tuple[int, ...], tuple[int, int]] = {}
    progress(0, len(parts))
    for done, part in enumerate(parts, start=1):
        data, mask = _encode(plan, _read(source, part, plan.dtype), chunk)
        target.id.write_direct_chunk(_origin(part), data, mask)
        recorded[_origin(part)] = (len(data), mask)
        progress(done, len(parts))
    check_recorded(target, recorded)
    skips = {stage: sum(mask >> i & 1 for _, mask in recorded.values()) for i, stage in enumerate(plan.pipeline.stages)}
    without_zfp = sum(count for stage, count in skips.items() if isinstance(stage.filter, Zfp))
    others = {str(each): count for each, count in skips.items() if count and not isinstance(each.filter, Zfp)}
    return target, Written(len(parts), without_zfp, others)


def check_recorded(dataset: h5py.Dataset, expected: Mapping[tuple[int, ...], tuple[int, int]]) -> None:
    """Compare what HDF5 has recorded of each chunk with what was written.

    A chunk that is written a second time with the same size keeps its old mask, and then reads as something else.

    Parameters
    ----------
    dataset
        May still be open for writing: its index of chunks is right when its reads are not.
    expected
        Size in bytes and filter mask of each chunk, by its origin.

    Raises
    ------
    FileError
        If a chunk is missing, is there without having been written, or has another size or mask; names it.
    """
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    dataset.id.chunk_iter(lambda each: found.update({each.chunk_offset: (each.size, each.filter_mask)}))
    for origin in sorted(expected.keys() | found.keys()):
        wanted, got = expected.get(origin), found.get(origin)
        if wanted != got:
            raise FileError(
                f"{dataset.name}: expected size and filter mask {wanted} for the chunk at {origin}, found {got}: HDF5"
                " recorded it otherwise than it was written"
            )


def verify(plan: Plan, source: h5py.Dataset, target: h5py.Dataset, progress: Callable[[int, int], None]) -> float:
    """Read a dataset through HDF5 and compare it with its source; returns the largest absolute error.

    Where libhdf5 has not the filters, its chunks are decoded by tamis.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows; names the chunk.
    """
    largest = 0.0
    read_back = _read if all(h5z.filter_avail(each.filter.id) for each in plan.pipeline.stages) else _decoded
    # Also what `write` may have left out, or put where nothing was.
    parts = touched((*stored_regions(source), *stored_regions(target)), source.shape, plan.chunks)
    if not np.array_equal(_fill_value(source), _fill_value(target), equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fillvalue}, found {target.fillvalue}")
    progress(0, len(parts))
    for done, part in enumerate(parts, start=1):
        before, after = _read(source, part, plan.dtype), read_back(target, part, plan.dtype)
        error = largest_error(before, after)
        if plan.bound == 0 and error == 0 and plan.dtype.itemsize <= 8 and before.tobytes() != after.tobytes():
            raise BoundError(f"{plan.path}: expected the same bits, found others in the chunk at {_origin(part)}")
        if plan.bound is not None and not error <= plan.bound:
            raise BoundError(
                f"{plan.path}: expected an error of at most {plan.bound:g}, found {error:g} in the chunk at"
                f" {_origin(part)}: nothing was kept"
            )
        largest = max(largest, error)
        progress(done, len(parts))
    return largest


def largest_error(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Largest absolute difference; infinite where NaN or an infinity did not stay what it was.

    Parameters
    ----------
    expected, found
        Arrays of one shape and type, float or integer.
    """
    if expected.dtype.kind != "f":
        larger, smaller = np.maximum(expected, found), np.minimum(expected, found)
        distance = larger.view(f"u{larger.itemsize}") - smaller.view(f"u{larger.itemsize}")
        return float(distance.max(initial=0))
    finite = np.isfinite(expected)
    if not finite.all():
        if not np.array_equal(expected[~finite], found[~finite], equal_nan=True):
            return float("inf")
        expected, found = expected[finite], found[finite]
    # In double precision, so that the difference of two floats of like size is not rounded.
    with np.errstate(over="ignore"):
        error = np.abs(expected.astype(np.float64) - found.astype(np.float64)).max(initial=0.0)
    return float(error) if not np.isnan(error) else float("inf")


def _origin(part: Region) -> tuple[int, ...]:
    return tuple(each.start for each in part)


def _fill_value(dataset: h5py.Dataset) -> NDArray[Any]:
    return np.asarray(dataset.fillvalue, dataset.dtype.newbyteorder("="))


def _read(dataset: h5py.Dataset, part: Region, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        values: NDArray[Any] = dataset[part]
    except (OSError, RuntimeError) as error:
        file = dataset.file.filename
        absent = [each.in_words() for each in pipeline_of(dataset).filters if not h5z.filter_avail(each.id)]
        advice = f"; HDF5 has no filter {', '.join(absent)}: import hdf5plugin first" if absent else ""
        raise FileError(
            f"{file}: {dataset.name}: values from {_origin(part)} on cannot be read: {error}{advice}"
        ) from error
    return values.astype(dtype, copy=False)


def _decoded(dataset: h5py.Dataset, part: Region, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read a chunk, or what the array has of it, past libhdf5's filters."""
    inside = tuple(slice(each.stop - each.start) for each in part)
    return read_chunk(dataset, _origin(part))[inside].astype(dtype, copy=False)


def _created(plan: Plan, source: h5py.Dataset, parent: h5py.Group, name: str, chunk: ChunkType) -> h5py.Dataset:
    filters = [(each.filter.id, int(each.optional), _parameters(each, chunk)) for each in plan.pipeline.stages]
    dtype = h5py.h5t.py_create(plan.dtype) if plan.dtype != source.dtype else None
    try:
        return create_like(source, parent, name, chunks=plan.chunks, filters=filters, dtype=dtype)
    except ValueError as error:
        raise ParameterError(f"{plan.path}: HDF5 makes no dataset with {plan.pipeline}: {error}") from error


def _parameters(stage: Stage, chunk: ChunkType) -> tuple[int, ...]:
    """Give H5Pset_filter what is wanted, which the filter completes; all of it where libhdf5 has not the filter."""
    if h5z.filter_avail(stage.filter.id):
        return stage.filter.requested
    if not stage.optional:
        raise MissingFilterError(
            f"expected {stage.filter} to be known to HDF5, which makes no dataset with a required filter that it has"
            f" not: import hdf5plugin first, or write {stage.filter.name} as optional"
        )
    return stage.filter.stored(chunk)


def _as_recorded(pipeline: Pipeline, dataset: h5py.Dataset) -> Pipeline:
    """Give stages the parameters that the file has, by which readers decode; scaleoffset's have the fill value too."""
    plist = dataset.id.get_create_plist()
    words = [each.values for each in library.filter_list(plist)]
    return Pipeline(replace(stage, stored=stored) for stage, stored in zip(pipeline.stages, words, strict=True))


def _encode(plan: Plan, values: NDArray[Any], chunk: ChunkType) -> tuple[bytes, int]:
    # Values beyond the array are read by nobody; repeating the last ones costs fewest bits and harms no block.
    surplus = [(0, whole - valid) for whole, valid in zip(chunk.shape, values.shape, strict=True)]
    padded = np.pad(values, surplus, mode="edge") if any(after for _, after in surplus) else values
    stored, mask = plan.pipeline.encode(padded)
    if plan.bound is None or not plan.pipeline.stages or not (first := plan.pipeline.stages[0]).filter.needs_values:
        return stored, mask
    again = plan.pipeline.decode(stored, mask, chunk)[tuple(slice(n) for n in values.shape)]
    if largest_error(values, again) <= plan.bound:
        return stored, mask
    if not first.optional:
        raise BoundError(f"{plan.path}: expected {first} to keep an error of at most {plan.bound:g}, which it cannot")
    return plan.pipeline.encode(padded, skip=(type(first.filter),))
