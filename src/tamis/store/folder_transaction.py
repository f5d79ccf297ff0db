"""A new folder that gets its name when it is complete, and otherwise leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Protocol

from tamis.chunks.grid import Grid
from tamis.chunks.source import close_handle
from tamis.errors import FileError
from tamis.store.disk import exchange, open_file_system, sync_folder, sync_tree
from tamis.store.transaction import Transaction


class FolderForm(Protocol):
    """The form of a store that is a folder."""

    def is_store(self, path: Path) -> bool:
        """Return whether a folder is a store of the format: no other folder is replaced."""

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the folder, by the path of its array, its grid and its number."""


class FolderTransaction(Transaction):
    """A temporary folder beside the target; see `Transaction`.

    The system gives a folder the name of another one only if that is empty. So an existing target changes names with
    the temporary folder, which is removed then.

    Parameters
    ----------
    target
        The final name.
    form
        The form of the store.
    overwrite
        Whether an existing store of this name is replaced.
    """

    noun = "folder"

    def __init__(self, target: Path, form: FolderForm, *, overwrite: bool = True) -> None:
        self.form, self.form_text = form, str(form)
        super().__init__(target, overwrite=overwrite)
        self._file_system = open_file_system(self.path.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._file_system is not None:
            close_handle(self._file_system)
            self._file_system = None

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the folder; see `Transaction.file_of`."""
        return self.form.file_of(path, grid, number)

    def _check_replaceable(self, target: Path) -> None:
        if target.exists() and not target.is_dir():
            raise FileError(f"{target}: expected the name of a folder to write, got a file: choose another name")
        if target.exists() and not self.form.is_store(target) and os.listdir(target):
            raise FileError(
                f"{target}: expected the name of a new folder, or a store to replace, got a folder with other files:"
                " choose another name"
            )

    def _sync(self) -> None:
        sync_tree(self.path, self._file_system)

    def _sync_attributes(self) -> None:
        sync_folder(self.path)

    def _take_name(self) -> None:
        try:
            os.rename(self.path, self.target_path)  # fails if there is anything but an empty folder
        except OSError:
            if not os.path.lexists(self.target_path):
                raise
            if not self.replace:
                raise FileError(f"{self.target}: File exists: another process created it in the meantime") from None
            self._check_replaceable(self.target_path)
            exchange(self.path, self.target_path)
