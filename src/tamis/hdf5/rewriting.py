"""Write one dataset anew, chunk by chunk, and compare what is in the file with its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from tamis import zfp
from tamis.chunks.grid import Region, touched
from tamis.errors import BoundError, FileError
from tamis.filters import ChunkType, Zfp
from tamis.hdf5.creating import create_like
from tamis.hdf5.storage import check_readable, stored_regions
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
        """Largest absolute error allowed, in units of the data; 0 if lossless; None where the mode gives none."""
        if self.pipeline.zfp is None:
            return 0.0
        mode = self.pipeline.zfp.mode
        if zfp.is_lossless(mode):
            return 0.0
        return float(mode.tolerance) if isinstance(mode, zfp.Accuracy) else None


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did.

    Parameters
    ----------
    chunks
        Chunks written; what was never written to the source is not.
    lossless_chunks
        Those of them stored without zfp, since it could not keep their values or the bound.
    """

    chunks: int
    lossless_chunks: int


def write(
    plan: Plan, source: h5py.Dataset, parent: h5py.Group, name: str, progress: Callable[[int, int], None]
) -> tuple[h5py.Dataset, Written]:
    """Create the dataset of a plan and fill it from its source.

    Memory: a few chunks. `progress` gets chunks done and chunks in all. Reopen the file before you read what was
    written: HDF5 2.0 forgets the mask of a chunk that was written directly for as long as the dataset is open.
    """
    check_readable(source)
    filters = [(each.filter.id, int(each.optional), each.filter.requested) for each in plan.pipeline.stages]
    dtype = h5py.h5t.py_create(plan.dtype) if plan.dtype != source.dtype else None
    target = create_like(source, parent, name, chunks=plan.chunks, filters=filters, dtype=dtype)
    chunk = ChunkType(plan.dtype, plan.chunks)
    parts = touched(stored_regions(source), source.shape, plan.chunks)
    lossless = 0
    progress(0, len(parts))
    for done, part in enumerate(parts, start=1):
        data, mask = _encode(plan, _read(source, part, plan.dtype), chunk)
        target.id.write_direct_chunk(_origin(part), data, mask)
        lossless += mask != 0
        progress(done, len(parts))
    return target, Written(len(parts), lossless)


def verify(plan: Plan, source: h5py.Dataset, target: h5py.Dataset, progress: Callable[[int, int], None]) -> float:
    """Read a dataset through HDF5 and compare it with its source; returns the largest absolute error.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows; names the chunk.
    """
    largest = 0.0
    # Also what `write` may have left out, or put where nothing was.
    parts = touched((*stored_regions(source), *stored_regions(target)), source.shape, plan.chunks)
    if not np.array_equal(_fill_value(source), _fill_value(target), equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fillvalue}, found {target.fillvalue}")
    progress(0, len(parts))
    for done, part in enumerate(parts, start=1):
        before, after = _read(source, part, plan.dtype), _read(target, part, plan.dtype)
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
        raise FileError(f"{file}: {dataset.name}: values from {_origin(part)} on cannot be read: {error}") from error
    return values.astype(dtype, copy=False)


def _encode(plan: Plan, values: NDArray[Any], chunk: ChunkType) -> tuple[bytes, int]:
    # Values beyond the array are read by nobody; repeating the last ones costs fewest bits and harms no block.
    surplus = [(0, whole - valid) for whole, valid in zip(chunk.shape, values.shape, strict=True)]
    padded = np.pad(values, surplus, mode="edge") if any(after for _, after in surplus) else values
    stored, mask = plan.pipeline.encode(padded)
    if plan.pipeline.zfp is None or plan.bound is None:
        return stored, mask
    again = plan.pipeline.decode(stored, mask, chunk)[tuple(slice(n) for n in values.shape)]
    if largest_error(values, again) <= plan.bound:
        return stored, mask
    if not plan.pipeline.stages[0].optional:
        raise BoundError(f"{plan.path}: expected zfp to keep an error of at most {plan.bound:g}, which it cannot")
    return plan.pipeline.encode(padded, skip=(Zfp,))
