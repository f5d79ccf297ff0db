"""Filter 32026: Blosc2, a shuffle and one of several compressors, in a frame of `tamis.filters._blosc2_frame`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis.errors import DataError, MissingFilterError, StreamError
from tamis.filters._blosc2_frame import Layout, pack, unpack
from tamis.filters._blosc_words import COMPRESSOR, BloscFilter, elements, level_number
from tamis.filters.base import ChunkType, Data, choice

_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "", "zlib", "zstd")
_SHUFFLES = ("none", "byte", "bit", "delta", "truncate")
_READ_ONLY = ("delta", "truncate")  # imagecodecs encodes the first wrongly, and the second not at all
_BLOCK = 1 << 18  # bytes of our blocks, as many as Blosc2 itself uses at most levels


@dataclass(frozen=True, slots=True)
class Blosc2(BloscFilter):
    """Filter 32026: Blosc2.

    Parameters
    ----------
    compressor
        The compressor of the blocks.
    level
        0 (store) to 9 (smallest).
    shuffle
        How a block is rearranged first: bytes, or bits, of equal significance side by side. Two more are only read:
        ``delta``, differences from the first block, and ``truncate``, low bits cleared.
    """

    compressor: str = choice(COMPRESSOR, tuple(filter(None, _COMPRESSORS)), "blosclz")
    level: int = level_number()
    shuffle: str = choice("what is done to a block first; delta and truncate are only read", _SHUFFLES, "byte")
    id: ClassVar[int] = 32026
    name: ClassVar[str] = "blosc2"
    registered_name: ClassVar[str] = "Blosc2"
    about: ClassVar[str] = "several compressors after its own shuffle, in blocks of many axes"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)
    compressors: ClassVar[tuple[str, ...]] = _COMPRESSORS
    shuffles: ClassVar[tuple[str, ...]] = _SHUFFLES

    @property
    def error_bound(self) -> float | None:
        """0; None if low bits are cleared, because it is not recorded how many."""
        return None if self.shuffle == "truncate" else 0.0

    def unencodable(self) -> str:
        """Return that the shuffle is read-only, or which package is not installed; empty if neither."""
        if self.shuffle in _READ_ONLY:
            return f"tamis can decode {self.name} with shuffle={self.shuffle} but not encode it"
        return self.missing()

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return revision, zero, element size, bytes of a chunk, requested parameters; the shape from 2 axes on."""
        shape = (len(chunk.shape), *chunk.shape) if len(chunk.shape) > 1 else ()
        return (1, 0, chunk.dtype.base.itemsize, chunk.nbytes, *self.requested[4:], *shape)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress, block by block."""
        if reason := self.unencodable():
            raise MissingFilterError(reason)
        codecs = self.module("imagecodecs")
        itemsize = chunk.dtype.itemsize
        blocks, layout = data, None
        if len(chunk.shape) > 1 and len(data) == chunk.nbytes:
            layout = Layout(chunk.shape, _block_shape(chunk.shape, itemsize), itemsize)
            blocks = _in_blocks(data, layout)
        try:
            packed: bytes = codecs.blosc2_encode(
                array := elements(blocks, itemsize),
                self.level,
                compressor=self.compressor,
                shuffle=_SHUFFLES.index(self.shuffle),
                blocksize=layout.block_nbytes if layout else 0,
                numthreads=1,
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"blosc2 cannot compress these bytes: {error}") from error
        return pack(packed, len(blocks), self.requested[4:7], array.itemsize, layout)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, after checking every size in the frame."""
        frame = unpack(data, chunk.most_nbytes)
        if frame.zeros:
            return bytes(frame.layout.nbytes if frame.layout else frame.nbytes)
        codecs = self.module("imagecodecs")
        try:
            plain: bytes = codecs.blosc2_decode(frame.chunk, numthreads=1, out=frame.nbytes)
        except (RuntimeError, ValueError) as error:
            raise StreamError(f"blosc2 chunk is damaged: {error}") from error
        if len(plain) != frame.nbytes:
            raise StreamError(f"expected {frame.nbytes} bytes of a blosc2 chunk, got {len(plain)}")
        return plain if frame.layout is None else _out_of_blocks(plain, frame.layout)


def _block_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the shape of blocks: slowest axes are cut first, so that a block stays nearly contiguous."""
    block = list(shape)
    for axis in range(len(block)):
        while block[axis] > 1 and math.prod(block) * itemsize > _BLOCK:
            block[axis] = -(-block[axis] // 2)
    return tuple(block)


def _in_blocks(data: Data, layout: Layout) -> Data:
    """Return the blocks of a chunk one after the other, padded with zeros."""
    if layout.shape == layout.block:
        return data
    values = np.frombuffer(data, np.uint8).reshape(*layout.shape, layout.itemsize)
    padded = np.zeros((*layout.padded, layout.itemsize), np.uint8)
    padded[tuple(map(slice, layout.shape))] = values
    rank = len(layout.shape)
    split = padded.reshape(*layout.split, layout.itemsize)
    return split.transpose(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2), 2 * rank).tobytes()


def _out_of_blocks(plain: bytes, layout: Layout) -> bytes:
    """Undo `_in_blocks`."""
    if layout.shape == layout.block:
        return plain
    rank = len(layout.shape)
    blocks = np.frombuffer(plain, np.uint8).reshape(*layout.split[::2], *layout.block, layout.itemsize)
    order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    padded = blocks.transpose(*order, 2 * rank).reshape(*layout.padded, layout.itemsize)
    return padded[tuple(map(slice, layout.shape))].tobytes()
