"""Parts of arrays, and a function called on each chunk of a new grid, in threads, in order and in little memory."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import Region, shape_of
from tamis.arrays.index import Parts, as_array
from tamis.arrays.read_many import SMALL_NBYTES
from tamis.arrays.threads import ordered_map

if TYPE_CHECKING:
    from tamis.arrays.reader import ArrayReader

Shape = tuple[int, ...]

_SAME = 1e-9
"""Scores that differ by less are equal."""

_SLAB_NBYTES = 1 << 20
"""Bytes of several small chunks that are read at once."""


def gathered_shape(
    shape: tuple[int, ...], pieces: tuple[int, ...], chunk_shape: tuple[int, ...], itemsize: int, most_nbytes: int
) -> tuple[int, ...]:
    """Return the shape of the parts in which an array goes from one grid of chunks to another.

    Each part is a whole number of chunks of the target. A piece of the source is read once for each part that it
    overlaps, so larger parts share fewer pieces. The result depends only on the arguments, so work always has the same
    order.
    """
    axes = range(len(shape))
    counts = [1] * len(shape)

    def part_nbytes(chunk_counts: Sequence[int]) -> int:
        extents = (min(count * chunk_shape[axis], shape[axis]) for axis, count in zip(axes, chunk_counts, strict=True))
        return math.prod(extents) * itemsize

    while True:
        best_score: tuple[float, float] = (0.0, 0.0)
        best_counts: list[int] = []
        nbytes = part_nbytes(counts)
        for axis in reversed(axes):
            reads = pieces_read(shape[axis], pieces[axis], counts[axis] * chunk_shape[axis])
            for count in _steps(shape[axis], pieces[axis], chunk_shape[axis], counts[axis]):
                candidate = [*counts[:axis], count, *counts[axis + 1 :]]
                fewer_reads = pieces_read(shape[axis], pieces[axis], count * chunk_shape[axis])
                if fewer_reads >= reads or part_nbytes(candidate) > most_nbytes:
                    continue
                saved = math.log(reads / fewer_reads)
                gain = saved / math.log(max(part_nbytes(candidate) / nbytes, 1 + _SAME))
                if gain > best_score[0] + _SAME or (gain > best_score[0] - _SAME and saved > best_score[1] + _SAME):
                    best_score, best_counts = (gain, saved), candidate
        if not best_counts:
            return tuple(count * step for count, step in zip(counts, chunk_shape, strict=True))
        counts = best_counts


def pieces_of(part: Region, pieces: tuple[int, ...], itemsize: int, least_nbytes: int) -> list[Region]:
    """Return pieces of a part, cut along the grid of the source, of at least `least_nbytes`, last axis fastest."""
    steps = list(pieces)
    for axis in reversed(range(len(steps))):
        extent = part[axis].stop - part[axis].start
        factor = -(-least_nbytes // max(math.prod(steps) * itemsize, 1))
        steps[axis] *= max(1, min(factor, -(-extent // steps[axis])))
    return [*cut(part, steps)]


def cut(part: Region, step: Sequence[int]) -> Iterator[Region]:
    """Yield the pieces of a part along a grid that begins with the array, last axis fastest."""

    def pieces(span: slice, n: int) -> list[slice]:
        starts = range(span.start // n * n, span.stop, n)
        return [slice(max(start, span.start), min(start + n, span.stop)) for start in starts]

    return itertools.product(*map(pieces, part, step))


def read_slab_by_slab(reader: ArrayReader, part: Region) -> NDArray[Any]:
    """Read a part so that no more than one chunk, or several small ones, are decoded at a time."""
    if not reader.chunk_shape:
        return reader.read(part)
    values = np.empty(shape_of(part), reader.dtype)
    step = several_chunks(values.shape, reader.chunk_shape, _SLAB_NBYTES // max(reader.dtype.itemsize, 1))
    for piece in cut(part, step):
        values[within(piece, part)] = reader.read(piece)
    return values


def whole(shape: Sequence[int]) -> Region:
    """Return the region of a whole array."""
    return tuple(slice(0, extent) for extent in shape)


def within(part: Region, outer: Region) -> Region:
    """Return a part relative to an outer part that contains it."""
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, outer, strict=True))


def intersection(part: Region, other: Region) -> Region:
    """Return the intersection of two overlapping parts."""
    return tuple(slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(part, other, strict=True))


def pieces_read(extent: int, piece: int, part: int) -> int:
    """Return how often pieces are read along an axis: each once, plus once for each border of parts inside it."""
    return -(-extent // piece) + (extent - 1) // part - (extent - 1) // math.lcm(part, piece)


def _steps(extent: int, piece: int, chunk: int, count: int) -> list[int]:
    """Return larger counts of chunks that a part may have along an axis."""
    most = -(-extent // chunk)
    doubled = {count << shift for shift in range(1, 64) if count << shift < most}
    common = math.lcm(piece, chunk) // chunk  # chunks from one border of pieces to the next that is one of chunks
    aligned = {common * factor for factor in (1, 2, 4, 8) if count < common * factor < most}
    steps = doubled | aligned
    if most > count:
        steps.add(most)
    return sorted(steps)


def block_shape(shape: Shape, grids: Sequence[Shape], most: int) -> Shape:
    """Return the shape of blocks of an array that cut as few chunks as possible."""
    block = gathered_shape(shape, grids[0], grids[-1], 1, most) if grids else (1,) * len(shape)
    inside = tuple(map(min, block, shape))
    return tuple(map(min, several_chunks(shape, inside, most), shape))


def several_chunks(shape: Shape, chunk_shape: Shape, most: int) -> Shape:
    """Return the shape of several consecutive chunks of an array, if one chunk has few values."""
    steps = list(chunk_shape)
    for axis in reversed(range(len(shape))):
        count = -(-shape[axis] // chunk_shape[axis])
        steps[axis] *= max(1, min(count, most // math.prod(steps)))
        if steps[axis] < shape[axis]:
            break
    return tuple(steps)


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
    source: ArrayReader, parts: Parts, dtype: np.dtype[Any], function: PartsFunction[R], threads: int
) -> Generator[R, None, None]:
    """Call a function on the values of all chunks, some at a time, and yield the results of each in order.

    The order depends only on shapes and types. Each chunk of the source is decoded once if parts of 32 MiB allow that;
    otherwise as rarely as possible.
    """
    chunk_shape = parts.grid.chunk_shape
    nbytes = math.prod(chunk_shape) * dtype.itemsize
    piece_nbytes = math.prod(_pieces(source)) * dtype.itemsize
    threads = bounded_threads(max(nbytes, piece_nbytes), threads)
    gathered = _gathered_at_once(source, parts, dtype.itemsize)
    at_once = chunks_at_once(nbytes)
    are_small = nbytes <= SMALL_NBYTES
    own = threading.local()

    def direct(chunks: Parts) -> list[R]:
        """Call the function on chunks that are read one by one, or many small ones at once."""
        if not hasattr(own, "room"):  # reused: the system would clear new memory
            own.room = np.empty(math.prod(chunk_shape) * (at_once if are_small else 1), dtype)
        results = []
        for run in chunks.boxes() if are_small else _divided(chunks, 1):
            box = run.bounding()
            extents = shape_of(box)
            results += function(run, box, source.read(box, own.room[: math.prod(extents)].reshape(extents)))
        return results

    def calls() -> Iterator[Callable[[], list[R]]]:
        """Yield the tasks: chunks to read directly, or boxes to fill while the one before is used."""
        if gathered == chunk_shape:
            yield from (partial(direct, task) for task in tasks_of(parts, nbytes))
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


def each_result(
    source: ArrayReader,
    parts: Parts,
    dtype: np.dtype[Any],
    function: Callable[[Region, NDArray[Any]], R],
    threads: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Generator[R, None, None]:
    """Call a function on region and values of each chunk as `over_chunks`, report progress, and close the source."""
    progress(0, len(parts))
    with closing(source), closing(over_chunks(source, parts, dtype, one_by_one(function), threads)) as results:
        for done, result in enumerate(results, start=1):
            yield result
            progress(done, len(parts))


def slabs(source: ArrayReader, parts: Parts, itemsize: int, most_nbytes: int) -> Iterator[Parts]:
    """Yield parts several at a time, so that `over_chunks` on each in turn has the same results in the same order."""
    chunk_shape = parts.grid.chunk_shape
    at_once = max(1, most_nbytes // (math.prod(chunk_shape) * itemsize))
    gathered = _gathered_at_once(source, parts, itemsize)
    if gathered == chunk_shape:
        yield from _divided(parts, at_once)
        return
    slab: list[NDArray[np.int64]] = []
    for group in parts.grouped(gathered):
        if slab and sum(map(len, slab)) + len(group) > at_once:
            yield Parts(parts.grid, np.concatenate(slab))
            slab = []
        slab.append(as_array(group.numbers))
    yield Parts(parts.grid, np.concatenate(slab))


def one_by_one(function: Callable[[Region, NDArray[Any]], R]) -> PartsFunction[R]:
    """Return a function of several chunks that calls `function` with region and contiguous values of each."""

    def call(parts: Parts, box: Region, values: NDArray[Any]) -> list[R]:
        # Each step needs contiguous values: copied here, they are copied once.
        return [function(part, np.ascontiguousarray(values[within(part, box)])) for part in parts]

    return call


def bounded_threads(nbytes: int, threads: int) -> int:
    """Return the number of threads for chunks of this many bytes, limited by memory and by what they gain."""
    if nbytes < _LEAST_SHARED_NBYTES:
        return 1
    return max(1, min(threads, _LARGE_NBYTES // max(_COPIES * nbytes, 1)))


def chunks_at_once(nbytes: int) -> int:
    """Return how many chunks of this many bytes make one task.

    Small chunks share a task, because threads that exchange the interpreter's lock after each chunk mostly wait for it.
    """
    return max(1, _TASK_NBYTES // max(nbytes, 1))


def tasks_of(parts: Parts, nbytes: int) -> Iterator[Parts]:
    """Yield chunks of this many bytes in groups, each a task that is efficient for one thread."""
    return _divided(parts, chunks_at_once(nbytes))


def _divided(parts: Parts, at_once: int) -> Iterator[Parts]:
    """Yield parts, so many at a time."""
    return (parts[at : at + at_once] for at in range(0, len(parts), at_once))


def _gathered_at_once(source: ArrayReader, parts: Parts, itemsize: int) -> Shape:
    """Return the shape of the parts of an array that are gathered; that of a chunk if chunks can be read directly."""
    if not parts:
        return parts.grid.chunk_shape
    return gathered_shape(parts.grid.shape, _pieces(source), parts.grid.chunk_shape, itemsize, GATHERED_NBYTES)


def _pieces(source: ArrayReader) -> Shape:
    """Return the shape that is read at once: a chunk, or a row."""
    if source.chunk_shape:
        return source.chunk_shape
    return (1,) * (len(source.shape) - 1) + source.shape[-1:]


class _Box:
    """A part of the array that is assembled from pieces, and then used chunk by chunk.

    Threads take tasks in order, so a thread that waits for pieces or memory waits for a thread that works.
    """

    def __init__(
        self, source: ArrayReader, dtype: np.dtype[Any], parts: Parts, at_once: int, earlier: _Box | None
    ) -> None:
        self.source = source
        self.part = parts.bounding()
        self.tasks = list(_divided(parts, at_once))
        self.pieces = pieces_of(self.part, _pieces(source), dtype.itemsize, _PIECE_NBYTES)
        self._dtype = dtype
        self._earlier = earlier  # Whose memory is reused
        self._room: NDArray[np.uint8] | None = None
        self._left = len(self.pieces)  # Number of pieces to be read
        self._unused = len(self.tasks)  # Number of tasks that still need the box
        self._lock = threading.Lock()
        self._full = threading.Event()
        self._done = threading.Event()
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
        """Call the function on chunks when the box is full; not after a failure, which `fill` has already raised."""
        self._full.wait()
        try:
            if self._failed:
                return []
            return function(parts, self.part, self._values())
        finally:
            self.leave()

    def leave(self) -> None:
        """Count one task that needs the box no more; after the last one, the memory can be reused."""
        with self._lock:
            self._unused -= 1
            if not self._unused:
                self._done.set()

    def _values(self) -> NDArray[Any]:
        """Return the array of the box, with the pieces that were read so far."""
        extents = shape_of(self.part)
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
    """Return memory for a box: that of an earlier one, if it is large enough."""
    room = earlier.hand_on() if earlier else None
    return np.empty(nbytes, np.uint8) if room is None or room.nbytes < nbytes else room


def _uses(
    box: _Box | None, function: PartsFunction[R], following: _Box | None = None
) -> Iterator[Callable[[], list[R]]]:
    """Yield tasks that use one box and also fill the next, so that all tasks take about the same time.

    With separate tasks, a thread that filled a piece would wait for threads with chunks, because results are taken in
    order.
    """
    pieces = following.pieces if following else []
    if box is None:
        if following:
            yield from (partial(following.fill, [piece]) for piece in pieces)
        return
    count = len(box.tasks)

    def both(parts: Parts, share: Sequence[Region]) -> list[R]:
        if following and share:
            try:
                following.fill(share)
            except BaseException:
                box.leave()  # otherwise the thread that waits for its memory would wait forever
                raise
        return box.use(parts, function)

    for number, parts in enumerate(box.tasks):
        yield partial(both, parts, pieces[number * len(pieces) // count : (number + 1) * len(pieces) // count])
