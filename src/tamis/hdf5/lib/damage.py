"""Turn errors of h5py into FileError, because damaged files make it raise many kinds."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import h5py

from tamis.errors import FileError, TamisError
from tamis.store.disk import system_error

INTERRUPTED = "KeyboardInterrupt while a filter of another package ran"
"""Why such a filter fails at Ctrl-C: no exception passes through HDF5."""

_COMPILED = "h5py" + os.sep
_PACKAGE = os.path.dirname(h5py.__file__) + os.sep


@contextmanager
def reading(*paths: str | os.PathLike[str], dataset: str = "", only_damage: bool = False) -> Iterator[None]:
    """Raise FileError if h5py raises inside; add path and dataset to errors of tamis; pass on all others.

    Parameters
    ----------
    paths
        Path of the file, or paths of several if it may be any of them.
    dataset
        Path of the dataset. Of nested blocks the innermost one counts.
    only_damage
        Pass on errors of the file system, for blocks that also write.

    Raises
    ------
    FileError
        If h5py raises anything, RuntimeError, OSError, KeyError, ValueError, TypeError or SystemError.
    """
    path = paths[0] if len(paths) == 1 else None
    try:
        yield
    except TamisError as error:
        error.at(path=path, dataset=dataset or None)
        raise
    except Exception as error:
        pass_interrupt(error)
        system_text = system_error(error)
        if not is_of_h5py(error) or (only_damage and system_text):
            raise
        place = " or ".join(os.fspath(candidate) for candidate in paths) + f": {dataset}" * bool(dataset)
        text = f"cannot be read: {system_text}" if system_text else f"damaged or incomplete: {error_text(error)}"
        raise FileError(f"{place}: {text}").at(path=path, dataset=dataset or None) from error


def pass_interrupt(error: BaseException) -> None:
    """Raise KeyboardInterrupt in place of an error of h5py, if Ctrl-C is what ended the filter that it tells of."""
    if INTERRUPTED in str(error):
        raise KeyboardInterrupt from None


def is_of_h5py(error: BaseException) -> bool:
    """Return whether an error was raised by h5py, or inside a call of h5py."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename.startswith((_COMPILED, _PACKAGE)) for frame, _ in frames)


def error_text(error: BaseException) -> str:
    """Return the message of an error; the name of its class if there is none."""
    return str(error) or type(error).__name__
