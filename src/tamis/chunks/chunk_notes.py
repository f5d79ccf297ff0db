"""A compact table of numbers about chunks, filled in any order."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ChunkNotes:
    """A table with the number of a chunk and other numbers in each row.

    Parameters
    ----------
    codes
        Types of the other columns, as the module `struct` has them.
    """

    def __init__(self, codes: str) -> None:
        self._row, self._rows = struct.Struct(f"=q{codes}"), bytearray()
        self._dtype = np.dtype([(str(at), f"={code}") for at, code in enumerate(f"q{codes}")])

    def add(self, number: int, *values: int) -> None:
        """Add a row for a chunk."""
        self._rows += self._row.pack(number, *values)  # one call, because this runs for each chunk

    def extend(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Add rows for several chunks."""
        pack = self._row.pack
        self._rows += b"".join([pack(*row) for row in rows])

    def __len__(self) -> int:
        return len(self._rows) // self._row.size

    def columns(self) -> list[NDArray[Any]]:
        """Return the columns in the order of chunk numbers; of several rows for a chunk, the last one."""
        rows = np.frombuffer(self._rows, self._dtype)
        columns = [rows[name] for name in self._dtype.names or ()]
        if not (columns[0][1:] > columns[0][:-1]).all():
            _, last = np.unique(columns[0][::-1], return_index=True)
            columns = [column[::-1][last] for column in columns]
        return columns
