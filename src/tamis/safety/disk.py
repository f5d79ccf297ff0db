"""File descriptors, durable files, and reasons for failed writes.

A descriptor is released as soon as close() is called, even if close() fails: closing it again could close a file that
another thread has opened. So nothing here closes twice.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import deflate

from tamis.arrays.source import opened
from tamis.remote.address import Address
from tamis.remote.file import nbytes_below, remote_identity

_AT_ONCE_NBYTES = 1 << 20
"""Bytes of a file that are read at once for its checksum."""

_MANY_FILES = 64
"""Fewer files are synced one by one: other programs may have much to be written to their file system."""
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}
"""Errors of file systems that cannot sync a folder, and of folders that may not be listed."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE = -100
_EXCHANGE = 2
"""Linux: AT_FDCWD and RENAME_EXCHANGE."""


def lock_at_once(handle: int, kind: int = fcntl.LOCK_EX) -> bool | None:
    """Lock an open file until it is closed, without waiting.

    Returns False if another process holds a lock, and None where the file system has no locks.
    """
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def statuses_of(path: str | os.PathLike[str]) -> Iterator[os.stat_result]:
    """Yield the status of a file, or of a folder and of everything in it."""
    yield os.stat(path)
    if os.path.isdir(path):
        for folder, folders, files in os.walk(path):
            yield from (os.lstat(os.path.join(folder, name)) for name in (*folders, *files))


class Identity(NamedTuple):
    """What tells whether a file, or a folder with everything in it, is the same one, unchanged."""

    nbytes: int
    mtime_ns: int  # The latest in a folder; programs can set it, in contrast to `ctime_ns`
    inode: int
    ctime_ns: int = 0  # The latest in a folder; 0 where a new link or mode makes no difference

    @classmethod
    def of(cls, path: str | os.PathLike[str], *, with_ctime: bool = False) -> Self:
        """Return the identity of a file or folder; of one that is elsewhere, its size and a checksum of its version."""
        if isinstance(path, Address):
            nbytes, version = remote_identity(path)
            return cls(nbytes, version, 0)
        statuses = [*statuses_of(path)]
        nbytes = sum(status.st_size for status in statuses if not stat.S_ISDIR(status.st_mode))
        ctime_ns = max(status.st_ctime_ns for status in statuses) if with_ctime else 0
        return cls(nbytes, max(status.st_mtime_ns for status in statuses), statuses[0].st_ino, ctime_ns)


def nbytes_of(path: str | os.PathLike[str]) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 for a folder on a server that cannot list."""
    if isinstance(path, Address):
        return nbytes_below(path)
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


def sync_tree(path: Path, file_system: int | None = None) -> None:
    """Make all files in a folder durable, and their names."""
    folders = list(os.walk(path, topdown=False, onerror=_raise))
    are_many = sum(len(files) for _, _, files in folders) >= _MANY_FILES
    if are_many and file_system is not None and sync_file_system(file_system):
        return
    for folder, _, files in folders:
        for name in files:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))


def open_file_system(path: Path) -> int | None:
    """Return a handle for `sync_file_system`; None if this system does not report all errors to it.

    Linux has done so since 5.8, from the opening of the handle on.
    """
    if sys.platform != "linux" or not hasattr(_LIBC, "syncfs"):
        return None
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if release is None or tuple(map(int, release.groups())) < (5, 8):
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # a folder that may be written to, but not listed
        return None


def sync_file_system(handle: int) -> bool:
    """Make everything durable that was written to a file system; return whether it can do that."""
    number = errno.EINTR
    while number == errno.EINTR:
        if not _LIBC.syncfs(ctypes.c_int(handle)):
            return True
        number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, if its file system supports that."""
    try:
        with opened(path) as handle:
            os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise


def size_and_checksum(path: Path) -> tuple[int, int]:
    """Return the size in bytes and the CRC-32 of a file, or of all files in a folder and their names."""
    nbytes = checksum = 0
    for name, file in _files_of(os.fspath(path)):
        if name:
            checksum = deflate.crc32(os.fsencode(name) + b"\0", checksum)
        with opened(file) as handle:
            while block := os.read(handle, _AT_ONCE_NBYTES):
                nbytes += len(block)
                checksum = deflate.crc32(block, checksum)
    return nbytes, checksum


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files in a folder and their names."""
    checksum = hashlib.sha256()
    for name, file in _files_of(os.fspath(path)):
        if name:
            checksum.update(os.fsencode(name) + b"\0")
        with open(file, "rb") as stream:
            while block := stream.read(_AT_ONCE_NBYTES):
                checksum.update(block)
    return checksum.hexdigest()


def exchange(path: Path, other: Path) -> None:
    """Exchange the names of two folders in one step, or, if the system has no such call, in three."""
    try:
        rename = _LIBC.renameat2
    except AttributeError:
        number = errno.ENOSYS
    else:
        here = ctypes.c_int(_HERE)
        if not rename(here, os.fsencode(path), here, os.fsencode(other), ctypes.c_uint(_EXCHANGE)):
            return
        number = ctypes.get_errno()
    if number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        raise OSError(number, os.strerror(number), os.fspath(other))
    aside = path.with_name(f"{path.name}-aside")
    os.rename(other, aside)
    try:
        os.rename(path, other)
    except OSError:
        os.rename(aside, other)
        raise
    os.rename(aside, path)


def _files_of(path: str) -> Iterator[tuple[str, str]]:
    """Yield a file itself, without a name, or the name and path of each file in a folder, sorted by name."""
    if not os.path.isdir(path):
        yield "", path
        return
    for folder, folders, files in os.walk(path, onerror=_raise):
        folders.sort()
        for name in sorted(files):
            file = os.path.join(folder, name)
            yield file[len(os.path.join(path, "")) :], file


def _raise(error: OSError) -> None:
    raise error
