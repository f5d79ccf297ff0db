"""The filters that every libhdf5 brings along and that may follow zfp: shuffle, deflate, fletcher32."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis.errors import StreamError
from tamis.filters.base import ChunkType, Filter, integer_parameter


@dataclass(frozen=True, slots=True)
class Shuffle(Filter):
    """Filter 2: first bytes of all elements first, and so on; bytes left over keep their place at the end."""

    id: ClassVar[int] = 2
    name: ClassVar[str] = "shuffle"

    @property
    def requested(self) -> tuple[int, ...]:
        """None: HDF5 fills in the element size."""
        return ()

    def encode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Shuffle."""
        return self._transpose(data, chunk.dtype.itemsize, -1)

    def decode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Unshuffle."""
        return self._transpose(data, chunk.dtype.itemsize, chunk.dtype.itemsize)

    @staticmethod
    def _transpose(data: bytes, itemsize: int, rows: int) -> bytes:
        whole = len(data) // itemsize * itemsize
        if itemsize == 1 or whole <= itemsize:
            return data
        columns = itemsize if rows == -1 else -1
        table = np.frombuffer(data, np.uint8, whole).reshape(rows, columns)
        return table.T.tobytes() + data[whole:]

    def __str__(self) -> str:
        return "shuffle"


@dataclass(frozen=True, slots=True)
class Deflate(Filter):
    """Filter 1: zlib.

    Parameters
    ----------
    level
        0 (store) to 9 (smallest).
    """

    level: int = 4
    id: ClassVar[int] = 1
    name: ClassVar[str] = "deflate"

    def __post_init__(self) -> None:
        integer_parameter("level", self.level, 0, 9)

    @property
    def requested(self) -> tuple[int, ...]:
        """The level."""
        return (self.level,)

    def encode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Compress."""
        return zlib.compress(data, self.level)

    def decode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Decompress, to no more bytes than a chunk and its checksum can have."""
        # A block of zfp takes up to 4096 bytes, for four values or more.
        most = 1024 * chunk.nbytes + 4096
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(data, most)
        except zlib.error as error:
            raise StreamError(f"deflate stream is damaged: {error}") from error
        if not inflater.eof:
            raise StreamError("deflate stream is truncated, or holds more than a chunk")
        return plain

    def __str__(self) -> str:
        return f"deflate({self.level})"


@dataclass(frozen=True, slots=True)
class Fletcher32(Filter):
    """Filter 3: a checksum of four bytes at the end, checked on reading."""

    id: ClassVar[int] = 3
    name: ClassVar[str] = "fletcher32"

    @property
    def requested(self) -> tuple[int, ...]:
        """None."""
        return ()

    def encode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Append the checksum."""
        return data + struct.pack("<I", checksum(data))

    def decode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Check and drop the checksum."""
        if len(data) < 4:
            raise StreamError(f"expected a fletcher32 checksum of 4 bytes, got a chunk of {len(data)} bytes")
        plain, stored = data[:-4], struct.unpack("<I", data[-4:])[0]
        found = checksum(plain)
        # HDF5 before 1.6.3 wrote each half with its bytes exchanged on little-endian machines.
        exchanged = (found & 0xFF00FF) << 8 | (found >> 8) & 0xFF00FF
        if stored not in (found, exchanged):
            raise StreamError(f"fletcher32 checksum differs: stored {stored:#010x}, data have {found:#010x}")
        return plain

    def __str__(self) -> str:
        return "fletcher32"


def checksum(data: bytes) -> int:
    """HDF5's Fletcher checksum: of big-endian 16-bit words, both sums modulo 65535 with zero only for all zeros."""
    words = np.frombuffer(data + b"\0" if len(data) % 2 else data, ">u2").astype(np.uint64)
    low = high = 0
    # In pieces that keep sums under 2^64.
    for start in range(0, len(words), 1 << 20):
        piece = words[start : start + (1 << 20)]
        high += low * len(piece) + int((piece * np.arange(len(piece), 0, -1, dtype=np.uint64)).sum())
        low += int(piece.sum())
        low, high = _fold(low), _fold(high)
    return high << 16 | low


def _fold(total: int) -> int:
    return (total % 65535) or (65535 if total else 0)
