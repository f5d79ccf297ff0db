"""Call a function on the values of each chunk of a new grid, in threads and in order, with bounded memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.boxes import gathered_shape, pieces_of, within
from tamis.chunks.grid import Region
from tamis.chunks.read_many import SMALL_NBYTES
from tamis.chunks.reader import ArrayReader
from tamis.chunks.regions import Parts
from tamis.chunks.threads import ordered_map

R = TypeVar("R")

PartsFunction = Callable[[Parts, Region, NDArray[Any]], list[R]]

GATHERED_NBYTES = 32 << 20
"""Largest part of an array that is gathered at once, in bytes.

Three parts are in memory at a time: one is filled, one is used, and the last chunks of one are in work. There are more
if the waiting tasks, two for each thread, belong to more parts.
"""

_LARGE_NBYTES = 1 << 30
"""Limit of the memory of all chunks in work, unless a single one takes more."""

_COPIES = 6
"""Memory of a chunk in work, as a multiple of its size."""

_PIECE_NBYTES = 256 << 10
_TASK_NBYTES = 1 << 20
_LEAST_SHARED_NBYTES = 32 << 10
"""Smaller chunks are left to one thread: two would mostly wait for the interpreter's lock, and take twice as long."""


def over_chunks(
    source: ArrayReader,
    parts: Parts,
    dtype: np.dtype[Any],
    function: PartsFunction[R],
    threads: int,
) -> Generator[R, None, None]:
    """Call a function on the values of all chunks, some at a time, and yield the results of each in order.

    The order depends only on shapes and types. Each chunk of the source is decoded once if parts of 32 MiB allow that,
    and otherwise as rarely as possible.

    Parameters
    ----------
    source
        The array.
    parts
        Chunks of the new grid.
    dtype
        Type of the values that the function gets.
    function
        Called in threads with several chunks, a region that contains them, and its values, which are valid only
        during the call and may be read-only; returns a result for each chunk. See `one_by_one`.
    threads
        Number of threads.
    """
    shape, chunk_shape = parts.grid.shape, parts.grid.chunk_shape
    pieces, nbytes = _pieces(source), math.prod(chunk_shape) * dtype.itemsize
    threads = bounded_threads(max(nbytes, math.prod(pieces) * dtype.itemsize), threads)
    gathered = gathered_shape(shape, pieces, chunk_shape, dtype.itemsize, GATHERED_NBYTES) if parts else chunk_shape
    at_once = chunks_at_once(nbytes)
    small = nbytes <= SMALL_NBYTES
    own = threading.local()

    def direct(chunks: Parts) -> list[R]:
        if not hasattr(own, "room"):  # reused: the system would clear new memory
            own.room = np.empty(math.prod(chunk_shape) * (at_once if small else 1), dtype)
        results = []
        for run in chunks.boxes() if small else (chunks[i : i + 1] for i in range(len(chunks))):
            box = run.bounding()
            extents = [axis.stop - axis.start for axis in box]
            results += function(run, box, source.read(box, own.room[: math.prod(extents)].reshape(extents)))
        return results

    def calls() -> Iterator[Callable[[], list[R]]]:
        if gathered == chunk_shape:
            yield from (partial(direct, parts[at : at + at_once]) for at in range(0, len(parts), at_once))
            return
        previous: _Box | None = None
        second_last: _Box | None = None
        singles: list[int] = []
        for group in parts.grouped(gathered):
            if len(group) == 1:
                singles.append(int(group.numbers[0]))
            if singles and (len(group) > 1 or len(singles) == at_once):
                yield from _uses(previous, function)
                previous, second_last = None, previous
                yield partial(direct, Parts(parts.grid, np.array(singles)))
                singles = []
            if len(group) > 1:
                box = _Box(source, dtype, group, at_once, second_last)
                yield from _uses(previous, function, box)
                previous, second_last = box, previous
        yield from _uses(previous, function)
        if singles:
            yield partial(direct, Parts(parts.grid, np.array(singles)))

    def call(task: Callable[[], list[R]]) -> list[R]:
        return task()

    with closing(ordered_map(call, calls(), threads)) as results:
        for task_results in results:
            yield from task_results


def one_by_one(function: Callable[[Region, NDArray[Any]], R]) -> PartsFunction[R]:
    """Return a function of several chunks that calls `function` with region and contiguous values of each."""

    def call(parts: Parts, box: Region, values: NDArray[Any]) -> list[R]:
        # Each step needs contiguous values: copied here, they are copied once.
        return [function(part, np.ascontiguousarray(values[within(part, box)])) for part in parts]

    return call


def bounded_threads(nbytes: int, threads: int) -> int:
    """Return the number of threads for chunks of so many bytes, limited by memory and by what they gain."""
    if nbytes < _LEAST_SHARED_NBYTES:
        return 1
    return max(1, min(threads, _LARGE_NBYTES // max(_COPIES * nbytes, 1)))


def chunks_at_once(nbytes: int) -> int:
    """Return the number of chunks of so many bytes in one task.

    Small chunks share a task, because threads that pass on the interpreter's lock after each chunk mostly wait for it.
    """
    return max(1, _TASK_NBYTES // nbytes)


def _pieces(source: ArrayReader) -> tuple[int, ...]:
    """Return the shape that is read at once: a chunk, or a row."""
    return source.chunk_shape or (*(1 for _ in source.shape[1:]), *source.shape[-1:])


class _Box:
    """A part of the array that is assembled from pieces, and then used chunk by chunk.

    Threads take tasks in order, so that a thread that waits for pieces or memory waits for a thread that works.

    Parameters
    ----------
    source, dtype
        Of the values.
    parts
        Of the chunks.
    at_once
        Chunks that one task uses.
    earlier
        A box whose memory this one reuses when all its chunks are done, so that two boxes exist at a time.
    """

    def __init__(
        self, source: ArrayReader, dtype: np.dtype[Any], parts: Parts, at_once: int, earlier: _Box | None
    ) -> None:
        self.source, self.part = source, parts.bounding()
        self.tasks = [parts[at : at + at_once] for at in range(0, len(parts), at_once)]
        self.pieces = pieces_of(self.part, _pieces(source), dtype.itemsize, _PIECE_NBYTES)
        self._dtype, self._earlier = dtype, earlier
        self._room: NDArray[np.uint8] | None = None
        self._left, self._unused = len(self.pieces), len(self.tasks)
        self._lock = threading.Lock()
        self._full, self._done = threading.Event(), threading.Event()
        self._failed = False

    def fill(self, pieces: Sequence[Region]) -> list[Any]:
        """Read pieces into the box; return no results."""
        try:
            values = self._values()
            for piece in pieces:
                self.source.read(piece, values[within(piece, self.part)])
        except BaseException:
            self._failed = True
            raise
        finally:
            with self._lock:
                self._left -= len(pieces)
                if not self._left or self._failed:
                    self._full.set()
        return []

    def use(self, parts: Parts, function: PartsFunction[R]) -> list[R]:
        """Call the function on chunks when the box is full; not after a failure, which `fill` has raised already."""
        self._full.wait()
        try:
            if self._failed:
                return []
            return function(parts, self.part, self._values())
        finally:
            with self._lock:
                self._unused -= 1
                if not self._unused:
                    self._done.set()

    def _values(self) -> NDArray[Any]:
        """Return the array of the box, with the pieces that were read so far."""
        extents = [axis.stop - axis.start for axis in self.part]
        nbytes = math.prod(extents) * self._dtype.itemsize
        with self._lock:
            if self._room is None:
                self._room = _room(self._earlier, nbytes)
                self._earlier = None
            return self._room[:nbytes].view(self._dtype).reshape(extents)

    def hand_on(self) -> NDArray[np.uint8] | None:
        """Wait until all chunks are done, and return the memory for reuse."""
        self._done.wait()
        room, self._room = self._room, None
        return room


def _room(earlier: _Box | None, nbytes: int) -> NDArray[np.uint8]:
    room = earlier.hand_on() if earlier else None
    return np.empty(nbytes, np.uint8) if room is None or room.nbytes < nbytes else room


def _uses(
    box: _Box | None, function: PartsFunction[R], following: _Box | None = None
) -> Iterator[Callable[[], list[R]]]:
    """Yield tasks that use a box and also fill the following one, so that all tasks take about as long.

    With separate tasks, a thread that filled a piece would then wait for threads with chunks, because results are taken
    in order.
    """
    pieces = following.pieces if following else []
    if box is None:
        if following:
            yield from (partial(following.fill, [piece]) for piece in pieces)
        return
    count = len(box.tasks)

    def both(parts: Parts, share: Sequence[Region]) -> list[R]:
        if following and share:
            following.fill(share)
        return box.use(parts, function)

    for number, parts in enumerate(box.tasks):
        yield partial(both, parts, pieces[number * len(pieces) // count : (number + 1) * len(pieces) // count])
