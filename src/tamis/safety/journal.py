"""The journal next to a temporary file, which lets a later run reuse encoded chunks.

It has a line with the format, length and checksum of a JSON text, the text, which describes the run, and a record of
fixed size for each written chunk. The checksum of a record continues that of the text. A record that is incomplete or
damaged ends the list.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.access import PRIVATE_FILE
from tamis.arrays.source import Placed
from tamis.safety.disk import nbytes_of
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import Transaction, journal_of, remove, remove_segments, temporaries_of
from tamis.system.files import close_handle, open_file, open_unless_link, read_at, write_at
from tamis.system.locks import lock_at_once
from tamis.system.users import user_id

MAGIC = b"tamis journal 4\n"
HEAD = struct.Struct("<II")
"""Length and checksum of the text."""

RECORD = struct.Struct("<IQQQIQQBI")
"""Number of the dataset in the text, number of the chunk in the grid, offset, bytes, mask, counts, checksum.

The counts are of missing values, of values that would cross a limit, and 1 for a chunk that misses what is required of
each value: `NewChunk.missing`, `crossed` and `missed`.
"""


class JournalRecord(NamedTuple):
    """A chunk in a journal: see `RECORD`."""

    dataset: int
    chunk: int
    offset: int
    nbytes: int
    mask: int
    missing: int
    crossed: int
    missed: int
    checksum: int

    @property
    def place(self) -> Placed:
        """Where the chunk is in its file."""
        return Placed(self.offset, self.nbytes, self.checksum)


CHECKSUM = struct.Struct("<I")
"""Checksum of a record."""

_AT_ONCE_NBYTES = 64 << 10
"""Decoded bytes of chunks after which records are written: so much work can be lost."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """Everything that determines the bytes of each chunk."""

    source: Mapping[str, int | str]  # Size, times and inode, which tell whether the source is unchanged
    # For each path how chunks are encoded, and by which versions of libraries
    datasets: Mapping[str, Mapping[str, str]]

    def to_bytes(self) -> bytes:
        """Return the text of a journal."""
        return json.dumps({"source": dict(self.source), "datasets": [*self.datasets.items()]}).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> RunKey:
        """Read the text of a journal."""
        try:
            document = json.loads(text)
            datasets = {str(path): _texts(entry) for path, entry in document["datasets"]}
            return cls({str(key): value for key, value in document["source"].items()}, datasets)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"expected the text of a journal, got {error!r}") from error


def companion_key(path: str) -> str:
    """Return the key of a dataset's companion in `RunKey.datasets`: a path that no dataset can have."""
    return f"{path}\0missing"


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in entry.items()}


class _State(NamedTuple):
    """The state of a journal: it changes as a whole, because Ctrl-C may come between any two steps."""

    offset: int  # Bytes in the file
    pending: bytes  # Bytes to be written there
    decoded_nbytes: int  # Decoded bytes of the chunks whose records are pending
    chunk_count: int  # Number of recorded chunks


class Journal:
    """The journal of the current run, locked while it writes.

    If the journal cannot be written, the run continues without it, and a later run can reuse fewer chunks. After an
    interrupt at any moment it can be continued: anything that may already have been written is written again at its
    offset.
    """

    def __init__(self, path: Path, run: RunKey) -> None:
        text = run.to_bytes()
        self._seed = zlib.crc32(text)
        self._state = _State(0, MAGIC + HEAD.pack(len(text), self._seed) + text, 0, 0)
        self._handle: int | None = _locked(path)
        self._failed = self._handle is None
        self.flush()

    @property
    def usable(self) -> bool:
        """True if a later run can use it: it has records, and was written completely."""
        return not self._failed and self._state.chunk_count > 0

    def add(self, record: JournalRecord, nbytes: int) -> None:
        """Record a chunk that is in the file, by its decoded bytes."""
        packed = RECORD.pack(*record)
        offset, pending, decoded_nbytes, chunk_count = self._state
        pending += packed + CHECKSUM.pack(zlib.crc32(packed, self._seed))
        self._state = _State(offset, pending, decoded_nbytes + nbytes, chunk_count + 1)
        if self._state.decoded_nbytes >= _AT_ONCE_NBYTES:
            self.flush()

    def flush(self) -> None:
        """Write all pending records."""
        offset, pending, _, chunk_count = self._state
        try:
            if self._handle is not None and pending:
                write_at(self._handle, pending, offset)
        except OSError:
            self._failed = True
            self.close()  # otherwise later records would follow an incomplete one
        self._state = _State(offset + len(pending), b"", 0, chunk_count)

    def close(self) -> None:
        """Release the lock; nothing is written afterwards."""
        handle, self._handle = self._handle, None
        if handle is not None:
            close_handle(handle)


def _locked(path: Path) -> int | None:
    """Create a journal and lock it; None if it cannot be locked, because nobody could tell whether its run is alive."""
    while True:
        try:
            handle = open_file(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE)
        except OSError:
            return None
        is_locked = lock_at_once(handle)
        if is_locked and os.fstat(handle).st_nlink:
            return handle
        if not is_locked:
            with suppress(OSError):
                path.unlink()
        if is_locked is None:
            close_handle(handle)
            return None
        # Another run removed the empty journal, as if left by a killed run: try again.
        close_handle(handle)


_MOST_TEXT_NBYTES = 256 << 20
"""Limit of the text: a damaged journal may claim any length."""

_RECORDS_AT_ONCE = 4096

_TYPES = ("<u4", "<u8", "<u8", "<u8", "<u4", "<u8", "<u8", "<u1", "<u4")
_RECORD_TYPE = np.dtype([*zip(JournalRecord._fields, _TYPES, strict=True), ("own_checksum", "<u4")])
"""A record and its checksum, as in the file: see `RECORD` and `CHECKSUM`."""


@contextmanager
def marked(target: Transaction) -> Iterator[None]:
    """Remove what ended runs left for a target, and mark what this process writes, so that a later run can do so."""
    target.notes += remove_leftovers(target)
    journal = Journal(target.journal, RunKey({}, {}))
    try:
        yield
    finally:
        journal.close()


def remove_leftovers(target: Transaction) -> list[str]:
    """Remove what ended runs left beside a target; return notes about files that cannot be removed."""
    notes = []
    for leftover in find_leftovers(target.target_path).dead:
        notes += leftover.remove()
        leftover.close()
    return notes


class Leftovers(NamedTuple):
    """The temporary files next to a target."""

    dead: tuple[Leftover, ...]  # Of runs that have ended; locked, to be closed by the caller
    busy: tuple[Path, ...]  # Of runs that are writing
    unknown: tuple[Path, ...]  # Of unknown runs, because no journal can be read and locked


class Leftover:
    """A temporary file or folder and its journal, locked so that no other run uses them."""

    def __init__(self, path: Path, journal: int) -> None:
        self.path = path
        self._journal: int | None = journal
        self._handle = _opened(path, os.O_RDONLY)
        self.nbytes = _nbytes_of(path, self._handle)
        self.run: RunKey | None = None
        self._records: NDArray[Any] = np.empty(0, _RECORD_TYPE)
        with suppress(OSError):  # a journal on a bad disk counts as none
            self.run, seed, begin = _head(journal)
            if self.run is not None and self._handle is not None:
                self._records = _records(journal, begin, seed)
        # Grouped by dataset, in the order of writing.
        self._records = self._records[np.argsort(self._records["dataset"], kind="stable")]
        self._datasets = np.ascontiguousarray(self._records["dataset"])
        self._numbers = {name: number for number, name in enumerate(self.run.datasets if self.run else ())}

    def count(self, path: str) -> int:
        """Return the number of chunks of a dataset."""
        return len(self._of(path))

    def total(self) -> int:
        """Return the number of all chunks."""
        return len(self._records)

    def records(self, path: str) -> Iterator[JournalRecord]:
        """Yield the records of a dataset's chunks since the run last created the dataset, in the order of writing."""
        for fields in self._of(path):
            yield JournalRecord(*map(int, fields.item()[:-1]))

    def read(self, place: Placed, file: str = "") -> bytes | None:
        """Return the bytes of a chunk; None if they do not match their record.

        In a folder, `file` is the file of the chunk, relative to it.
        """
        if self._handle is None:
            return None
        try:
            return place.read(self._handle, file)
        except OSError:
            return None

    @property
    def known(self) -> bool:
        """True if the temporary file can be opened, or does not exist."""
        return self._handle is not None or not os.path.lexists(self.path)

    def remove(self) -> list[str]:
        """Remove all its files, but not others of the same names; return notes about files that cannot be removed."""
        try:
            self._remove(self.path, self._handle)
            remove_segments(self.path)
            self._remove(journal_of(self.path), self._journal)
        except OSError as error:  # the journal stays, so that a later run removes both
            return [f"{self.path}: left by an interrupted run, and cannot be removed: {disk_text(error)}"]
        return []

    @staticmethod
    def _remove(path: Path, handle: int | None) -> None:
        """Remove a file or folder that is open, if it still has its name."""
        with suppress(FileNotFoundError):
            if handle is not None and os.path.samestat(os.fstat(handle), path.lstat()):
                remove(path)

    def _of(self, path: str) -> NDArray[Any]:
        """Return the records of a dataset since the run last created it."""
        number = self._numbers.get(path, -1)
        begin, end = np.searchsorted(self._datasets, [number, number + 1])
        records = self._records[begin:end]
        # A dataset that is created anew begins with the same chunk.
        begins = np.flatnonzero(records["chunk"] == records["chunk"][:1])
        return records[begins[-1] :] if len(begins) else records

    def close(self) -> None:
        """Release the lock."""
        handles = (self._handle, self._journal)
        self._handle = self._journal = None
        for handle in handles:
            if handle is not None:
                close_handle(handle)


def find_leftovers(target_path: Path) -> Leftovers:
    """Return the temporary files next to a target, without following links or touching files of other users."""
    dead: list[Leftover] = []
    busy: list[Path] = []
    unknown: list[Path] = []
    for path in temporaries_of(target_path):
        journal = _opened(journal_of(path), os.O_RDWR)
        if journal is None or not _is_journal(journal):
            if os.path.lexists(path):
                unknown.append(path)
        else:
            is_locked = lock_at_once(journal)
            if is_locked is None:
                unknown.append(path)
            elif not is_locked:
                busy.append(path)
            elif _has_name(journal, journal_of(path)):
                leftover = Leftover(path, journal)
                if leftover.known:
                    dead.append(leftover)
                    continue  # the leftover closes the journal
                unknown.append(path)
        if journal is not None:
            close_handle(journal)
    return Leftovers(tuple(dead), tuple(busy), tuple(unknown))


def segments_in(folder: Path, run: RunKey) -> dict[int, Leftover]:
    """Return the segments in a folder that belong to a run, by the number of their first chunk; to be closed.

    A segment is a file of chunks with a journal of its own, which an ended process has written.
    """
    found: dict[int, Leftover] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        journal = _opened(journal_of(path), os.O_RDONLY)
        if journal is not None:
            segment = Leftover(path, journal)
            first = next(segment.records(next(iter(run.datasets))), None)
            if segment.run == run and first is not None and first.chunk not in found:
                found[first.chunk] = segment
            else:
                segment.close()
    return found


def _opened(path: Path, flags: int) -> int | None:
    """Open a regular file or a folder of this user; None if there is none."""
    try:
        handle = open_unless_link(path, flags)
    except OSError:
        return None
    status = os.fstat(handle)
    if (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) and status.st_uid == user_id():
        return handle
    close_handle(handle)
    return None


def _nbytes_of(path: Path, handle: int | None) -> int:
    """Return the bytes of an open file or folder; 0 if it is not open, or cannot be read."""
    try:
        return 0 if handle is None else nbytes_of(path)
    except OSError:
        return 0


def _is_journal(handle: int) -> bool:
    """Return whether a file begins like a journal, or is the beginning of one after an early kill."""
    try:
        return MAGIC.startswith(read_at(handle, len(MAGIC), 0))
    except OSError:
        return False


def _has_name(handle: int, path: Path) -> bool:
    """Return whether an open file still has its name: a run that has just ended may have renamed or removed it."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _head(journal: int) -> tuple[RunKey | None, int, int]:
    """Return the run of a journal, the checksum that records continue, and the offset of the first record."""
    offset = len(MAGIC)
    head = read_at(journal, HEAD.size, offset)
    if len(head) < HEAD.size:
        return None, 0, 0
    nbytes, checksum = HEAD.unpack(head)
    offset += HEAD.size
    if nbytes > min(_MOST_TEXT_NBYTES, os.fstat(journal).st_size - offset):
        return None, 0, 0
    text = read_at(journal, nbytes, offset)
    try:
        run = RunKey.from_bytes(text) if zlib.crc32(text) == checksum else None
    except ValueError:
        run = None
    return run, checksum, offset + nbytes


def _records(journal: int, offset: int, seed: int) -> NDArray[Any]:
    """Return all records before the first incomplete or damaged one."""
    step = RECORD.size + CHECKSUM.size
    valid = bytearray()
    while True:
        block = memoryview(read_at(journal, step * _RECORDS_AT_ONCE, offset))
        valid_nbytes = 0
        while valid_nbytes + step <= len(block):
            (checksum,) = CHECKSUM.unpack_from(block, valid_nbytes + RECORD.size)
            if zlib.crc32(block[valid_nbytes : valid_nbytes + RECORD.size], seed) != checksum:
                break
            valid_nbytes += step
        valid += block[:valid_nbytes]
        offset += valid_nbytes
        if valid_nbytes < step * _RECORDS_AT_ONCE:
            return np.frombuffer(bytes(valid), _RECORD_TYPE)
