"""The chunk files of a Zarr array in a local folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.source import opened, read_at
from tamis.errors import FileError

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ChunkFiles:
    """The files of an array's chunks, or of its shards.

    Parameters
    ----------
    folder
        Folder of the array.
    key_of
        Returns the key of a chunk by its index along each axis: its path in the folder.
    counts
        Number of chunks along each axis.
    """

    folder: Path
    key_of: Callable[[tuple[int, ...]], str]
    counts: tuple[int, ...]

    def path_of(self, number: int) -> Path:
        """Return the path of the file of a chunk by its number."""
        index = [0] * len(self.counts)
        for axis in reversed(range(len(self.counts))):
            number, index[axis] = divmod(number, self.counts[axis])
        return self.folder / self.key_of(tuple(index))

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return numbers and sizes of the stored chunks, by number; the time depends on the files, not on the grid.

        Raises
        ------
        FileError
            If the folder cannot be listed.
        """
        numbers, sizes = [], []
        try:
            for key, entry in _files_in(self.folder, ""):
                if (number := self._number_of(key)) is not None:
                    numbers.append(number)
                    sizes.append(entry.stat().st_size)
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be listed: {error.strerror}").at(path=self.folder) from error
        order = np.argsort(known := np.array(numbers, np.int64))
        return known[order], np.array(sizes, np.int64)[order]

    def _number_of(self, key: str) -> int | None:
        """Return the number of the chunk with a key; None if it is not the key of a chunk of the grid."""
        index = tuple(map(int, _NUMBERS.findall(key)))
        if not self.counts:
            return 0 if key == self.key_of(()) else None
        if len(index) != len(self.counts) or self.key_of(index) != key:
            return None
        number = 0
        for at, count in zip(index, self.counts, strict=True):
            if at >= count:
                return None  # left behind when the array was made smaller
            number = number * count + at
        return number


def read_part(path: Path, nbytes: int, offset: int = 0) -> tuple[bytes, int]:
    """Return so many bytes of a file, fewer only at its end, and its size.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        with opened(path) as handle:
            return read_at(handle, nbytes, offset), os.fstat(handle).st_size
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}").at(path=path) from error


def _files_in(folder: str | Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files in a folder and the folders in it, with their paths from the first."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _files_in(entry.path, f"{prefix}{entry.name}/")
            else:
                yield f"{prefix}{entry.name}", entry
