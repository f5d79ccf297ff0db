"""A new file that gets its name when it is complete, and leaves nothing behind otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tamis.errors import FileError


class Transaction:
    """A temporary name in the folder of the target.

    Parameters
    ----------
    target
        The name that `commit` gives. Until then it holds what it held before.

    Attributes
    ----------
    path
        Where to write.
    """

    def __init__(self, target: Path) -> None:
        if not target.parent.is_dir():
            raise FileError(f"{target}: expected an existing folder, found none at {target.parent}")
        self.target = target
        self.path = target.with_name(f".{target.name}.{os.getpid()}.tamis")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Make the file durable and give it its name."""
        _sync(self.path)
        os.replace(self.path, self.target)
        _sync(self.target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
