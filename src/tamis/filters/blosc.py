"""Filter 32001: Blosc 1, several compressors behind a shuffle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.errors import DataError, ParameterError, StreamError
from tamis.filters.base import ChunkType, Data, Filter, choice, number

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
"""Their numbers are their places here."""
SHUFFLES = ("none", "byte", "bit")

_HEADER = struct.Struct("<BBBBIII")
_MEMCPY = 2  # flag: not compressed
LARGEST_TYPE = 255
"""Larger elements are taken for bytes."""


def in_range(name: str, what: str, names: tuple[str, ...], word: int) -> str:
    """Return what a number stands for.

    Raises
    ------
    ParameterError
        If it stands for nothing.
    """
    if word >= len(names) or not names[word]:
        known = ", ".join(f"{i} ({each})" for i, each in enumerate(names) if each)
        raise ParameterError(f"expected the {what} of {name} to be one of {known}, got {word}")
    return names[word]


@dataclass(frozen=True, slots=True)
class Blosc(Filter):
    """Filter 32001: Blosc 1.

    Parameters
    ----------
    compressor
        What compresses blocks.
    level
        0 (store) to 9 (smallest).
    shuffle
        What is done to a block first: bytes, or bits, of like significance side by side.
    """

    compressor: str = choice("what compresses blocks", COMPRESSORS, "lz4")
    level: int = number("0 stores, 9 is smallest", 0, 9, 5)
    shuffle: str = choice("bytes or bits of like significance side by side", SHUFFLES, "byte")
    id: ClassVar[int] = 32001
    name: ClassVar[str] = "blosc"
    registered_name: ClassVar[str] = "Blosc"
    about: ClassVar[str] = "several compressors behind a shuffle of its own"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters; the filter has its own defaults for those that are not there."""
        level, shuffle, compressor = (*values[4:7], *(5, 1, 0)[max(0, len(values) - 4) :])[:3]
        return cls(
            in_range(cls.name, "compressor", COMPRESSORS, compressor),
            level,
            in_range(cls.name, "shuffle", SHUFFLES, shuffle),
        )

    @property
    def requested(self) -> tuple[int, ...]:
        """Four words that the filter fills in, level, shuffle and compressor."""
        return (0, 0, 0, 0, self.level, SHUFFLES.index(self.shuffle), COMPRESSORS.index(self.compressor))

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return revision, format, element size and bytes of a chunk, then what was requested."""
        itemsize = chunk.dtype.base.itemsize
        return (2, 2, itemsize if itemsize <= LARGEST_TYPE else 1, chunk.nbytes, *self.requested[4:])

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError where that does not make it smaller."""
        codecs = self.module("imagecodecs")
        try:
            packed: bytes = codecs.blosc_encode(
                elements(data, stored[2] if len(stored) > 2 else 1),
                self.level,
                compressor=self.compressor,
                shuffle=SHUFFLES.index(self.shuffle),
                numthreads=1,
                out=len(data),
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"blosc does not make these bytes smaller: {error}") from error
        if len(packed) > len(data):  # the library has room for its header all the same
            raise DataError("blosc does not make these bytes smaller")
        return packed

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress. The library trusts the header, so that it is checked first."""
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

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Say what is compressed how."""
        return f"blosc {self.compressor}, level {self.level}, {shuffle_in_words(self.shuffle)}"


def elements(data: Data, itemsize: int) -> NDArray[Any]:
    """Make an array of elements for imagecodecs, which looks at the type of an array, and not at its ``typesize``."""
    whole = 0 < itemsize <= LARGEST_TYPE and len(data) % itemsize == 0
    return np.frombuffer(data, f"V{itemsize if whole else 1}")


def shuffle_in_words(shuffle: str) -> str:
    """Say what is shuffled."""
    return "no shuffle" if shuffle == "none" else f"{shuffle} shuffle"


def _checked_header(data: Data, most: int) -> tuple[int, int]:
    """Return the bytes of the whole and of the buffer.

    Raises
    ------
    StreamError
        If a number of the header cannot be.
    """
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
    # In front of the blocks stand their places, four bytes each.
    least = _HEADER.size + (nbytes if flags & _MEMCPY else 4 * blocks)
    if nbytes and (itemsize == 0 or block == 0 or block > nbytes or least > cbytes):
        raise StreamError(
            f"blosc header cannot be: elements of {itemsize} bytes, blocks of {block}, {nbytes} bytes in {cbytes}"
        )
    return nbytes, cbytes
