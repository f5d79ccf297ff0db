"""pcodec, a codec for numbers that numcodecs has for Zarr, and HDF5 has no filter for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis.errors import ParameterError, StreamError
from tamis.filters.base import CHUNK, ChunkType, Data, OneNumber, check_arguments, number

_TYPES = ("f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8")
"""Types of the values, all in native byte order; pcodec has none of one byte."""


@dataclass(frozen=True, slots=True)
class Pcodec(OneNumber):
    """pcodec (pco), lossless, for arrays of Zarr only.

    Chunks are the same as those of ``numcodecs.PCodec(level)``.

    Parameters
    ----------
    level
        0 (fastest) to 12 (smallest).
    """

    level: int = number("0 is fastest, 12 smallest", 0, 12, 8)
    id: ClassVar[int] = 1 << 16  # HDF5's have 16 bits
    name: ClassVar[str] = "pcodec"
    registered_name: ClassVar[str] = "numcodecs.pcodec"
    about: ClassVar[str] = "numbers of 2 bytes or more, in Zarr only"
    optional: ClassVar[bool] = False
    needs_values: ClassVar[bool] = True
    zarr_only: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("pcodec",)
    install: ClassVar[str] = "pip install 'tamis[pcodec]'"

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the level; raises ParameterError for other values than numbers of 2, 4 or 8 bytes."""
        CHUNK.check("chunk", chunk)
        if f"{chunk.dtype.kind}{chunk.dtype.itemsize}" not in _TYPES or not chunk.dtype.isnative:
            raise ParameterError(
                f"expected numbers of 2, 4 or 8 bytes in native byte order for pcodec, got {chunk.dtype.str!r}: use"
                " shuffle|zstd(9) or bzip2"
            )
        return self.requested

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Compress the values, in the order of memory; raises ParameterError for others than `stored` takes."""
        check_arguments(data, chunk, stored)
        self.stored(chunk)
        if len(data) != chunk.nbytes:
            raise ParameterError(f"expected the {chunk.nbytes} bytes of a chunk, got {len(data)}")
        config = self.module("pcodec").ChunkConfig(compression_level=self.level)
        encoded: bytes = self.module("pcodec.standalone").simple_compress(np.frombuffer(data, chunk.dtype), config)
        return encoded

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decompress to the values of a chunk; the stream itself has the level."""
        check_arguments(data, chunk, stored)
        self.stored(chunk)
        values = np.empty(chunk.size, chunk.dtype)
        try:
            progress = self.module("pcodec.standalone").simple_decompress_into(bytes(data), values)
        except (RuntimeError, TypeError) as error:
            raise StreamError(f"pcodec stream is damaged, or of another type than {chunk.dtype}: {error}") from error
        if progress.n_processed != values.size or not progress.finished:
            raise StreamError(f"expected {values.size} values in a pcodec stream, got {progress.n_processed}")
        return values.data.cast("B")
