"""Filters that are one stream of a well-known compressor and take any bytes: bzip2, zstd, lzf."""

from __future__ import annotations

import bz2
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

from tamis.errors import DataError, ParameterError, StreamError
from tamis.filters.base import ChunkType, Data, Filter, number

Decode: TypeAlias = Callable[[Data, int], bytes]
"""Makes at most so many bytes of some."""

_PIECE = 1 << 20  # bytes
_LZF_BEST = 88  # three bytes of lzf stand for 264 bytes at most
_LZF_RUN = 31
_LZF_END = bytes([_LZF_RUN - 1, *(b"the end of an lzf stream, tamis"[:_LZF_RUN])])  # a run of bytes as they are
_ROOM = 64  # what a checksum or a header before the codec may add to a chunk


@dataclass(frozen=True, slots=True)
class Bzip2(Filter):
    """Filter 307: bzip2.

    Parameters
    ----------
    level
        Bytes that are sorted together, in units of 100,000.
    """

    level: int = number("bytes sorted together, in units of 100,000", 1, 9, 9)
    id: ClassVar[int] = 307
    name: ClassVar[str] = "bzip2"
    registered_name: ClassVar[str] = "BZIP2"
    about: ClassVar[str] = "small and slow"
    group_safe: ClassVar[bool] = True

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the level, 9 where there is none."""
        return cls(*at_most_one(cls.name, values))

    @property
    def requested(self) -> tuple[int, ...]:
        """The level."""
        return (self.level,)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress."""
        return bz2.compress(data, self.level)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to no more bytes than a chunk can have on its way."""
        reader = bz2.BZ2Decompressor()
        try:
            plain = reader.decompress(data, chunk.most_nbytes)
        except (OSError, ValueError) as error:
            raise StreamError(f"bzip2 stream is damaged: {error}") from error
        if not reader.eof:
            raise StreamError("bzip2 stream is truncated, or holds more than a chunk")
        return plain


@dataclass(frozen=True, slots=True)
class Zstd(Filter):
    """Filter 32015: Zstandard.

    Parameters
    ----------
    level
        -131072 (fastest) to 22 (smallest); 0 stands for 3.
    """

    level: int = number("negative is fastest, 22 smallest, 0 stands for 3", -(1 << 17), 22, 3)
    id: ClassVar[int] = 32015
    name: ClassVar[str] = "zstd"
    registered_name: ClassVar[str] = "Zstandard"
    about: ClassVar[str] = "Zstandard"
    group_safe: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("zstandard",)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the level, a number with a sign, 3 where there is none."""
        return cls(*(word - (word >> 31 << 32) for word in at_most_one(cls.name, values)))

    @property
    def requested(self) -> tuple[int, ...]:
        """The level, a negative one in two's complement."""
        return (self.level & 0xFFFFFFFF,)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress."""
        # A compressor of its own for each call: they are not to be shared between threads.
        return self.module("zstandard").ZstdCompressor(level=self.level).compress(data)  # type: ignore[no-any-return]

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to no more bytes than a chunk can have on its way."""
        return zstd_decoder(self)(data, chunk.most_nbytes)


def zstd_decoder(owner: Filter) -> Decode:
    """Make a function that decompresses a frame of Zstandard to at most so many bytes, for one thread.

    It raises StreamError if the frame is damaged, truncated, or holds more.

    Raises
    ------
    MissingFilterError
        If the package is not installed that `owner` needs.
    """
    zstandard = owner.module("zstandard")
    decompressor = zstandard.ZstdDecompressor()

    def decode(data: Data, most: int) -> bytes:
        try:
            # The library would allocate whatever the frame says.
            nbytes = zstandard.frame_content_size(data)
            if nbytes < 0:  # it does not say
                return _streamed(decompressor.stream_reader(data), most)
            if nbytes > most:
                raise StreamError(f"zstd frame claims {nbytes} bytes, more than the {most} of a chunk")
            return decompressor.decompress(data)  # type: ignore[no-any-return]
        except zstandard.ZstdError as error:
            raise StreamError(f"zstd frame is damaged: {error}") from error

    return decode


def _streamed(reader: Any, most: int) -> bytes:
    """Read in pieces: as much memory as there are bytes, not as many as there may be."""
    parts = []
    while part := reader.read(min(_PIECE, most + 1)):
        parts.append(part)
        most -= len(part)
        if most < 0:
            raise StreamError("zstd frame holds more than a chunk")
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Lzf(Filter):
    """Filter 32000: LZF, that h5py brings along."""

    id: ClassVar[int] = 32000
    name: ClassVar[str] = "lzf"
    registered_name: ClassVar[str] = "lzf"
    about: ClassVar[str] = "h5py's own, fast"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Take any: filter and library version and the size of a chunk, which the filter fills in."""
        return cls()

    @property
    def requested(self) -> tuple[int, ...]:
        """None: the filter fills them in."""
        return ()

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the revision of the filter, the version of liblzf, 1.5, and the bytes of a chunk."""
        return (4, 0x105, chunk.nbytes)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError where that does not make it smaller."""
        codecs = self.module("imagecodecs")
        try:
            packed: bytes = codecs.lzf_encode(data, out=len(data))
        except (RuntimeError, ValueError):
            packed = bytes(data)
        if len(packed) >= len(data):
            raise DataError("lzf does not make these bytes smaller")
        return packed

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, to as many bytes as the parameters say; more where a checksum came before, as HDF5 does."""
        size = stored[2] if len(stored) > 2 and stored[2] else chunk.nbytes
        if size > chunk.most_nbytes:
            raise StreamError(f"expected chunks of {chunk.nbytes} bytes, got {size} in the parameters of lzf")
        most = min(chunk.most_nbytes, _LZF_BEST * len(data) + _ROOM)
        codecs = self.module("imagecodecs")
        # The library reads past the end of a truncated stream: there lies what is ours, whose first part must come out.
        padded = b"".join([data, _LZF_END, bytes(_ROOM)])
        for room in (min(size + _ROOM, most), most):
            try:
                plain: bytes = codecs.lzf_decode(memoryview(padded)[:-_ROOM], out=room + _LZF_RUN)
            except (RuntimeError, ValueError) as error:
                reason = str(error)
            else:
                if plain.endswith(_LZF_END[1:]):
                    return memoryview(plain)[:-_LZF_RUN]
                reason = "it ends amid a run"
        raise StreamError(f"lzf stream is truncated or damaged: {reason}")


def at_most_one(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parameter of a filter that has one, or none.

    Raises
    ------
    ParameterError
        If there are more.
    """
    if len(values) > 1:
        raise ParameterError(f"expected one parameter of {name}, got {values}")
    return values
