"""The chunks of large arrays, encoded and proven by other processes; this one writes them, in the order of one process.

A worker stores the chunks of a slab in a segment in a folder beside the temporary target (`tamis.rewrite.segments`),
and returns what is known of each chunk, without its bytes. A journal beside the segment lets a later run reuse them.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tamis.access import PRIVATE_FOLDER
from tamis.arrays.gather import slabs
from tamis.arrays.index import Parts, as_array
from tamis.errors import FileError
from tamis.formatting import plural
from tamis.jobs.workers import DaskWorkers, Died, Event, Finished, LocalWorkers, Workers
from tamis.rewrite.packed_array import PackedArray
from tamis.rewrite.placed_chunks import PlacedChunk, Recorder, left_chunks
from tamis.rewrite.plan import ArrayPlan, Recompress
from tamis.rewrite.segments import Segment, SegmentReader, SegmentWriter, by_file, in_order, remove_segment
from tamis.rewrite.write import encode_parts
from tamis.safety.disk import Identity
from tamis.safety.journal import Journal, Leftover, RunKey, companion_key, segments_in
from tamis.safety.library_errors import reading
from tamis.safety.transaction import journal_of, segments_of
from tamis.system.processors import processor_count

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress
    from tamis.jobs.repack.options import RepackOptions
    from tamis.jobs.repack.planning import Planning
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.rewrite.resumed_chunks import ResumedChunks
    from tamis.rewrite.transfer import ChunkFiles
    from tamis.safety.transaction import Transaction
    from tamis.stores.protocols import Store, StoredArray

SLAB_NBYTES = 64 << 20
"""Decoded bytes of a slab: so much work is lost if its process ends."""
_AHEAD = 2
"""Slabs, for each that is encoded at the same time, that are in work or wait to be written."""
_MOST_DEATHS = 3
_WAIT_SECONDS = 0.2
_FEED_SECONDS = 0.02
"""Seconds after which a worker that has ended its task gets the next one, even while this process writes."""


class Pool(NamedTuple):
    """Processes that start when an array is large enough."""

    start: Callable[[], Workers]
    threads: int  # Of each process

    @classmethod
    def of(cls, workers: int | None, client: Any, threads: int | None) -> Self | None:
        """Return the processes that a caller asked for; None if it did not."""
        if client is not None:
            return cls(lambda: DaskWorkers(client), threads or 1)
        if workers is None:
            return None
        return cls(lambda: LocalWorkers(workers), threads or max(processor_count() // workers, 1))

    def spread(
        self, store: Store, planning: Planning, transaction: Transaction, run: RunKey, options: RepackOptions
    ) -> EncodingWorkers:
        """Return the workers of a run."""
        assert planning.form is not None
        by_values = not planning.copies_objects_of(store)
        return EncodingWorkers(
            self, store.path, options, run, transaction.path, planning.form.files, by_values=by_values
        )


class _Slab(NamedTuple):
    """Chunks of an array to encode: a task for a worker, which opens the source itself."""

    number: int
    source: str
    options: RepackOptions
    by_values: bool  # Whether the target gets the array in the form for other formats
    plan: ArrayPlan
    entry: RunKey  # Of the source and this array
    parts: Parts
    folder: Path  # Of segments
    threads: int
    files: ChunkFiles | None
    usual: int | None  # Mask of the first chunk of the array; None if it is not known yet
    host: str  # Of the process that writes the target

    def run(self, report: Progress) -> Segment | Exception:
        """Encode the chunks, and return what is known of them."""
        segment = self.folder / os.urandom(8).hex()
        try:
            if Identity.of(self.source, with_ctime=True)._asdict() != dict(self.entry.source):
                raise FileError(f"{self.source}: changed while it was read: repack it again").at(path=self.source)
            with (
                self.options.open(Path(self.source)) as store,
                reading(self.source, dataset=self.plan.path, only_damage=True),
            ):
                array = store.array(self.plan.path)
                source = self.plan.source_of(array.as_values() if self.by_values else array)
                return self._encode(source, segment, report)
        except Exception as error:
            remove_segment(segment)
            return error

    def _encode(self, source: StoredArray, path: Path, report: Progress) -> Segment:
        if not self.folder.is_dir():
            raise FileError(
                f"{self.folder}: {socket.gethostname()} does not have this folder of the target: use one that "
                "all workers share"
            ).at(path=self.folder)
        journal = Journal(journal_of(path), self.entry)
        recorder = Recorder(journal, self.plan, (0, 1))
        stored: list[PlacedChunk] = []
        try:
            with (
                closing(encode_parts(self.plan, source, self.parts.by_number(), self.threads)) as encoded,
                SegmentWriter(path, self.files, self.parts.grid, self.usual, self.host) as segment,
            ):
                for done, chunk in enumerate(in_order(encoded, as_array(self.parts.numbers)), 1):
                    stored.append(segment.put(chunk))
                    recorder.add_placed(stored[-1])
                    report("encoding", done, len(self.parts))
            journal.flush()
        finally:
            journal.close()
        packing_error = source.largest_error if isinstance(source, PackedArray) else 0.0
        return Segment(path, stored, segment.usual, packing_error)

    def left_in(self, leftover: Leftover) -> Segment:
        """Return what an earlier run left of the chunks, and close it."""
        chunks = list[PlacedChunk]()
        with closing(leftover):
            found = left_chunks(leftover, self.plan, self.parts.by_number(), self.plan.flags)
            for number, placed in zip(as_array(self.parts.numbers).tolist(), found, strict=False):
                if placed.chunk.number != number:
                    break
                chunks.append(placed)
        return Segment(leftover.path, chunks, is_left=True)


class EncodingWorkers:
    """The workers of a run; a call encodes an array, as `tamis.rewrite.write.EncodeElsewhere` says."""

    def __init__(
        self,
        pool: Pool,
        source: str,
        options: RepackOptions,
        run: RunKey,
        target: Path,
        files: ChunkFiles | None,
        *,
        by_values: bool,
    ) -> None:
        self._source, self._options, self._run, self._by_values = source, options, run, by_values
        self._target, self._folder, self._files = target, segments_of(target), files
        self._threads, self._workers = pool.threads, pool.start()
        self._most = _AHEAD * max(self._workers.idle, 1)
        self._done: dict[int, Segment | Exception] = {}
        self._deaths: Counter[int] = Counter()
        self._count = 0

    @property
    def segments_nbytes(self) -> int:
        """Decoded bytes of the chunks that are stored twice, in segments and in the target, at the same time."""
        return self._most * SLAB_NBYTES if self._files is None else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.stop()

    def __call__(
        self, plan: ArrayPlan, source: StoredArray, parts: Parts, resumed: ResumedChunks | None
    ) -> Generator[NewChunk, None, None] | None:
        """Yield the encoded chunks of an array; None for a small one."""
        return self._chunks(plan, source, parts, resumed) if len(parts) * plan.chunk.nbytes > SLAB_NBYTES else None

    def _chunks(
        self, plan: ArrayPlan, source: StoredArray, parts: Parts, resumed: ResumedChunks | None
    ) -> Generator[NewChunk, None, None]:
        self._folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        entry = RunKey(self._run.source, {plan.path: self._run.datasets[plan.path], companion_key(plan.path): {}})
        earlier = segments_in(self._folder, entry) if resumed is not None and resumed.is_resumed else {}
        reader = SegmentReader(plan.path, parts.grid, self._target, self._files, resumed)
        tasks = self._slabs(plan, source, parts, entry, reader)
        waiting: deque[_Slab] = deque()

        def feed(seconds: float) -> float:
            """Wait for workers at most this many seconds, give them more, and return when to do so again."""
            for event in self._workers.events(seconds):
                self._take(event, waiting)
            while len(waiting) < self._most and self._workers.idle and (slab := next(tasks, None)) is not None:
                waiting.append(slab)
                leftover = earlier.pop(int(slab.parts.numbers[0]), None)
                if leftover is None:
                    self._workers.submit(slab)
                else:
                    self._done[slab.number] = slab.left_in(leftover)
            return time.monotonic() + _FEED_SECONDS

        try:
            due = feed(0.0)
            while waiting:
                segment = self._done.pop(waiting[0].number, None)
                if segment is None:
                    due = feed(_WAIT_SECONDS)
                    continue
                for chunk in self._read(waiting[0], segment, source, reader, resumed):
                    yield chunk
                    if time.monotonic() > due:
                        due = feed(0.0)
                waiting.popleft()
                due = feed(0.0)
        finally:
            for leftover in earlier.values():
                leftover.close()

    def _slabs(
        self, plan: ArrayPlan, source: StoredArray, parts: Parts, entry: RunKey, segments: SegmentReader
    ) -> Iterator[_Slab]:
        at_once = max(1, SLAB_NBYTES // plan.chunk.nbytes)
        if isinstance(plan, Recompress):
            found: Iterator[Parts] = (parts[at : at + at_once] for at in range(0, len(parts), at_once))
        else:
            with closing(source.open_reader()) as reader:
                found = slabs(reader, parts, plan.dtype.itemsize, SLAB_NBYTES)
        if self._files is not None and self._files.has_shards:
            found = by_file(found, self._files, parts.grid, at_once)
        for slab in found:
            self._count += 1
            yield _Slab(
                number=self._count,
                source=self._source,
                options=self._options,
                by_values=self._by_values,
                plan=plan,
                entry=entry,
                parts=slab,
                folder=self._folder,
                threads=self._threads,
                files=self._files,
                usual=segments.usual,
                host=socket.gethostname(),
            )

    def _take(self, event: Event, waiting: deque[_Slab]) -> None:
        slab: _Slab = event.task
        if slab.number not in [task.number for task in waiting]:  # of an array that was given up
            return
        if isinstance(event, Finished):
            self._done[slab.number] = event.result
        elif isinstance(event, Died):
            self._deaths[slab.number] += 1
            if self._deaths[slab.number] >= _MOST_DEATHS or event.is_final:
                times = plural(self._deaths[slab.number], "time")
                text = f"{slab.plan.path}: the process that encodes chunks {event.how}, {times}: memory may be short"
                self._done[slab.number] = FileError(text).at(dataset=slab.plan.path)
            else:
                self._workers.submit(slab)

    def _read(
        self,
        slab: _Slab,
        segment: Segment | Exception,
        source: StoredArray,
        reader: SegmentReader,
        resumed: ResumedChunks | None,
    ) -> Iterator[NewChunk]:
        """Yield the chunks of a slab from its segment, and encode those that it lacks; raise the error of a worker."""
        if isinstance(segment, Exception):
            raise segment
        if isinstance(source, PackedArray):
            source.note(segment.packing_error)
        count = 0
        for chunk in reader.chunks(segment):
            count += 1
            if segment.is_left and resumed is not None:
                resumed.reuse(chunk)
            yield chunk
        rest = as_array(slab.parts.numbers)[count:]
        if len(rest):
            parts = Parts(slab.parts.grid, rest).by_number()
            with closing(encode_parts(slab.plan, source, parts, self._threads)) as encoded:
                yield from in_order(encoded, rest)
