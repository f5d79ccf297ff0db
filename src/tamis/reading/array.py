"""The base of `tamis.open`'s arrays, for all formats."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tamis import meaning
from tamis.arguments import ARRAY
from tamis.arrays.cache import KEPT_NBYTES
from tamis.arrays.gather import intersection, within
from tamis.arrays.grid import region, shape_of
from tamis.arrays.read_many import chunk_count
from tamis.arrays.selection import Piece, Points, Selection
from tamis.arrays.threads import ordered_map
from tamis.errors import ParameterError
from tamis.formatting import printable

if TYPE_CHECKING:
    from tamis.arrays.cache import ChunkCache
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.grid import Region

_TASK_NBYTES = 256 << 10
"""Bytes of small chunks that a thread takes at a time, so that passing them on costs little."""


@dataclass(frozen=True, slots=True)
class SelectedChunks:
    """The chunks of an array, read as selections need them.

    Parameters
    ----------
    source
        The chunks.
    name
        Path of the array, which identifies it in the cache.
    cache
        Decoded chunks that may be needed again.
    change
        Called with each piece and the whole result once the values are read, to change them; None for no change.
    """

    source: ChunkReader
    name: str
    cache: ChunkCache
    change: Callable[[Piece, NDArray[Any]], None] | None = None

    def fill(self, out: NDArray[Any], selection: Selection | Points, threads: int) -> None:
        """Read a selection into an array of its full shape.

        Raises
        ------
        FileError
            If a chunk is damaged.
        """
        if 0 in out.shape:
            return
        part = selection.region if isinstance(selection, Selection) and self.change is None else None
        if part is not None and self.source.read_many(part, out, threads, fetches=True):
            return
        if part is not None and self._fill_whole(part, selection, out, threads):
            return
        steps = self.source.chunk.shape
        if part is not None and 2 * len(self.source.index) < chunk_count(part, steps):
            out[...] = self.source.fill
            pieces = self._stored_pieces(part)
        else:
            pieces = selection.pieces(steps)
        together = max(1, _TASK_NBYTES // self.source.chunk.nbytes)

        def place(group: list[Piece]) -> None:
            for piece in group:
                self._place_decoded(piece, out)

        with self.source.fetched(pieces, self._is_cached) as fetched:
            # Work that is mostly Python stays in this thread: others would wait for the interpreter's lock.
            large = (piece for piece in fetched if not self._place_light(piece, out))
            tasks = iter(lambda: list(itertools.islice(large, together)), [])
            with closing(ordered_map(place, tasks, threads)) as placed:
                for _ in placed:
                    pass

    def _fill_whole(self, part: Region, selection: Selection | Points, out: NDArray[Any], threads: int) -> bool:
        """Read all chunks of a part and keep them, because other selections may need the rest of them.

        Returns False if they are too large, or some are here already.
        """
        source = self.source
        whole = source.whole_of(part)
        if whole is None or math.prod(shape_of(whole)) * source.chunk.dtype.itemsize > KEPT_NBYTES:
            return False
        pieces = list(selection.pieces(source.chunk.shape))
        if any(map(self._is_cached, pieces)):
            return False
        values = np.empty(shape_of(whole), source.chunk.dtype)
        if not source.read_many(whole, values, threads, fetches=True):
            return False
        out[...] = values[within(part, whole)]
        for piece in pieces:
            chunk = within(region(piece.origin, source.shape, source.chunk.shape), whole)
            self.cache.put((self.name, piece.origin), values[chunk].copy())
        return True

    def _is_cached(self, piece: Piece) -> bool:
        return self.cache.get((self.name, piece.origin)) is not None

    def _stored_pieces(self, part: Region) -> Iterator[Piece]:
        """Yield the pieces of a region in stored chunks, if few of many are stored."""
        origins = self.source.index.parts.origin_table()
        steps = self.source.chunk.shape
        begin = [axis.start for axis in part]
        end = [axis.stop for axis in part]
        touched = ((origins < end) & (origins + steps > begin)).all(axis=1)
        for row in origins[touched].tolist():
            shared = intersection(part, tuple(slice(at, at + step) for at, step in zip(row, steps, strict=True)))
            inside = tuple(slice(axis.start - at, axis.stop - at, 1) for axis, at in zip(shared, row, strict=True))
            yield Piece(tuple(row), inside, within(shared, part))

    def place(self, piece: Piece, out: NDArray[Any]) -> None:
        """Fill in one piece."""
        if not self._place_light(piece, out):
            self._place_decoded(piece, out)

    def _place_light(self, piece: Piece, out: NDArray[Any]) -> bool:
        """Fill in a piece if its chunk is cached, or a part of it is enough; otherwise return False."""
        key = (self.name, piece.origin)
        values = self.cache.get(key)
        if values is None:
            part = self.source.part_for(piece)
            if part is None or self.cache.add_part(key, part.share) > 1:
                return False
            values = self.source.part_values(piece.origin, part)
        out[piece.outside] = values[piece.inside]
        if self.change is not None:
            self.change(piece, out)
        return True

    def _place_decoded(self, piece: Piece, out: NDArray[Any]) -> None:
        """Decode a whole chunk and fill in a piece; cache the chunk if another piece may be needed."""
        source, origin = self.source, piece.origin
        if piece.covers(source.chunk.shape):
            source.values(origin, out=out[piece.outside])
        else:
            values = source.values(origin)
            out[piece.outside] = values[piece.inside]
            if origin in source.index and not piece.covers(source.extents(origin)):
                self.cache.put((self.name, origin), values)
        if self.change is not None:
            self.change(piece, out)


class FileOfArray(Protocol):
    """The file of an array; see `tamis.reading.file.File`."""

    path: str
    threads: int
    restore: bool
    identity: tuple[str, int, int]
    cache: ChunkCache

    def check_open(self) -> None:
        """Raise FileError if the file is closed."""

    def source(self, name: str, open_chunks: Callable[[], ChunkReader]) -> ChunkReader:
        """Return the chunks of an array, which are opened once."""

    def __reduce__(self) -> tuple[Any, ...]: ...


class Array:
    """An array of an open file, sliced like a NumPy array: dask, xarray and NumPy accept it, and it can be pickled.

    Parameters
    ----------
    file
        The file, which must stay open.
    name
        The path by which it was opened.
    shape, dtype
        Shape and type of the values.
    chunks
        Chunk shape, or None.
    """

    def __init__(
        self, file: FileOfArray, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: tuple[int, ...] | None
    ) -> None:
        self._file = file
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.chunks = chunks

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self.size * self.dtype.itemsize

    @abstractmethod
    def __getitem__(self, key: Any) -> Any: ...

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("expected an array with axes, got a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values.

        Parameters
        ----------
        out
            Array to fill, of the same shape, with any strides, and of the same type or one that NumPy casts to safely.
            None for a new array.

        Returns
        -------
        array
            `out`, or the new array.

        Raises
        ------
        ParameterError
            If `out` does not fit.
        FileError
            If a chunk is damaged, or there are no values (a null dataspace).
        """
        if out is None:
            return np.asarray(self[()], self.dtype.base)
        self._check_out(out)
        out[...] = self[()]
        return out

    def _check_out(self, out: NDArray[Any]) -> None:
        ARRAY.check("out", out)
        base, shape = self.dtype.base, self.shape + self.dtype.shape
        if out.shape != shape or not np.can_cast(base, out.dtype, "safe"):
            raise ParameterError(f"expected out of {base} and shape {shape}, got {out.dtype} and shape {out.shape}")
        if not out.flags.writeable:
            raise ParameterError("expected out to be writeable, got a read-only array")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("expected copy=True or None, got copy=False: reading from a file copies values")
        return np.asarray(self.read(), dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self._file.__reduce__(), self.name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the identity of the values for dask: the file as opened, and the name."""
        return (*self._file.identity, self.name)

    def __repr__(self) -> str:
        chunks = f" in chunks of {self.chunks}" if self.chunks else ""
        return printable(f"<tamis array {self.name} {self.shape} {self.dtype}{chunks} of {self._file.path}>")


class UnpackedArray(Array):
    """A packed array with its values in units of the variable, and missing ones as NaN."""

    def __init__(self, packed: Any, packing: meaning.Packing, dtype: np.dtype[Any]) -> None:
        super().__init__(packed._file, packed.name, packed.shape, dtype, packed.chunks)
        self.attrs: dict[str, Any] = packed.attrs
        self._packed = packed
        self._packing = packing
        self._missing = meaning.missing_values(self.attrs, packed.dtype.newbyteorder("="))

    def __getitem__(self, key: Any) -> Any:
        codes = np.asarray(self._packed[key])
        kind = self.dtype.type
        values = codes.astype(kind) * kind(self._packing.scale) + kind(self._packing.offset)
        if not self._missing:
            return values
        is_missing = np.zeros(codes.shape, bool)
        for value in self._missing:
            is_missing |= codes == value
        return np.where(is_missing, kind(np.nan), values)[()]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (*super().__dask_tokenize__(), "unpacked")


def unpacked(array: Any) -> Any:
    """Return an array with its values in units of the variable; the array itself if it is not packed."""
    attributes, dtype = array.attrs, array.dtype
    packing, kind = meaning.packing_of(attributes), meaning.unpacked_type(attributes, dtype)
    return array if packing is None or kind is None else UnpackedArray(array, packing, kind)


def reopened(file: tuple[Any, tuple[Any, ...]], name: str) -> Any:
    """Return an array or a group from the reduced form of its file, and its path."""
    return file[0](*file[1])[name]
