"""Blocks of LZ4 and Zstandard inside the frames of several filters; every size is checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from tamis import _native
from tamis.errors import DataError, StreamError
from tamis.filters.base import Data, Filter


def encoded(name: str, result: bytes | _native.Failure) -> bytes:
    """Return the bytes of an encoder, or raise DataError."""
    if isinstance(result, _native.Failure):
        raise DataError(f"{name} cannot take these values: {result.code.replace('_', ' ')}, at {result.where}")
    return result


def decoded(name: str, result: bytes | _native.Failure, stored: tuple[int, ...]) -> bytes:
    """Return the bytes of a decoder, or raise StreamError with the stored parameters."""
    if isinstance(result, _native.Failure):
        raise StreamError(
            f"{name} chunk or its parameters are damaged: {result.code.replace('_', ' ')}, at {result.where},"
            f" parameters {','.join(map(str, stored))}"
        )
    return result


Decode: TypeAlias = Callable[[Data, int], bytes]
"""Decompress bytes to at most a number of bytes."""

SIZE = struct.Struct(">I")
"""The compressed size in bytes, in front of a block."""

_PIECE = 1 << 20  # bytes


def sized_block(view: memoryview, at: int, name: str) -> tuple[memoryview, int]:
    """Return the block whose big-endian size starts at offset `at`, and the offset after the block."""
    if len(view) - at < SIZE.size:
        raise StreamError(f"{name} stream is truncated: it ends at byte {len(view)}, before the size of a block")
    (size,) = SIZE.unpack_from(view, at)
    at += SIZE.size
    if size > len(view) - at:
        raise StreamError(
            f"{name} stream is truncated or damaged: a block needs {size} bytes, {len(view) - at} are left"
        )
    return view[at : at + size], at + size


def lz4_block(codecs: Any, packed: Data, size: int) -> bytes:
    """Decompress an LZ4 block of exactly `size` bytes."""
    try:
        plain: bytes = codecs.lz4_decode(packed, out=size)
    except (RuntimeError, ValueError) as error:
        raise StreamError(f"lz4 block is damaged: {error}") from error
    if len(plain) != size:
        raise StreamError(f"expected an lz4 block of {size} bytes, got {len(plain)}")
    return plain


def zstd_decoder(owner: Filter) -> Decode:
    """Return a function, for one thread, that decompresses a Zstandard frame to at most a number of bytes.

    The function raises StreamError if the frame is damaged, truncated, or holds more.
    """
    zstandard = owner.module("zstandard")
    decompressor = zstandard.ZstdDecompressor()

    def decode(data: Data, most: int) -> bytes:
        try:
            # Checked first, because the library allocates whatever size the frame claims.
            nbytes = zstandard.frame_content_size(data)
            if nbytes < 0:  # the frame does not state its size
                return _streamed(decompressor.stream_reader(data), most)
            if nbytes > most:
                raise StreamError(f"zstd frame claims {nbytes} bytes, more than the {most} of a chunk")
            return decompressor.decompress(data)  # type: ignore[no-any-return]
        except zstandard.ZstdError as error:
            raise StreamError(f"zstd frame is damaged: {error}") from error

    return decode


def _streamed(reader: Any, most: int) -> bytes:
    """Read in pieces, so that memory grows with the real size, not with the allowed one."""
    parts = []
    while part := reader.read(min(_PIECE, most + 1)):
        parts.append(part)
        most -= len(part)
        if most < 0:
            raise StreamError("zstd frame holds more than a chunk")
    return b"".join(parts)
