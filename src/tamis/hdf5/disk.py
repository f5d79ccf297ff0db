"""File descriptors, and files made durable.

A descriptor is free as soon as close() is called, whatever close() says: closing it again would close a file that
another thread opened in the meantime. So nothing here closes twice.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import deflate

_AT_ONCE_NBYTES = 1 << 20
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}
"""What file systems say that cannot make a folder durable by itself, and folders that may not be listed."""


def close_handle(handle: int) -> None:
    """Close a descriptor that has nothing to lose: one that was read from, or made durable before."""
    with suppress(OSError):
        os.close(handle)


def write_all(handle: int, data: bytes | bytearray) -> None:
    """Write all bytes, also where the system takes some of them at a time."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def sync_file(path: Path) -> None:
    """Make a file durable."""
    with _opened(path) as handle:
        os.fsync(handle)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, where its file system can."""
    try:
        with _opened(path) as handle:
            os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes, and the CRC-32 of all of it."""
    nbytes = checksum = 0
    with _opened(path) as handle:
        while block := os.read(handle, _AT_ONCE_NBYTES):
            nbytes += len(block)
            checksum = deflate.crc32(block, checksum)
    return nbytes, checksum


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        close_handle(handle)
