"""Do something with the values of each chunk of a new grid, in threads and in order, with bounded memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.blocks import bounding, gathered_shape, grouped, pieces_of, within
from tamis.chunks.grid import Region
from tamis.chunks.reader import Values
from tamis.chunks.threads import ordered_map

R = TypeVar("R")

GATHERED_NBYTES = 32 << 20
"""Largest part of an array that is gathered at once.

Three of them are there at a time: one is filled, one used, and one has its last chunks in work. There are more where
the tasks that threads have before them, two each, go over more parts.
"""

_LARGE_NBYTES = 1 << 30
"""Chunks that the threads have in work take no more than this, unless one alone does."""

_COPIES = 6
"""As many times its own bytes a chunk takes while it is in work."""

_PIECE_NBYTES = 256 << 10
_TASK_NBYTES = 1 << 20
_LEAST_SHARED_NBYTES = 32 << 10
"""Chunks that are smaller take one thread half the time of two, which mostly wait for the interpreter's lock."""


def over_chunks(
    source: Values,
    parts: Sequence[Region],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: np.dtype[Any],
    function: Callable[[Region, NDArray[Any]], R],
    threads: int,
) -> Generator[R, None, None]:
    """Call a function on the part of the array that each chunk covers, and on its values; yield the results in order.

    The order follows from shapes and types alone. Chunks of the source are decoded once each where parts of 32 MiB
    allow that, and otherwise as seldom as they allow.

    Parameters
    ----------
    source
        Of the values.
    parts
        Parts of the array, one for each chunk.
    shape, chunks, dtype
        Of the array, of the chunks, and of the values that the function gets.
    function
        Called in threads; its array is there for the call alone, and may be read-only.
    threads
        Number of threads.
    """
    pieces = _pieces(source)
    threads = bounded_threads(max(math.prod(chunks), math.prod(pieces)) * dtype.itemsize, threads)
    gathered = gathered_shape(shape, pieces, chunks, dtype.itemsize, GATHERED_NBYTES) if parts else chunks
    at_once = chunks_at_once(math.prod(chunks) * dtype.itemsize)

    mine = threading.local()

    def direct(wanted: Sequence[Region]) -> list[R]:
        if not hasattr(mine, "room"):
            mine.room = np.empty(math.prod(chunks), dtype)  # again and again: its pages need not be made anew
        found = []
        for part in wanted:
            extents = [each.stop - each.start for each in part]
            found.append(function(part, source.read(part, mine.room[: math.prod(extents)].reshape(extents))))
        return found

    def calls() -> Iterator[Callable[[], list[R]]]:
        before: _Box | None = None
        last: _Box | None = None
        alone: list[Region] = []
        for group in grouped(parts, gathered):
            if len(group) == 1:
                alone += group
            if alone and (len(group) > 1 or len(alone) == at_once):
                yield from _uses(before, function)
                before, last = None, before
                yield partial(direct, alone)
                alone = []
            if len(group) > 1:
                tasks = [group[at : at + at_once] for at in range(0, len(group), at_once)]
                box = _Box(source, bounding(group), dtype, tasks, last)
                yield from _uses(before, function, box)
                before, last = box, before
        yield from _uses(before, function)
        if alone:
            yield partial(direct, alone)

    def call(wanted: Callable[[], list[R]]) -> list[R]:
        return wanted()

    with closing(ordered_map(call, calls(), threads)) as results:
        for each in results:
            yield from each


def bounded_threads(nbytes: int, threads: int) -> int:
    """Count the threads that may work on chunks of so many bytes, with bounded memory, and gain by it."""
    if nbytes < _LEAST_SHARED_NBYTES:
        return 1
    return max(1, min(threads, _LARGE_NBYTES // max(_COPIES * nbytes, 1)))


def chunks_at_once(nbytes: int) -> int:
    """Count the chunks of so many bytes that are one task.

    Threads that hand over the interpreter's lock after each chunk would mostly wait for it.
    """
    return max(1, _TASK_NBYTES // nbytes)


def _pieces(source: Values) -> tuple[int, ...]:
    """Shape of what is read at once: a chunk, or a row."""
    return source.chunks or (*(1 for _ in source.shape[1:]), *source.shape[-1:])


class _Box:
    """A part of the array that is put together from pieces, and then used by its chunks.

    Threads take what is to be done in its order: who waits for pieces, or for memory, waits for threads that work.

    Parameters
    ----------
    source, part, dtype
        Of the values.
    tasks
        Chunks that are used at once, and their number.
    earlier
        Whose memory this takes over when all of its chunks are done, so that two are there at a time.
    """

    def __init__(
        self,
        source: Values,
        part: Region,
        dtype: np.dtype[Any],
        tasks: Sequence[Sequence[Region]],
        earlier: _Box | None,
    ) -> None:
        self.source, self.part, self.tasks = source, part, tasks
        self.pieces = pieces_of(part, _pieces(source), dtype.itemsize, _PIECE_NBYTES)
        self._dtype, self._earlier = dtype, earlier
        self._room: NDArray[np.uint8] | None = None
        self._left, self._unused = len(self.pieces), len(tasks)
        self._lock = threading.Lock()
        self._full, self._done = threading.Event(), threading.Event()
        self._failed = False

    def fill(self, pieces: Sequence[Region]) -> list[Any]:
        """Read some pieces into their places, which gives no result."""
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

    def use(self, parts: Sequence[Region], function: Callable[[Region, NDArray[Any]], R]) -> list[R]:
        """Call the function on some chunks' values, when all are there; not after a failure, which is raised before."""
        self._full.wait()
        try:
            if self._failed:
                return []
            values = self._values()
            # Copied once, rather than by each step that wants the values side by side.
            return [function(part, np.ascontiguousarray(values[within(part, self.part)])) for part in parts]
        finally:
            with self._lock:
                self._unused -= 1
                if not self._unused:
                    self._done.set()

    def _values(self) -> NDArray[Any]:
        """Return the values, those that are there already."""
        extents = [each.stop - each.start for each in self.part]
        nbytes = math.prod(extents) * self._dtype.itemsize
        with self._lock:
            if self._room is None:
                self._room = _room(self._earlier, nbytes)
                self._earlier = None
            return self._room[:nbytes].view(self._dtype).reshape(extents)

    def hand_on(self) -> NDArray[np.uint8] | None:
        """Wait until all chunks are done, and give the memory away: its pages need not be made anew."""
        self._done.wait()
        room, self._room = self._room, None
        return room


def _room(earlier: _Box | None, nbytes: int) -> NDArray[np.uint8]:
    room = earlier.hand_on() if earlier else None
    return np.empty(nbytes, np.uint8) if room is None or room.nbytes < nbytes else room


def _uses(
    box: _Box | None, function: Callable[[Region, NDArray[Any]], R], following: _Box | None = None
) -> Iterator[Callable[[], list[R]]]:
    """Use a box, task by task, and fill the one that follows on the way, so that all tasks take about as long.

    A thread that got a piece while another one uses a chunk would wait for that: results are taken in order.
    """
    pieces = following.pieces if following else []
    if box is None:
        if following:
            yield from (partial(following.fill, [piece]) for piece in pieces)
        return
    count = len(box.tasks)

    def both(parts: Sequence[Region], share: Sequence[Region]) -> list[R]:
        if following and share:
            following.fill(share)
        return box.use(parts, function)

    for number, parts in enumerate(box.tasks):
        yield partial(both, parts, pieces[number * len(pieces) // count : (number + 1) * len(pieces) // count])
