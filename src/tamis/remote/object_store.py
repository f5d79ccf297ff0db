"""What tamis asks of a store of objects, and the files of this machine as one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tamis.errors import FileError
from tamis.formatting import kind_of_mode
from tamis.system.files import open_at_once

Range = tuple[int, int]  # Offset of the first byte, and that after the last


class Part(NamedTuple):
    """Bytes of an object, with what the store said about it."""

    data: bytes | memoryview
    size: int  # Bytes of the whole object
    version: str  # ETag, or the time of the last change; empty if the store has neither


class Entry(NamedTuple):
    """An object in a listing."""

    key: str
    size: int


class Objects(Protocol):
    """A store."""

    can_list: bool
    reads_tails: bool  # Whether `get` takes (-n, 0) for the last n bytes
    store: Any  # That of obstore or fsspec

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range of an object, or all of it; a version that is not empty must still be that of the object."""

    def get_many(self, key: str, spans: Sequence[Range]) -> list[bytes | memoryview]:
        """Return ranges of an object in parallel, without a check of its version, and without threads of Python."""
        return [self.get(key, span, "").data for span in spans]

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        yield from ()

    def put(self, key: str, data: Any) -> None:
        """Write an object: bytes, or the content of a path."""

    def delete(self, key: str) -> None:
        """Remove an object, if objects can be written."""
        self.put(key, None)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file for reading; a pipe does not wait for a writer, and anything else is refused."""
    handle = open_at_once(path, flags)
    if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
        os.close(handle)
        raise FileError(f"{path}: expected a file, found {kind_of_mode(mode)}").at(path=path)
    return handle


class LocalObjects(Objects):
    """Files of this machine, as a store of what is read range by range; its keys are paths."""

    protocol = "file"
    can_list = False
    reads_tails = True

    def __init__(self) -> None:
        self.store = self

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range of a file; see `Objects.get`."""
        with open(key, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            begin, end = span or (0, status.st_size)
            if begin < 0:
                begin, end = max(begin + status.st_size, 0), status.st_size
            file.seek(begin)
            data = file.read(max(min(end, status.st_size) - begin, 0))
        return Part(data, status.st_size, f"{status.st_mtime_ns}-{status.st_size}")

    def put(self, key: str, data: Any) -> None:
        """Write a file."""
        Path(key).write_bytes(data)
