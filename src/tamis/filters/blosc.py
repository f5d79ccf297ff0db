"""Filter 32001: Blosc 1, a shuffle followed by one of several compressors."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

from tamis.errors import DataError, StreamError
from tamis.filters._blosc_words import COMPRESSOR, LARGEST_TYPE, BloscFilter, elements, level_number
from tamis.filters.base import ChunkType, Data, choice

_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES = ("none", "byte", "bit")

_HEADER = struct.Struct("<BBBBIII")
_MEMCPY = 2  # flag: not compressed


@dataclass(frozen=True, slots=True)
class Blosc(BloscFilter):
    """Filter 32001: Blosc 1.

    Parameters
    ----------
    compressor
        The compressor of the blocks.
    level
        0 (store) to 9 (smallest).
    shuffle
        How a block is rearranged first: bytes, or bits, of equal significance side by side.
    """

    compressor: str = choice(COMPRESSOR, _COMPRESSORS, "lz4")
    level: int = level_number()
    shuffle: str = choice("bytes or groups bits of equal significance", _SHUFFLES, "byte")
    id: ClassVar[int] = 32001
    name: ClassVar[str] = "blosc"
    registered_name: ClassVar[str] = "Blosc"
    about: ClassVar[str] = "several compressors after its own shuffle"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)
    compressors: ClassVar[tuple[str, ...]] = _COMPRESSORS
    shuffles: ClassVar[tuple[str, ...]] = _SHUFFLES

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return revision, format, element size and bytes of a chunk, then the requested parameters."""
        itemsize = chunk.dtype.base.itemsize
        return (2, 2, itemsize if itemsize <= LARGEST_TYPE else 1, chunk.nbytes, *self.requested[4:])

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError if the result is not smaller."""
        codecs = self.module("imagecodecs")
        try:
            packed: bytes = codecs.blosc_encode(
                elements(data, stored[2] if len(stored) > 2 else 1),
                self.level,
                compressor=self.compressor,
                shuffle=_SHUFFLES.index(self.shuffle),
                numthreads=1,
                out=len(data),
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"blosc does not make these bytes smaller: {error}") from error
        if len(packed) > len(data):  # the library allows for its header beyond `out`
            raise DataError("blosc does not make these bytes smaller")
        return packed

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, after checking the header, which the library trusts."""
        nbytes, cbytes = _checked_header(data, chunk.most_nbytes)
        codecs = self.module("imagecodecs")
        if nbytes == 0:
            return b""
        try:
            plain: bytes = codecs.blosc_decode(memoryview(data)[:cbytes], numthreads=1, out=nbytes)
        except (RuntimeError, ValueError) as error:
            raise StreamError(f"blosc buffer is damaged: {error}") from error
        if len(plain) != nbytes:
            raise StreamError(f"expected {nbytes} bytes of a blosc buffer, got {len(plain)}")
        return plain


def _checked_header(data: Data, most: int) -> tuple[int, int]:
    """Return decompressed and compressed size in bytes; raise StreamError if the header is invalid."""
    if len(data) < _HEADER.size:
        raise StreamError(f"expected a blosc header of {_HEADER.size} bytes, got {len(data)} bytes")
    version, _, flags, itemsize, nbytes, block, cbytes = _HEADER.unpack_from(data)
    if version not in (1, 2):
        raise StreamError(f"expected format 1 or 2 of a blosc buffer, got {version}")
    if not _HEADER.size <= cbytes <= len(data):
        raise StreamError(f"blosc header claims {cbytes} bytes here, got {len(data)}: truncated or damaged")
    if nbytes > most:
        raise StreamError(f"blosc header claims {nbytes} bytes, more than the {most} of a chunk")
    blocks = -(-nbytes // block) if block else 0
    # The blocks are preceded by their offsets, four bytes each.
    least = _HEADER.size + (nbytes if flags & _MEMCPY else 4 * blocks)
    if nbytes and (itemsize == 0 or block == 0 or block > nbytes or least > cbytes):
        raise StreamError(
            f"invalid blosc header: elements of {itemsize} bytes, blocks of {block}, {nbytes} bytes in {cbytes}"
        )
    return nbytes, cbytes
