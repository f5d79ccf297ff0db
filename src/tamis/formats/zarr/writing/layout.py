"""Where the chunks of a new Zarr hierarchy are: its version, its shards, and the files of its chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import ChunkNotes
from tamis.errors import ParameterError
from tamis.formats.zarr.masked import MASK_MARK, mark_of

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid

_VERSIONS = (2, 3)

_ABSENT = (1 << 64) - 1
"""Offset and size of a chunk that a shard does not have."""


@dataclass(frozen=True, slots=True)
class ZarrLayout:
    """The layout of a new hierarchy."""

    zarr_format: Literal[2, 3] = 3
    shards: int | None = None  # Largest number of chunks in a file, in Zarr 3; None for a file for each chunk
    consolidated: bool = True  # Whether the root also has the metadata of all arrays, as xarray looks for them
    # How packed values are stored: by ``codecs``, or with ``attributes``; None for those of the source as they are, and
    # others with attributes
    packed_as: Literal["codecs", "attributes"] | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.zarr_format not in _VERSIONS or isinstance(self.zarr_format, bool):
            raise ParameterError(f"expected zarr_format to be 2 or 3, got {self.zarr_format!r}")
        if self.zarr_format == 2 and self.packed_as == "codecs":
            raise ParameterError(
                "Zarr 2 has no codecs for packed values: leave out zarr_format=2, or take packed_as='attributes'"
            )
        if self.shards is None:
            return
        if not isinstance(self.shards, int) or isinstance(self.shards, bool) or self.shards < 1:
            raise ParameterError(f"expected 1 or more chunks per shard, got {self.shards!r}")
        if self.zarr_format == 2:
            raise ParameterError("Zarr 2 has no shards: leave out zarr_format=2, or shards")

    def shard_counts(self, grid: Grid) -> tuple[int, ...] | None:
        """Return the number of chunks of a shard along each axis: full rows of the fastest axes; None without shards.

        An array of one chunk has no shards.
        """
        if self.shards is None or grid.chunk_count <= 1:
            return None
        counts: list[int] = []
        left = self.shards
        for count in reversed(grid.counts):
            counts.append(max(min(count, left), 1))
            left //= counts[-1]
        return tuple(counts[::-1])

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the hierarchy, by the number of the chunk."""
        index = tuple(map(int, np.unravel_index(number, grid.counts)))
        if (counts := self.shard_counts(grid)) is not None:
            index = tuple(i // count for i, count in zip(index, counts, strict=True))
        folder = path.strip("/")
        if self.zarr_format == 2:
            return f"{folder}/{'.'.join(map(str, index)) or '0'}"
        return "/".join([folder, "c", *map(str, index)])

    @property
    def has_shards(self) -> bool:
        """Whether a file has several chunks."""
        return self.shards is not None

    def shards_of(self, grid: Grid, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the file of each chunk."""
        if (sizes := self.shard_counts(grid)) is None:
            return numbers
        places = np.unravel_index(numbers, grid.counts)
        counts = [-(-count // size) for count, size in zip(grid.counts, sizes, strict=True)]
        return np.ravel_multi_index([at // size for at, size in zip(places, sizes, strict=True)], counts)

    def mark_of(self, data: bytes, mask: int, usual: int) -> bytes:
        """Return the bytes before a chunk."""
        return mark_of(mask) if mask != usual or data.startswith(MASK_MARK) else b""

    def ending_of(self, grid: Grid, places: ChunkNotes) -> bytes:
        """Return the index of a shard, with its checksum; nothing for the file of one chunk."""
        if (sizes := self.shard_counts(grid)) is None:
            return b""
        numbers, *own = places.columns()
        within = [at % size for at, size in zip(np.unravel_index(numbers, grid.counts), sizes, strict=True)]
        index = np.full((math.prod(sizes), 2), _ABSENT, "<u8")
        index[np.ravel_multi_index(within, sizes)] = np.stack(own, axis=1)
        data: bytes = index.tobytes()
        return data + int(google_crc32c.value(data)).to_bytes(4, "little")
