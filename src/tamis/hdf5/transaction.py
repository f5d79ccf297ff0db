"""A new file that gets its name when it is complete, and leaves nothing behind otherwise."""

from __future__ import annotations

import os
import secrets
import stat
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

    overwrite
        Whether a file that has the name, or gets it in the meantime, is replaced.

    Attributes
    ----------
    path
        Where to write.

    Raises
    ------
    FileError
        If no file can have that name.
    """

    def __init__(self, target: Path, *, overwrite: bool = True) -> None:
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
        self._overwrite = overwrite
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

    def protect(self) -> None:
        """Give the file, once it is there, the permissions of the one that it replaces."""
        with suppress(FileNotFoundError):
            self.path.chmod(stat.S_IMODE(self._place.stat().st_mode))

    def commit(self) -> None:
        """Make the file durable and give it its name.

        Raises
        ------
        FileError
            If the file system does not take it.
        """
        try:
            _sync(self.path)
            if self._overwrite:
                os.replace(self.path, self._place)
            else:
                self._take_free_name()
            _sync(self._place.parent)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {error.strerror}") from error

    def _take_free_name(self) -> None:
        try:
            os.link(self.path, self._place)  # fails where the name is taken, at one stroke
        except FileExistsError as error:
            raise FileError(f"{self.target}: exists now: somebody made it in the meantime") from error
        except OSError:  # a file system without hard links
            if self._place.exists():
                raise
            os.replace(self.path, self._place)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
