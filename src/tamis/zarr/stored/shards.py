"""Chunks in files that hold several, shards in Zarr 3: their places, by the index of each file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Grid
from tamis.errors import FileError
from tamis.zarr.stored.chunk_files import read_part

Json = dict[str, Any]

_ABSENT = np.uint64((1 << 64) - 1)
_ENTRY_NBYTES, _CHECKSUM_NBYTES = 16, 4
_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


@dataclass(frozen=True, slots=True)
class ShardForm:
    """What files of several chunks have in them.

    Parameters
    ----------
    codecs
        Metadata of the codecs of a chunk.
    at_end
        Whether the index follows the chunks, instead of leading them.
    has_checksum
        Whether the index has a checksum.
    """

    codecs: tuple[Json, ...]
    at_end: bool
    has_checksum: bool

    @classmethod
    def of(cls, codecs: Sequence[Json]) -> Self | None:
        """Return the form by the codecs of an array; None if they are others, or the index has other codecs."""
        if len(codecs) != 1 or codecs[0].get("name") != "sharding_indexed":
            return None
        config = codecs[0]["configuration"]
        of_index = list(config["index_codecs"])
        if of_index[:1] != [_LITTLE] or [codec.get("name") for codec in of_index[1:]] not in ([], ["crc32c"]):
            return None
        return cls(tuple(config["codecs"]), config.get("index_location", "end") == "end", len(of_index) > 1)

    def entries(self, path: Path, count: int) -> NDArray[np.uint64]:
        """Return offset and size of each chunk of a file, read from its index.

        Raises
        ------
        FileError
            If the file has no such index, its checksum is wrong, or a chunk would lie outside the room for chunks.
        """
        nbytes = count * _ENTRY_NBYTES + (_CHECKSUM_NBYTES if self.has_checksum else 0)
        _, size = read_part(path, 0)
        if nbytes > size:
            raise _damage(path, f"expected an index of {nbytes} bytes for {count} chunks, found a file of {size} bytes")
        data, _ = read_part(path, nbytes, size - nbytes if self.at_end else 0)
        if self.has_checksum:
            data, checksum = data[:-_CHECKSUM_NBYTES], int.from_bytes(data[-_CHECKSUM_NBYTES:], "little")
            if (found := _crc32c(data)) != checksum:
                raise _damage(path, f"expected the checksum {checksum:08x} of the index, found {found:08x}")
        entries: NDArray[np.uint64] = np.frombuffer(data, "<u8").reshape(count, 2).astype(np.uint64)
        first, last = (0, size - nbytes) if self.at_end else (nbytes, size)
        stored = entries[(entries != _ABSENT).any(axis=1)]
        offsets, sizes = stored.T
        wrong = (offsets < first) | (offsets > last) | (sizes > last - np.minimum(offsets, np.uint64(last)))
        if wrong.any():
            offset, length = stored[wrong][0].tolist()
            raise _damage(path, f"expected chunks from byte {first} to {last}, found {length} bytes at {offset}")
        return entries


@dataclass(frozen=True, slots=True)
class Places:
    """Places of stored chunks.

    Parameters
    ----------
    numbers
        Numbers of the chunks, increasing.
    starts, sizes
        Offset in all files behind each other, and size.
    """

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


def places_in_shards(
    form: ShardForm,
    grids: tuple[Grid, Grid],
    files: tuple[NDArray[np.int64], NDArray[np.int64]],
    path_of: Callable[[int], Path],
) -> Places:
    """Return the places of all chunks that lie in the array.

    Parameters
    ----------
    form
        The form of the files.
    grids
        The grids of chunks and of shards.
    files
        Number of each file in the grid of shards, and where it begins.
    path_of
        Returns the path of a file by its row.

    Raises
    ------
    FileError
        If the index of a file is damaged.
    """
    chunks, shards = grids
    counts = tuple(step // chunk for step, chunk in zip(shards.chunk_shape, chunks.chunk_shape, strict=True))
    numbers, starts, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for row, (number, begin) in enumerate(zip(*map(np.ndarray.tolist, files), strict=True)):
        entries = form.entries(path_of(row), math.prod(counts))
        inner = np.flatnonzero((entries != _ABSENT).any(axis=1))
        first = np.array(np.unravel_index(number, shards.counts)) * counts
        index = np.array(np.unravel_index(inner, counts)) + first[:, None]
        inside = (index < np.array(chunks.counts)[:, None]).all(axis=0)
        numbers.append(np.ravel_multi_index(tuple(index[:, inside]), chunks.counts))
        starts.append(entries[inner[inside], 0].astype(np.int64) + begin)
        sizes.append(entries[inner[inside], 1].astype(np.int64))
    order = np.argsort(known := np.concatenate(numbers))
    return Places(known[order], np.concatenate(starts)[order], np.concatenate(sizes)[order])


def _crc32c(data: bytes) -> int:
    import google_crc32c  # late: zarr brings it, and is optional

    return int(google_crc32c.value(data))


def _damage(path: Path, text: str) -> FileError:
    return FileError(f"{path}: {text}: the file is truncated or damaged").at(path=path)
