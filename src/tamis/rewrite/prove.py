"""Read a written array again and prove that it keeps the values of its source."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import equal_values
from tamis.accuracy.measured import Measured
from tamis.arrays.gather import chunks_at_once, each_result, several_chunks, tasks_of
from tamis.arrays.grid import Grid, Region, grid_of, origin_of
from tamis.arrays.index import Parts, as_array, joined
from tamis.arrays.source import seal_of
from tamis.arrays.threads import ordered_map
from tamis.errors import BoundError
from tamis.rewrite.new_chunk import compare_chunk
from tamis.rewrite.streams import applied
from tamis.rewrite.surveys import unstored_measured
from tamis.rewrite.witness import check_witness
from tamis.stores.facts import ArrayFacts, size_of
from tamis.stores.protocols import read_alike

if TYPE_CHECKING:
    from tamis.arrays.reader import ArrayReader
    from tamis.pipeline import Pipeline
    from tamis.rewrite.outcome import Written
    from tamis.rewrite.plan import ArrayPlan
    from tamis.stores.protocols import StoredArray

_KEPT_NBYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of `verify`."""

    largest_error: float  # Largest absolute difference from the source, in units of the data
    # Number of chunks that the library of the format reads identically; 0 if it lacks the filters
    read_by_library: int
    # Facts of all values, if the plan asks for measures of the whole array
    measured: Measured = field(default_factory=Measured)
    # Whether the measures of whole fields cover all parts, including those that neither array stores
    all_stored: bool = False
    worst: Region | None = None  # The chunk with the largest error; None if there is none, or it is not known


def verify(
    plan: ArrayPlan,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
    written: Written | None = None,
    *,
    witness: bool = True,
) -> Verified:
    """Read a written array again, and compare it with its source, value by value.

    Chunks are read without the library of the format and decoded in threads. Chunks that were decoded and compared
    before writing are not decoded again: it is enough that the store holds their bytes, and that filters, type and
    chunk shape are unchanged. A sample is also compared as other programs read it: see `tamis.rewrite.witness`.

    Small arrays are decoded again and compared at once, if the format can: see `tamis.stores.protocols.read_alike`.
    """
    if written is not None and (error := _error_at_once(plan, source, target)) is not None:
        progress(0, written.outcome.chunks)
        progress(written.outcome.chunks, written.outcome.chunks)
        return Verified(error, written.outcome.chunks)
    # Parts of the source that `write` may have skipped, and parts of the target that it should not have written.
    grid = plan.grid(source)
    own = target.parts(grid)
    parts = joined(source.parts(grid), own)
    has_fill = source.type.numbers is not None and (target.fill.is_chosen or not own.are_all)
    if has_fill and not np.array_equal(source.fill.value, target.fill.value, equal_nan=True):
        raise BoundError(f"{plan.path}: expected the fill value {source.fill.value}, found {target.fill.value}")
    measured = _unstored(plan, source, parts)
    largest = 0.0
    worst: int | None = None
    unproven = parts
    numbers = seals = np.empty(0, np.int64)
    if written is not None and len(written.proven) and _decodes_alike(plan, written, target):
        largest, worst = written.outcome.largest_error, written.outcome.worst
        measured = measured.plus(written.outcome.measured)
        numbers, seals = written.proven.columns()
        unproven = parts.without(numbers)
    progress(0, len(parts))
    with closing(target.open_values()) as after:
        with (
            closing(_check_seals(plan, target, Parts(grid, numbers), seals, threads)) as sealed,
            closing(_errors(plan, source, after, unproven, threads)) as errors,
        ):
            for done, (error, part) in enumerate(itertools.chain(sealed, errors), start=1):
                if error > largest:  # errors of sealed chunks are known
                    largest, worst = error, int(unproven.numbers[done - 1 - len(numbers)])
                if part is not None:
                    measured = measured.plus(part)
                progress(done, len(parts))
        count = check_witness(plan.path, source, target, after, parts, _compare_values(plan)) if witness else 0
    return Verified(largest, count, measured, parts.are_all, None if worst is None else grid.region_of(worst))


def _error_at_once(plan: ArrayPlan, source: StoredArray, target: StoredArray) -> float | None:
    """Return the largest error of a small array; None if it is too large, or must be compared part by part."""
    alike = None if plan.lossy and plan.measures else read_alike(source, target, independent=True)
    if alike is None:
        return None
    if alike.others is alike.values:
        return 0.0
    if not plan.lossy:
        return None
    with suppress(BoundError):
        return compare_chunk(plan, (0,) * len(source.shape), alike.values, alike.others)
    return None


def reached_while_writing(plan: ArrayPlan, source: StoredArray, written: Written) -> dict[str, float | None]:
    """Return the required measures that are known before an array is read again; empty unless all chunks are proven."""
    if not plan.measures or len(written.proven) < written.outcome.chunks:
        return {}
    parts = source.parts(plan.grid(source))
    return plan.reached(_unstored(plan, source, parts).plus(written.outcome.measured), all_stored=parts.are_all)


def _unstored(plan: ArrayPlan, source: ArrayFacts, parts: Parts) -> Measured:
    """Return the facts of values outside of some parts, if they are asked for."""
    return unstored_measured(plan, source, parts) if plan.measures else Measured()


def verify_kept(
    path: str,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
    *,
    witness: bool = True,
) -> None:
    """Compare the values of an array that was written anew without a recipe, bit by bit, texts character by character.

    With `witness`, the libraries of the formats read a sample.
    """
    if not size_of(source) or not (source.type.varies or source.type.dtype):
        return
    nbytes = 1 if source.type.dtype is None else source.type.dtype.itemsize
    steps = target.storage.chunk_shape or (1,) * len(source.shape)
    blocks = Grid(source.shape, several_chunks(source.shape, steps, max(_KEPT_NBYTES // nbytes, 1)))
    parts = Parts(blocks) if source.type.varies else joined(source.parts(blocks), target.parts(blocks))
    sample = parts.absent_sample()  # of those that are stored in neither
    count = len(parts) + len(sample)
    grid = grid_of(source.shape, target.storage.chunk_shape) if target.storage.chunk_shape else blocks

    def compare(part: Region) -> None:
        _check_equal(path, part, before.read(part), after.read(part))

    progress(0, count)
    with closing(source.open_values()) as before, closing(target.open_values()) as after:
        with closing(ordered_map(compare, itertools.chain(parts, sample), threads)) as compared:
            for done, _ in enumerate(compared, 1):
                progress(done, count)
        if witness and not (source.type.varies or target.type.varies):  # texts are read by the library anyway
            check_witness(path, source, target, after, target.parts(grid), partial(_check_equal, path))


def verify_copied(
    plan: ArrayPlan,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
    *,
    witness: bool = True,
) -> NDArray[np.uint32]:
    """Compare the stored chunks of two arrays: numbers, masks and bytes, plus a sample as other programs read it.

    Without `witness`, there is no sample. Return the masks.
    """
    expected, stored = source.chunk_index(), target.chunk_index()
    progress(0, len(expected))
    differing = np.setxor1d(as_array(expected.numbers), as_array(stored.numbers))
    if len(differing):
        at = expected.grid.origin_of(int(differing[0]))
        raise BoundError(f"{plan.path}: only one of source and target has a chunk at {at}").at(chunk=at)

    def compare(task: Parts) -> int:
        for origin, *chunks in zip(task.origins(), before.stored_many(task), after.stored_many(task), strict=True):
            if chunks[0] == chunks[1] or _filtered_alike(source.storage.pipeline, target.storage.pipeline, *chunks):
                continue
            if chunks[1] is None or before.completed(origin) != chunks[1][0]:
                raise BoundError(f"{plan.path}: bytes differ from those of the source in the chunk at {origin}").at(
                    chunk=origin
                )
        return len(task)

    done = 0
    with (
        closing(source.open_chunks()) as before,
        closing(target.open_chunks()) as after,
        closing(ordered_map(compare, tasks_of(expected.parts, plan.chunk.nbytes), threads)) as counts,
    ):
        for count in counts:
            for _ in range(count):
                done += 1
                progress(done, len(expected))
    if witness:
        with closing(target.open_values()) as values:
            check_witness(plan.path, source, target, values, expected.parts, partial(_check_equal, plan.path))
    return expected.masks


def _filtered_alike(
    pipeline: Pipeline, other: Pipeline, chunk: tuple[bytes, int] | None, other_chunk: tuple[bytes, int] | None
) -> bool:
    """Return whether chunks have the same bytes, which went through the same filters, whatever their masks."""
    if chunk is None or other_chunk is None or chunk[0] != other_chunk[0]:
        return False
    return applied(pipeline, chunk[1]) == applied(other, other_chunk[1])


def _decodes_alike(plan: ArrayPlan, written: Written, target: StoredArray) -> bool:
    """Return whether chunks of an array decode as they did before they were written."""
    filters, recorded = (
        [(stage.filter.id, stage.stored) for stage in pipeline.stages]
        for pipeline in (target.storage.pipeline, written.pipeline)
    )
    return (
        filters == recorded
        and target.type.dtype == plan.dtype
        and target.storage.chunk_shape == plan.chunk_shape
        and target.can_read_chunks
        and target.storage.partial_filtered
        and not target.storage.has_own_bytes
    )


def _check_seals(
    plan: ArrayPlan, target: StoredArray, proven: Parts, seals: NDArray[np.int64], threads: int
) -> Generator[tuple[float, Measured | None], None, None]:
    """Check that the store holds the written bytes of proven chunks; yield no further error for each."""
    if not len(proven):
        return

    def check(task: tuple[Parts, NDArray[np.int64]]) -> int:
        parts, seals = task
        for origin, seal, stored in zip(parts.origins(), seals.tolist(), chunks.stored_many(parts), strict=True):
            if stored is None or seal_of(*stored) != seal:
                raise BoundError(
                    f"{plan.path}: bytes or filter mask differ from what was written in the chunk at {origin}"
                ).at(chunk=origin)
        return len(task[0])

    at_once = chunks_at_once(plan.chunk.nbytes)
    tasks = ((proven[at : at + at_once], seals[at : at + at_once]) for at in range(0, len(proven), at_once))
    with closing(target.open_chunks()) as chunks, closing(ordered_map(check, tasks, threads)) as counts:
        for count in counts:
            yield from itertools.repeat((0.0, None), count)


def _errors(
    plan: ArrayPlan, source: StoredArray, target: ArrayReader, parts: Parts, threads: int
) -> Generator[tuple[float, Measured | None], None, None]:
    """Compare parts with the source, and yield the largest error and the measures of each."""
    if not len(parts):
        return

    dtype = plan.dtype
    if dtype.kind == "V" and source.type.values is not None:
        dtype = source.type.values
    compare = _compare_values(plan)

    def error(part: Region, before: NDArray[Any]) -> tuple[float, Measured | None]:
        after = target.read(part)
        if plan.measures:
            after = after.astype(plan.dtype, copy=False)
        return compare(part, before, after), plan.measured(before, after)

    yield from each_result(source.open_values(), parts, dtype, error, threads)


def _compare_values(plan: ArrayPlan) -> Callable[[Region, NDArray[Any], NDArray[Any]], float]:
    """Return the function that compares values with the source: numbers by the bounds of the plan, others exactly."""

    def compare(part: Region, before: NDArray[Any], after: NDArray[Any]) -> float:
        if plan.dtype.kind != "V":
            values = (array.astype(plan.dtype, copy=False) for array in (before, after))
            return compare_chunk(plan, origin_of(part), *values)
        _check_equal(plan.path, part, before, after)
        return 0.0

    return compare


def _check_equal(path: str, part: Region, before: NDArray[Any], after: NDArray[Any]) -> None:
    """Raise BoundError unless values are equal."""
    if not equal_values(before, after):
        raise BoundError(f"{path}: values differ from those of the source from {origin_of(part)} on").at(
            dataset=path, chunk=origin_of(part)
        )
