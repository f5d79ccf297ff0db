"""Small files that appear whole or not at all: pages, pictures, documents."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.access import create_empty
from tamis.caller import warn_caller
from tamis.errors import FileError
from tamis.safety.journal import marked
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import Transaction


def write_whole(path: str | os.PathLike[str], content: str | bytes, *, overwrite: bool) -> None:
    """Write a file that keeps its old content, or stays absent, until the new one is complete and durable.

    A pipe or a device, such as ``/dev/stdout``, gets the content as it is.

    Parameters
    ----------
    path
        Path of the file.
    content
        Bytes, or text that is stored as UTF-8.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    FileError
        If the file exists and `overwrite` is False, or cannot be written.

    Warns
    -----
    UserWarning
        If a temporary file cannot be removed.
    """
    place = Path(os.fsdecode(path))
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_stream(place):
            place.write_bytes(data)
            return
        check_name(place, overwrite=overwrite)
        _replace(place, data, overwrite=overwrite)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{place}: cannot be written: {disk_text(error)}").at(path=place) from error


def _replace(place: Path, data: bytes, *, overwrite: bool) -> None:
    """Write beside a file, and give the result its name; warn about what cannot be removed afterwards."""
    transaction = Transaction(place, overwrite=overwrite)
    try:
        with transaction, marked(transaction):
            create_empty(transaction.path, transaction.mode)
            transaction.path.write_bytes(data)
            transaction.commit()
    finally:
        for note in transaction.notes:
            warn_caller(note)


def check_name(path: Path, *, overwrite: bool) -> None:
    """Raise FileError if a folder has the name of a file to write, or a file that is not to be replaced."""
    if os.path.isdir(path):
        raise FileError(f"{path}: expected the name of a file to write, got a folder").at(path=path)
    if not overwrite:
        check_free(path)


def check_free(path: Path) -> None:
    """Raise FileError if a file exists; a pipe or a device may exist, because nothing is lost in it."""
    if os.path.lexists(path) and not _is_stream(path):
        raise FileError(f"{path}: File exists: choose another name, or replace it: overwrite=True").at(path=path)


def _is_stream(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
