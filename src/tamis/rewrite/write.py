"""Write an array chunk by chunk from another one, encoding in threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.arrays.gather import over_chunks, whole
from tamis.arrays.grid import ChunkNotes, Grid
from tamis.errors import TamisError
from tamis.pipeline import Pipeline
from tamis.rewrite.create import CreateAtOnce
from tamis.rewrite.encode import fallback_mask, fallback_types
from tamis.rewrite.growth import LargerError, check_growth, collect_within
from tamis.rewrite.new_chunk import NewChunk, flags_pipeline, is_simple, make_chunks
from tamis.rewrite.outcome import Outcome, Written
from tamis.rewrite.plan import ArrayPlan, Recode, Recompress
from tamis.rewrite.steps import FillStep
from tamis.rewrite.streams import encode_streams
from tamis.stores.facts import ArrayFacts
from tamis.stores.protocols import likeness_of, small_values_of

if TYPE_CHECKING:
    from tamis.arrays.index import Parts
    from tamis.filters import ChunkType
    from tamis.meaning.missing import Flags
    from tamis.rewrite.resumed_chunks import ResumedChunks
    from tamis.stores.protocols import ArrayWriter, EncodedChunk, StoredArray

Progress = Callable[[int, int], None]

EncodeElsewhere = Callable[
    [ArrayPlan, "StoredArray", "Parts", "ResumedChunks | None"], "Generator[NewChunk, None, None] | None"
]
"""Encodes chunks as `encode_parts` does, but in other processes; None if that does not pay."""


def here_alone(*_: object) -> None:
    """Let no other process encode chunks: an `EncodeElsewhere` of runs in one process."""


_AT_ONCE_NBYTES = 64 << 10
"""Decoded bytes of small chunks that are written at once."""

_KEPT_NBYTES = 16 << 20
"""Up to this size, written chunks stay in memory, to be written again if a later chunk needs the other filters."""

_OBJECT_NBYTES = 256
"""Memory of a chunk in addition to its bytes."""


def write(
    plan: ArrayPlan,
    source: StoredArray,
    create: Callable[[ArrayPlan], ArrayWriter],
    progress: Progress,
    threads: int = 1,
    resumed: ResumedChunks | None = None,
    elsewhere: EncodeElsewhere = here_alone,
) -> Written:
    """Create the array of a plan and fill it from its source.

    Memory: a few chunks for each thread, up to 64 MiB if the chunk shape changes, up to 16 MiB of encoded chunks if the
    array must not grow, about 100 MiB if ``ks`` is required, and 50 bytes for each chunk. The written bytes do not
    depend on the number of threads.
    """
    if plan.created is not plan.pipeline and not source.stored_nbytes:
        plan = replace(plan, records_all=True)  # nothing is known about later chunks
    if isinstance(create, CreateAtOnce) and (written := _write_at_once(plan, source, create, progress, resumed)):
        return written
    plan.pipeline.check_encodable()
    source.check_readable()
    parts = plan.parts(source)
    most_nbytes = check_growth(plan, source, len(parts))
    plan = _with_flags_of_rest(plan, source, parts)
    work = _Work(source, create, parts, most_nbytes, progress, threads, resumed, elsewhere)
    written = work.run(plan) or work.run(replace(plan, records_all=True))
    assert written is not None  # all filters are recorded
    return written


class _Work(NamedTuple):
    """The work of `write` on a plan; see there."""

    source: StoredArray
    create: Callable[[ArrayPlan], ArrayWriter]
    parts: Parts
    most_nbytes: int | None
    progress: Progress
    threads: int
    resumed: ResumedChunks | None
    elsewhere: EncodeElsewhere

    def run(self, plan: ArrayPlan) -> Written | None:
        """Write all chunks; None if a later chunk needs a filter that the array does not record."""
        at_once = max(1, _AT_ONCE_NBYTES // plan.chunk.nbytes)
        count = itertools.count(1)
        writer = self._open(plan)
        self.progress(0, len(self.parts))
        with closing(self._encoded(writer.plan)) as encoded:
            chunks = iter(encoded if self.most_nbytes is None else collect_within(encoded, self.most_nbytes))
            begin = KeptChunks()
            while batch := [*itertools.islice(chunks, at_once)]:
                if not writer.takes(batch):
                    longer = self._open(replace(plan, records_all=True)) if begin.are_all else None
                    if longer is None or longer.plan.pipeline != writer.plan.pipeline:
                        return None
                    writer = longer
                    writer.put(begin.chunks)
                    begin = KeptChunks()
                writer.put(batch)
                if writer.is_short:
                    begin.add(batch)
                for _ in batch:
                    self.progress(next(count), len(self.parts))
        return writer.finish()

    def _encoded(self, plan: ArrayPlan) -> Generator[NewChunk, None, None]:
        """Yield the chunks of an earlier run, and then all others."""
        parts = self.parts
        reused = []
        if self.resumed is not None:
            for chunk in self.resumed.encoded(parts, plan.flags):
                yield chunk
                reused.append(chunk.number)
        if reused:
            parts = parts.without(np.array(sorted(reused), np.int64))
        chunks = self.elsewhere(plan, self.source, parts, self.resumed)
        with closing(chunks or encode_parts(plan, self.source, parts, self.threads)) as encoded:
            yield from encoded

    def _open(self, plan: ArrayPlan) -> _CountingWriter:
        target = self.create(plan)
        recording = Recording(plan.pipeline, target.recorded.within(plan.pipeline.bound), plan.chunk)
        return _CountingWriter(replace(plan, pipeline=recording.pipeline), recording, target, self.resumed)


def _write_at_once(
    plan: ArrayPlan, source: StoredArray, create: CreateAtOnce, progress: Progress, resumed: ResumedChunks | None
) -> Written | None:
    """Write a small array at once; None, without writing anything, if this is not possible."""
    if not isinstance(plan, Recode) or not is_simple(plan, rounded=True):
        return None
    if likeness_of(source) is None or (resumed is not None and resumed.is_resumed):
        return None
    array = create.at_once(plan, check_growth(plan, source, 1))
    if array is None:
        return None
    count = len(array.chunks)
    progress(0, count)
    if resumed is not None:
        mask = array.mask if plan.created is plan.pipeline else fallback_mask(plan.pipeline)
        resumed.add_stored(array._replace(mask=mask))
    progress(count, count)
    return Written(array.outcome(lossy=plan.lossy), array.pipeline)


def would_grow(plan: ArrayPlan, source: StoredArray) -> bool:
    """Return whether an array that must not grow would; this encodes its chunks."""
    try:
        if check_growth(plan, source, len(plan.parts(source))) is None:
            return False
        write(plan, source, lambda plan: _NullWriter(plan, plan.grid(source)), lambda *_: None)
    except LargerError:
        return True
    except TamisError:  # the array cannot be stored at all
        return False
    return False


class _NullWriter:
    """A writer that stores nothing and counts bytes."""

    has_whole_chunks = False

    def __init__(self, plan: ArrayPlan, grid: Grid) -> None:
        stages = (replace(stage, stored=stage.filter.stored(plan.chunk)) for stage in plan.pipeline.stages)
        self.grid, self.recorded, self.stored_nbytes = grid, Pipeline(stages), 0

    def put(self, chunks: Sequence[EncodedChunk]) -> Sequence[int | None]:
        self.stored_nbytes += sum(len(chunk.data) for chunk in chunks)
        return (None,) * len(chunks)

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> _NullWriter:
        return self

    def finish(self) -> None:
        pass


class _CountingWriter:
    """A writer of encoded chunks and their flags that adds up their outcomes, for `Written`."""

    def __init__(
        self, plan: ArrayPlan, recording: Recording, target: ArrayWriter, resumed: ResumedChunks | None
    ) -> None:
        self.plan, self._recording, self._target, self._resumed = plan, recording, target, resumed
        # A companion without a flag for unwritten values is created with the first chunk that has missing ones.
        self._companion: ArrayWriter | None = None
        if plan.flags is not None and plan.flags.fill:
            self._companion = target.create_companion(flags_pipeline(plan.chunk_shape), plan.flags)
        self._proven = ChunkNotes("I")
        self._outcome = Outcome()

    @property
    def is_short(self) -> bool:
        """Whether the array does not record all filters."""
        return self._recording.is_short

    def takes(self, chunks: Sequence[NewChunk]) -> bool:
        """Return whether the array records all filters that these chunks went through."""
        return self._recording.takes(chunks)

    def put(self, chunks: Sequence[NewChunk]) -> None:
        """Write chunks and their flags."""
        stored = chunks
        if self._recording.is_short:
            stored = [chunk._replace(mask=self._recording.mask_of(chunk.mask)) for chunk in chunks]
        offsets = self._target.put(stored)
        if self._resumed is not None:
            self._resumed.add(chunks, offsets)
        self._put_flags([chunk for chunk in chunks if chunk.flags is not None])
        self._proven.extend((chunk.number, chunk.seal) for chunk in stored if chunk.error is not None)
        for chunk in chunks:
            self._outcome = self._outcome.plus(Outcome.of(self.plan, chunk))

    def _put_flags(self, chunks: Sequence[NewChunk]) -> None:
        if not chunks or self.plan.flags is None:
            return
        if self._companion is None:
            pipeline = flags_pipeline(self.plan.chunk_shape)
            self._companion = self._target.create_companion(pipeline, self.plan.flags)
        flags = [NewChunk(chunk.number, *chunk.flags) for chunk in chunks if chunk.flags is not None]
        offsets = self._companion.put(flags)
        if self._resumed is not None:
            self._resumed.add_flags(flags, offsets)

    def finish(self) -> Written:
        """Make the store check its records, and return what became of the chunks."""
        self._target.finish()
        if self._companion is not None:
            self._companion.finish()
        outcome = self._outcome
        reused = 0 if self._resumed is None else len(self._resumed.reused)
        if not reused:
            # Nothing is added to the measures, and results of all arrays are kept until the last one is written.
            measured = outcome.measured._replace(changes=outcome.measured.changes.without_values())
            outcome = outcome._replace(measured=measured)
        return Written(outcome, self._recording.recorded, reused, self._companion, self._proven)


def encode_parts(plan: ArrayPlan, source: StoredArray, parts: Parts, threads: int) -> Generator[NewChunk, None, None]:
    """Encode chunks in threads, and yield them in the order in which they are written."""
    if isinstance(plan, Recompress):
        with closing(encode_streams(plan, source, parts, threads)) as chunks:
            yield from chunks
        return
    # Parts in the order in which larger arrays are written.
    same_parts = source.storage.chunk_shape == plan.chunk_shape or parts.grid.chunk_count == 1
    if same_parts and (values := small_values_of(source)) is not None:
        yield from make_chunks(plan, parts, whole(source.shape), values.astype(plan.dtype, copy=False))
        return
    reader = source.open_reader()
    with (
        closing(reader),
        closing(over_chunks(reader, parts, plan.dtype, partial(make_chunks, plan), threads)) as chunks,
    ):
        yield from chunks


def _with_flags_of_rest(plan: ArrayPlan, source: ArrayFacts, parts: Parts) -> ArrayPlan:
    """Return a plan whose flags of missing values have the flag of chunks that are not stored."""
    flags = plan.flags
    if not isinstance(plan, Recode) or flags is None or parts.are_all:
        return plan
    fill = flags.find(source.fill.value.astype(plan.dtype).reshape(1))
    if fill is None:
        return plan
    step = FillStep(replace(flags, fill=int(fill[0])))
    return replace(plan, steps=tuple(step if isinstance(own, FillStep) else own for own in plan.steps))


@dataclass(frozen=True, slots=True)
class Recording:
    """The filters that an array records, out of those that encode its chunks."""

    requested: Pipeline
    recorded: Pipeline  # The recorded ones, with stored parameters: all, or those of `shorter_pipeline`
    chunk: ChunkType  # Type and shape of the chunks
    pipeline: Pipeline = field(init=False)  # All filters with stored parameters, by which chunks are encoded
    _positions: tuple[int, ...] = field(init=False)  # Numbers of the recorded filters among all

    def __post_init__(self) -> None:
        """Set the fields that follow from the filters."""
        is_complete = len(self.recorded.stages) == len(self.requested.stages)
        left_out = () if is_complete else fallback_types(self.requested)
        positions = tuple(at for at, item in enumerate(self.requested.filters) if type(item) not in left_out)
        recorded = dict(zip(positions, self.recorded.stages, strict=True))
        stages = [
            recorded[at] if at in recorded else replace(stage, stored=stage.filter.stored(self.chunk))
            for at, stage in enumerate(self.requested.stages)
        ]
        object.__setattr__(self, "pipeline", Pipeline(stages, bound=self.recorded.bound))
        object.__setattr__(self, "_positions", positions)

    @property
    def is_short(self) -> bool:
        """Whether filters are left out."""
        return len(self._positions) < len(self.requested.stages)

    def takes(self, chunks: Iterable[EncodedChunk]) -> bool:
        """Return whether no chunk goes through a filter that is not recorded."""
        every = (1 << len(self.requested.stages)) - 1
        missing = every & ~sum(1 << at for at in self._positions)
        return all(chunk.mask & missing == missing for chunk in chunks)

    def mask_of(self, mask: int) -> int:
        """Convert a chunk's filter mask for all filters to that for the recorded ones."""
        return sum((mask >> at & 1) << bit for bit, at in enumerate(self._positions))


class KeptChunks:
    """The chunks written so far, until they are too many for memory."""

    def __init__(self) -> None:
        self.chunks: list[NewChunk] = []
        self.are_all = True
        self._nbytes = 0

    def add(self, chunks: Sequence[NewChunk]) -> None:
        """Keep chunks that are being written, or drop all if they are too many."""
        self._nbytes += sum(len(chunk.data) + _OBJECT_NBYTES for chunk in chunks)
        self.are_all = self._nbytes <= _KEPT_NBYTES
        if self.are_all:
            self.chunks += chunks
        else:
            self.chunks.clear()
