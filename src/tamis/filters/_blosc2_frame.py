"""A Blosc2 frame of one chunk, as filter 32026 writes it.

::

    frame  : header | chunk | offsets | trailer        the header and the trailer are MessagePack, big-endian
    header : 9e a8 "b2frame", 00 | d2 header size | cf frame size | a4 flags (4) | d3 data size | d3 compressed size
             of the chunk | d2 element size | d2 block size | d2 chunk size | … | layers
    layers : 93 cd u16 | de their count | a4 "b2nd" d2 offset of its content | …
    b2nd   : version | rank | shape | chunk shape | block shape | …
    chunk  : version | codec version | flags | element size | size, u32 | block size, u32 | compressed size, u32 | …

All sizes are in bytes. Numbers in the chunk and in the offsets, which are a chunk of one number, are little-endian. A
chunk of zeros is absent, and its offset says so.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from tamis.errors import StreamError
from tamis.filters.base import Data

_MAGIC = b"\x9e\xa8b2frame\0"
_SIZES = struct.Struct(">xIxQx4sxQxQxIxIxIxHxH")  # after the magic; a type byte precedes each number
_FILTERS_AT = len(_MAGIC) + _SIZES.size  # one byte about the layers of a trailer, then d8 06 and 16 bytes
_LAYERS_AT = _FILTERS_AT + 1 + 18
_CHUNK = struct.Struct("<BBBBIII")
_OFFSETS = bytes.fromhex("05010708080000000800000028000000000000000001") + bytes(18)  # one chunk, at 0
_ZEROS = 0x81  # last byte of an offset that means a chunk of zeros
_TRAILER = bytes.fromhex("940193cd0006de0000dc0000ce00000023d800") + bytes(16)
_MOST_RANK = 15  # limit of a MessagePack array with its length in the first byte


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a chunk with several axes: blocks that fill the padded chunk.

    Parameters
    ----------
    shape, block
        Of the chunk and of a block.
    itemsize
        Bytes of a value.
    """

    shape: tuple[int, ...]
    block: tuple[int, ...]
    itemsize: int

    @property
    def split(self) -> tuple[int, ...]:
        """Number of blocks and their extent, axis by axis."""
        return tuple(n for size, block in zip(self.shape, self.block, strict=True) for n in (-(-size // block), block))

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape of the chunk padded to whole blocks."""
        split = self.split
        return tuple(count * block for count, block in zip(split[::2], split[1::2], strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of the chunk."""
        return math.prod(self.shape) * self.itemsize

    @property
    def block_nbytes(self) -> int:
        """Bytes of a block."""
        return math.prod(self.block) * self.itemsize


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame, parsed.

    Parameters
    ----------
    nbytes
        Bytes of the decompressed chunk, padding included.
    chunk
        The compressed chunk; empty if it is zeros.
    layout
        None for a row of bytes.
    """

    nbytes: int
    chunk: memoryview
    layout: Layout | None

    @property
    def zeros(self) -> bool:
        """True if the chunk is all zeros, and absent."""
        return not self.chunk


def pack(chunk: bytes, nbytes: int, requested: tuple[int, ...], itemsize: int, layout: Layout | None) -> bytes:
    """Put a compressed chunk into a frame.

    Parameters
    ----------
    chunk
        The compressed chunk.
    nbytes
        Bytes of the decompressed chunk, padding included.
    requested
        Level, shuffle and compressor, by their numbers.
    itemsize
        Bytes of an element as the compressor saw it.
    layout
        None for a row of bytes.
    """
    level, shuffle, compressor = requested
    layers = _layer(layout) if layout else bytes.fromhex("93cd0007de0000dc0000")
    header_nbytes = _LAYERS_AT + len(layers)
    frame_nbytes = header_nbytes + len(chunk) + len(_OFFSETS) + len(_TRAILER)
    block = _CHUNK.unpack_from(chunk)[5]
    flags = bytes([0x12, 0, level << 4 | compressor, 3])
    header = b"".join(
        [
            _MAGIC,
            struct.pack(">BIBQB4s", 0xD2, header_nbytes, 0xCF, frame_nbytes, 0xA4, flags),
            struct.pack(">BQBQ", 0xD3, nbytes, 0xD3, len(chunk)),
            struct.pack(">BIBIBI", 0xD2, itemsize, 0xD2, block, 0xD2, nbytes),
            struct.pack(">BHBHB", 0xD1, 0, 0xD1, 1, 0xC2),
            # The shuffle is the last of six filters; the compressor is the next byte.
            struct.pack(">BB16s", 0xD8, 6, bytes([0, 0, 0, 0, 0, shuffle, compressor])),
        ]
    )
    return b"".join([header, layers, chunk, _OFFSETS, _TRAILER])


def _layer(layout: Layout) -> bytes:
    """Return the end of the header, the layer ``b2nd``."""
    rank = len(layout.shape)
    dtype = f"|V{layout.itemsize}".encode()
    mark = 0x90 | rank
    content = b"".join(
        [
            bytes([0x97, 0, rank, mark]),
            *(struct.pack(">BQ", 0xD3, n) for n in layout.shape),
            *(
                part
                for shape in (layout.shape, layout.block)
                for part in (bytes([mark]), *(struct.pack(">BI", 0xD2, n) for n in shape))
            ),
            struct.pack(">BBI", 0, 0xDB, len(dtype)),
            dtype,
        ]
    )
    index = struct.pack(">BBHBHB4sBI", 0x93, 0xCD, 17, 0xDE, 1, 0xA4, b"b2nd", 0xD2, _LAYERS_AT + 20)
    return index + struct.pack(">BHBI", 0xDC, 1, 0xC6, len(content)) + content


def unpack(data: Data, most: int) -> Frame:
    """Read a frame whose decompressed chunk has at most `most` bytes.

    Raises
    ------
    StreamError
        If the frame is damaged or truncated, or has more than one chunk.
    """
    view = memoryview(data)
    if view[: len(_MAGIC)] != _MAGIC:
        raise StreamError(f"expected a blosc2 frame, got bytes {bytes(view[: len(_MAGIC)]).hex(' ')}")
    try:
        return _unpacked(view, most)
    except (struct.error, IndexError) as error:
        raise StreamError(f"blosc2 frame of {len(view)} bytes is truncated or damaged: {error}") from error


def _unpacked(view: memoryview, most: int) -> Frame:
    start, _, _, nbytes, packed_nbytes, _, _, chunk_nbytes, *_ = _SIZES.unpack_from(view, len(_MAGIC))
    if not _LAYERS_AT <= start <= len(view) or packed_nbytes > len(view) - start:
        raise StreamError(f"blosc2 frame is truncated or damaged: {packed_nbytes} bytes from {start}, of {len(view)}")
    if nbytes > most or chunk_nbytes != nbytes:
        raise StreamError(
            f"blosc2 frame claims {nbytes} bytes in chunks of {chunk_nbytes}: expected one of {most} or less"
        )
    layout = _layout(view[:start], nbytes)
    if packed_nbytes == 0:
        *_, offsets_nbytes = _CHUNK.unpack_from(view, start)
        if view[start + offsets_nbytes - 1] != _ZEROS:
            raise StreamError("blosc2 frame has no chunk, and does not say that it is zeros")
        return Frame(nbytes, view[:0], layout)
    *_, own_nbytes, _, own_packed_nbytes = _CHUNK.unpack_from(view, start)
    if own_nbytes != nbytes or own_packed_nbytes != packed_nbytes:
        raise StreamError(
            f"blosc2 chunk claims {own_nbytes} bytes in {own_packed_nbytes}, its frame {nbytes} in {packed_nbytes}"
        )
    return Frame(nbytes, view[start : start + packed_nbytes], layout)


def _layout(header: memoryview, nbytes: int) -> Layout | None:
    """Return the layout of the layer ``b2nd``; None if there is no such layer."""
    (count,) = struct.unpack_from(">H", header, _LAYERS_AT + 5)
    offset = _LAYERS_AT + 7
    for _ in range(count):
        length = header[offset] & 0x1F
        name = bytes(header[offset + 1 : offset + 1 + length])
        (content,) = struct.unpack_from(">xI", header, offset + 1 + length)
        if name == b"b2nd":
            return _read_layer(header[content + 5 :], nbytes)
        offset += 1 + length + 5
    return None


def _read_layer(content: memoryview, nbytes: int) -> Layout:
    rank = content[2]
    if not 0 < rank <= _MOST_RANK:
        raise StreamError(f"expected 1 to {_MOST_RANK} axes in a blosc2 frame, got {rank}")
    offset = 4 + 9 * rank
    shape = struct.unpack_from(">x" + "xI" * rank, content, offset)
    offset += 1 + 5 * rank
    block = struct.unpack_from(">x" + "xI" * rank, content, offset)
    offset += 1 + 5 * rank
    if not all(shape) or not all(block):
        raise StreamError(f"blosc2 frame has an empty shape: {shape}, blocks of {block}")
    # The type that follows is not needed: the element size follows from the other sizes.
    count = math.prod(-(-extent // step) * step for extent, step in zip(shape, block, strict=True))
    if not nbytes or nbytes % count:
        raise StreamError(f"blosc2 frame of {nbytes} bytes does not match its shapes {shape} and {block}")
    return Layout(shape, block, nbytes // count)
