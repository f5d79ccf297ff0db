"""A new file that gets its name when it is complete, and leaves nothing behind otherwise."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tamis.errors import FileError

_LONGEST_NAME_NBYTES = 255


class Transaction:
    """A temporary name in the folder of the target.

    Parameters
    ----------
    target
        The name that `commit` gives, or the file that it links to. Until then it holds what it held before.

    Attributes
    ----------
    path
        Where to write.

    Raises
    ------
    FileError
        If no file can have that name.
    """

    def __init__(self, target: Path) -> None:
        try:
            if target.name in ("", "..") or target.is_dir():
                raise FileError(f"{target}: expected the name of a file to write, got a folder")
            if not target.parent.is_dir():
                raise FileError(f"{target}: expected an existing folder, found none at {target.parent}")
            self._place = target.resolve() if target.is_symlink() else target
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{target}: cannot be written: {error.strerror}") from error
        self.target = target
        ending = f".{secrets.token_hex(4)}.tamis"
        room = _LONGEST_NAME_NBYTES - len(ending) - 1
        name = os.fsdecode(os.fsencode(self._place.name)[:room])
        self.path = self._place.with_name(f".{name}{ending}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What went wrong before must not be hidden by a folder from which nothing can be removed.
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Make the file durable and give it its name.

        Raises
        ------
        FileError
            If the file system does not take it.
        """
        try:
            _sync(self.path)
            os.replace(self.path, self._place)
            _sync(self._place.parent)
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {error.strerror}") from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
