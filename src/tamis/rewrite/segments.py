"""Chunks that other processes encode, and store in segments for the process that writes the target.

A segment is a file of chunks, which that process copies. If the target is a folder, a segment is a folder with complete
files of the target, which it only moves to their places, and with a file for the flags of missing values.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis.access import NEW_FILE, PRIVATE_FILE
from tamis.arrays.grid import ChunkNotes
from tamis.arrays.index import Parts, as_array
from tamis.arrays.source import Placed, checksum_of
from tamis.errors import FileError, TamisError
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.placed_chunks import PlacedChunk
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import journal_of, remove
from tamis.system.durability import sync_tree
from tamis.system.files import close_handle, open_file, opened_unless_link, write_at

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.rewrite.resumed_chunks import ResumedChunks
    from tamis.rewrite.transfer import ChunkFiles

FLAGS = "flags"
"""Name of the file of flags in a segment that is a folder."""


class Segment(NamedTuple):
    """What is known of the chunks of a segment, in the order in which they are written."""

    path: Path
    chunks: list[PlacedChunk]
    usual: int | None = None  # Mask that chunks without a mark have, in a folder
    packing_error: float = 0.0
    is_left: bool = False  # Whether an earlier run has written it: nobody knows if it is complete and undamaged


def file_in_segment(files: ChunkFiles | None, grid: Grid, number: int) -> str:
    """Return the name of the file of a chunk in a segment that is a folder; empty if the segment is a file."""
    return "" if files is None else str(files.shards_of(grid, np.array([number]))[0])


class SegmentWriter:
    """Stores the chunks of a segment, those of a file of the target one after the other. Use it in a ``with``."""

    def __init__(self, path: Path, files: ChunkFiles | None, grid: Grid, usual: int | None, host: str) -> None:
        self.path, self.usual, self._host = path, usual, host
        self._files, self._grid = files, grid
        self._file: _File | None = None
        self._flags: _File | None = None
        self._places = ChunkNotes("QQ")
        if files is not None:
            path.mkdir()

    def put(self, chunk: NewChunk) -> PlacedChunk:
        """Store a chunk."""
        file = self._file_of(chunk.number)
        mark = b""
        if self._files is not None:
            self.usual = chunk.mask if self.usual is None else self.usual
            mark = self._files.mark_of(chunk.data, chunk.mask, self.usual)
        offset = file.append(mark + chunk.data if mark else chunk.data)
        self._places.add(chunk.number, offset, len(mark) + len(chunk.data))
        place = Placed(offset + len(mark), len(chunk.data), chunk.checksum, chunk.seal, bool(mark))
        flags = chunk.flags
        flags_place = None
        if flags is not None:
            flags_place = Placed(self._flags_file(file).append(flags[0]), len(flags[0]), checksum_of(flags[0]))
            flags = b"", flags[1]
        return PlacedChunk(chunk._replace(data=b"", flags=flags, placed=place), flags_place)

    def _file_of(self, number: int) -> _File:
        """Return the file of a chunk; complete the last one."""
        name = file_in_segment(self._files, self._grid, number)
        if self._file is None or self._file.name != name:
            self._end_file()
            # The files of a target are for everyone whom the user lets read files.
            self._file = _File(self.path / name, name, PRIVATE_FILE if self._files is None else NEW_FILE)
        return self._file

    def _flags_file(self, file: _File) -> _File:
        if self._files is None:
            return file
        if self._flags is None:
            self._flags = _File(self.path / FLAGS, FLAGS, PRIVATE_FILE)
        return self._flags

    def _end_file(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        with file:
            if self._files is not None and (ending := self._files.ending_of(self._grid, self._places)):
                file.append(ending)
        self._places = ChunkNotes("QQ")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with ExitStack() as stack:
            for file in (self._file, self._flags):
                if file is not None:
                    stack.enter_context(file)
            if kind is None:
                self._end_file()
        if kind is None and self._files is not None and self._host != socket.gethostname():
            sync_tree(self.path)  # the process that writes the target cannot: the bytes may be in this machine's memory


class _File:
    """A new file of a segment."""

    def __init__(self, path: Path, name: str, mode: int) -> None:
        self.name, self._nbytes = name, 0
        self._handle: int | None = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)

    def append(self, data: bytes) -> int:
        """Append bytes; return their offset."""
        assert self._handle is not None
        write_at(self._handle, data, self._nbytes)
        self._nbytes += len(data)
        return self._nbytes - len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            close_handle(handle)


class SegmentReader:
    """Yields the chunks of the segments of an array, and moves complete files to a target that is a folder."""

    def __init__(
        self, path: str, grid: Grid, folder: Path, files: ChunkFiles | None, resumed: ResumedChunks | None
    ) -> None:
        self._path, self._grid, self._folder, self._files = path, grid, folder, files
        reused = [] if resumed is None else resumed.reused
        self.usual = reused[0][1] if reused else None
        numbers = np.array([number for number, _ in reused], np.int64)
        # Files that have chunks of an earlier run get all others one by one.
        self._begun = set() if files is None else {*map(str, files.shards_of(grid, numbers).tolist())}

    def chunks(self, segment: Segment) -> Iterator[NewChunk]:
        """Yield the chunks of a segment, and remove it; one of an earlier run ends before the first damaged chunk."""
        if self.usual is None and segment.chunks:
            self.usual = segment.chunks[0].chunk.mask
        try:
            yield from self._chunks(segment)
        except OSError as error:
            if isinstance(error, TamisError):
                raise
            if not segment.is_left:
                text = f"{segment.path}: cannot be read or moved: {disk_text(error)}"
                raise FileError(text).at(path=segment.path) from error
        remove_segment(segment.path)

    def _chunks(self, segment: Segment) -> Iterator[NewChunk]:
        moved = None
        flags_file = "" if self._files is None else FLAGS
        with opened_unless_link(segment.path) as handle:

            def read(place: Placed, file: str) -> bytes | None:
                return place.read(handle, file)

            for placed in segment.chunks:
                name = file_in_segment(self._files, self._grid, placed.chunk.number)
                if self._files is not None and self._can_move(segment, name):
                    if name != moved:
                        file = self._files.file_of(self._path, self._grid, placed.chunk.number)
                        _move(segment.path / name, self._folder / file)
                        moved = name
                    chunk = placed.with_flags(read, flags_file)
                else:
                    chunk = placed.loaded(read, name, flags_file)
                if chunk is None and segment.is_left:
                    return
                if chunk is None:
                    text = f"{segment.path / name}: expected the bytes that another process wrote, found other ones"
                    raise FileError(text).at(path=segment.path)
                yield chunk

    def _can_move(self, segment: Segment, name: str) -> bool:
        """Return whether a file of a segment is one of the target, as it is."""
        return not segment.is_left and name not in self._begun and segment.usual == self.usual


def _move(file: Path, place: Path) -> None:
    try:
        os.rename(file, place)
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(file, place)


def remove_segment(path: Path) -> None:
    """Remove a segment, which nobody needs, and its journal."""
    for each in (path, journal_of(path)):
        with suppress(OSError):
            remove(each)


def by_file(parts: Iterable[Parts], files: ChunkFiles, grid: Grid, at_once: int) -> Iterator[Parts]:
    """Yield the same parts, about this many at a time, with those of one file together, in their order."""
    numbers = np.concatenate([np.empty(0, np.int64), *(as_array(some.numbers) for some in parts)])
    _, first, file, counts = np.unique(
        files.shards_of(grid, numbers), return_index=True, return_inverse=True, return_counts=True
    )
    numbers = numbers[np.argsort(first[file], kind="stable")]
    ends = np.cumsum(counts[np.argsort(first)])
    begin = 0
    while begin < len(numbers):
        fitting = int(np.searchsorted(ends, begin + at_once, "right"))
        following = int(np.searchsorted(ends, begin, "right"))
        end = int(ends[max(fitting - 1, following)])
        yield Parts(grid, numbers[begin:end])
        begin = end


def in_order(chunks: Iterator[NewChunk], numbers: NDArray[np.int64]) -> Iterator[NewChunk]:
    """Yield chunks in the order of their numbers in a list; those that come early are kept."""
    early: dict[int, NewChunk] = {}
    for number in numbers.tolist():
        while number not in early:
            chunk = next(chunks)
            early[chunk.number] = chunk
        yield early.pop(number)
