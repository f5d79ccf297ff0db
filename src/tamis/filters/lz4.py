"""Filter 32004: LZ4 blocks in HDF5's own framing.

::

    stream : decompressed size, u64 | size of a block, u32 | block …       all numbers are big-endian
    block  : compressed size, u32 | LZ4 block, or the plain bytes if LZ4 does not make them smaller
"""

from __future__ import annotations

import struct
from typing import ClassVar

from tamis.errors import DataError, StreamError
from tamis.filters._framing import SIZE, lz4_block, sized_block
from tamis.filters.base import ChunkType, Data, OneNumber, number
from tamis.late import frozen

_HEADER = struct.Struct(">QI")
_DEFAULT_BLOCK = 1 << 30
_MOST = (1 << 31) - 1  # bytes of a chunk, the limit of the HDF5 filter
_BEST = 255  # most bytes that one byte of LZ4 can decode to


@frozen
class Lz4(OneNumber):
    """Filter 32004: LZ4.

    Parameters
    ----------
    block
        Bytes that are compressed together; 0 means 1 GiB, in practice the whole chunk.
    """

    block: int = number("bytes compressed together, 0 for the whole chunk", 0, 0x7E000000, 0)
    id: ClassVar[int] = 32004
    name: ClassVar[str] = "lz4"
    registered_name: ClassVar[str] = "LZ4"
    about: ClassVar[str] = "very fast"
    group_safe: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress block by block; a block that does not get smaller is stored plain."""
        codecs = self.module("imagecodecs")
        view = memoryview(data)
        if not 0 < len(view) <= _MOST:
            raise DataError(f"expected 1 to {_MOST} bytes for lz4, got {len(view)}")
        block = min(self.block or _DEFAULT_BLOCK, len(view))
        parts: list[Data] = [_HEADER.pack(len(view), block)]
        for start in range(0, len(view), block):
            plain = view[start : start + block]
            packed = codecs.lz4_encode(plain)
            payload = packed if len(packed) < len(plain) else plain
            parts += [SIZE.pack(len(payload)), payload]
        return b"".join(parts)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress block by block; every size is checked before it is used."""
        codecs = self.module("imagecodecs")
        view = memoryview(data)
        if len(view) < _HEADER.size:
            raise StreamError(f"expected a header of {_HEADER.size} bytes of lz4, got {len(view)} bytes")
        total, block = _HEADER.unpack_from(view)
        if total > min(chunk.most_nbytes, _BEST * len(view)) or (block == 0 and total):
            raise StreamError(f"lz4 header claims {total} bytes in blocks of {block}, for {len(view)} bytes here")
        parts: list[Data] = []
        offset = _HEADER.size
        for start in range(0, total, block or 1):
            packed, offset = sized_block(view, offset, "lz4")
            size = min(block, total - start)
            parts.append(packed if len(packed) == size else lz4_block(codecs, packed, size))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the block size in words."""
        return f"lz4, blocks of {self.block} bytes" if self.block else "lz4, the chunk in one block"
