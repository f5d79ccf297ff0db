"""What was written reaches the disk: files, names in folders, whole file systems.

- macOS hands data to the disk, which may keep it in memory for a while, unless it gets ``F_FULLFSYNC``.
- Windows only syncs files that are open for writing (``FlushFileBuffers``), and no folders: the file system writes
  names in the order in which they changed, but a power failure may undo the last ones.
- Only Linux syncs a file system (``syncfs``) and says whether that failed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import sys
from pathlib import Path

from tamis.system.files import opened
from tamis.system.libraries import c_function

_MANY_FILES = 64
"""Fewer files are synced one by one: other programs may have much to be written to their file system."""
_NOT_FOR_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM}
"""Errors of file systems that cannot sync a folder, and of folders that may not be listed."""

_FLAGS = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY

if sys.platform == "darwin":
    import fcntl

    def _sync(handle: int) -> None:
        """Make an open file durable."""
        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:  # a file system that cannot, such as that of a server
            os.fsync(handle)

else:

    def _sync(handle: int) -> None:
        """Make an open file durable."""
        os.fsync(handle)


def sync_file(path: Path) -> None:
    """Make a file durable."""
    with opened(path, _FLAGS) as handle:
        _sync(handle)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, if its file system supports that."""
    if sys.platform != "win32":
        try:
            with opened(path) as handle:
                _sync(handle)
        except OSError as error:
            if error.errno not in _NOT_FOR_FOLDERS:
                raise


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
    release = re.match(r"(\d+)\.(\d+)", platform.release()) if c_function("syncfs") is not None else None
    if release is None or tuple(map(int, release.groups())) < (5, 8):
        return None
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:  # a folder that may be written to, but not listed
        return None


def sync_file_system(handle: int) -> bool:
    """Make everything durable that was written to a file system; return whether it can do that."""
    sync = c_function("syncfs")
    if sync is None:
        return False
    number = errno.EINTR
    while number == errno.EINTR:
        if not sync(ctypes.c_int(handle)):
            return True
        number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number))


def _raise(error: OSError) -> None:
    raise error
