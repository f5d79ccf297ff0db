"""A sample of an array: whole chunks from all over it, and a smaller tile of each for costly measures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.arrays import Origin, Region, grid_of, origin_of, whole_blocks
from tamis.errors import ParameterError
from tamis.formatting import shape_text
from tamis.rewrite import as_floats
from tamis.stores import values_nbytes_of
from tamis.zfp import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.arrays import Parts
    from tamis.meaning import Missing
    from tamis.stores import StoredArray

MOST_CHUNKS = 64
"""Sampled chunks of a variable: a ratio predicted from this many has an error of a few per cent."""
ALL = 1 << 62
"""Bytes of a sample that has all values."""
_TILE_NBYTES = 1 << 15
_TILES_SHARE = 8  # one in this many of the sampled bytes is in tiles
_MOST_FIELDS = 8
_MOST_FIELDS_NBYTES = 1 << 26  # of fields that are read together
_PART_NBYTES = 1 << 18
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between whole numbers


class Piece(NamedTuple):
    """A part of an array, with its values."""

    region: Region
    values: NDArray[Any]
    # Whether it is a whole chunk, or all of one that is inside the array; false for a part of a chunk
    is_chunk: bool = False

    @property
    def origin(self) -> Origin:
        """Index of the first value."""
        return origin_of(self.region)


class UnreadPieces(Sequence[Piece]):
    """Parts of an array that are read one by one, whenever needed, so that few are in memory."""

    def __init__(self, array: StoredArray, regions: Sequence[Region], *, are_chunks: bool) -> None:
        self._array, self._regions, self._are_chunks = array, regions, are_chunks

    def __len__(self) -> int:
        return len(self._regions)

    def __getitem__(self, index: Any) -> Any:
        return next(self._read([self._regions[index]]))

    def __iter__(self) -> Iterator[Piece]:
        return self._read(self._regions)

    def _read(self, regions: Sequence[Region]) -> Iterator[Piece]:
        with closing(self._array.open_reader()) as reader:
            for region in regions:
                yield Piece(region, np.ascontiguousarray(reader.read(region)), self._are_chunks)

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        count = sum(math.prod(axis.stop - axis.start for axis in region) for region in self._regions)
        return int(count * np.dtype(self._array.type.dtype).itemsize)


class Sample(NamedTuple):
    """Chunks of one array, or of arrays with the same name in several files."""

    chunks: Sequence[Sequence[Piece]]  # For each file, the sampled chunks
    tiles: Sequence[Sequence[Piece]]  # For each file, a part of each sampled chunk
    array_nbytes: int  # Bytes of all values in all files that were written
    written_share: float  # Share of the values in chunks that were written; the others take no bytes
    nbytes: int  # Bytes of the sampled chunks
    is_all: bool = False  # Whether chunks and tiles have all values
    array: StoredArray | None = None  # The array, or the first one of several that are packed alike

    def in_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return stored values in units of the variable, as floats."""
        return values if self.array is None else as_floats(self.array, values)

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return next(piece.values.itemsize for pieces in self.chunks for piece in pieces)

    def roughness(self, missing: Sequence[Missing], step: float) -> float:
        """Return the mean bits of a difference between neighbours in steps: how much the sampled chunks have to tell.

        Samples of other chunks have another share of missing values, and of smooth fields.
        """
        bits, count = 0.0, 0
        for marks, pieces in zip(missing, self.chunks, strict=True):
            for piece in pieces:
                absent = marks.find(piece.values)
                values = piece.values.astype(np.float64)
                valid = np.isfinite(values) if absent is None else np.isfinite(values) & ~absent
                values[~valid] = np.nan
                with np.errstate(over="ignore", invalid="ignore"):
                    bits += float(np.nansum(np.log2(1 + np.abs(np.diff(values)) / step)))
                count += values.size
        return bits / count

    def whole(self, nbytes: int) -> Sample:
        """Return a sample of about this many bytes, in chunks of this one; at least one of each file."""
        most = max(nbytes * sum(map(len, self.chunks)) // self.nbytes // len(self.chunks), 1)
        chunks = [[pieces[i] for i in _one_of_each_run(len(pieces), min(most, len(pieces)))] for pieces in self.chunks]
        nbytes = _nbytes(chunks)
        return self._replace(chunks=chunks, nbytes=nbytes, is_all=self.is_all and nbytes == self.nbytes)

    def thinned(self, nbytes: int) -> Sample:
        """Return a sample of about this many bytes: a part of each chunk, or fewer chunks if these parts become small.

        Many parts of chunks tell more about an array than few chunks: neighbours are alike.
        """
        if self.nbytes <= nbytes:
            return self
        count = sum(map(len, self.chunks))
        most = max(nbytes // count, _PART_NBYTES)
        step = -(-count * most // nbytes)
        chunks = [
            [_part(pieces[i], most, i) for i in _one_of_each_run(len(pieces), -(-len(pieces) // step))]
            for pieces in self.chunks
        ]
        return self._replace(chunks=chunks, nbytes=_nbytes(chunks), is_all=False)


def sample_of(
    arrays: Sequence[StoredArray], chunk_shape: tuple[int, ...], nbytes: int, *, fields: bool = False
) -> Sample:
    """Read a sample of arrays that are the same variable in several files."""
    grids = [grid_of(array.shape, chunk_shape) for array in arrays]
    parts = [array.parts(grid) for array, grid in zip(arrays, grids, strict=True)]
    written_nbytes = sum(map(_written_nbytes, arrays, parts))
    share = written_nbytes / sum(values_nbytes_of(array) for array in arrays)
    if nbytes >= ALL:
        unread = [UnreadPieces(array, own, are_chunks=True) for array, own in zip(arrays, parts, strict=True)]
        whole = [UnreadPieces(array, _all_fields(array), are_chunks=False) for array in arrays] if fields else unread
        nbytes = sum(part.nbytes for part in unread)
        return Sample(unread, whole, written_nbytes, share, nbytes, is_all=True, array=arrays[0])
    chunks = [_read(array, chunk_shape, nbytes // len(arrays)) for array in arrays]
    tile_nbytes = nbytes // _TILES_SHARE // len(arrays)
    tiles = [
        _fields(array, own, nbytes // len(arrays))
        if fields
        else [_tile(piece, tile_nbytes // len(own)) for piece in own]
        for array, own in zip(arrays, chunks, strict=True)
    ]
    return Sample(chunks, tiles, written_nbytes, share, _nbytes(chunks), array=arrays[0])


def _written_nbytes(array: StoredArray, parts: Parts) -> int:
    if parts.are_all:
        return values_nbytes_of(array)
    extents = np.minimum(parts.grid.chunk_shape, np.subtract(array.shape, parts.origin_table()))
    return int(extents.prod(axis=1).sum()) * np.dtype(array.type.dtype).itemsize


def _nbytes(chunks: Sequence[Sequence[Piece]]) -> int:
    return sum(piece.values.nbytes for pieces in chunks for piece in pieces)


def _read(array: StoredArray, chunk_shape: tuple[int, ...], nbytes: int) -> list[Piece]:
    parts = array.parts(grid_of(array.shape, chunk_shape))
    itemsize = np.dtype(array.type.dtype).itemsize
    chunk_nbytes = math.prod(map(min, chunk_shape, array.shape)) * itemsize
    count = min(len(parts), MOST_CHUNKS, max(nbytes // chunk_nbytes, 1))
    pieces = []
    with closing(array.open_reader()) as reader:
        for i in _one_of_each_run(len(parts), count):
            part = parts[i]
            is_chunk = chunk_nbytes <= max(nbytes, _TILE_NBYTES)
            if not is_chunk:
                part = _within(part, max(nbytes, _TILE_NBYTES) // itemsize)
            pieces.append(Piece(part, np.ascontiguousarray(reader.read(part)), is_chunk))
    return pieces


def _one_of_each_run(count: int, runs: int) -> list[int]:
    """Return one number from each of several runs of equal length, at random, but the same in each call.

    Chunks at equal distances may all be of one level, or of one season.
    """
    random = np.random.default_rng(count)
    return [int(random.integers(i * count // runs, (i + 1) * count // runs)) for i in range(runs)]


def _all_fields(array: StoredArray) -> list[Region]:
    """Return all fields, with the neighbours that zfp encodes together if these are not too large."""
    leading, field = array.shape[:-2], array.shape[-2:]
    nbytes = math.prod(field) * np.dtype(array.type.dtype).itemsize
    step = BLOCK_SIDE if nbytes * BLOCK_SIDE ** len(leading) <= _MOST_FIELDS_NBYTES else 1
    begins = itertools.product(*(range(0, extent, step) for extent in leading))
    last = tuple(slice(0, extent) for extent in field)
    return [
        (*(slice(at, min(at + step, extent)) for at, extent in zip(begin, leading, strict=True)), *last)
        for begin in begins
    ]


def _fields(array: StoredArray, chunks: Sequence[Piece], nbytes: int) -> list[Piece]:
    """Read the whole fields around some of the sampled chunks, with the neighbours that zfp encodes together."""
    field = array.shape[-2:]
    field_nbytes = math.prod(field) * chunks[0].values.itemsize
    if field_nbytes > nbytes:
        raise ParameterError(
            f"expected a sample of at least one field for dssim or spectrum, got {nbytes} bytes, and a field of"
            f" {shape_text(field)} values has {field_nbytes}: give a larger sample (--sample), or another requirement"
        )
    pieces: dict[Origin, Piece] = {}
    with closing(array.open_reader()) as reader:
        for chunk in chunks[:: -(-len(chunks) // _MOST_FIELDS)]:
            leading = [slice(axis.start, min(axis.stop, axis.start + BLOCK_SIDE)) for axis in chunk.region[:-2]]
            if field_nbytes * math.prod(axis.stop - axis.start for axis in leading) > nbytes:
                leading = [slice(axis.start, axis.start + 1) for axis in leading]
            part = (*leading, *(slice(0, extent) for extent in field))
            if pieces and nbytes < sum(piece.values.nbytes for piece in pieces.values()) + field_nbytes:
                break
            if origin_of(part) not in pieces:
                pieces[origin_of(part)] = Piece(part, np.ascontiguousarray(reader.read(part)))
    return [*pieces.values()]


def _tile(piece: Piece, nbytes: int) -> Piece:
    """Return the middle of a chunk, of a size that is quick to measure."""
    return _inner(piece, _within(piece.region, max(nbytes, _TILE_NBYTES) // piece.values.itemsize))


def _part(piece: Piece, nbytes: int, number: int) -> Piece:
    """Return one of the equal parts of a chunk, of about this many bytes; a different one for each chunk.

    Parts do not overlap, so the edges of chunks are as likely as their middle.
    """
    axis = next((axis for axis, extent in enumerate(piece.values.shape) if extent > BLOCK_SIDE), None)
    if piece.values.nbytes <= nbytes or axis is None:
        return piece
    extent, begin = piece.values.shape[axis], piece.origin[axis]
    step = whole_blocks(max(extent * nbytes // piece.values.nbytes, 1))
    at = step * int(number * _GOLDEN % 1 * -(-extent // step))
    part = (*piece.region[:axis], slice(begin + at, begin + min(at + step, extent)), *piece.region[axis + 1 :])
    return _inner(piece, part)


def _inner(piece: Piece, part: Region) -> Piece:
    inside = tuple(slice(axis.start - at, axis.stop - at) for axis, at in zip(part, piece.origin, strict=True))
    return Piece(part, np.ascontiguousarray(piece.values[inside]), piece.is_chunk and part == piece.region)


def _within(part: Region, count: int) -> Region:
    """Return the middle of a region with a number of values, cut along its slow axes first, in whole blocks of zfp."""
    extents = [axis.stop - axis.start for axis in part]
    begins = [axis.start for axis in part]
    for axis, extent in enumerate(extents):
        others = math.prod(extents) // extent
        kept = max(count // others // BLOCK_SIDE * BLOCK_SIDE or count // others, 1)
        if kept < extent:
            begins[axis] += (extent - kept) // 2 // BLOCK_SIDE * BLOCK_SIDE
            extents[axis] = kept
    return tuple(slice(begin, begin + extent) for begin, extent in zip(begins, extents, strict=True))
