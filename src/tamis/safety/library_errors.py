"""Errors of h5py and of the file system below it: as FileError, and in words."""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tamis.errors import FileError, TamisError

_MEANINGS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full for this user",
    errno.EFBIG: "the file system, or ulimit -f, takes no file of that size",
}
_NUMBER = re.compile(r"errno = (\d+)")

INTERRUPTED = "KeyboardInterrupt while a filter of another package ran"
"""Why such a filter fails on Ctrl-C: no exception passes through HDF5."""

_COMPILED = f"h5py{os.sep}"
_PACKAGE = f"{os.sep}h5py{os.sep}"
"""Beginning of the names of h5py's compiled files, and what the paths of its other files have."""


@contextmanager
def reading(*paths: str | os.PathLike[str], dataset: str = "", only_damage: bool = False) -> Iterator[None]:
    """Raise FileError if h5py raises inside; add path and dataset to errors of tamis; pass on all others."""
    try:
        yield
    except TamisError as error:
        error.at(path=_only(paths), dataset=dataset or None)
        raise
    except RecursionError as error:
        raise _failure(paths, dataset, "its types are nested too deeply: leave it out (drop)") from error
    except Exception as error:
        pass_interrupt(error)
        system_text = system_error(error)
        if not is_of_h5py(error) or (only_damage and system_text):
            raise
        if system_text:
            raise _failure(paths, dataset, f"cannot be read: {system_text}") from error
        raise _failure(paths, dataset, f"damaged or incomplete: {error_text(error)}") from error


def _only(paths: Sequence[str | os.PathLike[str]]) -> str | os.PathLike[str] | None:
    """Return the path if there is only one; None if there are several."""
    return paths[0] if len(paths) == 1 else None


def _failure(paths: Sequence[str | os.PathLike[str]], dataset: str, reason: str) -> FileError:
    """Return the error about a dataset, or a file if no dataset is named, in one of some paths."""
    place = " or ".join(os.fspath(path) for path in paths)
    if dataset:
        place += f": {dataset}"
    return FileError(f"{place}: {reason}").at(path=_only(paths), dataset=dataset or None)


def pass_interrupt(error: BaseException) -> None:
    """Raise KeyboardInterrupt instead of h5py's error if Ctrl-C caused it in a filter."""
    if INTERRUPTED in str(error):
        raise KeyboardInterrupt from None


def is_of_h5py(error: BaseException) -> bool:
    """Return whether an error was raised by h5py, or inside a call of h5py."""
    frames = traceback.walk_tb(error.__traceback__)
    files = (frame.f_code.co_filename for frame, _ in frames)
    return any(file.startswith(_COMPILED) or _PACKAGE in file for file in files)


def error_text(error: BaseException) -> str:
    """Return the message of an error; the name of its class if there is none."""
    return str(error) or type(error).__name__


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


def lacks_space(error: BaseException) -> bool:
    """Return whether the disk is full, in contrast to a limit of the size of a file."""
    return _number(error) in (errno.ENOSPC, errno.EDQUOT)


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def error_number(error: BaseException) -> int | None:
    """Return the errno of an error, which HDF5 has in its text; None if there is none."""
    if match := _NUMBER.search(str(error)):
        return int(match[1])
    return error.errno if isinstance(error, OSError) and error.errno else None


def _number(error: BaseException) -> int | None:
    """Return the errno of an error or of its causes; None if there is none."""
    return next((number for cause in causes_of(error) if (number := error_number(cause)) is not None), None)


_PASSING = {
    *(errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC),
    *(errno.EDQUOT, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH),
}
"""Errors of the system that may not come again in another try: of networks, busy disks and short memory."""


def may_pass(error: BaseException) -> bool:
    """Return whether an error may not come again in another try, by its cause."""
    return any(isinstance(cause, MemoryError) or error_number(cause) in _PASSING for cause in causes_of(error))
