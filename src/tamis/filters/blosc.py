"""Filter 32001: Blosc 1, a shuffle followed by one of several compressors."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.errors import DataError, StreamError
from tamis.filters.base import ChunkType, Data, Filter, choice, named, number

COMPRESSOR = "compressor of the blocks"
"""Meaning of the parameter ``compressor``."""

LARGEST_TYPE = 255
"""Bytes of an element; larger elements are treated as single bytes."""
_FILLED_IN = 4  # words that the filter fills in, before the requested ones
_DEFAULTS = (5, 1, 0)  # level, shuffle and compressor


def level_number() -> Any:
    """Return the dataclass field of the level."""
    return number("0 stores, 9 is smallest", 0, 9, _DEFAULTS[0])


class BloscFilter(Filter):
    """The base class of Blosc and Blosc2: ``compressor``, ``level`` and ``shuffle``.

    Attributes
    ----------
    compressors, shuffles
        Names by their numbers; empty for an unused number.
    """

    __slots__ = ()

    compressors: ClassVar[tuple[str, ...]]
    shuffles: ClassVar[tuple[str, ...]]
    compressor: str
    level: int
    shuffle: str

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters, with the defaults of the HDF5 filter for absent ones.

        The compressor must be a known one: the HDF5 filter does not decode otherwise, either.
        """
        level, shuffle, compressor = _requested(values)
        return cls._of(cls.parameters()["level"].nearest(level), min(shuffle, len(cls.shuffles) - 1), compressor)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, or stored ones."""
        return cls._of(*_requested(values))

    @classmethod
    def _of(cls, level: int, shuffle: int, compressor: int) -> Self:
        return cls(
            named(cls.name, "compressor", cls.compressors, compressor),  # type: ignore[call-arg]
            level,
            named(cls.name, "shuffle", cls.shuffles, shuffle),
        )

    @property
    def requested(self) -> tuple[int, ...]:
        """Four words that the filter fills in, level, shuffle and compressor."""
        numbers = (self.level, self.shuffles.index(self.shuffle), self.compressors.index(self.compressor))
        return (0,) * _FILLED_IN + numbers

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return compressor, level and shuffle in words."""
        shuffle = "no shuffle" if self.shuffle == "none" else f"{self.shuffle} shuffle"
        return f"{self.name} {self.compressor}, level {self.level}, {shuffle}"


def _requested(values: tuple[int, ...]) -> tuple[int, int, int]:
    present = values[_FILLED_IN:]
    level, shuffle, compressor = (*present, *_DEFAULTS[len(present) :])[: len(_DEFAULTS)]
    return level, shuffle, compressor


def elements(data: Data, itemsize: int) -> NDArray[Any]:
    """Return bytes as an array, because imagecodecs takes the element size from the type, not from ``typesize``."""
    whole = 0 < itemsize <= LARGEST_TYPE and len(data) % itemsize == 0
    return np.frombuffer(data, f"V{itemsize if whole else 1}")


def decompressed(decode: Callable[..., bytes], data: memoryview, nbytes: int, what: str) -> bytes:
    """Return what a function of imagecodecs decompresses; raise StreamError unless it has so many bytes."""
    try:
        plain = decode(data, numthreads=1, out=nbytes)
    except (RuntimeError, ValueError) as error:
        raise StreamError(f"{what} is damaged: {error}") from error
    if len(plain) != nbytes:
        raise StreamError(f"expected {nbytes} bytes of a {what}, got {len(plain)}")
    return plain


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
        return decompressed(codecs.blosc_decode, memoryview(data)[:cbytes], nbytes, "blosc buffer")


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
