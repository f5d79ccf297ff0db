"""Errors of h5py as FileError: a damaged file makes it raise many kinds of them, from many places."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import h5py

from tamis.errors import FileError, TamisError
from tamis.store.disk import system_error

_COMPILED = "h5py" + os.sep
_WRITTEN = os.path.dirname(h5py.__file__) + os.sep


@contextmanager
def reading(*paths: str | os.PathLike[str], dataset: str = "", only_damage: bool = False) -> Iterator[None]:
    """Raise FileError where h5py raises inside; add the place to errors of tamis; leave any others.

    Parameters
    ----------
    paths
        Of the file; or of several, where it is not known which of them it is.
    dataset
        Path of the dataset. Of several such blocks the innermost names the place.
    only_damage
        Leave errors of the file system as they are, for blocks that write as well.

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
        system = system_error(error)
        if not is_of_h5py(error) or (only_damage and system):
            raise
        place = " or ".join(os.fspath(each) for each in paths) + f": {dataset}" * bool(dataset)
        text = f"cannot be read: {system}" if system else f"damaged, or not complete: {error_text(error)}"
        raise FileError(f"{place}: {text}").at(path=path, dataset=dataset or None) from error


def is_of_h5py(error: BaseException) -> bool:
    """Return whether an error was raised by h5py, or in what h5py called."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename.startswith((_COMPILED, _WRITTEN)) for frame, _ in frames)


def error_text(error: BaseException) -> str:
    """Return the message of an error; its kind where it has none."""
    return str(error) or type(error).__name__
