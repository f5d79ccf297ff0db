"""The chunks of numcodecs' codec zfpy, whose streams have headers, as chunks of HDF5, whose streams have none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis import zfp
from tamis.arrays.chunk_reader import ChunkPart, ChunkReader
from tamis.arrays.reader import put
from tamis.errors import StreamError, TamisError
from tamis.filters import Zfp

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin, Region
    from tamis.arrays.index import Parts
    from tamis.arrays.selection import Piece
    from tamis.filters import ChunkType, Data
    from tamis.formats.zarr.stored.codecs import ChunkFilters


class ZfpyChunks(ChunkReader):
    """The stored chunks of an array with the codec zfpy.

    The header of each chunk decides how it is decoded, as in numcodecs, because programs may write chunks with other
    parameters than those of the metadata, or with the unit axes that tamis leaves out.
    """

    def __init__(self, header: bytes, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._header = header

    def stored(self, origin: Origin) -> tuple[bytes, int]:
        """Return the bytes and the filter mask of a chunk as HDF5 stores it: its stream without the header.

        A chunk with another header than the metadata say is stored without zfp, so that no value changes.
        """
        stream = self._stream(origin)
        if stream[: len(self._header)] == self._header:
            return self.pipeline.encode_rest(stream[len(self._header) :], self.chunk)
        values = self.values(origin)
        return self.pipeline.encode(values, skip=(Zfp,))

    def stored_many(self, parts: Parts) -> Iterator[tuple[bytes, int] | None]:
        """Yield bytes and filter mask of each chunk; None if it is not stored."""
        for origin in parts.origins():
            yield self.stored(origin) if origin in self.index else None

    def values(self, origin: Origin, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """See `ChunkReader.values`."""
        if self.index.record_of(origin) is None:
            return super().values(origin, out)
        stream = self._stream(origin)
        try:
            _check(stream, self.chunk.dtype, self.chunk.size)
            return put(zfp.decode_with_header(stream).reshape(self.chunk.shape), out)
        except TamisError as error:
            self.pipeline.name_filter(0, error)
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def read_many(self, part: Region, out: NDArray[Any], threads: int = 1, *, fetches: bool = False) -> bool:
        """Return False: native code knows no headers."""
        return False

    def whole_of(self, part: Region) -> Region | None:
        """Return None: chunks are read one by one."""
        return None

    def part_for(self, piece: Piece) -> ChunkPart | None:
        """Return None: chunks are read whole."""
        return None

    def _stream(self, origin: Origin) -> Data:
        """Return the stream of a stored chunk, with its header."""
        record = self._record(origin)
        data = self._read(origin, record, 0, record.nbytes)
        try:
            return self.pipeline.decode_rest(data, record.mask, self.chunk)
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error


def header_in(data: bytes, filters: ChunkFilters, chunk: ChunkType) -> bytes:
    """Return the header of the stream of a chunk; empty if the chunk is damaged."""
    try:
        return bytes(filters.pipeline.decode_rest(data, 0, chunk)[: len(filters.header)])
    except TamisError:
        return b""


def _check(stream: Data, dtype: np.dtype[Any], size: int) -> None:
    """Raise StreamError unless the header of a stream has the type and the number of values of a chunk."""
    header = zfp.Header.unpack(stream)
    if header.dtype != dtype or math.prod(header.shape) != size:
        raise StreamError(
            f"expected the header of {size} values of {dtype}, found that of {header.dtype} of shape {header.shape}"
        )
