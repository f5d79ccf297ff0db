"""What tells whether a file or folder is the same one, unchanged: sizes, times and checksums."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import deflate

from tamis.remote.address import Address
from tamis.remote.file import nbytes_below, remote_identity
from tamis.system.files import opened

_AT_ONCE_NBYTES = 1 << 20
"""Bytes of a file that are read at once for its checksum."""


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
