"""Stores that list all their arrays, read by path: Zarr hierarchies and netCDF classic files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import several_chunks
from tamis.arrays.selection import Piece, Points, Selection, select
from tamis.arrays.threads import ordered_map
from tamis.errors import located
from tamis.lazy_property import lazy_property
from tamis.reading.array import Array, SelectedChunks
from tamis.remote.address import Address
from tamis.stores.protocols import NotFoundError, Store, StoredArray

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.reading.file import File
    from tamis.stores.data_model import DataModel

_PIECE_NBYTES = 4 << 20
"""Bytes of an array that a thread reads at once, if there are no chunks."""


class TypedArray(StoredArray, Protocol):
    """A stored array of a NumPy type."""

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """Type of the values in native byte order."""

    @property
    def public_attributes(self) -> Mapping[str, Any]:
        """Attributes as readers of the format have them."""

    @property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Chunk shape, known without looking at the filters; None if there are no chunks."""

    @property
    def can_look_up(self) -> bool:
        """True if some chunks can be opened without the whole chunk index."""


class GroupedStore(Store, Protocol):
    """A store of these arrays."""

    def array(self, path: str) -> TypedArray:
        """Return the array at a path."""

    def public_group_attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of a group as readers of the format have them."""


class ListedReader:
    """A store for `tamis.open`; see `tamis.reading.file.Reader`."""

    def __init__(self, store: GroupedStore) -> None:
        self._store = store

    def array(self, file: File, path: str) -> Array | None:
        """Return the array at a path; None for a group."""
        path = posixpath.normpath(path)
        if self._store.first_path(path):
            array = self._store.array(path)
            array.check_readable()
            return ListedArray(file, path, array)
        if path not in self._store.model.group_paths():
            raise NotFoundError(", ".join(self.array_paths(posixpath.dirname(path))) or "none")
        return None

    def small_values(self, path: str) -> None:
        """Return None: reading at once saves nothing."""

    def array_paths(self, group: str) -> list[str]:
        """Return the paths of the arrays in a group and its inner groups, relative to it, in the order of the store."""
        start = group.rstrip("/") + "/"
        return [path.removeprefix(start) for path in self._store.arrays if path.startswith(start)]

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""
        return dict(self._store.public_group_attributes(path))

    def data_model(self, phony_dims: str, *, restore: bool) -> DataModel:
        """Return the store in netCDF's data model."""
        return self._store.model

    def close(self) -> None:
        """Close the store."""
        self._store.close()


class ListedArray(Array):
    """An array of a store, sliced like a NumPy array. Values are in native byte order.

    Chunks are decoded in threads; arrays whose chunks tamis cannot decode are read by the library of their format.

    Parameters
    ----------
    file
        The file, which must stay open.
    name
        Path of the array.
    array
        The array in its store.
    """

    def __init__(self, file: File, name: str, array: TypedArray) -> None:
        super().__init__(file, name, array.shape, array.numpy_type, array.chunk_shape)
        self._array = array
        # Companions are restored by the array's own reader.
        self._is_restored = file.restore and array.companion_flags is not None

    @lazy_property
    def _by_chunks(self) -> bool:
        """Whether tamis decodes the chunks itself, which only matters where values are read."""
        return self._array.can_read_chunks and not self._is_restored

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the array."""
        self._file.check_open()
        return dict(self._array.public_attributes)

    def prepare(self) -> bool:
        """Read the chunk index and return True: selections need no lock."""
        if self._by_chunks and not self._array.can_look_up:
            self._file.source(self.name, self._array.open_chunks)
        return True

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values; see `Array.read`."""
        if out is None:
            return super().read()
        self._check_out(out)
        if self.dtype.kind not in "iuf" or out.dtype.hasobject:
            out[...] = self[()]
        else:
            self._fill(out, select((), self.shape))
        return out

    def __getitem__(self, key: Any) -> Any:
        selection = select(key, self.shape)
        out = np.empty(selection.full_shape, self._room_type)
        self._fill(out, selection)
        values = out.view(self.dtype) if out.dtype.kind == "V" else out
        return values.reshape(selection.shape) if selection.shape else values.reshape(())[()]

    @property
    def _room_type(self) -> np.dtype[Any]:
        """Type in which values are read: numbers and objects unchanged, others as bytes."""
        is_bytes = self.dtype.kind not in "iufOTU"
        return np.dtype(f"V{self.dtype.itemsize}") if is_bytes else self.dtype

    def _fill(self, out: NDArray[Any], selection: Selection | Points) -> None:
        """Read a selection into an array of its full shape."""
        self._file.check_open()
        with located(path=self._file.path, dataset=self.name):
            chunks = None
            if isinstance(selection, Selection) and not self._is_restored:
                chunks = self._array.open_few(selection)
            if chunks is None and self._by_chunks:
                chunks = self._file.source(self.name, self._array.open_chunks)
            if chunks is not None:
                SelectedChunks(chunks, self.name, self._file.cache).fill(out, selection, self._file.threads)
            else:
                self._fill_by_reader(out, selection)

    def _fill_by_reader(self, out: NDArray[Any], selection: Selection | Points) -> None:
        """Read a selection as `_fill` does, by the array's own reader."""
        with closing(self._array.open_reader()) as reader:

            def place(piece: Piece) -> None:
                part, inside = _bounding(piece)
                if all(isinstance(index, slice) and index.step in (None, 1) for index in inside):
                    reader.read(part, out[piece.outside])
                else:
                    out[piece.outside] = reader.read(part)[inside]

            if not self.shape:
                out[...] = reader.read(())
                return
            if not out.size:
                return
            run = self._remote_run(selection)
            if run is not None:
                reader.read(run, out)
                return
            with closing(ordered_map(place, selection.pieces(self._box), self._file.threads)) as placed:
                for _ in placed:
                    pass

    def _remote_run(self, selection: Selection | Points) -> Region | None:
        """Return the region of a selection, if its parts are best asked for at once; None otherwise."""
        if self.chunks is not None or not isinstance(self._file.path, Address):
            return None
        return selection.region if isinstance(selection, Selection) else None

    @property
    def _box(self) -> tuple[int, ...]:
        """Shape of the parts that a thread reads at once."""
        return several_chunks(self.shape, self.chunks or (1,) * self.ndim, _PIECE_NBYTES // max(1, self.dtype.itemsize))


def _bounding(piece: Piece) -> tuple[Region, tuple[Any, ...]]:
    """Return the smallest part of the array that a piece needs, and the index of the piece in it."""
    part, inside = [], []
    for index, origin in zip(piece.inside, piece.origin, strict=True):
        if isinstance(index, slice):
            last = range(index.start, index.stop, index.step or 1)[-1]
            part.append(slice(origin + index.start, origin + last + 1))
            inside.append(slice(0, last + 1 - index.start, index.step))
        else:
            first = int(index.min())
            part.append(slice(origin + first, origin + int(index.max()) + 1))
            inside.append(index - first)
    return tuple(part), tuple(inside)
