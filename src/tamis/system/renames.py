"""Names of files that change in one step, so that whoever looks finds the old file or the new one, and no half.

- The name of a file that is replaced: one step everywhere. Windows refuses while a program has the old file open.
- A name that must be free: one step where the file system can give a file a second name, and otherwise on Linux
  (``renameat2``), macOS (``renamex_np``) and Windows (``MoveFileExW``). Where a file system has none of this, a file
  that another process gives the name between a look and the rename is lost.
- The names of two folders exchanged: one step on Linux and macOS. Elsewhere three: a program that looks at that moment
  finds nothing under the name, and a process that ends then leaves the old folder under a name that ends in ``-aside``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

from tamis.system.libraries import c_function

_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}

if sys.platform == "darwin":
    _EXCHANGE, _NO_REPLACE = 2, 4  # RENAME_SWAP, RENAME_EXCL

    def _rename(path: Path, other: Path, flag: int) -> int:
        """Rename a file as a flag says; return the errno, 0 if it is done."""
        rename = c_function("renamex_np")
        if rename is None:
            return errno.ENOSYS
        return ctypes.get_errno() if rename(os.fsencode(path), os.fsencode(other), ctypes.c_uint(flag)) else 0

else:
    _EXCHANGE, _NO_REPLACE = 2, 1  # RENAME_EXCHANGE, RENAME_NOREPLACE
    _AT_FDCWD = ctypes.c_int(-100)  # names are relative to the current folder

    def _rename(path: Path, other: Path, flag: int) -> int:
        """Rename a file as a flag says; return the errno, 0 if it is done."""
        rename = c_function("renameat2")
        if rename is None:  # an old C library, or another system
            return errno.ENOSYS
        words = _AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(flag)
        return ctypes.get_errno() if rename(*words) else 0


if sys.platform == "win32":
    from tamis.system import windows

    _REPLACEFILE_IGNORE_MERGE_ERRORS = 2

    def replace_file(path: Path, name: Path) -> None:
        """Give a file a name, and the access list of the file that has it now: ``ReplaceFileW`` keeps it.

        If that fails without a third name for the old file, both files have their names as before.
        """
        words = os.fspath(name), os.fspath(path), None, _REPLACEFILE_IGNORE_MERGE_ERRORS, None, None
        if not os.path.exists(name) or not windows.kernel32.ReplaceFileW(*words):
            os.replace(path, name)  # MoveFileExW

else:

    def replace_file(path: Path, name: Path) -> None:
        """Give a file a name, which another one may have now."""
        os.replace(path, name)


def take_free_name(path: Path, name: Path) -> None:
    """Give a file a name; raises FileExistsError if another file has it. The file may keep its old name, too."""
    try:
        os.link(path, name)  # atomic, and fails if the name is taken
    except FileExistsError:
        if not _are_same(path, name):  # a file server that repeats a request reports our own link
            raise
    except OSError:  # a file system without hard links
        if os.path.lexists(name):
            raise
        number = _rename(path, name, _NO_REPLACE)
        if number == errno.EEXIST:
            raise FileExistsError(number, os.strerror(number), os.fspath(name)) from None
        if number:
            os.rename(path, name)  # on Windows, MoveFileExW, which takes no name that another file has


def exchange(path: Path, other: Path) -> None:
    """Exchange the names of two folders in one step, or, if the system has no such call, in three."""
    number = _rename(path, other, _EXCHANGE)
    if not number:
        return
    if number not in _UNSUPPORTED:
        raise OSError(number, os.strerror(number), os.fspath(other))
    aside = path.with_name(f"{path.name}-aside")
    os.rename(other, aside)
    try:
        os.rename(path, other)
    except OSError:
        os.rename(aside, other)
        raise
    os.rename(aside, path)


def exchanges_at_once(path: Path, other: Path) -> bool:
    """Exchange the names of two files if that is one step here; return whether it is."""
    return not _rename(path, other, _EXCHANGE)


def lead_to(file: str, link: str) -> None:
    """Make a link to a file, of any kind that this user may make; raises FileExistsError."""
    try:
        os.symlink(file, link)
    except FileExistsError:
        raise
    except OSError:  # Windows asks for a right that few users have
        os.link(file, link)


def beginning_of_name(name: str, nbytes: int) -> str:
    """Return the beginning of a name, as far as that many bytes go, without a part of a letter.

    Windows and macOS take no name that is not UTF-8. Names that Windows keeps for devices, such as ``CON``, do not come
    about if a dot is put before the beginning.
    """
    encoded = os.fsencode(name)
    for end in range(min(nbytes, len(encoded)), max(nbytes - 4, 0), -1):
        if end == len(encoded) or encoded[end] & 0xC0 != 0x80:  # which begins a letter
            return os.fsdecode(encoded[:end])
    return os.fsdecode(encoded[:nbytes])


def _are_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file."""
    try:
        return os.path.samestat(path.lstat(), other.lstat())
    except OSError:
        return False
