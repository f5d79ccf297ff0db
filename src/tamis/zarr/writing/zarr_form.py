"""The form of a new Zarr hierarchy: version, files of several chunks, consolidated metadata."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tamis.chunks.grid import Grid
from tamis.errors import ParameterError
from tamis.store.first_bytes import is_zarr

_VERSIONS = (2, 3)


@dataclass(frozen=True, slots=True)
class ZarrForm:
    """The form of a new hierarchy. It names the files of chunks, see `tamis.store.folder_transaction.FolderForm`.

    Parameters
    ----------
    zarr_format
        2 or 3.
    shards
        Largest number of chunks in a file, in Zarr 3; None for a file for each chunk.
    consolidated
        Whether the root also has the metadata of all arrays, as xarray looks for them.

    Raises
    ------
    ParameterError
        If there is no such form.
    """

    zarr_format: Literal[2, 3] = 3
    shards: int | None = None
    consolidated: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.zarr_format not in _VERSIONS or isinstance(self.zarr_format, bool):
            raise ParameterError(f"expected zarr_format to be 2 or 3, got {self.zarr_format!r}")
        if self.shards is None:
            return
        if not isinstance(self.shards, int) or isinstance(self.shards, bool) or self.shards < 1:
            raise ParameterError(f"expected the number of chunks in a shard, 1 or more, got {self.shards!r}")
        if self.zarr_format == 2:
            raise ParameterError("expected no shards in Zarr 2, which has none: leave out zarr_format=2, or shards")

    def is_store(self, path: Path) -> bool:
        """Return whether a folder is a hierarchy."""
        return is_zarr(path)

    def shard_counts(self, grid: Grid) -> tuple[int, ...] | None:
        """Return the number of chunks of a shard along each axis: full rows of the fastest axes; None without shards.

        An array of one chunk has no shards.
        """
        if self.shards is None or grid.chunk_count <= 1:
            return None
        counts, left = [], self.shards
        for count in reversed(grid.counts):
            counts.append(max(min(count, left), 1))
            left //= counts[-1]
        return tuple(counts[::-1])

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the hierarchy, by the number of the chunk."""
        index = tuple(start // step for start, step in zip(grid.origin_of(number), grid.chunk_shape, strict=True))
        if (counts := self.shard_counts(grid)) is not None:
            index = tuple(i // count for i, count in zip(index, counts, strict=True))
        folder = path.strip("/")
        if self.zarr_format == 2:
            return f"{folder}/{'.'.join(map(str, index)) or '0'}"
        return "/".join([folder, "c", *map(str, index)])

    def number_in_shard(self, grid: Grid, number: int) -> int:
        """Return the number of a chunk in its shard."""
        counts, inner = self.shard_counts(grid) or (), 0
        for start, step, count in zip(grid.origin_of(number), grid.chunk_shape, counts, strict=True):
            inner = inner * count + start // step % count
        return inner

    def shard_size(self, grid: Grid) -> int:
        """Return the number of chunks of a shard."""
        return math.prod(self.shard_counts(grid) or ())
