"""Filters of one well-known compressor each, for any bytes: bzip2, zstd, lzf, and lz4 in HDF5's own framing.

::

    stream : decompressed size, u64 | size of a block, u32 | block …       all numbers are big-endian
    block  : compressed size, u32 | LZ4 block, or the plain bytes if LZ4 does not make them smaller
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

from tamis.errors import DataError, StreamError
from tamis.filters._framing import SIZE, lz4_block, sized_block, zstd_decoder
from tamis.filters.base import CHUNK, ChunkType, Data, OneNumber, Wordless, check_arguments, number
from tamis.filters.standard import whole_stream

_LZF_BEST = 88  # three bytes of lzf stand for 264 bytes at most
_LZF_RUN = 31
_LZF_END = bytes([_LZF_RUN - 1, *(b"the end of an lzf stream, tamis"[:_LZF_RUN])])  # a run of literal bytes
_ROOM = 64  # bytes that a checksum or a header before the codec may add to a chunk
_LZ4_HEADER = struct.Struct(">QI")
_LZ4_BLOCK = 1 << 30
_LZ4_MOST = (1 << 31) - 1  # bytes of a chunk, the limit of the HDF5 filter
_LZ4_BEST = 255  # most bytes that one byte of LZ4 can decode to


@dataclass(frozen=True, slots=True)
class Bzip2(OneNumber):
    """Filter 307: bzip2.

    Parameters
    ----------
    level
        Bytes that are sorted together, in units of 100,000 bytes.
    """

    level: int = number("bytes sorted together, in units of 100,000", 1, 9, 9)
    id: ClassVar[int] = 307
    name: ClassVar[str] = "bzip2"
    registered_name: ClassVar[str] = "BZIP2"
    about: ClassVar[str] = "small and slow"
    group_safe: ClassVar[bool] = True

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress."""
        check_arguments(data, chunk, stored)
        import bz2  # late: few files have it

        return bz2.compress(data, self.level)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to at most ``chunk.most_nbytes`` bytes."""
        check_arguments(data, chunk, stored)
        import bz2  # late

        return whole_stream("bzip2", bz2.BZ2Decompressor(), data, chunk.most_nbytes)


@dataclass(frozen=True, slots=True)
class Zstd(OneNumber):
    """Filter 32015: Zstandard.

    Parameters
    ----------
    level
        -131072 (fastest) to 22 (smallest); 0 stands for 3.
    """

    level: int = number("negative is fastest, 22 smallest, 0 means 3", -(1 << 17), 22, 3)
    id: ClassVar[int] = 32015
    name: ClassVar[str] = "zstd"
    registered_name: ClassVar[str] = "Zstandard"
    about: ClassVar[str] = "Zstandard"
    group_safe: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("zstandard",)
    signed: ClassVar[bool] = True

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress."""
        check_arguments(data, chunk, stored)
        # A new compressor for each call: threads cannot share one.
        return self.module("zstandard").ZstdCompressor(level=self.level).compress(data)  # type: ignore[no-any-return]

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to at most ``chunk.most_nbytes`` bytes."""
        check_arguments(data, chunk, stored)
        return zstd_decoder(self)(data, chunk.most_nbytes)


@dataclass(frozen=True, slots=True)
class Lzf(Wordless):
    """Filter 32000: LZF, which comes with h5py."""

    id: ClassVar[int] = 32000
    name: ClassVar[str] = "lzf"
    registered_name: ClassVar[str] = "lzf"
    about: ClassVar[str] = "h5py's own, fast"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the revision of the filter, the version of liblzf, 1.5, and the bytes of a chunk."""
        CHUNK.check("chunk", chunk)
        return (4, 0x105, chunk.nbytes)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError if the result is not smaller."""
        check_arguments(data, chunk, stored)
        codecs = self.module("imagecodecs")
        try:
            packed: bytes = codecs.lzf_encode(data, out=len(data))
        except (RuntimeError, ValueError):
            packed = bytes(data)
        if len(packed) >= len(data):
            raise DataError("lzf does not make these bytes smaller")
        return packed

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress to the size in the parameters, or to more if a checksum was added before, as HDF5 does."""
        check_arguments(data, chunk, stored)
        size = stored[2] if len(stored) > 2 and stored[2] else chunk.nbytes
        if size > chunk.most_nbytes:
            raise StreamError(f"expected chunks of {chunk.nbytes} bytes, got {size} in the parameters of lzf")
        most = min(chunk.most_nbytes, _LZF_BEST * len(data) + _ROOM)
        codecs = self.module("imagecodecs")
        # The library reads past the end of a truncated stream. An end marker of ours is appended: the stream is
        # whole only if the marker comes out after it.
        padded = b"".join([data, _LZF_END, bytes(_ROOM)])
        for room in (min(size + _ROOM, most), most):
            try:
                plain: bytes = codecs.lzf_decode(memoryview(padded)[:-_ROOM], out=room + _LZF_RUN)
            except (RuntimeError, ValueError) as error:
                reason = str(error)
            else:
                if plain.endswith(_LZF_END[1:]):
                    return memoryview(plain)[:-_LZF_RUN]
                reason = "it ends within a run"
        raise StreamError(f"lzf stream is truncated or damaged: {reason}")


@dataclass(frozen=True, slots=True)
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
        check_arguments(data, chunk, stored)
        codecs = self.module("imagecodecs")
        view = memoryview(data)
        if not 0 < len(view) <= _LZ4_MOST:
            raise DataError(f"expected 1 to {_LZ4_MOST} bytes for lz4, got {len(view)}")
        block = min(self.block or _LZ4_BLOCK, len(view))
        parts: list[Data] = [_LZ4_HEADER.pack(len(view), block)]
        for start in range(0, len(view), block):
            plain = view[start : start + block]
            packed = codecs.lz4_encode(plain)
            payload = packed if len(packed) < len(plain) else plain
            parts += [SIZE.pack(len(payload)), payload]
        return b"".join(parts)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress block by block; every size is checked before it is used."""
        check_arguments(data, chunk, stored)
        codecs = self.module("imagecodecs")
        view = memoryview(data)
        if len(view) < _LZ4_HEADER.size:
            raise StreamError(f"expected a header of {_LZ4_HEADER.size} bytes of lz4, got {len(view)} bytes")
        total, block = _LZ4_HEADER.unpack_from(view)
        if total > min(chunk.most_nbytes, _LZ4_BEST * len(view)) or (block == 0 and total):
            raise StreamError(f"lz4 header claims {total} bytes in blocks of {block}, for {len(view)} bytes here")
        parts: list[Data] = []
        offset = _LZ4_HEADER.size
        for start in range(0, total, block or 1):
            packed, offset = sized_block(view, offset, "lz4")
            size = min(block, total - start)
            parts.append(packed if len(packed) == size else lz4_block(codecs, packed, size))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the block size in words."""
        return f"lz4, blocks of {self.block} bytes" if self.block else "lz4, the chunk in one block"
