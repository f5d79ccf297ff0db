"""The chunks of the codec ``h5z_zfp`` before other codecs, some of which are raw values instead of a stream of zfp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.chunk_reader import ChunkPart, ChunkReader
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin, Region
    from tamis.arrays.index import Parts
    from tamis.arrays.selection import Piece

_SKIPS_ZFP = 1


class RawOrZfpChunks(ChunkReader):
    """The stored chunks of an array with ``h5z_zfp`` and codecs behind it.

    The size tells raw values from a stream (docs/format.md), but only after the codecs behind zfp are undone. So the
    filter mask of a chunk is known when its bytes are read, and not from the index.
    """

    def __init__(self, raw_nbytes: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._raw_nbytes = raw_nbytes
        self._masks: dict[Origin, int] = {}

    def stored(self, origin: Origin) -> tuple[bytes, int]:
        """Return the bytes and the filter mask of a stored chunk."""
        data, mask = super().stored(origin)
        return data, self._true_mask(origin, mask)

    def stored_many(self, parts: Parts) -> Iterator[tuple[bytes, int] | None]:
        """Yield bytes and filter mask of each chunk; None if it is not stored."""
        for origin in parts.origins():
            yield self.stored(origin) if origin in self.index else None

    def read_many(self, part: Region, out: NDArray[Any], threads: int = 1, *, fetches: bool = False) -> bool:
        """Return False: native code takes masks from the index."""
        return False

    def whole_of(self, part: Region) -> Region | None:
        """Return None: chunks are read one by one."""
        return None

    def part_for(self, piece: Piece) -> ChunkPart | None:
        """Return None: chunks are read whole."""
        return None

    def _true_mask(self, origin: Origin, mask: int) -> int:
        """Return the filter mask of a chunk, by the size of what the codecs behind zfp were applied to."""
        if origin not in self._masks:
            data, _ = super().stored(origin)
            try:
                inner = self.pipeline.decode_rest(data, mask, self.chunk)
            except TamisError as error:
                raise self._failure(origin, f" cannot be decoded: {error}") from error
            is_raw = np.asarray(memoryview(inner)).nbytes == self._raw_nbytes
            self._masks[origin] = mask | (_SKIPS_ZFP if is_raw else 0)
        return self._masks[origin]
