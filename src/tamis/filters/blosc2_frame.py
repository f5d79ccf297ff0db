"""A Blosc2 frame of one chunk, as filter 32026 makes it.

::

    frame  : header | chunk | offsets | trailer        the header and the trailer are MessagePack, big-endian
    header : 9e a8 "b2frame", 00 | d2 its bytes | cf bytes of the frame | a4 flags (4) | d3 bytes of the data | d3 bytes
             of the chunk here | d2 of an element | d2 of a block | d2 of the chunk | … | layers
    layers : 93 cd u16 | de their number | a4 "b2nd" d2 place of its content | …
    b2nd   : version | rank | shape | shape of the chunk | shape of a block | …
    chunk  : version | its version | flags | bytes of an element | bytes, u32 | of a block, u32 | of it here, u32 | …

The chunk's own numbers, and those of the offsets, which are a chunk of one number, are little-endian. Where the whole
chunk is zeros it is not there, and the offset says so.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from tamis.errors import StreamError
from tamis.filters.base import Data

_MAGIC = b"\x9e\xa8b2frame\0"
_SIZES = struct.Struct(">xIxQx4sxQxQxIxIxIxHxH")  # behind the magic: each number has a byte for its kind before it
_FILTERS_AT = len(_MAGIC) + _SIZES.size  # one byte that tells of a trailer's layers, then d8 06 and 16 bytes
_LAYERS_AT = _FILTERS_AT + 1 + 18
_CHUNK = struct.Struct("<BBBBIII")
_OFFSETS = bytes.fromhex("05010708080000000800000028000000000000000001") + bytes(18)  # one chunk, at 0
_ZEROS = 0x81  # the last byte of an offset that stands for a chunk of zeros
_TRAILER = bytes.fromhex("940193cd0006de0000dc0000ce00000023d800") + bytes(16)
_MOST_RANK = 15  # what an array of MessagePack has in its first byte


@dataclass(frozen=True, slots=True)
class Layout:
    """How values lie in a chunk of several axes: in blocks, that fill a padded chunk.

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
        """Shape of whole blocks."""
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
    """The content of a frame.

    Parameters
    ----------
    nbytes
        Bytes of the chunk when it is decompressed, padding included.
    chunk
        As it is compressed.
    layout
        None where it is a row of bytes.
    """

    nbytes: int
    chunk: memoryview
    layout: Layout | None

    @property
    def zeros(self) -> bool:
        """Return whether it is not there, since it is zeros."""
        return not self.chunk


def pack(chunk: bytes, nbytes: int, requested: tuple[int, ...], itemsize: int, layout: Layout | None) -> bytes:
    """Put a compressed chunk into a frame.

    Parameters
    ----------
    chunk
        As it is compressed.
    nbytes
        Bytes of it plain, padding included.
    requested
        Level, shuffle and compressor, by their numbers.
    itemsize
        As it was compressed with.
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
            # The filter stands in the last of six places, its compressor two behind.
            struct.pack(">BB16s", 0xD8, 6, bytes([0, 0, 0, 0, 0, shuffle, compressor])),
        ]
    )
    return b"".join([header, layers, chunk, _OFFSETS, _TRAILER])


def _layer(layout: Layout) -> bytes:
    """Header's end: the layer ``b2nd``."""
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
    """Read a frame, whose chunk may have at most so many bytes.

    Raises
    ------
    StreamError
        If it is damaged, truncated, or of more than one chunk.
    """
    view = memoryview(data)
    if view[: len(_MAGIC)] != _MAGIC:
        raise StreamError(f"expected a blosc2 frame, got bytes {bytes(view[: len(_MAGIC)]).hex(' ')}")
    try:
        return _unpacked(view, most)
    except (struct.error, IndexError) as error:
        raise StreamError(f"blosc2 frame of {len(view)} bytes is truncated or damaged: {error}") from error


def _unpacked(view: memoryview, most: int) -> Frame:
    start, _, _, nbytes, here, _, _, chunk_nbytes, *_ = _SIZES.unpack_from(view, len(_MAGIC))
    if not _LAYERS_AT <= start <= len(view) or here > len(view) - start:
        raise StreamError(f"blosc2 frame is truncated or damaged: {here} bytes from {start}, of {len(view)}")
    if nbytes > most or chunk_nbytes != nbytes:
        raise StreamError(
            f"blosc2 frame claims {nbytes} bytes in chunks of {chunk_nbytes}: expected one of {most} or less"
        )
    layout = _layout(view[:start], nbytes)
    if here == 0:
        *_, offsets_nbytes = _CHUNK.unpack_from(view, start)
        if view[start + offsets_nbytes - 1] != _ZEROS:
            raise StreamError("blosc2 frame has no chunk, and does not say that it is zeros")
        return Frame(nbytes, view[:0], layout)
    *_, plain, _, packed = _CHUNK.unpack_from(view, start)
    if plain != nbytes or packed != here:
        raise StreamError(f"blosc2 chunk claims {plain} bytes in {packed}, its frame {nbytes} in {here}")
    return Frame(nbytes, view[start : start + here], layout)


def _layout(header: memoryview, nbytes: int) -> Layout | None:
    """Read the layer ``b2nd``, if there is one."""
    (count,) = struct.unpack_from(">H", header, _LAYERS_AT + 5)
    at = _LAYERS_AT + 7
    for _ in range(count):
        length = header[at] & 0x1F
        name = bytes(header[at + 1 : at + 1 + length])
        (content,) = struct.unpack_from(">xI", header, at + 1 + length)
        if name == b"b2nd":
            return _read_layer(header[content + 5 :], nbytes)
        at += 1 + length + 5
    return None


def _read_layer(content: memoryview, nbytes: int) -> Layout:
    rank = content[2]
    if not 0 < rank <= _MOST_RANK:
        raise StreamError(f"expected 1 to {_MOST_RANK} axes in a blosc2 frame, got {rank}")
    at = 4 + 9 * rank
    shape = struct.unpack_from(">x" + "xI" * rank, content, at)
    at += 1 + 5 * rank
    block = struct.unpack_from(">x" + "xI" * rank, content, at)
    at += 1 + 5 * rank
    if not all(shape) or not all(block):
        raise StreamError(f"blosc2 frame has an empty shape: {shape}, blocks of {block}")
    # Its type follows, which the bytes need not know: how many an element has follows from the sizes.
    count = math.prod(-(-extent // step) * step for extent, step in zip(shape, block, strict=True))
    if not nbytes or nbytes % count:
        raise StreamError(f"blosc2 frame of {nbytes} bytes does not match its shapes {shape} and {block}")
    return Layout(shape, block, nbytes // count)
