"""Chunks that zfp alone can put where their values shall be, all of them or some blocks."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import zfp
from tamis.filters import ChunkType, Stage, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.zfp import blocks
from tamis.zfp.blocks import Run

# A block of three axes lies in 16 lines of an array, far from each other, which all want the same place in the cache
# where extents are powers of two: 512 MiB in chunks of 64³ take 0.80 s so, 0.60 s by way of memory that stays in it.
_SCATTERED_AXES = 3
_MOST_ASIDE_NBYTES = 4 << 20


class ZfpChunks:
    """The zfp of chunks whose shape is the one that its stored parameters say, decoded to where the values shall be."""

    def __init__(self, header: StoredZfp, chunk: ChunkType) -> None:
        self._header, self._mode, self._chunk = header, header.filter.mode, chunk
        self._squeeze = tuple(0 if extent == 1 else slice(None) for extent in chunk.shape)
        self._aside = len(header.shape) >= _SCATTERED_AXES and chunk.nbytes <= _MOST_ASIDE_NBYTES
        self._mine = threading.local()
        self.nbits = blocks.block_nbits(self._mode, header.dtype, len(header.shape))

    @classmethod
    def of(cls, stage: Stage, chunk: ChunkType) -> ZfpChunks | None:
        """Look at the first filter of such chunks; None where it is another, or has to rearrange them."""
        if not isinstance(stage.filter, Zfp) or not is_stored(stage.stored or ()):
            return None
        header = StoredZfp.parse(stage.stored or ())
        squeezed = tuple(extent for extent in chunk.shape if extent > 1)
        if header.shape != squeezed or header.dtype.itemsize != chunk.dtype.itemsize:
            return None
        return cls(header, chunk)

    def fits(self, out: NDArray[Any]) -> bool:
        """Whether the codec can put the values there."""
        return out.shape == self._chunk.shape and out.dtype == self._chunk.dtype and out.flags.aligned

    def decode(self, data: Any, out: NDArray[Any]) -> NDArray[Any]:
        """Decode a chunk; StreamError if it is damaged."""
        if self._aside and not out.flags.c_contiguous:
            out[...] = self.decode(data, self._room())
            return out
        view = self._view(out)
        zfp.decode(data, view.shape, view.dtype, self._mode, out=view)
        return self._swapped(out)

    def _room(self) -> NDArray[Any]:
        """Give memory for a chunk, the same to each call of a thread."""
        if not hasattr(self._mine, "room"):
            self._mine.room = np.empty(self._chunk.shape, self._chunk.dtype)
        room: NDArray[Any] = self._mine.room
        return room

    def touched(self, inside: Sequence[Any]) -> list[Run] | None:
        """Find the blocks that a selection of a chunk touches; None where all are as good: see `blocks.touched`."""
        longer = [each for each, extent in zip(inside, self._chunk.shape, strict=True) if extent > 1]
        return blocks.touched(longer, self._header.shape)

    def decode_blocks(self, data: bytes, offset: int, runs: Sequence[Run], out: NDArray[Any]) -> NDArray[Any]:
        """Decode runs of blocks out of a part of a chunk's stream that begins at an offset in bytes."""
        blocks.decode_blocks(data, offset, runs, self._view(out), self._mode, self.nbits or 0)
        return self._swapped(out)

    def _view(self, out: NDArray[Any]) -> NDArray[Any]:
        """As the codec sees it: signed, in native byte order, without unit axes."""
        return out[self._squeeze].view(self._header.dtype)

    def _swapped(self, out: NDArray[Any]) -> NDArray[Any]:
        if self._header.swapped:
            # The file's type is that of the machine that wrote it.
            out.byteswap(inplace=True)
        return out
