"""Read what was written again, all of it, and show that it is what it should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5z
from numpy.typing import NDArray

from tamis.accuracy.difference import same_bits
from tamis.chunks.blocks import within
from tamis.chunks.gather import chunks_at_once, over_chunks
from tamis.chunks.grid import Origin, Region, origin_of, touched
from tamis.chunks.reader import Values
from tamis.chunks.threads import ordered_map
from tamis.errors import BoundError
from tamis.hdf5.chunked import ChunkSource, records_of
from tamis.hdf5.companions import regions_of, restored
from tamis.hdf5.facts import layout_plist
from tamis.hdf5.lib.calls import filters_partial_chunks
from tamis.hdf5.rewriting.bounds import compared
from tamis.hdf5.rewriting.plans import Plan, Written
from tamis.hdf5.storage import fill_value, number_type, pipeline_of, stored_type
from tamis.hdf5.values import open_values, read_by_library
from tamis.store.journal import seal_of

_SMALL_NBYTES = 64 << 10


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
    plan: Plan,
    source: h5py.Dataset,
    target: h5py.Dataset,
    progress: Callable[[int, int], None],
    threads: int = 1,
    written: Written | None = None,
) -> Verified:
    """Read a dataset from its file and show that it keeps what the plan says of its source, value by value.

    Chunks are read past HDF5 and decoded in threads. Those whose bytes were decoded and compared before they were
    written need not be decoded again: it is enough that the file holds these bytes, and the dataset the filters, type
    and chunks by which they were decoded. One chunk of each filter mask, the first and the last one are read by HDF5
    too, as other programs do, and compared with what it reads of the source there.

    Parameters
    ----------
    plan
        What the target should be.
    source, target
        Datasets; the file of the target is best opened anew.
    progress
        Called in this thread, before the first chunk and after each.
    threads
        Threads that read, decode and compare.
    written
        What `write` did; without it every chunk is decoded and compared.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows, or a missing value is not what it was, or the file holds other
        bytes than were written; names the chunk.
    FileError
        If a chunk cannot be read.
    """
    # Also what `write` may have left out, or put where nothing was.
    parts = touched((*regions_of(source), *regions_of(target)), source.shape, plan.chunks)
    if number_type(source) is not None and not np.array_equal(fill_value(source), fill_value(target), equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {fill_value(source)}, found {fill_value(target)}")
    proven: Mapping[Origin, int] = {}
    largest = 0.0
    if written is not None and written.proven and _decodes_alike(plan, written, target):
        proven, largest = written.proven, written.largest_error
    left = [part for part in parts if origin_of(part) not in proven] if proven else parts
    progress(0, len(parts))
    with closing(open_values(target)) as after:
        with (
            closing(_held(plan, target, proven, threads)) as held,
            closing(_errors(plan, source, after, left, threads)) as errors,
        ):
            for done, error in enumerate(itertools.chain(held, errors), start=1):
                largest = max(largest, error)
                progress(done, len(parts))
        readable = _filters_available(source) and _filters_available(target)
        samples = _samples(target, parts) if readable else []
        if samples and target.size * plan.dtype.itemsize <= _SMALL_NBYTES:
            # One call of HDF5 for all chunks costs less than one for each.
            whole = tuple(slice(0, extent) for extent in target.shape)
            _check_library(plan, source, target, after, whole, whole)
            return Verified(largest, len(parts))
        for part in samples:
            _check_library(plan, source, target, after, part, _within_one_chunk(part, source.chunks or plan.chunks))
    return Verified(largest, len(samples))


def verify_copied(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, progress: Callable[[int, int], None], threads: int = 1
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
        raise BoundError(f"{plan.path}: expected the chunks of the source, found others at {min(strange)}").at(
            chunk=min(strange)
        )

    def compare(origin: Origin) -> None:
        if old.stored(origin) != new.stored(origin):
            raise BoundError(
                f"{plan.path}: expected the bytes of the source, found others in the chunk at {origin}"
            ).at(chunk=origin)

    with (
        closing(ChunkSource(source)) as old,
        closing(ChunkSource(target)) as new,
        closing(ordered_map(compare, expected, threads)) as compared,
    ):
        for done, _ in enumerate(compared, start=1):
            progress(done, len(expected))
    return [each.mask for each in expected.values()]


def _decodes_alike(plan: Plan, written: Written, target: h5py.Dataset) -> bool:
    """Whether chunks of a dataset decode as they did before they were written."""
    filters, recorded = (
        [(each.filter.id, each.stored) for each in pipeline.stages]
        for pipeline in (pipeline_of(target), written.pipeline)
    )
    return (
        filters == recorded
        and stored_type(target) == plan.dtype
        and target.chunks == plan.chunks
        and ChunkSource.can_read(target)
        and filters_partial_chunks(layout_plist(target))
    )


def _held(plan: Plan, target: h5py.Dataset, proven: Mapping[Origin, int], threads: int) -> Generator[float, None, None]:
    """Show that the file holds the bytes of chunks, which by themselves add no error."""
    if not proven:
        return
    at_once = chunks_at_once(plan.chunk.nbytes)
    origins = [*proven]
    tasks = (origins[at : at + at_once] for at in range(0, len(origins), at_once))

    def look(some: list[Origin]) -> int:
        for origin in some:
            if origin not in chunks.records or seal_of(*chunks.stored(origin)) != proven[origin]:
                raise BoundError(
                    f"{plan.path}: expected the bytes and filter mask that were written, found others in the chunk at"
                    f" {origin}"
                ).at(chunk=origin)
        return len(some)

    with closing(ChunkSource(target)) as chunks, closing(ordered_map(look, tasks, threads)) as looked:
        for count in looked:
            yield from itertools.repeat(0.0, count)


def _errors(
    plan: Plan, source: h5py.Dataset, target: Values, parts: list[Region], threads: int
) -> Generator[float, None, None]:
    """Compare parts with the source, and give the largest error of each."""
    if not parts:
        return

    def error(part: Region, before: NDArray[Any]) -> float:
        return compared(plan, origin_of(part), before, target.read(part).astype(plan.dtype, copy=False))

    with (
        closing(open_values(source)) as values,
        closing(over_chunks(values, parts, source.shape, plan.chunks, plan.dtype, error, threads)) as errors,
    ):
        yield from errors


def _within_one_chunk(part: Region, steps: tuple[int, ...]) -> Region:
    """Cut a part to what one chunk of the source holds: HDF5 would decode all others for the rest."""
    return tuple(
        slice(each.start, min(each.stop, (each.start // step + 1) * step))
        for each, step in zip(part, steps, strict=True)
    )


def _check_library(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, after: Values, part: Region, shared: Region
) -> None:
    """Compare what HDF5 reads of a part of the target with tamis, and a part of that with the source."""
    read = restored(target, part, read_by_library).astype(plan.dtype, copy=False)
    if not same_bits(after.read(part).astype(plan.dtype, copy=False), read):
        raise BoundError(
            f"{plan.path}: expected HDF5 and tamis to read the same, found others in the chunk at {origin_of(part)}"
        ).at(chunk=origin_of(part))
    before = restored(source, shared, read_by_library).astype(plan.dtype, copy=False)
    compared(plan, origin_of(shared), before, read[within(shared, part)])


def _samples(target: h5py.Dataset, parts: list[Region]) -> list[Region]:
    """Chunks that HDF5 reads too: one of each mask, the first and the last."""
    places = {origin_of(part): part for part in parts}
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
