"""Dask arrays encoded and proven where Dask's workers compute them; only encoded chunks come to this process.

The chunks are those of one process, in its order. Few of them are under way at a time, and they stay with the workers
until this process writes them. If workers see the folder of a Zarr target, they store its files in segments there
(`tamis.rewrite.segments`), and this process moves them to their places.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tamis.access import PRIVATE_FOLDER
from tamis.arrays.gather import intersection, slabs, within
from tamis.arrays.grid import Region, origin_of
from tamis.arrays.index import as_array
from tamis.arrays.reader import put
from tamis.errors import DataError, TamisError, located
from tamis.jobs.repack.survey import ReadSurvey
from tamis.jobs.workers import connected
from tamis.rewrite.packed_array import PackedArray, as_floats, marks_of
from tamis.rewrite.segments import Segment, SegmentReader, SegmentWriter, by_file, in_order
from tamis.rewrite.write import encode_parts
from tamis.rounding.pack import PackingRange
from tamis.safety.library_errors import error_text
from tamis.safety.transaction import segments_of
from tamis.xarray.dataset_store import VariableArray

if TYPE_CHECKING:
    from tamis.arrays.index import Parts
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.rewrite.plan import ArrayPlan
    from tamis.rewrite.resumed_chunks import ResumedChunks
    from tamis.rewrite.transfer import ChunkFiles
    from tamis.rewrite.write import EncodeElsewhere
    from tamis.stores.protocols import StoredArray

_SLAB_NBYTES = 32 << 20
"""Decoded bytes of the chunks of a task."""

_AHEAD = 2
"""Tasks, for each thread of the workers, that are under way or wait to be written."""

_Number = tuple[int, ...]


class WorkersSurvey(ReadSurvey):
    """A survey whose ranges of dask arrays the workers find, so that no values travel."""

    def packing_range(self, source: StoredArray, chunk_shape: tuple[int, ...]) -> PackingRange:
        """See `tamis.jobs.repack.survey.Survey.packing_range`."""
        array = cast("VariableArray", source)
        client = _client_of(array.variable._data)
        if client is None:
            return super().packing_range(source, chunk_shape)
        data: Any = array.variable._data
        sent, total = array.without_values(), PackingRange()
        blocks, step = _Blocks(client, data), f"reading {array.path}, whose range is needed"

        def tasks() -> Iterator[_Task]:
            for number in np.ndindex(*data.numblocks):
                origin, block = origin_of(blocks.place(number)), client.compute(data.blocks[number])
                yield _Task(array.path, origin, client.submit(_range_of, sent, origin, block, pure=False))

        self.report(step, 0, data.npartitions)
        for done, extent in enumerate(_results(client, tasks()), start=1):
            total = total.plus(extent)
            self.report(step, done, data.npartitions)
        return total


def _range_of(array: VariableArray, origin: tuple[int, ...], block: NDArray[Any]) -> PackingRange | TamisError:
    """Return the range of a block, in a worker."""
    source = cast("StoredArray", array)
    try:
        with located(f"{array.path}: chunk at {origin}", dataset=array.path):
            return PackingRange.of(as_floats(source, np.asarray(block)), marks_of(source))
    except TamisError as error:
        return error


class _Task(NamedTuple):
    """A task of the workers, about the chunks of a variable from a place on."""

    path: str
    origin: tuple[int, ...]
    future: Any


def _results(client: Any, tasks: Iterator[_Task]) -> Generator[Any, None, None]:
    """Yield the results of tasks in their order, of which few are under way."""
    waiting: deque[_Task] = deque()
    try:
        while True:
            with connected(client):
                most = _AHEAD * max(sum(client.nthreads().values()), 1)
                waiting.extend(itertools.islice(tasks, max(most - len(waiting), 0)))  # workers may have ended
            if not waiting:
                return
            yield _result(*waiting.popleft())  # the worker forgets it
    finally:
        if waiting:
            with suppress(OSError):  # a scheduler that has ended
                client.cancel([task.future for task in waiting])


def encode_in_workers(target: Path, files: ChunkFiles | None) -> EncodeElsewhere:
    """Return a function that encodes dask arrays for a temporary target if their scheduler is distributed."""

    def encode(
        plan: ArrayPlan, source: StoredArray, parts: Parts, resumed: ResumedChunks | None
    ) -> Generator[NewChunk, None, None] | None:
        array = cast("VariableArray", source.source if isinstance(source, PackedArray) else source)
        client = _client_of(array.variable._data)
        return None if client is None else _encoded(client, plan, source, array, parts, target, files)

    return encode


def _client_of(data: Any) -> Any:
    """Return the client of the distributed scheduler that would compute a dask array; None for all else."""
    if not hasattr(data, "dask"):
        return None
    from dask.base import get_scheduler  # late: few datasets are of dask arrays

    scheduler = get_scheduler(collections=[data])  # type: ignore[no-untyped-call, unused-ignore]
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scheduler_info") and hasattr(owner, "submit") else None


def _encoded(
    client: Any,
    plan: ArrayPlan,
    source: StoredArray,
    array: VariableArray,
    parts: Parts,
    target: Path,
    files: ChunkFiles | None,
) -> Generator[NewChunk, None, None]:
    blocks = _Blocks(client, array.variable._data)
    segments = SegmentReader(plan.path, parts.grid, target, files, None)

    def tasks() -> Iterator[_Task]:
        for slab in _slabs(plan, array, parts, segments_of(target), files, segments):
            needed = blocks.futures(slab.parts)
            places = [blocks.place(number) for number in needed]
            future = client.submit(slab.encode, places, [*needed.values()], pure=False)
            yield _Task(plan.path, origin_of(slab.parts[0]), future)

    with closing(_results(client, tasks())) as results:
        for chunks, packing_error in results:
            if isinstance(source, PackedArray):
                source.note(packing_error)
            yield from segments.chunks(chunks) if isinstance(chunks, Segment) else chunks


def _slabs(
    plan: ArrayPlan,
    array: VariableArray,
    parts: Parts,
    folder: Path,
    files: ChunkFiles | None,
    segments: SegmentReader,
) -> Iterator[_Slab]:
    """Yield the tasks of an array."""
    found = slabs(array.open_reader(), parts, plan.dtype.itemsize, _SLAB_NBYTES) if len(parts) else iter(())
    if files is not None:
        folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        if files.has_shards:
            found = by_file(found, files, parts.grid, max(1, _SLAB_NBYTES // plan.chunk.nbytes))
    sent, host = array.without_values(), socket.gethostname()
    for slab in found:
        yield _Slab(plan, sent, slab, folder, files, segments.usual, host)


_Encoded = tuple["list[NewChunk] | Segment", float]
"""Chunks, with their bytes or in a segment, and the largest error of packing."""


def _result(path: str, origin: tuple[int, ...], future: Any) -> Any:
    """Return what a worker found; errors name the variable and the place."""
    try:
        result = future.result()
    except Exception as error:  # of any task of the user's graph, or because workers ended
        raise DataError(
            f"{path}: chunks from {origin} on: a worker of Dask cannot compute or encode them:"
            f" {type(error).__name__}: {error_text(error)}"
        ).at(dataset=path, chunk=origin) from error
    if isinstance(result, TamisError):
        raise result
    return result


class _Slab(NamedTuple):
    """Some chunks of an array, a task for a worker."""

    plan: ArrayPlan
    array: VariableArray  # Without values
    parts: Parts
    folder: Path  # Of segments
    files: ChunkFiles | None
    usual: int | None  # Mask of the first chunk of the array; None if it is not known yet
    host: str  # Of the process that writes the target

    def encode(self, places: list[Region], blocks: list[NDArray[Any]]) -> _Encoded | TamisError:
        """Encode the chunks; `blocks` are parts of the array."""
        values = _BlockReader(self.array, [*zip(places, map(np.asarray, blocks), strict=True)])
        source = self.plan.source_of(cast("StoredArray", self.array.read_by(values)))
        try:
            with closing(encode_parts(self.plan, source, self.parts.by_number(), 1)) as encoded:
                chunks = self._stored(in_order(encoded, as_array(self.parts.numbers)))
        except TamisError as error:
            return error
        return chunks, source.largest_error if isinstance(source, PackedArray) else 0.0

    def _stored(self, chunks: Iterator[NewChunk]) -> list[NewChunk] | Segment:
        """Store the chunks in a segment, if the target can take its files and is on a shared file system."""
        if self.files is None or not self.folder.is_dir():
            return [*chunks]
        path = self.folder / os.urandom(8).hex()
        with SegmentWriter(path, self.files, self.parts.grid, self.usual, self.host) as segment:
            stored = [segment.put(chunk) for chunk in chunks]
        return Segment(path, stored, segment.usual)


class _BlockReader:
    """The values of some blocks of a dask array; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(self, array: VariableArray, blocks: list[tuple[Region, NDArray[Any]]]) -> None:
        self.shape, self.dtype = array.shape, array.type.dtype or array.variable.dtype
        self.chunk_shape = array.block_shape
        self._blocks = blocks

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part, converted to the type of `out`."""
        values = np.empty([axis.stop - axis.start for axis in part], self._blocks[0][1].dtype)
        for place, block in self._blocks:
            if all(max(a.start, b.start) < min(a.stop, b.stop) for a, b in zip(place, part, strict=True)):
                shared = intersection(place, part)
                values[within(shared, part)] = block[within(shared, place)]
        return put(values.view(self.dtype) if self.dtype.kind == "V" else values, out)

    def close(self) -> None:
        """Do nothing."""


class _Blocks:
    """The blocks of a dask array, each computed once for the tasks, one after the other, that need it."""

    def __init__(self, client: Any, data: Any) -> None:
        self._client, self._data = client, data
        self._ends = [np.cumsum(sizes) for sizes in data.chunks]
        self._kept: dict[_Number, Any] = {}

    def place(self, number: _Number) -> Region:
        """Return the part of the array that a block has."""
        ends = [int(axis[at]) for axis, at in zip(self._ends, number, strict=True)]
        sizes = [sizes[at] for sizes, at in zip(self._data.chunks, number, strict=True)]
        return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))

    def futures(self, parts: Parts) -> dict[_Number, Any]:
        """Return the blocks that some chunks need, which the workers compute; forget all others."""
        numbers = self._touched(parts)
        new = [number for number in numbers if number not in self._kept]
        futures = self._client.compute([self._data.blocks[number] for number in new])
        known = self._kept | dict(zip(new, futures, strict=True))
        self._kept = {number: known[number] for number in numbers}
        return self._kept

    def _touched(self, parts: Parts) -> list[_Number]:
        begin = parts.origin_table()
        last = np.minimum(begin + parts.grid.chunk_shape, parts.grid.shape) - 1
        axes = [
            np.stack([np.searchsorted(ends, values[:, axis], "right") for values in (begin, last)], axis=1)
            for axis, ends in enumerate(self._ends)
        ]
        spans = np.unique(np.concatenate(axes, axis=1), axis=0).reshape(-1, len(axes), 2).tolist()
        return sorted({number for span in spans for number in itertools.product(*(range(a, b + 1) for a, b in span))})
