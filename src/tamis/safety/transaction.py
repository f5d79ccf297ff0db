"""A new file that gets its name once it is complete, and otherwise leaves nothing behind.

Only a killed process leaves its temporary file and the journal next to it: see `temporaries_of`.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self
from weakref import WeakSet

from tamis import library_lock
from tamis.access import NEW_FILE, NEW_FOLDER, PRIVATE_FOLDER, mode_for, take_access, take_access_inside
from tamis.errors import FileError, TamisError
from tamis.formatting import kind_of_mode
from tamis.safety.disk import size_and_checksum
from tamis.safety.library_errors import disk_text
from tamis.system.durability import open_file_system, sync_file, sync_folder, sync_tree
from tamis.system.files import close_handle
from tamis.system.renames import beginning_of_name, exchange, replace_file, take_free_name

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid

_LONGEST_NAME_NBYTES = 255
_ENDING = ".tamis"
_JOURNAL_ENDING = "-journal"
_SEGMENTS_ENDING = "-chunks"
_TOKEN_NBYTES = 4
_TRIES = 9
"""Attempts to remove a folder in which workers of an aborted run may still be at work."""


_open: WeakSet[Transaction] = WeakSet()
"""Transactions whose temporary files may exist."""


def abandon_all() -> None:
    """Remove the temporary files of all transactions, for a process that must end while their threads wait."""
    for transaction in [*_open]:
        with suppress(Exception):
            transaction.abandon()


class Transaction:
    """A temporary name in the folder of the target.

    A target that replaces another one takes its owner, group and mode; a private one is for its owner alone.
    """

    noun = "file"

    def __init__(self, target: Path, *, overwrite: bool = True, private: bool = False) -> None:
        try:
            if target.name in ("", "..") or (target.is_dir() and self.noun == "file"):
                raise FileError(f"{target}: expected the name of a {self.noun} to write, got a folder")
            if not target.parent.is_dir():
                raise FileError(f"{target}: there is no folder {target.parent}")
            self.target_path = Path(os.path.realpath(target)) if target.is_symlink() else target
            if self.target_path.is_symlink() or not self.target_path.parent.is_dir():
                raise FileError(f"{target}: expected the name of a {self.noun} to write, got a dangling link")
            self._check_replaceable(target)
        except FileError as error:
            error.at(path=target)
            raise
        except OSError as error:
            raise FileError(f"{target}: cannot be written: {error.strerror}").at(path=target) from error
        self.target = target
        self.replace = overwrite
        self._private = private
        self.is_kept: Callable[[], bool] = lambda: False  # Whether a later run may resume from the temporary file
        self._named = False  # Whether the file has its name
        self.notes: list[str] = []
        self.needed_nbytes = 0  # Most bytes that the target takes; 0 if that is not known
        self.path = self.target_path.with_name(
            f"{_beginning(self.target_path)}{os.urandom(_TOKEN_NBYTES).hex()}{_ENDING}"
        )
        self.journal = journal_of(self.path)
        self._early: _Sync | None = None

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk in a temporary folder, by the path of its array, its grid and its number.

        Empty if there is no folder, but one file.
        """
        return ""

    def _check_replaceable(self, target: Path) -> None:
        """Raise FileError if the name leads to something that must not be replaced."""
        if target.exists() and not target.is_file():
            # A rename would replace a device such as /dev/null by a file, for every program on the machine.
            kind = kind_of_mode(target.stat().st_mode)
            raise FileError(
                f"{target}: expected the name of a file to write, got {kind}, which must not be replaced: choose"
                " another name"
            )

    def __enter__(self) -> Self:
        _open.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.discard(self)
        if isinstance(error, TamisError):
            error.renaming(str(self.path), str(self.target))
        if self._named or not self.is_kept():
            try:
                self.discard()
            except BaseException:  # Ctrl-C
                self.discard()
                raise

    @property
    def _removals(self) -> tuple[tuple[Path, Callable[[Path], None]], ...]:
        """The temporary file, its segments and its journal, each with the function that removes it."""
        return (self.path, remove), (self.path, remove_segments), (self.journal, remove)

    def abandon(self) -> None:
        """Remove what `discard` removes, unless it is kept to be resumed, without waiting for anything."""
        if self._named or self.is_kept():
            return
        for path, remove_it in self._removals:
            with suppress(OSError):
                remove_it(path)

    def discard(self) -> None:
        """Remove the temporary file, segments and the journal."""
        for path, remove_it in self._removals:
            try:
                remove_it(path)
            except OSError as error:  # must not hide an earlier error
                self.notes.append(f"{path}: cannot be removed, but is no longer needed: {disk_text(error)}")
        if self._early is not None:
            self._early.wait()
            self._early = None

    @property
    def mode(self) -> int:
        """Mode with which the temporary file or folder is created, as far as the umask allows it."""
        mode = mode_for(self.target_path, NEW_FILE if self.noun == "file" else NEW_FOLDER)
        return mode & PRIVATE_FOLDER if self._private else mode

    @property
    def _replaces(self) -> bool:
        return os.path.exists(self.target_path)

    def _take_access(self) -> None:
        """Give the temporary file the access of the file that it replaces."""
        if self._replaces and not self._private:
            take_access(self.path, self.target_path)

    def begin_sync(self) -> None:
        """Start to make the file durable in a thread, so that the disk works while the file is verified.

        The file must not change afterwards.
        """
        early = _Sync(self.path, self._sync)
        early.begin()
        self._early = early  # only now: an interrupt in start() can leave a thread that cannot be joined

    def finish_sync(self) -> tuple[int, int]:
        """Wait until the file is durable, and return its size in bytes and its CRC-32."""
        try:
            if self._early is None:
                self.begin_sync()
            assert self._early is not None
            return self._early.finish()
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {disk_text(error)}").at(path=self.target) from error

    def commit(self) -> None:
        """Make the file durable and give it its name."""
        self.finish_sync()
        try:
            self._take_access()
            self._sync_attributes()
            self._take_name()
            self._named = True
        except FileError as error:
            error.at(path=self.target)
            raise
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {disk_text(error)}").at(path=self.target) from error
        try:
            sync_folder(self.target_path.parent)
        except OSError as error:
            raise FileError(
                f"{self.target}: complete and verified, but a power failure may undo the rename: its folder"
                f" cannot be made durable: {disk_text(error)}"
            ).at(path=self.target) from error

    def _sync(self) -> None:
        """Make all content durable."""
        sync_file(self.path)

    def _sync_attributes(self) -> None:
        """Make attributes durable, because they may have changed since."""
        sync_file(self.path)

    def _take_name(self) -> None:
        """Take the name of the target."""
        if self.replace:
            replace_file(self.path, self.target_path)
        else:
            self._take_free_name()

    def _take_free_name(self) -> None:
        """Take the name of the target, unless another process has taken it meanwhile."""
        try:
            take_free_name(self.path, self.target_path)
        except FileExistsError as error:
            raise FileError(f"{self.target}: File exists: another process created it in the meantime") from error


def remove(path: Path) -> None:
    """Remove a file, or a folder with everything in it, if it exists."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for _ in range(_TRIES):
        with suppress(OSError):  # another process, which finds out with its next file, has just made one there
            shutil.rmtree(path)
            return
    shutil.rmtree(path)


def remove_segments(temporary: Path) -> None:
    """Remove the folder of segments of a temporary file, which is gone already.

    The folder takes its name first: workers that still write find none, however fast they are.
    """
    folder = segments_of(temporary)
    with suppress(OSError):
        os.rename(folder, temporary)
        folder = temporary
    remove(folder)


def journal_of(temporary: Path) -> Path:
    """Return the path of the journal of a temporary file."""
    return temporary.with_name(temporary.name + _JOURNAL_ENDING)


def segments_of(temporary: Path) -> Path:
    """Return the path of the folder in which other processes store chunks for a temporary file."""
    return temporary.with_name(temporary.name + _SEGMENTS_ENDING)


def temporaries_of(target_path: Path) -> list[Path]:
    """Return the paths of all temporary files of a target, by name, even if only their journals exist."""
    pattern = re.compile(
        f"({re.escape(_beginning(target_path))}[0-9a-f]{{{2 * _TOKEN_NBYTES}}}{re.escape(_ENDING)})({_JOURNAL_ENDING})?"
    )
    try:
        matches = map(pattern.fullmatch, os.listdir(target_path.parent))
    except OSError:  # a folder that may be written to, but not listed
        return []
    return [target_path.with_name(name) for name in sorted({match[1] for match in matches if match})]


def _beginning(target_path: Path) -> str:
    """Return the beginning of the names of temporary files: as much of the target's name as fits."""
    room = _LONGEST_NAME_NBYTES - len("..") - 2 * _TOKEN_NBYTES - len(_ENDING) - len(_JOURNAL_ENDING)
    return f".{beginning_of_name(target_path.name, room)}."


class _Sync(threading.Thread):
    """Makes a file or folder durable, and then computes its size and checksum."""

    def __init__(self, path: Path, sync: Callable[[], None]) -> None:
        super().__init__(name="tamis fsync", daemon=True)
        self._path = path
        self._sync = sync
        self._error: OSError | None = None
        self._summary = (0, 0)

    def run(self) -> None:
        try:
            self._sync()
            self._summary = size_and_checksum(self._path)
        except OSError as error:
            self._error = error

    def begin(self) -> None:
        """Start; or do all at once, if this thread must not wait for another one."""
        if library_lock.is_held():
            self.run()
        else:
            self.start()

    def wait(self) -> None:
        """Wait for the end."""
        if self.ident is not None:  # it was started
            self.join()

    def finish(self) -> tuple[int, int]:
        """Wait for the result; raise the error of the system, which it may report only once."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._summary


class FolderForm(Protocol):
    """The form of a store that is a folder."""

    def is_store(self, path: Path) -> bool:
        """Return whether a folder is a store of the format: no other folder is replaced."""

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the folder, by the path of its array, its grid and its number."""


class FolderTransaction(Transaction):
    """A temporary folder next to the target; see `Transaction`.

    The system only renames a folder to an existing one if that is empty. So an existing target exchanges names with the
    temporary folder, which is then removed.
    """

    noun = "folder"

    def __init__(self, target: Path, form: FolderForm, *, overwrite: bool = True, private: bool = False) -> None:
        self._form = form
        super().__init__(target, overwrite=overwrite, private=private)
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
        return self._form.file_of(path, grid, number)

    def _check_replaceable(self, target: Path) -> None:
        if target.exists() and not target.is_dir():
            raise FileError(f"{target}: expected the name of a folder to write, got a file: choose another name")
        if target.exists() and not self._form.is_store(target) and os.listdir(target):
            raise FileError(
                f"{target}: expected the name of a new folder, or a store to replace, got a folder with other files:"
                " choose another name"
            )

    def _sync(self) -> None:
        sync_tree(self.path, self._file_system)

    def _take_access(self) -> None:
        super()._take_access()
        if self._replaces:
            take_access_inside(self.path)

    def _sync_attributes(self) -> None:
        sync_folder(self.path)

    def _take_name(self) -> None:
        """Take the name of the target, or exchange names with it; see the class."""
        try:
            os.rename(self.path, self.target_path)  # fails if there is anything but an empty folder
        except OSError:
            if not os.path.lexists(self.target_path):
                raise
            if not self.replace:
                raise FileError(f"{self.target}: File exists: another process created it in the meantime") from None
            self._check_replaceable(self.target_path)
            exchange(self.path, self.target_path)
