"""Filter 400 in as many variants as the tables need; a test copies this file into a package that it installs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import ClassVar, Self

from tamis import DataError, MissingFilterError, ParameterError, StreamError
from tamis.filters import ChunkType, Data, Filter, number


@dataclass(frozen=True, slots=True)
class Xor(Filter):
    """Combines every byte with a key: the size stays what it was."""

    key: int = number("what each byte is combined with", 0, 255, 90)
    id: ClassVar[int] = 400
    name: ClassVar[str] = "toy"
    registered_name: ClassVar[str] = "toy filter of the tests"

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        return cls(*values)

    @property
    def requested(self) -> tuple[int, ...]:
        return (self.key,)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        return bytes(byte ^ stored[0] for byte in bytes(data))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        return bytes(byte ^ stored[0] for byte in bytes(data))


class Zlib(Xor):
    """Compresses: the size depends on the values."""

    __slots__ = ()

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        return zlib.compress(data, 6)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        try:
            return zlib.decompress(data)
        except zlib.error as error:
            raise StreamError(f"toy stream is damaged: {error}") from error


class DecodeOnly(Xor):
    """Cannot be written."""

    __slots__ = ()
    decode_only: ClassVar[bool] = True


class EncodeOnly(Xor):
    """Cannot be read."""

    __slots__ = ()

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        raise MissingFilterError("toy does not decode")


class NoZeros(Xor):
    """Declines chunks that start with a zero."""

    __slots__ = ()

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        if data[0] == 0:
            raise DataError("toy takes no chunk that starts with a zero")
        return Xor.encode(self, data, chunk, stored)


class NoDecode(Xor):
    """Finds every chunk damaged."""

    __slots__ = ()

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        raise StreamError("toy finds it damaged")


class NotForThese(Xor):
    """Takes no chunks of any type."""

    __slots__ = ()

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        raise ParameterError(f"toy takes no {chunk.dtype}")


class NeedsPackage(Xor):
    """Needs a package that is not installed."""

    __slots__ = ()
    needs: ClassVar[tuple[str, ...]] = ("package_of_the_toy",)
    install: ClassVar[str] = "pip install package-of-the-toy"

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        return bytes(self.module("package_of_the_toy").encode(data))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        return bytes(self.module("package_of_the_toy").decode(data))
