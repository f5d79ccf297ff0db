"""Read a written array again and prove that it keeps the values of its source."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import same_bits
from tamis.accuracy.measured import Measured
from tamis.chunks.boxes import several_chunks, whole, within
from tamis.chunks.gather import chunks_at_once, one_by_one, over_chunks
from tamis.chunks.grid import Grid, Region, origin_of
from tamis.chunks.index import ChunkIndex
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts, as_array, joined
from tamis.chunks.threads import ordered_map
from tamis.errors import BoundError
from tamis.pipeline import Pipeline
from tamis.rewrite.bound_check import compare_chunk
from tamis.rewrite.plan import Plan, Written
from tamis.rewrite.streams import applied
from tamis.store.array import StoredArray
from tamis.store.journal import seal_of

_SMALL_NBYTES = 64 << 10
_KEPT_NBYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of `verify`.

    Parameters
    ----------
    largest_error
        Largest absolute difference from the source, in units of the data.
    read_by_library
        Number of chunks that the library of the format reads as tamis does; 0 if it lacks the filters.
    measured
        What is known of all values, if the plan asks for measures of the whole array.
    all_stored
        Whether no part is left out of the measures of whole fields, as those are that neither array stores.
    """

    largest_error: float
    read_by_library: int
    measured: Measured = field(default_factory=Measured)
    all_stored: bool = False


def verify(
    plan: Plan,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
    written: Written | None = None,
) -> Verified:
    """Read an array from its store and compare it with its source, value by value.

    Chunks are read without the library of the format and decoded in threads. Chunks that were decoded and compared
    before they were written are not decoded again: it is enough that the store holds their bytes, and that filters,
    type and chunk shape are those by which they were decoded. The library of the format also reads one chunk of each
    filter mask, the first one and the last one, as other programs do; they are compared with what it reads from the
    source.

    Small arrays that are stored without loss are compared at once, if the format can: see `StoredArray.alike`.

    Parameters
    ----------
    plan
        The plan of the target.
    source, target
        The arrays. Open the store of the target again before.
    progress
        Called in this thread, before the first chunk and after each.
    threads
        Number of threads that read, decode and compare.
    written
        Result of `write`; without it every chunk is decoded and compared.

    Raises
    ------
    BoundError
        If a value differs by more than the plan allows, a missing value changed, or the store holds other bytes than
        were written; names the chunk.
    FileError
        If a chunk cannot be read.
    """
    if written is not None and not plan.lossy and source.alike(target, independent=True):
        progress(0, written.chunk_count)
        progress(written.chunk_count, written.chunk_count)
        return Verified(0.0, written.chunk_count)
    # Parts of the source that `write` may have skipped, and parts of the target that it should not have written.
    grid = plan.grid(source)
    parts = joined(source.parts(grid), target.parts(grid))
    if source.number_type is not None and not np.array_equal(source.fill_value, target.fill_value, equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fill_value}, found {target.fill_value}")
    largest, unproven, measured = 0.0, parts, _unstored(plan, source, parts)
    numbers = seals = np.empty(0, np.int64)
    if written is not None and len(written.proven) and _decodes_alike(plan, written, target):
        numbers, seals = written.proven.columns()
        largest, unproven = written.largest_error, parts.without(numbers)
        measured = measured.plus(written.measured)
    progress(0, len(parts))
    with closing(target.open_reader()) as after:
        with (
            closing(_check_seals(plan, target, Parts(grid, numbers), seals, threads)) as sealed,
            closing(_errors(plan, source, after, unproven, threads)) as errors,
        ):
            for done, (error, part) in enumerate(itertools.chain(sealed, errors), start=1):
                largest, measured = max(largest, error), measured.plus(part) if part else measured
                progress(done, len(parts))
        count = _check_library(plan, source, target, after, parts)
    return Verified(largest, count, measured, parts.are_all)


def reached_while_writing(plan: Plan, source: StoredArray, written: Written) -> dict[str, float | None]:
    """Return the required measures that are known before an array is read again; empty unless all chunks are proven."""
    if not plan.measures or len(written.proven) < written.chunk_count:
        return {}
    parts = source.parts(plan.grid(source))
    return plan.reached(_unstored(plan, source, parts).plus(written.measured), all_stored=parts.are_all)


def _unstored(plan: Plan, source: StoredArray, parts: Parts) -> Measured:
    """Return what is known of the values that are not stored, which are the fill value in both arrays."""
    if not plan.measures or parts.are_all:
        return Measured()
    stored = sum(math.prod(axis.stop - axis.start for axis in part) for part in parts)
    return Measured.repeated(source.fill_value.astype(plan.dtype), source.size - stored, plan.missing)


def verify_kept(
    path: str, source: StoredArray, target: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> None:
    """Compare the values of an array that was written anew without a recipe, bit by bit, texts character by character.

    Raises
    ------
    BoundError
        If a value differs; names its part.
    FileError
        If a part cannot be read.
    """
    dtype = np.dtype(object) if source.varies else source.dtype
    if dtype is None or not source.size:
        return
    steps = target.chunk_shape or (1,) * len(source.shape)
    parts = Parts(Grid(source.shape, several_chunks(source.shape, steps, _KEPT_NBYTES // dtype.itemsize)))

    def compare(part: Region) -> None:
        expected, values = (reader.read(part).astype(dtype, copy=False) for reader in (before, after))
        if not (np.array_equal(expected, values) if dtype.hasobject else expected.tobytes() == values.tobytes()):
            raise BoundError(f"{path}: expected the values of the source, found others from {origin_of(part)} on")

    progress(0, len(parts))
    with (
        closing(source.open_reader()) as before,
        closing(target.open_reader()) as after,
        closing(ordered_map(compare, parts, threads)) as compared,
    ):
        for done, _ in enumerate(compared, 1):
            progress(done, len(parts))


def verify_copied(
    plan: Plan, source: StoredArray, target: StoredArray, progress: Callable[[int, int], None], threads: int = 1
) -> NDArray[np.uint32]:
    """Compare the stored chunks of two arrays: numbers, masks and bytes. Return the masks.

    Raises
    ------
    BoundError
        If they differ; names the chunk.
    """
    expected, stored = source.chunk_index(), target.chunk_index()
    progress(0, len(expected))
    differing = np.setxor1d(as_array(expected.numbers), as_array(stored.numbers))
    if len(differing):
        at = expected.grid.origin_of(int(differing[0]))
        raise BoundError(f"{plan.path}: expected the chunks of the source, found others at {at}").at(chunk=at)

    def compare(task: Parts) -> int:
        for origin, *chunks in zip(task.origins(), before.stored_many(task), after.stored_many(task), strict=True):
            if chunks[0] != chunks[1] and not _filtered_alike(source.pipeline, target.pipeline, *chunks):
                raise BoundError(
                    f"{plan.path}: expected the bytes of the source, found others in the chunk at {origin}"
                ).at(chunk=origin)
        return len(task)

    done = 0
    with (
        closing(source.open_chunks()) as before,
        closing(target.open_chunks()) as after,
        closing(ordered_map(compare, _tasks(plan, expected.parts), threads)) as counts,
    ):
        for count in counts:
            for _ in range(count):
                done += 1
                progress(done, len(expected))
    return expected.masks


def _filtered_alike(
    pipeline: Pipeline, other: Pipeline, chunk: tuple[bytes, int] | None, other_chunk: tuple[bytes, int] | None
) -> bool:
    """Return whether chunks have the same bytes, which went through the same filters, whatever their masks."""
    if chunk is None or other_chunk is None or chunk[0] != other_chunk[0]:
        return False
    return applied(pipeline, chunk[1]) == applied(other, other_chunk[1])


def _tasks(plan: Plan, parts: Parts) -> Generator[Parts, None, None]:
    """Cut parts into tasks of a size that is efficient for one thread."""
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


def _check_seals(
    plan: Plan, target: StoredArray, proven: Parts, seals: NDArray[np.int64], threads: int
) -> Generator[tuple[float, Measured | None], None, None]:
    """Check that the store holds the written bytes of proven chunks; yield for each that it adds nothing."""
    if not len(proven):
        return

    def check(task: tuple[Parts, NDArray[np.int64]]) -> int:
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
    with closing(target.open_chunks()) as chunks, closing(ordered_map(check, tasks, threads)) as counts:
        for count in counts:
            yield from itertools.repeat((0.0, None), count)


def _errors(
    plan: Plan, source: StoredArray, target: ArrayReader, parts: Parts, threads: int
) -> Generator[tuple[float, Measured | None], None, None]:
    """Compare parts with the source, and yield the largest error and the measures of each."""
    if not len(parts):
        return

    def error(part: Region, before: NDArray[Any]) -> tuple[float, Measured | None]:
        after = target.read(part).astype(plan.dtype, copy=False)
        largest = compare_chunk(plan, origin_of(part), before, after)
        return largest, plan.measured(before, after)

    with (
        closing(source.open_reader()) as reader,
        closing(over_chunks(reader, parts, plan.dtype, one_by_one(error), threads)) as errors,
    ):
        yield from errors


def _check_library(plan: Plan, source: StoredArray, target: StoredArray, after: ArrayReader, parts: Parts) -> int:
    """Compare a sample of chunks with what the library of the format reads; return the number of chunks."""
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
            # One call of the library for the whole array is cheaper than one for each chunk.
            check(whole(target.shape), whole(target.shape))
            return len(parts)
        samples = _samples(target, parts)
        for part in samples:
            check(part, _within_one_chunk(part, source.chunk_shape or plan.chunk_shape))
        return len(samples)


def _within_one_chunk(part: Region, steps: tuple[int, ...]) -> Region:
    """Cut a part down to one chunk of the source, so that the library does not decode others for the rest."""
    return tuple(
        slice(axis.start, min(axis.stop, (axis.start // step + 1) * step))
        for axis, step in zip(part, steps, strict=True)
    )


def _samples(target: StoredArray, parts: Parts) -> list[Region]:
    """Return the chunks that the library reads too: one of each mask, the first and the last."""
    numbers = {int(parts.numbers[0]), int(parts.numbers[-1])}
    if target.chunk_shape is not None:
        numbers |= _one_of_each_mask(target.chunk_index())
    return [parts.grid.region_of(number) for number in sorted(numbers)]


def _one_of_each_mask(index: ChunkIndex) -> set[int]:
    _, first = np.unique(index.masks, return_index=True)
    return {int(index.numbers[at]) for at in first.tolist()}
