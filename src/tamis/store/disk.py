"""File descriptors, durable files, and reasons why the file system could not write.

A descriptor is free as soon as close() is called, even if close() fails: closing it again could close a file that
another thread has opened. So nothing here closes twice.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import deflate

from tamis.chunks.source import close_handle

_AT_ONCE_NBYTES = 1 << 20
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}
"""Errors of file systems that cannot sync a folder, and of folders that may not be listed."""

_MEANINGS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full for this user",
    errno.EFBIG: "the file system, or ulimit -f, takes no file of that size",
}
_NUMBER = re.compile(r"errno = (\d+)")


def statuses_of(path: str | os.PathLike[str]) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of a folder and of everything in it."""
    yield os.stat(path)
    if os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            yield from (os.lstat(os.path.join(folder, name)) for name in (*folders, *files))


def nbytes_of(path: str | os.PathLike[str]) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return sum(status.st_size for status in statuses_of(path) if not stat.S_ISDIR(status.st_mode))


def write_all(handle: int, data: bytes | bytearray) -> None:
    """Write all bytes, even if the system writes fewer at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Write all bytes at an offset, as `write_all` does."""
    while data:
        count = os.pwrite(handle, data, offset)
        data, offset = data[count:], offset + count


def sync_file(path: Path) -> None:
    """Make a file durable."""
    with opened(path) as handle:
        os.fsync(handle)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, if its file system supports that."""
    try:
        with opened(path) as handle:
            os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes, and its CRC-32."""
    nbytes = checksum = 0
    with opened(path) as handle:
        while block := os.read(handle, _AT_ONCE_NBYTES):
            nbytes += len(block)
            checksum = deflate.crc32(block, checksum)
    return nbytes, checksum


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file, and ignore errors when it is closed: for files that are read, or made durable elsewhere."""
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        close_handle(handle)


def disk_text(error: BaseException) -> str:
    """Return why writing failed: the file system's reason if there is one, and its meaning."""
    number = _number(error)
    if number is None:
        return str(error)
    return f"{_MEANINGS[number]}: {os.strerror(number)}" if number in _MEANINGS else os.strerror(number)


def system_error(error: BaseException) -> str:
    """Return the file system's reason; empty if there is none."""
    number = _number(error)
    return "" if number is None else os.strerror(number)


def is_disk_full(error: BaseException) -> bool:
    """Return whether the reason is a lack of space."""
    return _number(error) in _MEANINGS


def _number(error: BaseException | None) -> int | None:
    """Return the errno of an error or of its causes; None if there is none."""
    while error is not None:
        if match := _NUMBER.search(str(error)):
            return int(match[1])
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__ or error.__context__
    return None
