"""Descriptors of files: opened, read and written at offsets, by several threads at once.

What a system lacks:

- Windows has no reads and writes at an offset that leave the position of the file alone, and Python has none that fill
  memory on some systems. Then a lock, a move to the offset, and a move back do the same, if every thread goes this way.
  A library that holds the descriptor, such as HDF5, does not: read through `separate`.
- Windows locks the name of an open file. Files that are opened here can be renamed and removed all the same, but those
  of other libraries only once they are closed.
- Windows opens no file from a descriptor of its folder. The path that the folder has by then takes its place; another
  folder that gets this path between the two steps is not noticed.
- Windows follows links, unless it opens the link itself. So what was opened is compared with what has the name.
- Only Linux lets a file and its copy share their content until one changes. Elsewhere copies take room at once.
- Files in memory alone are one call on Linux. Elsewhere they are temporary files, which take room on a disk.

A descriptor is released as soon as close() is called, even if close() fails: closing it again could close a file that
another thread has opened. So nothing here closes twice.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.forks import begin_in_each_process

# Python gives no descriptor to the programs that it starts: O_CLOEXEC, and O_NOINHERIT on Windows, go without saying.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""A pipe does not wait for a writer; Windows has no pipes among its files."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

if sys.platform == "win32":
    from tamis.system import windows

    def open_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o777) -> int:
        """Open a file or folder by the flags of `os.open`; a new one gets a mode, as far as the umask allows it."""
        handle = windows.open_handle(os.fspath(path), flags)
        if flags & os.O_CREAT and not mode & stat.S_IWUSR:
            os.chmod(path, stat.S_IREAD)  # all that Windows knows of modes
        return handle

    def _open_itself(path: str | Path, flags: int) -> int:
        return windows.open_handle(os.fspath(path), flags, follows=False)

    _path_of = windows.path_of
    _opened_again = windows.opened_again

else:

    def open_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o777) -> int:
        """Open a file or folder by the flags of `os.open`; a new one gets a mode, as far as the umask allows it."""
        return os.open(path, flags, mode)

    def _open_itself(path: str | Path, flags: int) -> int:
        return os.open(path, flags | _NO_LINK | _AT_ONCE)

    def _path_of(handle: int) -> str:
        raise OSError(errno.ENOTSUP, f"the path of descriptor {handle} is not known")

    def _opened_again(handle: int) -> int:
        raise OSError(errno.ENOTSUP, f"descriptor {handle} cannot be opened again")


def open_at_once(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a file; a pipe does not wait for a writer."""
    return open_file(path, flags | _AT_ONCE)


def open_unless_link(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a file or folder; raises OSError for a link, and does not wait for the writer of a pipe."""
    handle = _open_itself(path, flags)
    if not _NO_LINK and not _is(handle, path):
        os.close(handle)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return handle


def _is(handle: int, path: str | Path) -> bool:
    """Return whether an open file is what has a path, which is no link: on systems whose `open` follows links."""
    status = os.lstat(path)
    return not stat.S_ISLNK(status.st_mode) and os.path.samestat(status, os.fstat(handle))


def close_handle(handle: int) -> None:
    """Close a descriptor and ignore errors: for files that were only read, or are already durable."""
    with suppress(OSError):
        os.close(handle)


@contextmanager
def opened(path: str | Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file, and ignore errors when it is closed: for files that are read, or made durable elsewhere."""
    handle = open_file(path, flags)
    try:
        yield handle
    finally:
        close_handle(handle)


@contextmanager
def opened_unless_link(path: str | Path) -> Iterator[int]:
    """Open a file or folder for reading as `open_unless_link` does."""
    handle = open_unless_link(path)
    try:
        yield handle
    finally:
        close_handle(handle)


@contextmanager
def opened_below(folder: int, file: str) -> Iterator[int]:
    """Open a file of an open folder, which may not be a link or a pipe: others may have changed the folder."""
    handle = _open_below(folder, file)
    try:
        yield handle
    finally:
        close_handle(handle)


if os.open in os.supports_dir_fd:

    def _open_below(folder: int, file: str) -> int:
        return os.open(file, os.O_RDONLY | _NO_LINK | _AT_ONCE, dir_fd=folder)

else:

    def _open_below(folder: int, file: str) -> int:
        return open_unless_link(os.path.join(_path_of(folder), file))


class _Positions:
    """The positions of open files, which one thread moves at a time."""

    def __init__(self) -> None:
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        self._locks = [threading.Lock() for _ in range(_LOCK_COUNT)]

    @contextmanager
    def moved(self, handle: int, offset: int) -> Iterator[None]:
        """Move the position of a file to an offset, and back."""
        with self._locks[handle % _LOCK_COUNT]:
            before = os.lseek(handle, 0, os.SEEK_CUR)
            os.lseek(handle, offset, os.SEEK_SET)
            try:
                yield
            finally:
                os.lseek(handle, before, os.SEEK_SET)


_LOCK_COUNT = 61
"""Locks for all files; those that share one only wait longer."""


if sys.platform != "win32" and hasattr(os, "pread") and hasattr(os, "pwrite"):
    _MOVES = False

    def _read(handle: int, nbytes: int, offset: int) -> bytes:
        return os.pread(handle, nbytes, offset)

    def _write(handle: int, data: bytes | memoryview, offset: int) -> int:
        return os.pwrite(handle, data, offset)

else:
    _MOVES = True
    _positions = _Positions()

    def _read(handle: int, nbytes: int, offset: int) -> bytes:
        with _positions.moved(handle, offset):
            return os.read(handle, nbytes)

    def _write(handle: int, data: bytes | memoryview, offset: int) -> int:
        with _positions.moved(handle, offset):
            return os.write(handle, data)


if sys.platform != "win32" and hasattr(os, "preadv"):

    def _read_into(handle: int, room: memoryview, offset: int) -> int:
        return os.preadv(handle, [room], offset)

else:

    def _read_into(handle: int, room: memoryview, offset: int) -> int:
        data = _read(handle, len(room), offset)
        room[: len(data)] = data
        return len(data)


def read_at(handle: int, nbytes: int, offset: int) -> bytes:
    """Read this many bytes, even if the system reads fewer at a time; fewer only at the end of the file."""
    data = _read(handle, nbytes, offset)
    while 0 < len(data) < nbytes and (more := _read(handle, nbytes - len(data), offset + len(data))):
        data += more
    return data


def read_into(handle: int, room: memoryview, offset: int) -> int:
    """Fill memory, which has bytes as its items, as `read_at` does, and return the count of bytes."""
    count = _read_into(handle, room, offset)
    while 0 < count < len(room) and (more := _read_into(handle, room[count:], offset + count)):
        count += more
    return count


def write_all(handle: int, data: bytes | bytearray) -> None:
    """Write all bytes, even if the system writes fewer at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]


def write_at(handle: int, data: bytes | memoryview, offset: int) -> None:
    """Write all bytes at an offset, as `write_all` does."""
    while data:
        count = _write(handle, data, offset)
        data, offset = data[count:], offset + count


if hasattr(os, "copy_file_range"):

    def copy_content(source: str | Path, target: str | Path) -> None:
        """Copy the content of a file to an existing one; file systems that can let both share it until one changes."""
        with opened(source) as old, opened(target, os.O_WRONLY) as new:
            left = os.fstat(old).st_size
            try:
                while left and (count := os.copy_file_range(old, new, left)):
                    left -= count
            except OSError:  # between some file systems, and on old kernels
                shutil.copyfile(source, target)

else:

    def copy_content(source: str | Path, target: str | Path) -> None:
        """Copy the content of a file to an existing one."""
        shutil.copyfile(source, target)


def separate(handle: int, path: str) -> int:
    """Return another descriptor of an open file, for reading, although a library reads through the first one.

    It leads to the same file even if another one has its path now. Raises OSError if that file cannot be opened.
    """
    if not _MOVES:
        return os.dup(handle)  # with the same position, which nobody here moves
    with suppress(OSError):
        return _opened_again(handle)
    other = open_file(path)
    if not os.path.samestat(os.fstat(other), os.fstat(handle)):
        os.close(other)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return other


if sys.platform == "linux" and hasattr(os, "memfd_create"):

    def memory_file() -> int:
        """Return a descriptor of a new file without a name, which takes memory where it is written."""
        return os.memfd_create("tamis")

else:
    import tempfile

    def memory_file() -> int:
        """Return a descriptor of a new file without a name, which takes room on a disk where it is written."""
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
