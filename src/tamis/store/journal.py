"""What a run notes beside its temporary file, so that a later run can take over what was encoded.

A line that names the format, length and checksum of a JSON text that says whose chunks these are, the text, and a
record of fixed size for each chunk that was written. The checksum of a record begins with that of the text: where
writing broke off, or bytes are others than were written, the first wrong one ends the list.
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
from typing import Any

import deflate

from tamis.store.disk import close_handle, write_all

MAGIC = b"tamis journal 3\n"
HEAD = struct.Struct("<II")
"""Length and checksum of the text."""

RECORD = struct.Struct("<IQQQIQQI")
"""Number of the dataset in the text, place in the grid of chunks, offset, bytes, mask, counts, checksum.

The counts are those of missing values, and of values that made zfp be left out: `NewChunk.missing` and `crossed`.
"""

CHECKSUM = struct.Struct("<I")
"""Of the record."""

_AT_ONCE_NBYTES = 64 << 10
"""Chunks of as many bytes, decoded, are noted at once: as much work can be lost."""


@dataclass(frozen=True, slots=True)
class Run:
    """What decides the bytes of each chunk.

    Parameters
    ----------
    source
        What tells whether the source is the same one, unchanged.
    datasets
        By path: what is done to its chunks, and by which versions of what.
    """

    source: Mapping[str, int | str]
    datasets: Mapping[str, Mapping[str, str]]

    def to_bytes(self) -> bytes:
        """Write it as the text of a journal."""
        return json.dumps({"source": dict(self.source), "datasets": [*self.datasets.items()]}).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> Run:
        """Read the text of a journal.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            found = json.loads(text)
            datasets = {str(path): _texts(entry) for path, entry in found["datasets"]}
            return cls({str(key): value for key, value in found["source"].items()}, datasets)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"expected the text of a journal, got {error!r}") from error


def companion_key(path: str) -> str:
    """Name the companion of a dataset among the datasets of a run: a path that none can have."""
    return f"{path}\0missing"


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in entry.items()}


def checksum_of(data: bytes) -> int:
    """Return the checksum of a chunk: a CRC-32, by libdeflate, which takes less than 2 % of the time of a copy's."""
    return deflate.crc32(data)


def seal_of(data: bytes, mask: int) -> int:
    """Return the checksum of a chunk and its filter mask: a CRC that begins with the mask."""
    return deflate.crc32(data, mask)


class Journal:
    """The notes of a run that writes now, locked for as long as it does.

    What it cannot write it leaves out, and the run goes on: a later one then has the less to take over.

    Parameters
    ----------
    path
        Must not exist.
    run
        Whose chunks these are.

    Attributes
    ----------
    count
        Chunks that were noted.
    """

    def __init__(self, path: Path, run: Run) -> None:
        text = run.to_bytes()
        self._seed = zlib.crc32(text)
        self._noted = bytearray(MAGIC + HEAD.pack(len(text), self._seed) + text)
        self._nbytes = self.count = 0
        self._handle: int | None = _locked(path)
        self.flush()

    @property
    def open(self) -> bool:
        """Whether it can be written."""
        return self._handle is not None

    def add(
        self, dataset: int, place: int, offset: int, data: bytes, mask: int, counts: tuple[int, int], nbytes: int
    ) -> None:
        """Note a chunk that is in the file.

        Parameters
        ----------
        dataset, place, offset, mask, counts
            As in `RECORD`.
        data
            Encoded.
        nbytes
            Bytes that it has decoded.
        """
        record = RECORD.pack(dataset, place, offset, len(data), mask, *counts, checksum_of(data))
        self._noted += record + CHECKSUM.pack(zlib.crc32(record, self._seed))
        self._nbytes += nbytes
        self.count += 1
        if self._nbytes >= _AT_ONCE_NBYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was noted."""
        try:
            if self._handle is not None:
                write_all(self._handle, self._noted)
        except OSError:
            self.close()  # what came later would follow a torn record
        self._noted.clear()
        self._nbytes = 0

    def close(self) -> None:
        """Let go of the lock; nothing is written any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            close_handle(handle)


def _locked(path: Path) -> int | None:
    """Create a journal and lock it; None where that cannot be: nobody could tell then whether its run still lives."""
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
        # Another run found it empty, and took it for a dead one's.
        close_handle(handle)
