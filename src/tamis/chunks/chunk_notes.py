"""Numbers that are noted of chunks in any order, in a few bytes for each."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray


class ChunkNotes:
    """Rows of a chunk's number and of other numbers.

    Parameters
    ----------
    codes
        Types of the other columns, as the module `array` has them.
    """

    def __init__(self, codes: str) -> None:
        self._columns = [array(code) for code in f"q{codes}"]

    def add(self, number: int, *values: int) -> None:
        """Note a chunk."""
        for column, value in zip(self._columns, (number, *values), strict=True):
            column.append(value)

    def __len__(self) -> int:
        return len(self._columns[0])

    def columns(self) -> list[NDArray[np.int64]]:
        """Return the columns, in the order of the numbers; of a chunk that is there twice, its last row."""
        columns = [np.array(column, np.int64) for column in self._columns]
        _, last = np.unique(columns[0][::-1], return_index=True)
        return [column[::-1][last] for column in columns]
