"""Filters of every libhdf5 that work on any bytes: deflate, shuffle, fletcher32."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import deflate

from tamis import _native
from tamis.arguments import STORED
from tamis.errors import ParameterError, StreamError
from tamis.filters.base import CHUNK, ChunkType, Data, OneNumber, Wordless, check_arguments, number

_BEST = 1032  # most bytes that one byte of a deflate stream can decode to
_ROOM = 64  # bytes that a checksum or header of an earlier filter may add to a chunk


@dataclass(frozen=True, slots=True)
class Deflate(OneNumber):
    """Filter 1: zlib.

    Parameters
    ----------
    level
        0 (store) to 9 (smallest).
    """

    level: int = number("0 stores, 1 is fastest, 9 smallest", 0, 9, 4)
    id: ClassVar[int] = 1
    name: ClassVar[str] = "deflate"
    registered_name: ClassVar[str] = "deflate"
    about: ClassVar[str] = "zlib (gzip)"
    group_safe: ClassVar[bool] = True

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the level; it is required, because HDF5 decodes nothing without it."""
        STORED.check("values", values)
        if len(values) != 1:
            raise ParameterError(f"expected one parameter of {cls.name}, got {values}")
        return cls(*values)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read the level; the same as `from_values`."""
        return cls.from_values(values)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress with libdeflate; docs/design/2026-11-21-codecs-by-measurement.md has the reasons."""
        check_arguments(data, chunk, stored)
        return deflate.zlib_compress(data, self.level)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to at most ``chunk.most_nbytes`` bytes."""
        check_arguments(data, chunk, stored)
        try:
            return deflate.zlib_decompress(data, min(chunk.nbytes, _BEST * len(data)) + _ROOM)
        except deflate.DeflateError:
            # Larger than a chunk, or damaged: zlib tells which.
            return whole_stream("deflate", zlib.decompressobj(), data, chunk.most_nbytes)


def whole_stream(name: str, reader: Any, data: Data, most: int) -> bytes:
    """Return what a decompressor of the standard library makes of a whole stream, at most this many bytes."""
    try:
        plain: bytes = reader.decompress(data, most)
    except (zlib.error, OSError, ValueError) as error:
        raise StreamError(f"{name} stream is damaged: {error}") from error
    if not reader.eof:
        raise StreamError(f"{name} stream is truncated, or holds more than a chunk")
    return plain


@dataclass(frozen=True, slots=True)
class Shuffle(Wordless):
    """Filter 2: the first bytes of all elements, then the second ones, and so on; surplus bytes stay at the end."""

    id: ClassVar[int] = 2
    name: ClassVar[str] = "shuffle"
    registered_name: ClassVar[str] = "shuffle"
    about: ClassVar[str] = "groups bytes of equal significance"

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the element size."""
        CHUNK.check("chunk", chunk)
        return (chunk.dtype.itemsize,)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Shuffle."""
        check_arguments(data, chunk, stored)
        return _bytes(_native.shuffle(data, _element_size(chunk, stored)))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Unshuffle."""
        check_arguments(data, chunk, stored)
        return _bytes(_native.unshuffle(data, _element_size(chunk, stored)))


@dataclass(frozen=True, slots=True)
class Fletcher32(Wordless):
    """Filter 3: a checksum of four bytes at the end, checked on reading."""

    id: ClassVar[int] = 3
    name: ClassVar[str] = "fletcher32"
    registered_name: ClassVar[str] = "fletcher32"
    about: ClassVar[str] = "checksum: damage is an error"
    optional: ClassVar[bool] = False
    group_safe: ClassVar[bool] = True

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Append the checksum."""
        check_arguments(data, chunk, stored)
        return bytes(data) + struct.pack("<I", checksum(data))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Check and drop the checksum."""
        check_arguments(data, chunk, stored)
        if len(data) < 4:
            raise StreamError(f"expected a fletcher32 checksum of 4 bytes, got a chunk of {len(data)} bytes")
        view = memoryview(data)
        plain, (stored_sum,) = view[:-4], struct.unpack("<I", view[-4:])
        computed_sum = checksum(plain)
        # HDF5 before 1.6.3 wrote each half with its bytes exchanged on little-endian machines.
        exchanged = (computed_sum & 0xFF00FF) << 8 | (computed_sum >> 8) & 0xFF00FF
        if stored_sum not in (computed_sum, exchanged):
            raise StreamError(f"fletcher32 checksum differs: stored {stored_sum:#010x}, data have {computed_sum:#010x}")
        return plain


def checksum(data: Data) -> int:
    """Return HDF5's Fletcher checksum: big-endian 16-bit words, both sums modulo 65535, zero only for all zeros."""
    return _native.fletcher32(data)


def _element_size(chunk: ChunkType, stored: tuple[int, ...]) -> int:
    if len(stored) != 1:
        raise StreamError(f"expected the element size as the parameter of shuffle, got {stored}")
    # NCZarr writes 0, but shuffles with the element size.
    return stored[0] or chunk.dtype.itemsize


def _bytes(result: bytes | _native.Failure) -> bytes:
    """Return the bytes of the native code, or raise StreamError."""
    if isinstance(result, _native.Failure):
        raise StreamError(f"shuffle cannot be undone: {result.code}")
    return result
