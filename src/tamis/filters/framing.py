"""Blocks of well-known compressors within the frames of several filters, with every size checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from tamis.errors import StreamError
from tamis.filters.base import Data, Filter

Decode: TypeAlias = Callable[[Data, int], bytes]
"""Makes at most so many bytes of some."""

SIZE = struct.Struct(">I")
"""In front of a block: its bytes there."""

_PIECE = 1 << 20  # bytes


def sized_block(view: memoryview, at: int, name: str) -> tuple[memoryview, int]:
    """Return the bytes of the block whose big-endian size stands at a place, and the place after it.

    Raises
    ------
    StreamError
        If it does not lie within the stream.
    """
    if len(view) - at < SIZE.size:
        raise StreamError(f"{name} stream is truncated: it ends at byte {len(view)}, before the size of a block")
    (size,) = SIZE.unpack_from(view, at)
    at += SIZE.size
    if size > len(view) - at:
        raise StreamError(f"{name} stream is truncated or damaged: a block of {size} bytes, {len(view) - at} are left")
    return view[at : at + size], at + size


def lz4_block(codecs: Any, packed: Data, size: int) -> bytes:
    """Decompress an LZ4 block that must make so many bytes.

    Raises
    ------
    StreamError
        If it does not.
    """
    try:
        plain: bytes = codecs.lz4_decode(packed, out=size)
    except (RuntimeError, ValueError) as error:
        raise StreamError(f"lz4 block is damaged: {error}") from error
    if len(plain) != size:
        raise StreamError(f"expected an lz4 block of {size} bytes, got {len(plain)}")
    return plain


def zstd_decoder(owner: Filter) -> Decode:
    """Return a function that decompresses a frame of Zstandard to at most so many bytes, for one thread.

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
