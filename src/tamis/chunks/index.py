"""Where the stored chunks of an array are: four numbers for each, in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Grid, Origin
from tamis.chunks.regions import Numbers, Parts


class ChunkRecord(NamedTuple):
    """Where a chunk lies.

    Parameters
    ----------
    offset, nbytes
        Of its bytes, in their file.
    mask
        Bit i is set where filter i was left out.
    """

    offset: int
    nbytes: int
    mask: int


@dataclass(frozen=True, eq=False, slots=True)
class ChunkIndex:
    """The stored chunks of an array, in the order of their numbers; 28 bytes for each, 20 where all are stored.

    Parameters
    ----------
    grid
        Of all chunks.
    numbers
        Of those that are stored, increasing.
    offsets, sizes, masks
        Of each: see `ChunkRecord`.
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
        """Return the position of a chunk in the arrays; -1 where it is not stored."""
        number = self.grid.number_of(origin)
        if isinstance(self.numbers, range):
            return number if 0 <= number < len(self.numbers) else -1
        at = int(self.numbers.searchsorted(number))
        return at if at < len(self.numbers) and self.numbers[at] == number else -1

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
        """Yield the origin of each chunk, and where it lies."""
        rows = zip(self.offsets.tolist(), self.sizes.tolist(), self.masks.tolist(), strict=True)
        return zip(self.parts.origins(), map(ChunkRecord._make, rows), strict=True)

    def record_of(self, origin: Origin) -> ChunkRecord | None:
        """Return where a chunk lies; None where it is not stored."""
        at = self.position_of(origin)
        if at < 0:
            return None
        return ChunkRecord(int(self.offsets[at]), int(self.sizes[at]), int(self.masks[at]))
