"""What was written, read again, all of it, and shown to be what it should be."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import same_bits
from tamis.chunks.boxes import within
from tamis.chunks.gather import chunks_at_once, one_by_one, over_chunks
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.index import ChunkIndex
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts, as_array, joined
from tamis.chunks.threads import ordered_map
from tamis.errors import BoundError
from tamis.rewrite.bound_check import compare_chunk
from tamis.rewrite.plan import Plan, Written
from tamis.store.array import StoredArray
from tamis.store.journal import seal_of

_SMALL_NBYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found.

    Parameters
    ----------
    largest_error
        Largest absolute difference to the source, in units of the data.
    read_by_library
        Chunks that the library of the format itself was seen to read as tamis does; 0 where it has not the filters.
    """

    largest_error: float
    read_by_library: int


def verify(
    plan: Plan,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
    written: Written | None = None,
) -> Verified:
    """Read an array from its store and show that it keeps what the plan says of its source, value by value.

    Chunks are read past the library of the format and decoded in threads. Those whose bytes were decoded and compared
    before they were written need not be decoded again: it is enough that the store holds these bytes, and the array the
    filters, type and chunks by which they were decoded. One chunk of each filter mask, the first and the last one are
    read by the library too, as other programs do, and compared with what it reads of the source there.

    Parameters
    ----------
    plan
        What the target should be.
    source, target
        Arrays; the store of the target is best opened anew.
    progress
        Called in this thread, before the first chunk and after each.
    threads
        Threads that read, decode and compare.
    written
        What `write` did; without it every chunk is decoded and compared.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows, or a missing value is not what it was, or the store holds other
        bytes than were written; names the chunk.
    FileError
        If a chunk cannot be read.
    """
    # Also what `write` may have left out, or put where nothing was.
    grid = plan.grid(source)
    parts = joined(source.parts(grid), target.parts(grid))
    if source.number_type is not None and not np.array_equal(source.fill_value, target.fill_value, equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fill_value}, found {target.fill_value}")
    largest, left = 0.0, parts
    numbers = seals = np.empty(0, np.int64)
    if written is not None and len(written.proven) and _decodes_alike(plan, written, target):
        numbers, seals = written.proven.columns()
        largest, left = written.largest_error, parts.without(numbers)
    progress(0, len(parts))
    with closing(target.open_reader()) as after:
        with (
            closing(_held(plan, target, Parts(grid, numbers), seals, threads)) as held,
            closing(_errors(plan, source, after, left, threads)) as errors,
        ):
            for done, error in enumerate(itertools.chain(held, errors), start=1):
                largest = max(largest, error)
                progress(done, len(parts))
        count = _check_library(plan, source, target, after, parts)
    return Verified(largest, count)


def verify_copied(
    plan: Plan, source: StoredArray, target: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> NDArray[np.uint32]:
    """Compare the chunks of two arrays as they are stored, and return the masks: their places, masks and bytes.

    Raises
    ------
    BoundError
        If they are not the same; names the chunk.
    """
    expected, stored = source.chunk_index(), target.chunk_index()
    progress(0, len(expected))
    strange = np.setxor1d(as_array(expected.numbers), as_array(stored.numbers))
    if len(strange):
        at = expected.grid.origin_of(int(strange[0]))
        raise BoundError(f"{plan.path}: expected the chunks of the source, found others at {at}").at(chunk=at)

    def compare(some: Parts) -> int:
        for origin, *chunks in zip(some.origins(), before.stored_many(some), after.stored_many(some), strict=True):
            if chunks[0] != chunks[1]:
                raise BoundError(
                    f"{plan.path}: expected the bytes of the source, found others in the chunk at {origin}"
                ).at(chunk=origin)
        return len(some)

    done = 0
    with (
        closing(source.open_chunks()) as before,
        closing(target.open_chunks()) as after,
        closing(ordered_map(compare, _tasks(plan, expected.parts), threads)) as compared_parts,
    ):
        for count in compared_parts:
            for _ in range(count):
                done += 1
                progress(done, len(expected))
    return expected.masks


def _tasks(plan: Plan, parts: Parts) -> Generator[Parts, None, None]:
    """Cut parts into so many that a thread had better take them at once."""
    at_once = chunks_at_once(plan.chunk.nbytes)
    yield from (parts[at : at + at_once] for at in range(0, len(parts), at_once))


def _decodes_alike(plan: Plan, written: Written, target: StoredArray) -> bool:
    """Return whether chunks of an array decode as they did before they were written."""
    filters, recorded = (
        [(stage.filter.id, stage.stored) for stage in pipeline.stages]
        for pipeline in (target.pipeline, written.pipeline)
    )
    return (
        filters == recorded
        and target.dtype == plan.dtype
        and target.chunk_shape == plan.chunk_shape
        and target.can_read_chunks
        and target.partial_filtered
    )


def _held(
    plan: Plan, target: StoredArray, proven: Parts, seals: NDArray[np.int64], threads: int
) -> Generator[float, None, None]:
    """Show that the store holds the bytes of chunks, which by themselves add no error."""
    if not len(proven):
        return

    def look(task: tuple[Parts, NDArray[np.int64]]) -> int:
        parts, seals = task
        for origin, seal, stored in zip(parts.origins(), seals.tolist(), chunks.stored_many(parts), strict=True):
            if stored is None or seal_of(*stored) != seal:
                raise BoundError(
                    f"{plan.path}: expected the bytes and filter mask that were written, found others in the chunk at"
                    f" {origin}"
                ).at(chunk=origin)
        return len(task[0])

    at_once = chunks_at_once(plan.chunk.nbytes)
    tasks = ((proven[at : at + at_once], seals[at : at + at_once]) for at in range(0, len(proven), at_once))
    with closing(target.open_chunks()) as chunks, closing(ordered_map(look, tasks, threads)) as counts:
        for count in counts:
            yield from itertools.repeat(0.0, count)


def _errors(
    plan: Plan, source: StoredArray, target: ArrayReader, parts: Parts, threads: int
) -> Generator[float, None, None]:
    """Compare parts with the source, and give the largest error of each."""
    if not len(parts):
        return

    def error(part: Region, before: NDArray[Any]) -> float:
        return compare_chunk(plan, origin_of(part), before, target.read(part).astype(plan.dtype, copy=False))

    with (
        closing(source.open_reader()) as values,
        closing(over_chunks(values, parts, plan.dtype, one_by_one(error), threads)) as errors,
    ):
        yield from errors


def _check_library(plan: Plan, source: StoredArray, target: StoredArray, after: ArrayReader, parts: Parts) -> int:
    """Let the library of the format read some chunks of the target too; return how many."""
    if not (source.can_read_independently and target.can_read_independently) or not len(parts):
        return 0
    with (
        closing(source.open_reader(independent=True)) as source_library,
        closing(target.open_reader(independent=True)) as target_library,
    ):

        def check(part: Region, shared: Region) -> None:
            read = target_library.read(part).astype(plan.dtype, copy=False)
            if not same_bits(after.read(part).astype(plan.dtype, copy=False), read):
                raise BoundError(
                    f"{plan.path}: expected HDF5 and tamis to read the same, found others in the chunk at"
                    f" {origin_of(part)}"
                ).at(chunk=origin_of(part))
            before = source_library.read(shared).astype(plan.dtype, copy=False)
            compare_chunk(plan, origin_of(shared), before, read[within(shared, part)])

        if target.nbytes <= _SMALL_NBYTES:
            # One call of the library for all chunks costs less than one for each.
            whole = tuple(slice(0, extent) for extent in target.shape)
            check(whole, whole)
            return len(parts)
        samples = _samples(target, parts)
        for part in samples:
            check(part, _within_one_chunk(part, source.chunk_shape or plan.chunk_shape))
        return len(samples)


def _within_one_chunk(part: Region, steps: tuple[int, ...]) -> Region:
    """Cut a part to what one chunk of the source holds: the library would decode all others for the rest."""
    return tuple(
        slice(axis.start, min(axis.stop, (axis.start // step + 1) * step))
        for axis, step in zip(part, steps, strict=True)
    )


def _samples(target: StoredArray, parts: Parts) -> list[Region]:
    """Chunks that the library reads too: one of each mask, the first and the last."""
    numbers = {int(parts.numbers[0]), int(parts.numbers[-1])}
    if target.chunk_shape is not None:
        numbers |= _one_of_each_mask(target.chunk_index())
    return [parts.grid.region_of(number) for number in sorted(numbers)]


def _one_of_each_mask(index: ChunkIndex) -> set[int]:
    _, first = np.unique(index.masks, return_index=True)
    return {int(index.numbers[at]) for at in first.tolist()}
