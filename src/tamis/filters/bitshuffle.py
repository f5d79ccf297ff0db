"""Filter 32008: groups bits of equal significance block by block, and optionally compresses the blocks.

::

    compressed : decompressed size, u64 | size of a block, u32 | block … | rest     all numbers are big-endian
    block      : compressed size, u32 | LZ4 block or Zstandard frame

The last block may be shorter, with a multiple of 8 elements. Up to 7 elements at the end are the rest, stored plain.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from tamis import _native
from tamis.arguments import STORED
from tamis.errors import DataError, ParameterError, StreamError
from tamis.filters._framing import SIZE, Decode, lz4_block, sized_block, zstd_decoder
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, check_arguments, choice, named, number

_HEADER = struct.Struct(">QI")
_COMPRESSORS = ("none", "", "lz4", "zstd")
_TARGET = 8192  # bytes of a default block
_FEWEST = 128  # elements of a default block
_VERSION = (0, 4)
_LARGEST_BLOCK = 1 << 30
_LEVEL = 3
_FILLED_IN = 3  # words that the filter fills in: its version and the element size


@dataclass(frozen=True, slots=True)
class Bitshuffle(Filter):
    """Filter 32008: Bitshuffle.

    Parameters
    ----------
    compressor
        The compressor of the shuffled blocks.
    level
        Of zstd, 0 to 22; 0 means 3.
    block
        Elements of a block, a multiple of 8; 0 for about 8 KiB.
    """

    compressor: str = choice("compressor of the blocks", ("none", "lz4", "zstd"), "lz4")
    level: int = number("for zstd: 22 is smallest, 0 means 3", 0, 22, _LEVEL)
    block: int = number("elements of a block, a multiple of 8, 0 for about 8 KiB", 0, _LARGEST_BLOCK, 0)
    id: ClassVar[int] = 32008
    name: ClassVar[str] = "bitshuffle"
    registered_name: ClassVar[str] = "bitshuffle; see https://github.com/kiyo-masui/bitshuffle"
    about: ClassVar[str] = "groups bits of equal significance"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs", "zstandard")

    def __post_init__(self) -> None:
        """Check the numbers."""
        Filter.__post_init__(self)
        if self.block % 8:
            raise ParameterError(f"expected block of bitshuffle to be a multiple of 8, got block={self.block}")
        if self.level != _LEVEL and self.compressor != "zstd":
            raise ParameterError(
                f"bitshuffle has a level only with zstd, got level={self.level} with {self.compressor}"
            )

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters; stored ones begin with version and element size."""
        STORED.check("values", values)
        return cls._lenient(values[_FILLED_IN:] if _is_stored(values) else values)

    @classmethod
    def from_stored(cls, values: tuple[int, ...]) -> Self:
        """Read parameters of a file, which are the requested ones if no chunk could be filtered."""
        STORED.check("values", values)
        filled_in = len(values) >= _FILLED_IN and values[0] == 0
        return cls._lenient(values[_FILLED_IN:] if filled_in else values)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, or stored ones."""
        STORED.check("values", values)
        return cls(**cls._arguments(values[_FILLED_IN:] if _is_stored(values) else values))

    @classmethod
    def _lenient(cls, cd_values: tuple[int, ...]) -> Self:
        arguments = cls._arguments(cd_values)
        arguments["level"] = cls.parameters()["level"].nearest(arguments["level"])
        return cls(**arguments)

    @classmethod
    def _arguments(cls, cd_values: tuple[int, ...]) -> dict[str, Any]:
        """Read requested parameters: elements of a block, compressor, and the level of zstd, a signed number."""
        block, number, level = (*cd_values, *(0, 0, _LEVEL)[len(cd_values) :])[:3]
        compressor = named(cls.name, "compressor", _COMPRESSORS, number)
        level = level - (level >> 31 << 32) if compressor == "zstd" else _LEVEL
        return {"compressor": compressor, "level": level, "block": block}

    @property
    def requested(self) -> tuple[int, ...]:
        """Elements of a block, compressor and its level if it has one."""
        level = (self.level,) if self.compressor == "zstd" else ()
        return (self.block, _COMPRESSORS.index(self.compressor), *level)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the version of the filter, the element size, and the requested parameters."""
        CHUNK.check("chunk", chunk)
        return (*_VERSION, chunk.dtype.itemsize, *self.requested)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Shuffle and compress. Raises DataError if the bytes are not a whole number of elements."""
        check_arguments(data, chunk, stored)
        itemsize = _itemsize(stored)
        if len(data) % itemsize:
            raise DataError(f"expected whole elements of {itemsize} bytes for bitshuffle, got {len(data)} bytes")
        block = self.block or _default_block(itemsize)
        shuffled = _native.bitshuffle(data, itemsize, block)
        if isinstance(shuffled, _native.Failure):
            raise DataError(f"bitshuffle cannot take these bytes: {shuffled.code}")
        if self.compressor == "none":
            return shuffled
        if self.compressor == "lz4":
            compress = self.module("imagecodecs").lz4_encode
        else:
            compress = self.module("zstandard").ZstdCompressor(level=self.level).compress
        parts: list[Data] = [_HEADER.pack(len(data), block * itemsize)]
        whole = len(data) // (8 * itemsize) * 8 * itemsize
        for start in range(0, whole, block * itemsize):
            packed = compress(shuffled[start : min(start + block * itemsize, whole)])
            parts += [SIZE.pack(len(packed)), packed]
        return b"".join([*parts, shuffled[whole:]])

    def undecodable(self) -> str:
        """Return which package of this compressor is not installed."""
        return self._without({"none": (), "lz4": ("imagecodecs",), "zstd": ("zstandard",)}[self.compressor])

    def unencodable(self) -> str:
        """Return which package of this compressor is not installed."""
        return self.undecodable()

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress and unshuffle; every size is checked before it is used."""
        check_arguments(data, chunk, stored)
        itemsize = _itemsize(stored)
        # Whatever the first three words are, they are not part of the request.
        as_stored = self._lenient(stored[_FILLED_IN:])
        block = as_stored.block or _default_block(itemsize)
        shuffled = data
        if as_stored.compressor != "none":
            shuffled, block = as_stored._decompressed(memoryview(data), itemsize, chunk.most_nbytes)
        if len(shuffled) % itemsize:
            raise StreamError(f"expected whole elements of {itemsize} bytes from bitshuffle, got {len(shuffled)} bytes")
        plain = _native.bitunshuffle(shuffled, itemsize, block)
        if isinstance(plain, _native.Failure):
            raise StreamError(f"invalid parameters of bitshuffle: {plain.code}, in {stored}")
        return plain

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return compressor and block size in words."""
        text = {"none": "bitshuffle", "lz4": "bitshuffle, lz4", "zstd": f"bitshuffle, zstd level {self.level}"}
        return text[self.compressor] + (f", blocks of {self.block} elements" if self.block else "")

    def _decompressed(self, view: memoryview, itemsize: int, most: int) -> tuple[bytes, int]:
        """Return the shuffled bytes and the elements of a block."""
        if len(view) < _HEADER.size:
            raise StreamError(f"expected a header of {_HEADER.size} bytes of bitshuffle, got {len(view)} bytes")
        total, block_nbytes = _HEADER.unpack_from(view)
        if total > most or total % itemsize or block_nbytes == 0 or block_nbytes % (8 * itemsize):
            raise StreamError(
                f"invalid bitshuffle header: {total} bytes in blocks of {block_nbytes}, elements of {itemsize}"
            )
        lz4 = self.compressor == "lz4"
        decode: Decode = partial(lz4_block, self.module("imagecodecs")) if lz4 else zstd_decoder(self)
        whole = total // (8 * itemsize) * 8 * itemsize
        parts: list[Data] = []
        offset = _HEADER.size
        for start in range(0, whole, block_nbytes):
            packed, offset = sized_block(view, offset, "bitshuffle")
            size = min(block_nbytes, whole - start)
            plain = decode(packed, size)
            if len(plain) != size:
                raise StreamError(f"expected a block of {size} bytes of bitshuffle, got {len(plain)}")
            parts.append(plain)
        if len(view) - offset < total - whole:
            raise StreamError(
                f"bitshuffle stream is truncated: {len(view) - offset} bytes at the end, not {total - whole}"
            )
        return b"".join([*parts, view[offset : offset + total - whole]]), block_nbytes // itemsize


def _is_stored(values: tuple[int, ...]) -> bool:
    """Return whether version and element size come first: in a request only zstd has a number after the compressor."""
    return len(values) >= 3 and values[0] == 0 and values[1] < 8 and (len(values) > 3 or values[1] not in (2, 3))


def _itemsize(stored: tuple[int, ...]) -> int:
    if len(stored) < 3 or stored[2] == 0:
        raise StreamError(f"expected version and element size in the parameters of bitshuffle, got {stored}")
    return stored[2]


def _default_block(itemsize: int) -> int:
    return max(_TARGET // itemsize // 8 * 8, _FEWEST)
