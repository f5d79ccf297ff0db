"""A store as returned by `tamis.open`: groups and arrays by path. HDF5 files have their own classes."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.cache import ChunkCache
from tamis.arrays.gather import several_chunks
from tamis.arrays.selection import Piece, Points, Selection, select
from tamis.arrays.threads import checked_threads, ordered_map
from tamis.errors import FileError, located
from tamis.formatting import printable
from tamis.reading.sliced_array import SelectedChunks, SlicedArray, reopened
from tamis.stores.protocols import NotFoundError, Store, StoredArray

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.grid import Region
    from tamis.stores.data_model import DataModel

_PIECE_NBYTES = 4 << 20
"""Bytes of an array that a thread reads at once, if there are no chunks."""


class TypedArray(StoredArray, Protocol):
    """A stored array whose type NumPy has."""

    @property
    def numpy_type(self) -> np.dtype[Any]:
        """Type of the values in native byte order."""


class GroupedStore(Store, Protocol):
    """A store of such arrays."""

    def array(self, path: str) -> TypedArray:
        """Return the array at a path."""

    def group_attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of a group."""


class PathMapping(Mapping[str, Any]):
    """The base of groups of all formats: a mapping from paths to arrays and groups, equal only to itself."""

    name: str

    @property
    @abstractmethod
    def _file(self) -> Any:
        """The result of `tamis.open`."""

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self._file.__reduce__(), self.name)

    def __repr__(self) -> str:
        return printable(f"<tamis group {self.name} of {self._file.path}>")


class OpenedFile:
    """The result of `tamis.open` for all formats; it is closed once, with the sources of its chunks."""

    path: str
    cache: ChunkCache
    _opened: Any
    _sources: dict[str, ChunkReader]
    _lock: threading.Lock

    def close(self) -> None:
        """Close the file after running reads of other threads; its arrays cannot be read afterwards."""
        with self._lock:
            opened, self._opened = self._opened, None
            for source in self._sources.values():
                source.close()
            self._sources.clear()
        self.cache.clear()
        if opened is not None:
            opened.close()

    @property
    def closed(self) -> bool:
        """True if `close` was called."""
        return self._opened is None

    def check_open(self) -> None:
        """Raise FileError if the file is closed."""
        if self.closed:
            raise self._closed_error()

    def _closed_error(self) -> FileError:
        """Return the error of a file that is closed."""
        return FileError(f"{self.path}: expected an open file, got one that was closed").at(path=self.path)

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return printable(f"<tamis file {self.path}{' (closed)' * self.closed}>")


class OpenedGroup(PathMapping):
    """A group: a mapping from paths to arrays, including those of inner groups.

    Parameters
    ----------
    file
        The store that it belongs to.
    name
        Its path.
    """

    def __init__(self, file: OpenedStore, name: str) -> None:
        self._parent, self.name = file, name

    @property
    def _file(self) -> OpenedStore:
        return self._parent

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return dict(self._file.store.group_attributes(self.name))

    def __getitem__(self, name: str) -> Any:
        """Return the array or the group at a path from here or from the root."""
        if not isinstance(name, str):
            raise TypeError(f"expected a name or path as text, got {name!r}")
        file, store = self._file, self._file.store
        path = posixpath.normpath(posixpath.join(self.name, name)).replace("//", "/")
        if path == "/":
            return file
        if store.first_path(path):
            return OpenedArray(file, path)
        if path in file.group_paths:
            return OpenedGroup(file, path)
        text = f"{file.path}: expected an array or group at {name!r}, found {', '.join(self) or 'none'}"
        raise NotFoundError(text).at(path=file.path, dataset=name)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator of paths, relative to this group, in the order of the store."""
        start = self.name.rstrip("/") + "/"
        return iter([path.removeprefix(start) for path in self._file.store.arrays if path.startswith(start)])


class OpenedStore(OpenedFile, OpenedGroup):
    """A netCDF classic file or a Zarr store, open for reading; can be pickled and used in a ``with``.

    Parameters
    ----------
    opens
        Opens the store at a path.
    path
        Path of the file or folder.
    threads
        Number of threads that decode.
    restore
        Whether missing values in companions are restored.

    Attributes
    ----------
    path
        Absolute path.
    threads, restore
        As given.
    cache
        Cache of decoded chunks, shared by all arrays.
    identity
        Path, size and modification time of a file; for a folder, which does not record changes, the time of opening.
    """

    def __init__(
        self,
        opens: Callable[[str], GroupedStore],
        path: str | os.PathLike[str],
        threads: int | None = None,
        restore: bool = True,
    ) -> None:
        self._opens, self._asked_threads, self.restore = opens, threads, restore
        self.threads, self.name = checked_threads(threads), "/"
        self.path = os.path.abspath(os.fsdecode(path))
        self._opened: GroupedStore | None = opens(self.path)
        status, is_folder = os.stat(self.path), os.path.isdir(self.path)
        self.identity = (self.path, status.st_size, time.time_ns() if is_folder else status.st_mtime_ns)
        self.cache = ChunkCache()
        self._sources: dict[str, ChunkReader] = {}
        self._lock = threading.Lock()

    @property
    def _file(self) -> OpenedStore:
        return self

    @property
    def store(self) -> GroupedStore:
        """The store.

        Raises
        ------
        FileError
            If it is closed.
        """
        opened = self._opened
        if opened is None:
            raise self._closed_error()
        return opened

    @property
    def group_paths(self) -> list[str]:
        """Paths of all groups."""
        return self.data_model().group_paths()

    def data_model(self, phony_dims: str = "sort") -> DataModel:
        """Return the store in netCDF's data model: variables with named dimensions, in groups."""
        return self.store.model

    def source(self, name: str) -> ChunkReader:
        """Return the chunks of an array; its chunk index is read once."""
        with self._lock:
            if name not in self._sources:
                self._sources[name] = self.store.array(name).open_chunks()
            return self._sources[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._opens, self.path, self._asked_threads, self.restore)


class OpenedArray(SlicedArray):
    """An array of a store, sliced like a NumPy array. Values are in native byte order.

    Chunks are decoded in threads; arrays whose chunks tamis cannot decode are read by the library of their format.

    Parameters
    ----------
    file
        The store, which must stay open.
    name
        Path of the array.
    """

    _file: OpenedStore

    def __init__(self, file: OpenedStore, name: str) -> None:
        array = file.store.array(name)
        super().__init__(file, name, array.shape, array.numpy_type, array.chunk_shape)
        # Companions are restored by the array's own reader.
        self._by_chunks = array.can_read_chunks and not (file.restore and array.companion_flags is not None)

    @property
    def _array(self) -> TypedArray:
        return self._file.store.array(self.name)

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the array."""
        return dict(self._array.attributes)

    def prepare(self) -> bool:
        """Read the chunk index, and return True: selections are read without a lock."""
        if self._by_chunks:
            self._file.source(self.name)
        return True

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values; see `SlicedArray.read`."""
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
        is_bytes = self.dtype.kind not in "iufOT"
        return np.dtype(f"V{self.dtype.itemsize}") if is_bytes else self.dtype

    def _fill(self, out: NDArray[Any], selection: Selection | Points) -> None:
        """Read a selection into an array of its full shape."""
        with located(path=self._file.path, dataset=self.name):
            if self._by_chunks:
                SelectedChunks(self._file.source(self.name), self.name, self._file.cache).fill(
                    out, selection, self._file.threads
                )
            else:
                self._fill_by_reader(out, selection)

    def _fill_by_reader(self, out: NDArray[Any], selection: Selection | Points) -> None:
        with closing(self._array.open_reader()) as reader:

            def place(piece: Piece) -> None:
                part, inside = _bounding(piece)
                if all(isinstance(index, slice) and index.step in (None, 1) for index in inside):
                    reader.read(part, out[piece.outside])
                else:
                    out[piece.outside] = reader.read(part)[inside]

            if not self.shape:
                out[...] = reader.read(())
            elif out.size:
                with closing(ordered_map(place, selection.pieces(self._box), self._file.threads)) as placed:
                    for _ in placed:
                        pass

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
