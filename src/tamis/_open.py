"""The way from a path to the store that is there; a new storage format has its line here."""

from __future__ import annotations

import os

from tamis.hdf5.store import Hdf5Store


def open_store(path: str | os.PathLike[str]) -> Hdf5Store:
    """Open what is at a path for reading; use it in a ``with``.

    Raises
    ------
    FileError
        If there is nothing, or it is of a format that tamis does not read.
    """
    return Hdf5Store.open(path)
