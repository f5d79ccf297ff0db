"""Sources of bytes: the protocol, local files, and the places of chunks in them; remote ones are in `tamis.remote`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import finalize

import deflate
import numpy as np

from tamis import _native
from tamis.system.files import close_handle, opened_below, read_at, read_into


class ByteSource(Protocol):
    """Bytes by offset. Threads may share a source."""

    @property
    def nbytes(self) -> int:
        """Number of all bytes."""

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return this many bytes from an offset; fewer only at the end."""

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size, which a remote source may ask for at once."""


@runtime_checkable
class SlowSource(ByteSource, Protocol):
    """A source whose every answer takes long, but many come at once."""

    def ahead(self, ranges: Iterable[tuple[int, int]]) -> AbstractContextManager[None]:
        """Begin to fetch ranges of offset and size; inside, reads find them."""

    def copying(self, ranges: Iterable[tuple[int, int]]) -> Callable[[int], None]:
        """Begin to fetch ranges of offset and size, and return a function that writes them into a file."""

    def stop_at(self, offset: int) -> None:
        """Read ahead up to this offset only, at which an array ends, when one read goes on where another ended."""


class Descriptor:
    """A file descriptor that is closed with its last reference, so that no read finds it closed."""

    def __init__(self, number: int) -> None:
        self.number = number
        # Not __del__: while that closes the descriptor, another thread may get the object by a weak reference, and read
        # whatever file gets the number next.
        finalize(self, close_handle, number).atexit = False


class FileSource:
    """Bytes of a local file."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor

    @property
    def nbytes(self) -> int:
        """Current size of the file in bytes."""
        return os.fstat(self.descriptor.number).st_size

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return this many bytes from an offset; fewer only at the end."""
        return read_at(self.descriptor.number, nbytes, offset)

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""
        return read_into(self.descriptor.number, room, offset)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size, read in one native call."""
        ranges = list(ranges)
        columns = np.array(ranges, np.int64).reshape(len(ranges), 2).T
        read = _native.read_ranges(self.descriptor.number, *np.ascontiguousarray(columns))
        # Native code returns None for ranges beyond the end of the file.
        return [self.read(*span) if data is None else data for span, data in zip(ranges, read, strict=True)]


def checksum_of(data: bytes) -> int:
    """Return the checksum of a chunk: libdeflate's CRC-32, which takes less than 2 % of the time of copying it."""
    return deflate.crc32(data)


def seal_of(data: bytes, mask: int) -> int:
    """Return the checksum of a chunk and its filter mask: a CRC-32 that starts with the mask."""
    return deflate.crc32(data, mask)


class Placed(NamedTuple):
    """Where a chunk is in a file, and what is known of its bytes."""

    offset: int
    nbytes: int
    checksum: int  # See `checksum_of`
    seal: int = 0  # See `seal_of`; only known if the chunk was decoded and compared
    is_marked: bool = False  # Whether a mark with its filter mask precedes it

    def read(self, handle: int, file: str = "") -> bytes | None:
        """Return the bytes of the chunk in its open file, or in a file of an open folder.

        None if they are not those that were written.
        """
        if file:
            with opened_below(handle, file) as inside:
                return self.read(inside)
        if self.offset + self.nbytes > os.fstat(handle).st_size:  # a damaged record may have any number
            return None
        data = read_at(handle, self.nbytes, self.offset)
        return data if len(data) == self.nbytes and checksum_of(data) == self.checksum else None
