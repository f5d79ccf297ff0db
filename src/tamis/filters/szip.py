"""Filter 4: szip, as HDF5 frames it: the decompressed size, u32 little-endian, then a stream of extended Rice codes.

The streams are those of libaec, byte by byte: CCSDS 121.0-B, in scan lines of whole blocks, with the bytes of 32- and
64-bit pixels sorted by their position.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from tamis import _native
from tamis.arguments import STORED
from tamis.errors import DataError, ParameterError, StreamError
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, check_arguments, choice, number

_ALLOW_K13, _ENTROPY, _LSB, _MSB, _NEAREST, _RAW = 1, 4, 8, 16, 32, 128
_CODINGS = {"nn": _NEAREST, "ec": _ENTROPY}
_BLOCKS = 128  # of a scan line, at most
_LONGEST_LINE = 4096  # pixels
_SIZE = struct.Struct("<I")
_WIDTHS = {*range(1, 33), 64}  # bits of a pixel
_BEST = 8192  # a byte of szip decodes to fewer bytes: 64 zero blocks of 32 pixels of 4 bytes take 11 bits


@dataclass(frozen=True, slots=True)
class Szip(Filter):
    """Filter 4: szip.

    Parameters
    ----------
    coding
        ``nn``, differences of neighbours, or ``ec``, entropy coding of the values as they are.
    pixels
        Values of a block, 2 to 32, even.
    """

    coding: str = choice("nn: differences of neighbours, ec: values as they are", ("nn", "ec"), "nn")
    pixels: int = number("values of a block, even", 2, 32, 8)
    id: ClassVar[int] = 4
    name: ClassVar[str] = "szip"
    registered_name: ClassVar[str] = "szip"
    about: ClassVar[str] = "extended-Rice, for instruments' integers"

    def __post_init__(self) -> None:
        """Check the numbers."""
        Filter.__post_init__(self)
        if self.pixels % 2:
            raise ParameterError(f"expected an even number of pixels of szip, got pixels={self.pixels}")

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, option mask and pixels, or stored ones, which have two more."""
        STORED.check("values", values)
        if len(values) not in (2, 4):
            raise ParameterError(f"expected mask and pixels per block of szip, or two more when stored, got {values}")
        if not values[0] & (_NEAREST | _ENTROPY):
            raise ParameterError(f"expected 4 (ec) or 32 (nn) in the mask of szip, got {values[0]}")
        return cls("nn" if values[0] & _NEAREST else "ec", values[1])

    @property
    def requested(self) -> tuple[int, ...]:
        """Option mask, as H5Pset_szip completes it, and pixels per block."""
        return (_CODINGS[self.coding] | _ALLOW_K13 | _RAW, self.pixels)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return option mask with byte order, pixels of a block, bits of a pixel and pixels of a scan line."""
        CHUNK.check("chunk", chunk)
        dtype = chunk.dtype
        if dtype.kind not in "iufb" or dtype.itemsize not in (1, 2, 4, 8):
            raise ParameterError(f"expected integers or floats of 1, 2, 4 or 8 bytes for szip, got {dtype}")
        line = chunk.shape[-1] if chunk.shape else 1
        if line < self.pixels:
            line = chunk.size
            if line < self.pixels:
                raise ParameterError(
                    f"szip with {self.pixels} pixels per block needs chunks of as many values or more, got {line}: "
                    "use fewer pixels, or larger chunks"
                )
            line = min(line, self.pixels * _BLOCKS)
        else:
            line = min(line if line <= _LONGEST_LINE else self.pixels * _BLOCKS, self.pixels * _BLOCKS)
        order = _MSB if dtype.str.startswith(">") else _LSB
        return (self.requested[0] | order, self.pixels, 8 * dtype.itemsize, line)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress. Raises DataError if the result is not smaller, or the bytes are not pixels of these parameters."""
        check_arguments(data, chunk, stored)
        _check_stored(stored)
        result = _native.szip_encode(data, stored)
        if isinstance(result, _native.Failure):
            raise _not_encoded(result, data, stored)
        return result

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress. There is no checksum: damage may go unnoticed."""
        check_arguments(data, chunk, stored)
        _check_stored(stored)
        if len(data) < _SIZE.size:
            raise StreamError(f"expected a size of {_SIZE.size} bytes in front of szip, got {len(data)} bytes")
        (nbytes,) = _SIZE.unpack_from(data)
        if nbytes > min(chunk.most_nbytes, _BEST * len(data)):
            raise StreamError(f"szip header claims {nbytes} bytes, for {len(data)} bytes here")
        if nbytes % _pixel_nbytes(stored):
            raise StreamError(
                f"expected whole pixels of {_pixel_nbytes(stored)} bytes from szip, got {nbytes} bytes: a filter"
                " before szip left part of a pixel, which its writer may have lost"
            )
        result = _native.szip_decode(data, stored, nbytes)
        if isinstance(result, _native.Failure):
            what = "truncated" if result.code == "truncated" else "damaged"
            raise StreamError(f"szip stream is {what}, in the scan line of pixel {result.where}")
        return result

    @staticmethod
    def encoded_nbytes(data: Data, chunk: ChunkType, candidates: Sequence[Szip]) -> tuple[int, ...]:
        """Return the bytes that a chunk takes with each of several parameters, exactly, without encoding it.

        Parameters
        ----------
        data
            The chunk's bytes.
        chunk
            Its type and shape.
        candidates
            Filters to compare, such as those of 8, 16 and 32 pixels. Each costs a part of its encoding, and the lock of
            Python is released meanwhile.

        Returns
        -------
        tuple of int
            As many bytes as `encode` returns, also where it raises DataError because they are not fewer.

        Raises
        ------
        ParameterError
            If the chunk is too small for one of the candidates, or its type is none of szip's.
        DataError
            If the bytes are not whole pixels.
        """
        values = [each.stored(chunk) for each in candidates]
        result = _native.szip_nbytes(data, values)
        if isinstance(result, _native.Failure):
            raise _not_encoded(result, data, values[0])
        return tuple(result)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return coding and block size in words."""
        coding = "nearest neighbour" if self.coding == "nn" else "entropy coding"
        return f"szip {coding}, {self.pixels} pixels per block"


def _check_stored(stored: tuple[int, ...]) -> None:
    """Raise StreamError if the four stored parameters are invalid."""
    if len(stored) != 4:
        raise StreamError(f"expected four parameters of szip as stored, got {stored}")
    _, pixels, bits, line = stored
    if pixels % 2 or not 2 <= pixels <= 32 or bits not in _WIDTHS or not pixels <= line <= pixels * _BLOCKS:
        raise StreamError(
            f"invalid parameters of szip: {pixels} pixels per block, {bits} bits each, {line} of a scan line"
        )


def _not_encoded(failure: _native.Failure, data: Data, stored: tuple[int, ...]) -> DataError:
    """Return the error that says why a chunk was not encoded."""
    match failure.code:
        case "wrong_nbytes":
            # HDF5 accepts such bytes, but decodes wrong ones or fails.
            text = f"expected whole pixels of {_pixel_nbytes(stored)} bytes for szip, got {len(data)} bytes"
        case "too_wide":
            # libaec encodes other values in their place.
            text = f"expected pixels of {stored[2]} bits for szip, got more in the scan line of pixel {failure.where}"
        case _:
            text = f"szip does not make these bytes smaller: {len(data)} bytes"
    return DataError(text)


def _pixel_nbytes(stored: tuple[int, ...]) -> int:
    """Return the bytes of a pixel in memory."""
    bits = stored[2]
    return next(nbytes for nbytes in (1, 2, 4, 8) if bits <= 8 * nbytes)
