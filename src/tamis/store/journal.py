"""The journal beside a temporary file, by which a later run can reuse encoded chunks.

It has a line with the format, length and checksum of a JSON text, the text, which describes the run, and a record of
fixed size for each written chunk. The checksum of a record continues that of the text. A record that is incomplete or
damaged ends the list.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import deflate

from tamis.chunks.source import close_handle
from tamis.store.disk import write_at

MAGIC = b"tamis journal 4\n"
HEAD = struct.Struct("<II")
"""Length and checksum of the text."""

RECORD = struct.Struct("<IQQQIQQBI")
"""Number of the dataset in the text, number of the chunk in the grid, offset, bytes, mask, counts, checksum.

The counts are of missing values, of values that would cross a limit, and 1 for a chunk that misses what is required of
each value: `NewChunk.missing`, `crossed` and `missed`.
"""

CHECKSUM = struct.Struct("<I")
"""Checksum of a record."""

_AT_ONCE_NBYTES = 64 << 10
"""Decoded bytes of chunks after which records are written: so much work can be lost."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that determines the bytes of each chunk.

    Parameters
    ----------
    source
        Size, times and inode, which tell whether the source is unchanged.
    datasets
        For each path how chunks are encoded, and by which versions of libraries.
    """

    source: Mapping[str, int | str]
    datasets: Mapping[str, Mapping[str, str]]

    def to_bytes(self) -> bytes:
        """Return the text of a journal."""
        return json.dumps({"source": dict(self.source), "datasets": [*self.datasets.items()]}).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> Run:
        """Read the text of a journal.

        Raises
        ------
        ValueError
            If the text is not that of a journal.
        """
        try:
            document = json.loads(text)
            datasets = {str(path): _texts(entry) for path, entry in document["datasets"]}
            return cls({str(key): value for key, value in document["source"].items()}, datasets)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"expected the text of a journal, got {error!r}") from error


def companion_key(path: str) -> str:
    """Return the key of a dataset's companion in `Run.datasets`: a path that no dataset can have."""
    return f"{path}\0missing"


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in entry.items()}


def checksum_of(data: bytes) -> int:
    """Return the checksum of a chunk: a CRC-32 by libdeflate, which takes less than 2 % of the time of copying it."""
    return deflate.crc32(data)


def seal_of(data: bytes, mask: int) -> int:
    """Return the checksum of a chunk and its filter mask: a CRC-32 that starts with the mask."""
    return deflate.crc32(data, mask)


class _State(NamedTuple):
    """What a journal has: it changes as a whole, because Ctrl-C may come between any two steps.

    Parameters
    ----------
    offset
        Bytes in the file.
    pending
        Bytes to be written there.
    decoded_nbytes
        Decoded bytes of the chunks whose records are pending.
    chunk_count
        Number of recorded chunks.
    """

    offset: int
    pending: bytes
    decoded_nbytes: int
    chunk_count: int


class Journal:
    """The journal of the current run, locked while it writes.

    If the journal cannot be written, the run continues without it: a later run can then reuse fewer chunks. After an
    interrupt at any moment it can be continued: what may have been written already is written again at its offset.
    """

    def __init__(self, path: Path, run: Run) -> None:
        text = run.to_bytes()
        self._seed = zlib.crc32(text)
        self._state = _State(0, MAGIC + HEAD.pack(len(text), self._seed) + text, 0, 0)
        self._handle: int | None = _locked(path)
        self._failed = self._handle is None
        self.flush()

    @property
    def usable(self) -> bool:
        """True if a later run can use it: it has records, and all of it could be written."""
        return not self._failed and self._state.chunk_count > 0

    def add(
        self,
        dataset: int,
        chunk: int,
        offset: int,
        stored_nbytes: int,
        checksum: int,
        mask: int,
        counts: tuple[int, int, int],
        nbytes: int,
    ) -> None:
        """Record a chunk that is in the file.

        Parameters
        ----------
        dataset, chunk, offset, stored_nbytes, mask, counts, checksum
            As in `RECORD`; `chunk` is the number of the chunk in the grid, `checksum` that of the encoded chunk.
        nbytes
            Bytes of the decoded chunk.
        """
        record = RECORD.pack(dataset, chunk, offset, stored_nbytes, mask, *counts, checksum)
        offset, pending, decoded_nbytes, chunk_count = self._state
        pending += record + CHECKSUM.pack(zlib.crc32(record, self._seed))
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
    """Create a journal and lock it; None if it cannot be locked, because then nobody knows whether its run is alive."""
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return handle
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            if not isinstance(error, BlockingIOError):
                close_handle(handle)
                return None
        # Another run removed the empty journal, as if left by a killed run: try again.
        close_handle(handle)
