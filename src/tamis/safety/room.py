"""Room on a file system that several processes reserve for what they write, so that together they do not fill it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.access import NEW_FILE
from tamis.safety.disk import nbytes_of
from tamis.system.files import open_file, opened, read_at
from tamis.system.locks import lock_at_once, wait_for_lock

_LOCK = "lock"  # Name of the file that a process locks while it looks at reservations
_ENDING = ".json"
_TOKEN_NBYTES = 4
_WAIT_SECONDS = 0.2


class Room:
    """Reservations of processes, as files in a folder; each is locked while its process is at work."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle: int | None = None
        self._path: Path | None = None

    def reserve(self, place: Path, written: Path, nbytes: int, removable_nbytes: int, *, waits: bool) -> bool:
        """Reserve bytes on the file system of a folder, beside what other processes reserved.

        Parameters
        ----------
        place
            The folder.
        written
            The file or folder that gets the bytes: what it has already is no longer reserved.
        nbytes
            Bytes to reserve.
        removable_nbytes
            Bytes that this process removes before it writes.
        waits
            Whether to wait until other processes have ended what they write.

        Returns
        -------
        bool
            False if there is too little room, and no other process is waited for.
        """
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            with self._locked():
                others = self._others(place.stat().st_dev)
                if shutil.disk_usage(place).free + removable_nbytes - sum(others) >= nbytes:
                    self._write(place, written, nbytes)
                    return True
            if not (others and waits):
                return False
            time.sleep(_WAIT_SECONDS)

    def close(self) -> None:
        """Give the room back."""
        if self._handle is not None and self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = self._path = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the reservations, so that no other process changes them."""
        handle = open_file(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, NEW_FILE)
        try:
            wait_for_lock(handle)  # without locks, two processes may look at once
            yield
        finally:
            os.close(handle)

    def _write(self, place: Path, written: Path, nbytes: int) -> None:
        """Write a reservation, locked as long as this process holds it."""
        path = self._folder / f"{os.getpid()}-{os.urandom(_TOKEN_NBYTES).hex()}{_ENDING}"
        handle = open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, NEW_FILE)
        lock_at_once(handle)
        entry = {"device": place.stat().st_dev, "written": os.fspath(written), "nbytes": nbytes}
        with suppress(OSError):  # a disk that is full to the last byte
            os.write(handle, json.dumps(entry).encode())
        self._handle = handle
        self._path = path

    def _others(self, device: int) -> list[int]:
        """Return the bytes that each other process will still write; remove what ended processes left.

        One that has written all of them is still at work, and may free room at its end.
        """
        remaining = []
        for path in self._folder.glob(f"*{_ENDING}"):
            with suppress(OSError, ValueError, TypeError, KeyError), opened(path) as handle:
                if lock_at_once(handle):  # its process has ended
                    path.unlink()
                    continue
                entry = json.loads(read_at(handle, os.fstat(handle).st_size, 0))
                if entry["device"] == device:
                    remaining.append(max(int(entry["nbytes"]) - _written(entry["written"]), 0))
        return remaining


def _written(path: str) -> int:
    """Return the bytes of a file or folder; 0 if there is none."""
    with suppress(OSError):
        return nbytes_of(path)
    return 0
