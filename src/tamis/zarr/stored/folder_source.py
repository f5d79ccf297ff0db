"""The chunk files of an array as one run of bytes, so that chunks have offsets as in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.zarr.stored.chunk_files import read_part


class FolderSource:
    """Chunk files behind each other; see `tamis.chunks.source.ByteSource`. Files are opened when they are read.

    Parameters
    ----------
    sizes
        Sizes of the files in bytes.
    path_of
        Returns the path of a file by its number.
    """

    def __init__(self, sizes: NDArray[np.int64], path_of: Callable[[int], Path]) -> None:
        self._ends = np.cumsum(sizes)
        self._path_of = path_of

    @property
    def nbytes(self) -> int:
        """Number of all bytes."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def starts(self) -> NDArray[np.int64]:
        """Return the offset of each file."""
        return np.concatenate([np.zeros(1, np.int64), self._ends[:-1]]) if len(self._ends) else self._ends

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return bytes of one file.

        Raises
        ------
        FileError
            If the file has changed its size since it was listed, or cannot be read.
        """
        number = int(self._ends.searchsorted(offset, "right"))
        if not nbytes or number >= len(self._ends):
            return b""
        start = int(self._ends[number - 1]) if number else 0
        path = self._path_of(number)
        data, size = read_part(path, nbytes, offset - start)
        if size != int(self._ends[number]) - start:
            raise FileError(f"{path}: the file changed while it was read").at(path=path)
        return data

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""
        data = self.read(offset, len(room))
        room[: len(data)] = data
        return len(data)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size."""
        return [self.read(*span) for span in ranges]
