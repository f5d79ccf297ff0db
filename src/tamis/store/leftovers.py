"""What runs that were killed left beside a target: a temporary file, and a journal of the chunks that it has."""

from __future__ import annotations

import fcntl
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.store.disk import close_handle, disk_text, read_at
from tamis.store.journal import CHECKSUM, HEAD, MAGIC, RECORD, Run, checksum_of
from tamis.store.transaction import journal_of, temporaries_of

_MOST_TEXT_NBYTES = 256 << 20
_RECORDS_AT_ONCE = 4096
_RECORD_TYPE = np.dtype(
    {
        "names": ["dataset", "place", "offset", "nbytes", "mask", "missing", "crossed", "checksum"],
        "formats": ["<u4", "<u8", "<u8", "<u8", "<u4", "<u8", "<u8", "<u4"],
        "offsets": [0, 4, 12, 20, 28, 32, 40, 48],
        "itemsize": RECORD.size + CHECKSUM.size,
    }
)


class Record(NamedTuple):
    """What a journal says of a chunk: see `tamis.store.journal.RECORD`."""

    dataset: int
    place: int
    offset: int
    nbytes: int
    mask: int
    missing: int
    crossed: int
    checksum: int


class Leftovers(NamedTuple):
    """What is there beside a target.

    Parameters
    ----------
    dead
        Of runs that are no more; locked, to be closed by the caller.
    busy
        Temporary files that a run writes now.
    unknown
        Temporary files of which that is not known, since they have no journal that can be read and locked.
    """

    dead: tuple[Leftover, ...]
    busy: tuple[Path, ...]
    unknown: tuple[Path, ...]


class Leftover:
    """A temporary file and its journal, locked so that no other run takes them over.

    Parameters
    ----------
    path
        Of the temporary file.
    journal
        Its journal, open and locked.

    Attributes
    ----------
    run
        Whose chunks these are; None where the journal does not say.
    nbytes
        Of the temporary file.
    """

    def __init__(self, path: Path, journal: int) -> None:
        self.path = path
        self._journal: int | None = journal
        self._handle = _opened(path, os.O_RDONLY)
        self.nbytes = 0 if self._handle is None else os.fstat(self._handle).st_size
        self.run: Run | None = None
        self._records: NDArray[Any] = np.empty(0, _RECORD_TYPE)
        with suppress(OSError):  # a journal on a bad disk is as good as none
            self.run, seed, begin = _head(journal)
            if self.run is not None and self._handle is not None:
                self._records = _records(journal, begin, seed)
        # Those of a dataset side by side, in the order in which they were written.
        self._records = self._records[np.argsort(self._records["dataset"], kind="stable")]
        self._datasets = np.ascontiguousarray(self._records["dataset"])
        self._numbers = {name: number for number, name in enumerate(self.run.datasets if self.run else ())}

    def count(self, path: str) -> int:
        """Count the chunks of a dataset."""
        return len(self._of(path))

    def total(self) -> int:
        """Count all chunks."""
        return len(self._records)

    def records(self, path: str) -> Iterator[Record]:
        """Return the records of the chunks of a dataset, in the order in which they were written."""
        for each in self._of(path):
            yield Record(*map(int, each))

    def read(self, record: Record, most_nbytes: int) -> bytes | None:
        """Read a chunk; None where the file has not the bytes that were noted, or more of them than can be."""
        if self._handle is None or record.nbytes > most_nbytes or record.offset + record.nbytes > self.nbytes:
            return None
        try:
            data = read_at(self._handle, record.nbytes, record.offset)
        except OSError:
            return None
        return data if len(data) == record.nbytes and checksum_of(data) == record.checksum else None

    @property
    def known(self) -> bool:
        """Whether the temporary file can be opened, or is not there."""
        return self._handle is not None or not os.path.lexists(self.path)

    def remove(self) -> list[str]:
        """Remove both files; nothing else that took their names. Return notes about what cannot be removed."""
        try:
            for path, handle in ((self.path, self._handle), (journal_of(self.path), self._journal)):
                with suppress(FileNotFoundError):
                    if handle is not None and os.path.samestat(os.fstat(handle), path.lstat()):
                        path.unlink()
        except OSError as error:  # the journal stays, so that a later run removes both
            return [f"{self.path}: left by an interrupted run, and cannot be removed: {disk_text(error)}"]
        return []

    def _of(self, path: str) -> NDArray[Any]:
        number = self._numbers.get(path, -1)
        begin, end = np.searchsorted(self._datasets, [number, number + 1])
        return self._records[begin:end]

    def close(self) -> None:
        """Let go of the lock."""
        handles, self._handle, self._journal = (self._handle, self._journal), None, None
        for handle in handles:
            if handle is not None:
                close_handle(handle)


def find_leftovers(place: Path) -> Leftovers:
    """Find what runs left beside a target, or write there now. Links are not followed, and files of others not touched.

    Parameters
    ----------
    place
        As a `Transaction` for the target has it.
    """
    dead: list[Leftover] = []
    busy: list[Path] = []
    unknown: list[Path] = []
    for path in temporaries_of(place):
        journal = _opened(journal_of(path), os.O_RDWR)
        if journal is None or not _is_journal(journal):
            unknown += [path] if os.path.lexists(path) else []
        else:
            locked = _lock(journal)
            if locked is None:
                unknown.append(path)
            elif not locked:
                busy.append(path)
            elif _still(journal, journal_of(path)):
                leftover = Leftover(path, journal)
                if leftover.known:
                    dead.append(leftover)
                    continue
                unknown.append(path)
        if journal is not None:
            close_handle(journal)
    return Leftovers(tuple(dead), tuple(busy), tuple(unknown))


def _opened(path: Path, flags: int) -> int | None:
    """Open an ordinary file of this user; None where there is none."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        return handle
    close_handle(handle)
    return None


def _is_journal(handle: int) -> bool:
    """Whether a file begins as a journal does; one that is killed right at its beginning leaves less of it."""
    try:
        return MAGIC.startswith(read_at(handle, len(MAGIC), 0))
    except OSError:
        return False


def _lock(handle: int) -> bool | None:
    """Lock a journal; False where a run holds the lock, None where the file system cannot tell."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if isinstance(error, BlockingIOError) else None
    return True


def _still(handle: int, path: Path) -> bool:
    """Whether the file has its name: a run that ended in the meantime took it away."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _head(journal: int) -> tuple[Run | None, int, int]:
    """Read whose journal it is, the checksum with which those of records begin, and where they begin."""
    at = len(MAGIC)
    head = read_at(journal, HEAD.size, at)
    if len(head) < HEAD.size:
        return None, 0, 0
    nbytes, checksum = HEAD.unpack(head)
    at += HEAD.size
    if nbytes > min(_MOST_TEXT_NBYTES, os.fstat(journal).st_size - at):
        return None, 0, 0
    text = read_at(journal, nbytes, at)
    try:
        run = Run.from_bytes(text) if zlib.crc32(text) == checksum else None
    except ValueError:
        run = None
    return run, checksum, at + nbytes


def _records(journal: int, at: int, seed: int) -> NDArray[Any]:
    """Read records up to the first that is not whole."""
    step = RECORD.size + CHECKSUM.size
    found = bytearray()
    while True:
        block = memoryview(read_at(journal, step * _RECORDS_AT_ONCE, at))
        good = 0
        while good + step <= len(block):
            (checksum,) = CHECKSUM.unpack_from(block, good + RECORD.size)
            if zlib.crc32(block[good : good + RECORD.size], seed) != checksum:
                break
            good += step
        found += block[:good]
        at += good
        if good < step * _RECORDS_AT_ONCE:
            return np.frombuffer(bytes(found), _RECORD_TYPE)
