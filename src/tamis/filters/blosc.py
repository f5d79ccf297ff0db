"""Filters 32001 and 32026: Blosc and Blosc2, a shuffle and one of several compressors; Blosc2 puts it into a frame."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.arguments import STORED
from tamis.errors import DataError, MissingFilterError, StreamError
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, check_arguments, choice, named, number

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
        STORED.check("values", values)
        level, shuffle, compressor = _requested(values)
        known = max(number for number, text in enumerate(cls.shuffles) if text and number <= shuffle)
        return cls._of(cls.parameters()["level"].nearest(level), known, compressor)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, or stored ones."""
        STORED.check("values", values)
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
    """Return what a function of imagecodecs decompresses; raise StreamError unless it has this many bytes."""
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
        CHUNK.check("chunk", chunk)
        itemsize = chunk.dtype.base.itemsize
        return (2, 2, itemsize if itemsize <= LARGEST_TYPE else 1, chunk.nbytes, *self.requested[4:])

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError if the result is not smaller."""
        check_arguments(data, chunk, stored)
        packed = self._compress(data, stored, len(data))
        if len(packed) > len(data):  # the library allows for its header beyond `out`
            raise DataError("blosc does not make these bytes smaller")
        return packed

    def encode_required(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress, or put a header before bytes that do not get smaller, as Zarr does, whose chunks have no masks."""
        with suppress(DataError):
            return self.encode(data, chunk, stored)
        return self._compress(data, stored, None)

    def _compress(self, data: Data, stored: tuple[int, ...], most: int | None) -> bytes:
        codecs = self.module("imagecodecs")
        try:
            packed: bytes = codecs.blosc_encode(
                elements(data, stored[2] if len(stored) > 2 else 1),
                self.level,
                compressor=self.compressor,
                shuffle=_SHUFFLES.index(self.shuffle),
                numthreads=1,
                out=most,
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"blosc does not make these bytes smaller: {error}") from error
        return packed

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, after checking the header, which the library trusts."""
        check_arguments(data, chunk, stored)
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


_MAGIC = b"\x9e\xa8b2frame\0"
_SIZES = struct.Struct(">xIxQx4sxQxQxIxIxIxHxH")  # after the magic; a type byte precedes each number
_FILTERS_AT = len(_MAGIC) + _SIZES.size  # one byte about the layers of a trailer, then d8 06 and 16 bytes
_LAYERS_AT = _FILTERS_AT + 1 + 18

_OFFSETS = bytes.fromhex("05010708080000000800000028000000000000000001") + bytes(18)  # one chunk, at 0
_ZEROS = 0x81  # last byte of an offset that means a chunk of zeros
_TRAILER = bytes.fromhex("940193cd0006de0000dc0000ce00000023d800") + bytes(16)
_MOST_RANK = 15  # limit of a MessagePack array with its length in the first byte


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a chunk with several axes: blocks that fill the padded chunk."""

    # Of the chunk and of a block
    shape: tuple[int, ...]
    block: tuple[int, ...]
    itemsize: int  # Bytes of a value

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
    """A frame, parsed."""

    nbytes: int  # Bytes of the decompressed chunk, padding included
    chunk: memoryview  # The compressed chunk; empty if it is zeros
    layout: Layout | None  # None for a row of bytes

    @property
    def zeros(self) -> bool:
        """True if the chunk is all zeros, and absent."""
        return not self.chunk


def pack(chunk: bytes, nbytes: int, level: int, compressor: int, itemsize: int, layout: Layout | None) -> bytes:
    """Put a compressed chunk into a frame."""
    layers = _layer(layout) if layout else bytes.fromhex("93cd0007de0000dc0000")
    header_nbytes = _LAYERS_AT + len(layers)
    frame_nbytes = header_nbytes + len(chunk) + len(_OFFSETS) + len(_TRAILER)
    block = _HEADER.unpack_from(chunk)[5]
    flags = bytes([0x12, 0, level << 4 | compressor, 3])
    header = b"".join(
        [
            _MAGIC,
            struct.pack(">BIBQB4s", 0xD2, header_nbytes, 0xCF, frame_nbytes, 0xA4, flags),
            struct.pack(">BQBQ", 0xD3, nbytes, 0xD3, len(chunk)),
            struct.pack(">BIBIBI", 0xD2, itemsize, 0xD2, block, 0xD2, nbytes),
            struct.pack(">BHBHB", 0xD1, 0, 0xD1, 1, 0xC2),
            # The six filters of the chunk, the compressor, and after another byte parameters of the filters.
            struct.pack(">BB6sBx6s2x", 0xD8, 6, chunk[_CODES], compressor, chunk[_METAS]),
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
    """Read a frame whose decompressed chunk has at most `most` bytes."""
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
        *_, offsets_nbytes = _HEADER.unpack_from(view, start)
        if view[start + offsets_nbytes - 1] != _ZEROS:
            raise StreamError("blosc2 frame has no chunk, and does not say that it is zeros")
        return Frame(nbytes, view[:0], layout)
    *_, own_nbytes, _, own_packed_nbytes = _HEADER.unpack_from(view, start)
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


_CODES, _METAS = slice(16, 22), slice(24, 30)  # filters of a chunk, in the order of encoding, and their parameters
_SPECIAL_AT, _EXTENDED = 31, 5  # where a chunk says that all values are equal; flags of a header that has this
_BYTE_SHUFFLE, _BYTEDELTA = 1, 35
_BUILT_IN = range(5)  # filters that every Blosc2 has


def with_bytedelta(chunk: bytes, itemsize: int) -> bytes:
    """Return a chunk of the bytes of `in_bytedelta` with a header that makes readers undo it."""
    codes, metas = bytes([0, 0, 0, 0, _BYTE_SHUFFLE, _BYTEDELTA]), bytes([0, 0, 0, 0, 0, itemsize])
    return chunk[: _CODES.start] + codes + chunk[_CODES.stop : _METAS.start] + metas + chunk[_METAS.stop :]


def is_filtered(chunk: Data) -> bool:
    """Return whether the bytes of a chunk went through the filters that its header names."""
    is_extended = len(chunk) > _SPECIAL_AT and chunk[2] & _EXTENDED == _EXTENDED
    return is_extended and not chunk[2] & _MEMCPY and not chunk[_SPECIAL_AT] >> 4 & 7


def in_bytedelta(data: Data, itemsize: int, block_nbytes: int) -> bytes:
    """Return blocks with bytes of equal significance side by side, each as the difference from the byte before."""

    def encode(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        streams = blocks.reshape(len(blocks), -1, itemsize).transpose(0, 2, 1)
        return np.diff(streams, axis=2, prepend=np.uint8(0))

    return _by_block(data, block_nbytes, encode)


def out_of_bytedelta(plain: bytes, chunk: Data) -> bytes:
    """Undo the shuffle and the differences of a chunk that was decompressed without its filters."""
    itemsize, nbytes, block_nbytes, _ = struct.unpack_from("<3xBIII", chunk)
    codes, metas = bytes(chunk[_CODES]), bytes(chunk[_METAS])
    step = metas[codes.index(_BYTEDELTA)] or itemsize
    shuffle = itemsize if _BYTE_SHUFFLE in codes else 1
    sizes = nbytes, block_nbytes
    if 0 in (step, shuffle, block_nbytes) or any(size % step or size % shuffle for size in sizes):
        raise StreamError(f"blosc2 chunk of {nbytes} bytes, in blocks of {block_nbytes}, has elements of {step}")

    def decode(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        streams = np.cumsum(blocks.reshape(len(blocks), step, -1), axis=2, dtype=np.uint8)
        return streams.reshape(len(blocks), shuffle, -1).transpose(0, 2, 1)

    return _by_block(plain, block_nbytes, decode)


def _by_block(data: Data, block_nbytes: int, function: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]) -> bytes:
    """Return what a function makes of all whole blocks, and of the rest, which is a block, too."""
    values = np.frombuffer(data, np.uint8)
    whole = len(values) // block_nbytes * block_nbytes
    parts = (values[:whole].reshape(-1, block_nbytes), values[whole:].reshape(1, -1))
    return b"".join(function(part).tobytes() for part in parts if part.size)


_BLOSC2_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "", "zlib", "zstd")
_BLOSC2_SHUFFLES = ("none", "byte", "bit", "delta", "truncate", *[""] * (_BYTEDELTA - 5), "bytedelta")
_READ_ONLY = ("delta", "truncate")  # imagecodecs encodes the first incorrectly, and the second not at all
_BLOCK = 1 << 18  # bytes of our blocks, as many as Blosc2 itself uses at most levels


@dataclass(frozen=True, slots=True)
class Blosc2(BloscFilter):
    """Filter 32026: Blosc2.

    Parameters
    ----------
    compressor
        The compressor of the blocks.
    level
        0 (store) to 9 (smallest).
    shuffle
        How a block is rearranged first: bytes, or bits, of equal significance side by side; with ``bytedelta``, bytes
        as differences from the one before. Two more are only read: ``delta``, differences from the first block, and
        ``truncate``, low bits cleared.
    """

    compressor: str = choice(COMPRESSOR, tuple(filter(None, _BLOSC2_COMPRESSORS)), "blosclz")
    level: int = level_number()
    shuffle: str = choice(
        "what is done to a block first; delta and truncate can only be read",
        tuple(filter(None, _BLOSC2_SHUFFLES)),
        "byte",
    )
    id: ClassVar[int] = 32026
    name: ClassVar[str] = "blosc2"
    registered_name: ClassVar[str] = "Blosc2"
    about: ClassVar[str] = "several compressors after its own shuffle, in blocks of many axes"
    needs: ClassVar[tuple[str, ...]] = ("imagecodecs",)
    compressors: ClassVar[tuple[str, ...]] = _BLOSC2_COMPRESSORS
    shuffles: ClassVar[tuple[str, ...]] = _BLOSC2_SHUFFLES

    @property
    def error_bound(self) -> float | None:
        """0; None if low bits are cleared, because it is not recorded how many."""
        return None if self.shuffle == "truncate" else 0.0

    def unencodable(self) -> str:
        """Return that the shuffle is read-only, or which package is not installed; empty if neither."""
        if self.shuffle in _READ_ONLY:
            return f"tamis can decode {self.name} with shuffle={self.shuffle} but not encode it"
        return self.missing()

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return revision, zero, element size, bytes of a chunk, requested parameters; the shape from 2 axes on."""
        CHUNK.check("chunk", chunk)
        shape = (len(chunk.shape), *chunk.shape) if len(chunk.shape) > 1 else ()
        return (1, 0, chunk.dtype.base.itemsize, chunk.nbytes, *self.requested[4:], *shape)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress, block by block."""
        check_arguments(data, chunk, stored)
        if reason := self.unencodable():
            raise MissingFilterError(reason)
        codecs = self.module("imagecodecs")
        itemsize = chunk.dtype.itemsize
        blocks, layout = data, None
        if len(chunk.shape) > 1 and len(data) == chunk.nbytes:
            layout = Layout(chunk.shape, _block_shape(chunk.shape, itemsize), itemsize)
            blocks = _in_blocks(data, layout)
        array, block_nbytes = elements(blocks, itemsize), layout.block_nbytes if layout else 0

        def packed(array: NDArray[Any], shuffle: str, block_nbytes: int) -> bytes:
            number = _BLOSC2_SHUFFLES.index(shuffle)
            options = {"compressor": self.compressor, "shuffle": number, "blocksize": block_nbytes, "numthreads": 1}
            try:
                return bytes(codecs.blosc2_encode(array, self.level, **options))
            except (RuntimeError, ValueError) as error:
                raise DataError(f"blosc2 cannot compress these bytes: {error}") from error

        if self.shuffle == "bytedelta":
            chunk_bytes = self._in_bytedelta(array, block_nbytes, packed)
        else:
            chunk_bytes = packed(array, self.shuffle, block_nbytes)
        level, _, compressor = self.requested[4:7]
        return pack(chunk_bytes, len(blocks), level, compressor, array.itemsize, layout)

    @staticmethod
    def _in_bytedelta(
        array: NDArray[Any], block_nbytes: int, packed: Callable[[NDArray[Any], str, int], bytes]
    ) -> bytes:
        """Return a chunk with differences of bytes, which imagecodecs lacks; an incompressible one as it is."""
        itemsize = array.itemsize
        block_nbytes = block_nbytes or min(_BLOCK // itemsize * itemsize, array.nbytes)
        differences = np.frombuffer(in_bytedelta(array.tobytes(), itemsize, block_nbytes), array.dtype)
        chunk = packed(differences, "none", block_nbytes)
        if is_filtered(chunk) and _HEADER.unpack_from(chunk)[5] == block_nbytes:
            return with_bytedelta(chunk, itemsize)
        return packed(array, "byte", block_nbytes)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress, after checking every size in the frame."""
        check_arguments(data, chunk, stored)
        frame = unpack(data, chunk.most_nbytes)
        if frame.zeros:
            return bytes(frame.layout.nbytes if frame.layout else frame.nbytes)
        plain = self._decompressed(frame)
        return plain if frame.layout is None else _out_of_blocks(plain, frame.layout)

    def _decompressed(self, frame: Frame) -> bytes:
        decode = self.module("imagecodecs").blosc2_decode
        codes = bytes(frame.chunk[_CODES]) if is_filtered(frame.chunk) else b""
        plugins = [code for code in codes if code not in _BUILT_IN]
        if not plugins:
            return decompressed(decode, frame.chunk, frame.nbytes, "blosc2 chunk")
        if codes.lstrip(b"\0") not in (bytes([_BYTE_SHUFFLE, _BYTEDELTA]), bytes([_BYTEDELTA])):
            raise StreamError(f"blosc2 chunk went through filter {plugins[0]} of Blosc2's plugins, which tamis lacks")
        without = bytes(frame.chunk[: _CODES.start]) + bytes(6) + bytes(frame.chunk[_CODES.stop :])
        plain = decompressed(decode, memoryview(without), frame.nbytes, "blosc2 chunk")
        return out_of_bytedelta(plain, frame.chunk)


def _block_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the shape of blocks: slowest axes are cut first, so that a block stays nearly contiguous."""
    block = list(shape)
    for axis in range(len(block)):
        while block[axis] > 1 and math.prod(block) * itemsize > _BLOCK:
            block[axis] = -(-block[axis] // 2)
    return tuple(block)


def _in_blocks(data: Data, layout: Layout) -> Data:
    """Return the blocks of a chunk one after the other, padded with zeros."""
    if layout.shape == layout.block:
        return data
    values = np.frombuffer(data, np.uint8).reshape(*layout.shape, layout.itemsize)
    padded = np.zeros((*layout.padded, layout.itemsize), np.uint8)
    padded[tuple(map(slice, layout.shape))] = values
    rank = len(layout.shape)
    split = padded.reshape(*layout.split, layout.itemsize)
    return split.transpose(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2), 2 * rank).tobytes()


def _out_of_blocks(plain: bytes, layout: Layout) -> bytes:
    """Undo `_in_blocks`."""
    if layout.shape == layout.block:
        return plain
    rank = len(layout.shape)
    blocks = np.frombuffer(plain, np.uint8).reshape(*layout.split[::2], *layout.block, layout.itemsize)
    order = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    padded = blocks.transpose(*order, 2 * rank).reshape(*layout.padded, layout.itemsize)
    return padded[tuple(map(slice, layout.shape))].tobytes()
