"""Read an array part by part from its chunks, each decoded once for a part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.chunk_reader import ChunkReader
from tamis.chunks.grid import Origin, Region, origin_of
from tamis.chunks.reader import put


class ChunkedReader:
    """An array whose chunks are read raw and decoded by tamis."""

    def __init__(self, chunks: ChunkReader) -> None:
        self._reader = chunks
        self.shape, self.dtype = chunks.shape, chunks.chunk.dtype
        self.chunk_shape: tuple[int, ...] | None = chunks.chunk.shape

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Decode the chunks that overlap the part."""
        steps = self._reader.chunk.shape
        # Lists are faster than generators here, and this runs for each chunk.
        origin = tuple([axis.start // step * step for axis, step in zip(part, steps, strict=True)])
        if all(axis.stop <= at + step for axis, at, step in zip(part, origin, steps, strict=True)):
            return self._read_one(origin, part, out)
        firsts = [range(at, axis.stop, step) for axis, at, step in zip(part, origin, steps, strict=True)]
        if out is None:
            out = np.empty([axis.stop - axis.start for axis in part], self.dtype)
        if self._reader.read_many(part, out):
            return out
        begin = origin_of(part)
        for origin in itertools.product(*firsts):
            shared = tuple(
                slice(max(axis.start, at), min(axis.stop, at + step))
                for axis, at, step in zip(part, origin, steps, strict=True)
            )
            self._read_one(origin, shared, out[_inside(shared, begin)])
        return out

    def _read_one(self, origin: Origin, part: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Decode a part of one chunk; a whole chunk directly into `out`."""
        if tuple([axis.stop - axis.start for axis in part]) == self._reader.chunk.shape:
            return self._reader.values(origin, out)
        return put(self._reader.values(origin)[_inside(part, origin)], out)

    def close(self) -> None:
        """Close the source of the chunks."""
        self._reader.close()


def _inside(part: Region, origin: tuple[int, ...]) -> Region:
    return tuple([slice(axis.start - at, axis.stop - at) for axis, at in zip(part, origin, strict=True)])
