"""The chunks of large arrays, encoded and proven by other processes; this one writes them, in the order of one process.

A worker appends the chunks of a slab to a segment, a file in a folder beside the temporary target, and returns what is
known of each chunk, without its bytes. A journal beside the segment lets a later run reuse them.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tamis.arrays.gather import slabs
from tamis.arrays.index import Parts, as_array
from tamis.arrays.source import close_handle, opened, read_at
from tamis.errors import FileError, TamisError
from tamis.formats.registry import open_store
from tamis.formatting import plural
from tamis.jobs.workers import DaskWorkers, Died, Event, Finished, LocalWorkers, Workers
from tamis.rewrite.packed_array import PackedArray
from tamis.rewrite.resumed_chunks import ResumedChunks
from tamis.rewrite.write import encode_parts
from tamis.safety.disk import Identity, write_at
from tamis.safety.journal import Journal, Leftover, Run, checksum_of, companion_key, segments_in
from tamis.safety.library_errors import disk_text, reading
from tamis.safety.transaction import journal_of, segments_of

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress
    from tamis.jobs.repack.planning import Planning
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.rewrite.rewrite import Rewrite
    from tamis.safety.transaction import Transaction
    from tamis.stores.protocols import Store, StoredArray

SLAB_NBYTES = 64 << 20
"""Decoded bytes of a slab: so much work is lost if its process ends."""
_AHEAD = 2
"""Slabs, for each that is encoded at the same time, that are in work or wait to be written."""
_MOST_DEATHS = 3
_WAIT_SECONDS = 0.2
_FEED_SECONDS = 0.02
"""After so long a worker that has ended its task gets the next one while this process writes."""


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
        return cls(lambda: LocalWorkers(workers), threads or max(len(os.sched_getaffinity(0)) // workers, 1))

    def spread(self, store: Store, planning: Planning, transaction: Transaction, run: Run) -> Spread:
        """Return the workers of a run."""
        assert planning.form is not None
        by_values = not planning.form.copies_objects_of(store)
        return Spread(self, store.path, run, segments_of(transaction.path), by_values=by_values)


class _Place(NamedTuple):
    """Bytes of a chunk in a segment: its own, those of its flags, which follow, and the checksum of both."""

    nbytes: int
    flags_nbytes: int
    checksum: int


class _Encoded(NamedTuple):
    """The chunks of a slab in a segment, one after the other, without their bytes."""

    segment: Path
    chunks: list[tuple[NewChunk, _Place]]
    packing_error: float


class _Slab(NamedTuple):
    """Chunks of an array to encode: a task for a worker, which opens the source itself."""

    number: int
    source: str
    by_values: bool  # Whether the target gets the array in the form for other formats
    plan: Rewrite
    entry: Run  # Of the source and this array
    parts: Parts
    folder: Path  # Of segments
    threads: int

    def run(self, report: Progress) -> _Encoded | Exception:
        """Encode the chunks, and return what is known of them."""
        segment = self.folder / os.urandom(8).hex()
        try:
            if Identity.of(self.source, with_ctime=True)._asdict() != dict(self.entry.source):
                raise FileError(f"{self.source}: changed while it was read: repack it again").at(path=self.source)
            with (
                open_store(Path(self.source)) as store,
                reading(self.source, dataset=self.plan.path, only_damage=True),
            ):
                array = store.array(self.plan.path)
                source = self.plan.packed(array.as_values() if self.by_values else array)
                chunks = [*self._encode(source, segment, report)]
                return _Encoded(segment, chunks, source.largest_error if isinstance(source, PackedArray) else 0.0)
        except Exception as error:
            _remove(segment)
            return error

    def _encode(self, source: StoredArray, segment: Path, report: Progress) -> Iterator[tuple[NewChunk, _Place]]:
        try:
            handle = os.open(segment, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError as error:
            raise FileError(
                f"{self.folder}: expected the folder of the target on {socket.gethostname()}, too, found none"
            ).at(path=self.folder) from error
        journal, offset = Journal(journal_of(segment), self.entry), 0
        notes = ResumedChunks(self.plan, self.parts.grid, journal, (0, 1), None, lambda: None, lambda *_: "")
        try:
            with closing(encode_parts(self.plan, source, self.parts, self.threads)) as chunks:
                for done, chunk in enumerate(chunks, 1):
                    flags, flags_mask = chunk.flags or (b"", 0)
                    data = chunk.data + flags
                    write_at(handle, data, offset)
                    notes.add([chunk], [offset])
                    if chunk.flags is not None:
                        notes.add_flags([chunk._replace(data=flags, mask=flags_mask)], [offset + len(chunk.data)])
                    offset += len(data)
                    report("encoding", done, len(self.parts))
                    without = chunk._replace(data=b"", flags=None if chunk.flags is None else (b"", flags_mask))
                    yield without, _Place(len(chunk.data), len(flags), checksum_of(data))
            journal.flush()
        finally:
            journal.close()
            close_handle(handle)


class Spread:
    """The workers of a run; a call encodes an array, as `tamis.rewrite.write.EncodeElsewhere` says."""

    def __init__(self, pool: Pool, source: str, run: Run, folder: Path, *, by_values: bool) -> None:
        self._source, self._run, self._folder, self._by_values = source, run, folder, by_values
        self._threads, self._workers = pool.threads, pool.start()
        self._most = _AHEAD * max(self._workers.idle, 1)
        self._done: dict[int, _Encoded | Exception] = {}
        self._deaths: Counter[int] = Counter()
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.stop()

    def __call__(
        self, plan: Rewrite, source: StoredArray, parts: Parts, resumed: ResumedChunks | None
    ) -> Generator[NewChunk, None, None] | None:
        """Yield the encoded chunks of an array; None for a small one."""
        return self._chunks(plan, source, parts, resumed) if len(parts) * plan.chunk.nbytes > SLAB_NBYTES else None

    def _chunks(
        self, plan: Rewrite, source: StoredArray, parts: Parts, resumed: ResumedChunks | None
    ) -> Generator[NewChunk, None, None]:
        self._folder.mkdir(exist_ok=True)
        entry = Run(self._run.source, {plan.path: self._run.datasets[plan.path], companion_key(plan.path): {}})
        earlier = segments_in(self._folder, entry) if resumed is not None and resumed.is_resumed else {}
        tasks = self._slabs(plan, source, parts, entry)
        waiting: deque[_Slab] = deque()

        def feed(seconds: float) -> float:
            """Wait for workers, at most so long, give them more, and return when to do so again."""
            for event in self._workers.events(seconds):
                self._take(event, waiting)
            while len(waiting) < self._most and self._workers.idle and (slab := next(tasks, None)) is not None:
                waiting.append(slab)
                if int(slab.parts.numbers[0]) not in earlier:
                    self._workers.submit(slab)
            return time.monotonic() + _FEED_SECONDS

        try:
            due = feed(0.0)
            while waiting:
                first = waiting[0]
                segment = earlier.pop(int(first.parts.numbers[0]), None)
                if resumed is not None and segment is not None:
                    chunks = self._taken_over(first, resumed, segment, source)
                elif (encoded := self._done.pop(first.number, None)) is not None:
                    chunks = self._read(first, encoded, source)
                else:
                    due = feed(_WAIT_SECONDS)
                    continue
                for chunk in chunks:
                    yield chunk
                    if time.monotonic() > due:
                        due = feed(0.0)
                waiting.popleft()
                due = feed(0.0)
        finally:
            for segment in earlier.values():
                segment.close()

    def _slabs(self, plan: Rewrite, source: StoredArray, parts: Parts, entry: Run) -> Iterator[_Slab]:
        if plan.streams_kept:
            at_once = max(1, SLAB_NBYTES // plan.chunk.nbytes)
            found: Iterator[Parts] = (parts[at : at + at_once] for at in range(0, len(parts), at_once))
        else:
            with closing(source.open_reader()) as reader:
                found = slabs(reader, parts, plan.dtype.itemsize, SLAB_NBYTES)
        for slab in found:
            self._count += 1
            place = self._source, self._by_values, plan, entry, slab, self._folder, self._threads
            yield _Slab(self._count, *place)

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

    def _read(self, slab: _Slab, encoded: _Encoded | Exception, source: StoredArray) -> Iterator[NewChunk]:
        """Yield the chunks that a worker encoded, and remove its segment; raise its error instead, if any."""
        if isinstance(encoded, Exception):
            raise encoded
        if isinstance(source, PackedArray):
            source.note(encoded.packing_error)
        offset = 0
        try:
            with opened(encoded.segment) as handle:
                for chunk, place in encoded.chunks:
                    data = read_at(handle, place.nbytes + place.flags_nbytes, offset)
                    if len(data) != place.nbytes + place.flags_nbytes or checksum_of(data) != place.checksum:
                        raise FileError(f"{encoded.segment}: expected the bytes that a worker wrote, found other ones")
                    offset += len(data)
                    flags = None if chunk.flags is None else (data[place.nbytes :], chunk.flags[1])
                    yield chunk._replace(data=data[: place.nbytes], flags=flags)
        except OSError as error:
            if isinstance(error, TamisError):
                raise
            raise FileError(f"{encoded.segment}: cannot be read: {disk_text(error)}").at(
                path=encoded.segment
            ) from error
        _remove(encoded.segment)

    def _taken_over(
        self, slab: _Slab, resumed: ResumedChunks, segment: Leftover, source: StoredArray
    ) -> Iterator[NewChunk]:
        """Yield the chunks in a segment of an earlier run, and encode those that are missing or damaged."""
        numbers = as_array(slab.parts.numbers)
        expected = iter(numbers.tolist())
        count = 0
        with closing(segment):
            for chunk in resumed.reusable(segment, Parts(slab.parts.grid, np.sort(numbers)), slab.plan.flags):
                if chunk.number != next(expected):
                    break
                count += 1
                yield chunk
        rest = Parts(slab.parts.grid, numbers[count:])
        if len(rest):
            yield from encode_parts(slab.plan, source, rest, self._threads)
        _remove(segment.path)


def _remove(segment: Path) -> None:
    """Remove a segment, which nobody needs."""
    for path in (segment, journal_of(segment)):
        with suppress(OSError):
            path.unlink()
