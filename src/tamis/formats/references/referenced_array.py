"""An array whose chunks are in other files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid
from tamis.arrays.index import Parts
from tamis.errors import FileError, located
from tamis.filters import ChunkType
from tamis.formats.zarr.codec_choice import Codecs, choose_codecs
from tamis.formats.zarr.masked_chunk import MARK
from tamis.notation.zarr import version_3
from tamis.stores.protocols import ELSEWHERE, StoredArray, absent_text

if TYPE_CHECKING:
    from tamis.stores.data_model import NamedArray

Index = tuple[int, ...]
"""Position of a chunk in the grid of chunks."""

_MOST_INLINED_NBYTES = 1 << 20
"""Limit of an array whose values are copied, because they have no place in the file of their own."""

_MOST_PIECE_NBYTES = 16 << 20
"""Limit of a piece of an array that is stored in one run."""


class Reference(NamedTuple):
    """The place of a chunk: the address of a file, and the offset and size in it."""

    url: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ReferencedArray:
    """A Zarr array whose chunks are bytes of other files."""

    path: str  # Path in the hierarchy
    # Of the array; slowest axis first
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any  # Value of chunks that are not stored
    dimensions: tuple[str, ...]  # Name of each axis
    attributes: Mapping[str, Any]  # As readers of netCDF have them
    codecs: Codecs  # What decodes the chunks
    chunks: Mapping[Index, Reference]
    inlined: Mapping[Index, bytes]  # Bytes of chunks that references cannot express, by index
    read: Callable[[], NDArray[Any]]  # Returns all values as stored

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def absent(self) -> int:
        """Number of chunks that are not stored."""
        steps = zip(self.shape, self.chunk_shape, strict=True)
        return math.prod(-(-extent // step) for extent, step in steps) - len(self.chunks) - len(self.inlined)


def reference(array: StoredArray, named: NamedArray, path: str, url: str) -> ReferencedArray:
    """Return an array of a file as an array of references."""
    if array.dtype is None or array.varies:
        raise _refusal(array, f"values of a fixed size, found {array.type_text}")
    if array.layout in ELSEWHERE:
        absent = f", whose {absent_text(array.absent_files)}" if array.absent_files else ""
        raise _refusal(array, f"values in this file, found a {array.layout} dataset{absent}")
    if named.shape != tuple(array.shape):
        raise _refusal(array, f"as many values as its dimensions have, {named.shape}, found {array.shape}")
    values = array.as_values()
    if values is not array and not _same_bytes(array, values):
        array, dtype = values, values.value_type or values.chunk.dtype
        stored = _copied(array, dtype)
    else:
        dtype = array.chunk.dtype
        stored = _chunked(array, url) if array.chunk_shape else _in_one_run(array, dtype, url)

    def read() -> NDArray[Any]:
        with closing(array.open_reader()) as reader:
            values = reader.read(tuple(slice(0, extent) for extent in array.shape))
        return values if values.dtype == dtype else values.view(dtype)

    codecs, chunk_shape, chunks, inlined = stored
    fill = array.fill_as(dtype)
    return ReferencedArray(
        path,
        tuple(array.shape),
        chunk_shape,
        dtype,
        fill,
        named.dimensions,
        named.attributes,
        codecs,
        chunks,
        inlined,
        read,
    )


_Stored = tuple[Codecs, tuple[int, ...], dict[Index, Reference], dict[Index, bytes]]


def _chunked(array: StoredArray, url: str) -> _Stored:
    shape = array.chunk_shape or ()
    chunks: dict[Index, Reference] = {}
    inlined: dict[Index, bytes] = {}
    reader = array.open_chunks() if array.can_read_chunks else None
    if reader is None:
        raise _refusal(array, f"chunks that tamis can decode, found filters {array.pipeline}")
    try:
        records = list(reader.true_records())
        with located(array.label, dataset=array.path):
            codecs = choose_codecs(array.pipeline, filled_chunk(array), Counter(record.mask for _, record in records))
        for origin, record in records:
            key = tuple(start // step for start, step in zip(origin, shape, strict=True))
            masked = codecs.masked
            if masked is None or not masked.needs_mark(reader.stored_head(origin, len(MARK)), record.mask):
                chunks[key] = Reference(url, record.offset, record.nbytes)
            else:
                inlined[key] = masked.marked(reader.stored(origin)[0], record.mask)
    finally:
        reader.close()
    return codecs, tuple(shape), chunks, inlined


def filled_chunk(array: StoredArray) -> ChunkType:
    """Return type and shape of the chunks, with the fill value, which some filters set apart."""
    fill = array.fill_as(array.chunk.dtype).tobytes()
    return ChunkType(array.chunk.dtype, array.chunk.shape, fill if any(fill) else b"")


def _in_one_run(array: StoredArray, dtype: np.dtype[Any], url: str) -> _Stored:
    """Return pieces of values that are not in chunks: references if they are contiguous, otherwise the values."""
    shape = tuple(array.shape)
    codecs = Codecs((), tuple(version_3((), dtype)))
    offset = array.contiguous_offset if array.size else None
    if not array.size or not array.stored_nbytes:
        return codecs, tuple(max(extent, 1) for extent in shape), {}, {}
    if offset is None:
        return _copied(array, dtype)
    if not shape:
        return codecs, (), {(): Reference(url, offset, dtype.itemsize)}, {}
    rows = _rows_of_pieces(shape, dtype.itemsize)
    nbytes = array.nbytes // shape[0] * rows
    pieces = {
        (i, *(0,) * (len(shape) - 1)): Reference(url, offset + i * nbytes, nbytes) for i in range(shape[0] // rows)
    }
    return codecs, (rows, *shape[1:]), pieces, {}


def _copied(array: StoredArray, dtype: np.dtype[Any]) -> _Stored:
    """Return all values as one copied chunk."""
    shape = tuple(array.shape)
    if array.nbytes > _MOST_INLINED_NBYTES:
        raise _refusal(
            array,
            f"values that are bytes of a file, in chunks or in one run, found {array.nbytes} bytes of"
            f" {array.type_text} in a {array.layout} dataset",
        )
    with closing(array.open_reader()) as reader:
        values = reader.read(tuple(slice(0, extent) for extent in shape))
    codecs = Codecs((), tuple(version_3((), dtype)))
    chunk_shape = tuple(max(extent, 1) for extent in shape)
    return codecs, chunk_shape, {}, {(0,) * len(shape): np.ascontiguousarray(values).tobytes()} if array.size else {}


def _same_bytes(array: StoredArray, values: StoredArray) -> bool:
    """Return whether readers get the bytes of all values as they are in the file."""
    if array.dtype != values.dtype:
        return False
    steps = several_chunks(array.shape, array.chunk_shape or (1,) * len(array.shape), _MOST_INLINED_NBYTES)
    with closing(array.open_reader()) as stored, closing(values.open_reader()) as converted:
        parts = Parts(Grid(array.shape, steps)) if array.size else ()
        return all(stored.read(part).tobytes() == converted.read(part).tobytes() for part in parts)


def _rows_of_pieces(shape: tuple[int, ...], itemsize: int) -> int:
    """Return the largest divisor of the first extent that gives pieces of a moderate size; Zarr's have equal sizes."""
    most = max(_MOST_PIECE_NBYTES // max(math.prod(shape[1:]) * itemsize, 1), 1)
    return max(rows for rows in range(1, shape[0] + 1) if shape[0] % rows == 0 and rows <= most)


def _refusal(array: StoredArray, text: str) -> FileError:
    return FileError(f"{array.label}: expected {text}: leave it out, or repack the file first").at(dataset=array.path)
