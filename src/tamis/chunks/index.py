"""The chunk index of an array: four numbers for each stored chunk, in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Grid, Origin
from tamis.chunks.regions import Numbers, Parts
from tamis.errors import FileError


class UnsureIndexError(FileError):
    """An index whose chunks HDF5 lists otherwise than it finds them: only its own reading, by lookup, is right."""


class ChunkRecord(NamedTuple):
    """The place and filter mask of a chunk.

    Parameters
    ----------
    offset, nbytes
        Offset and size of its bytes in the file.
    mask
        Bit i is set if the chunk skipped filter i.
    """

    offset: int
    nbytes: int
    mask: int


@dataclass(frozen=True, eq=False, slots=True)
class ChunkIndex:
    """The stored chunks of an array, in the order of their numbers; 28 bytes for each, or 20 if all are stored.

    Parameters
    ----------
    grid
        The grid of all chunks.
    numbers
        Numbers of the stored chunks, increasing.
    offsets, sizes, masks
        Their places and masks: see `ChunkRecord`.
    """

    grid: Grid
    numbers: Numbers
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    masks: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def parts(self) -> Parts:
        """The parts of the array that are stored."""
        return Parts(self.grid, self.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks."""
        return int(self.sizes.sum())

    def mask_counts(self) -> dict[int, int]:
        """Return how many chunks have each filter mask."""
        masks, counts = np.unique(self.masks, return_counts=True)
        return dict(zip(masks.tolist(), counts.tolist(), strict=True))

    def position_of(self, origin: Origin) -> int:
        """Return the position of a chunk in the arrays; -1 if it is not stored."""
        number = self.grid.number_of(origin)
        if isinstance(self.numbers, range):
            return number if 0 <= number < len(self.numbers) else -1
        position = int(self.numbers.searchsorted(number))
        return position if position < len(self.numbers) and self.numbers[position] == number else -1

    def positions_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of chunks by their numbers, as `position_of`."""
        if isinstance(self.numbers, range):
            return np.where(numbers < len(self.numbers), numbers, -1)
        at = self.numbers.searchsorted(numbers)
        stored = at < len(self.numbers)
        stored[stored] = self.numbers[at[stored]] == numbers[stored]
        return np.where(stored, at, -1)

    def __contains__(self, origin: object) -> bool:
        return isinstance(origin, tuple) and self.position_of(origin) >= 0

    def records(self) -> Iterator[tuple[Origin, ChunkRecord]]:
        """Return an iterator of origins and records of all stored chunks."""
        rows = zip(self.offsets.tolist(), self.sizes.tolist(), self.masks.tolist(), strict=True)
        return zip(self.parts.origins(), map(ChunkRecord._make, rows), strict=True)

    def record_of(self, origin: Origin) -> ChunkRecord | None:
        """Return the record of a chunk; None if it is not stored."""
        position = self.position_of(origin)
        if position < 0:
            return None
        return ChunkRecord(int(self.offsets[position]), int(self.sizes[position]), int(self.masks[position]))
