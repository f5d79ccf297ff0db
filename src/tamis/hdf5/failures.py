"""What the file system said when a file could not be written, without what HDF5 says around it."""

from __future__ import annotations

import errno
import os
import re

_MEANINGS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full for this user",
    errno.EFBIG: "the file system, or ulimit -f, takes no file of that size",
}
_NUMBER = re.compile(r"errno = (\d+)")


def disk_text(error: BaseException) -> str:
    """Say why writing failed: the reason of the file system where there is one, and what it means."""
    number = _number(error)
    if number is None:
        return str(error)
    return f"{_MEANINGS[number]}: {os.strerror(number)}" if number in _MEANINGS else os.strerror(number)


def system_error(error: BaseException) -> str:
    """Return the reason that the file system gave, empty where it gave none."""
    number = _number(error)
    return "" if number is None else os.strerror(number)


def is_disk_full(error: BaseException) -> bool:
    """Return whether something failed since there was no room."""
    return _number(error) in _MEANINGS


def _number(error: BaseException | None) -> int | None:
    """Find the file system's number in an error or in what it came from."""
    while error is not None:
        if found := _NUMBER.search(str(error)):
            return int(found[1])
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__ or error.__context__
    return None
