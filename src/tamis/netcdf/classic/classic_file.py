"""A netCDF classic file as `tamis.open` returns it; its variables are arrays that threads read without a lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tamis.chunks.boxes import several_chunks
from tamis.chunks.grid import Region
from tamis.chunks.selection import Piece, select
from tamis.chunks.threads import checked_threads, ordered_map
from tamis.errors import FileError, ParameterError, located
from tamis.formatting import printable
from tamis.netcdf.classic.classic_array import ClassicArray
from tamis.netcdf.classic.classic_store import ClassicStore
from tamis.store.array import NotFoundError

_PIECE_NBYTES = 4 << 20
"""Bytes of a variable that a thread reads at once."""


class ClassicFile(Mapping[str, Any]):
    """A netCDF classic file, open for reading: a mapping from names of variables to arrays.

    Parameters
    ----------
    path
        Path of the file.
    threads
        Number of threads that read.

    Attributes
    ----------
    path
        Absolute path.
    name
        ``/``: the file is its only group.
    threads
        As given.
    identity
        Path, size and time of the last change, which identify the file.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int | None = None) -> None:
        self._asked_threads, self.threads = threads, checked_threads(threads)
        self.path, self.name = os.path.abspath(os.fsdecode(path)), "/"
        self._store: ClassicStore | None = ClassicStore(self.path)
        status = os.stat(self.path)
        self.identity = (self.path, status.st_size, status.st_mtime_ns)

    @property
    def store(self) -> ClassicStore:
        """The file as a store.

        Raises
        ------
        FileError
            If the file is closed.
        """
        if self._store is None:
            raise FileError(f"{self.path}: expected an open file, got one that was closed").at(path=self.path)
        return self._store

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the file."""
        return dict(self.store.classic_header.attributes)

    def data_model(self, phony_dims: str = "sort") -> ClassicStore:
        """Return the file in netCDF's data model: variables with named dimensions."""
        return self.store

    def __getitem__(self, name: str) -> Any:
        """Return the array of a variable, by its name or path."""
        if not isinstance(name, str):
            raise TypeError(f"expected a name or path as text, got {name!r}")
        path = f"/{name.strip('/')}"
        if path == "/":
            return self
        if not self.store.first_path(path):
            text = f"{self.path}: expected a variable named {name!r}, found {', '.join(self) or 'none'}"
            raise NotFoundError(text).at(path=self.path, dataset=name)
        return ClassicFileArray(self, path)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator of names, in the order of the file."""
        return iter([path[1:] for path in self.store.arrays])

    def __len__(self) -> int:
        return len(self.store.arrays)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def closed(self) -> bool:
        """True if `close` was called."""
        return self._store is None

    def close(self) -> None:
        """Close the file after running reads; its arrays cannot be read afterwards."""
        self._store = None

    def __enter__(self) -> Self:
        _ = self.store
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self._asked_threads)

    def __repr__(self) -> str:
        return printable(f"<tamis file {self.path}{' (closed)' * self.closed}>")


class ClassicFileArray:
    """A variable of a file, sliced like a NumPy array; values are in native byte order, characters are ``S1``.

    Parameters
    ----------
    file
        The file, which must stay open.
    name
        Path of the variable.

    Attributes
    ----------
    name
        Path of the variable.
    shape, dtype
        Shape and type of the values.
    chunks
        None: there are no chunks.
    """

    def __init__(self, file: ClassicFile, name: str) -> None:
        array = file.store.array(name)
        self.name, self.shape, self.dtype, self._file = name, array.shape, array.numpy_type, file
        self.chunks: tuple[int, ...] | None = None

    @property
    def _array(self) -> ClassicArray:
        return self._file.store.array(self.name)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self._array.nbytes

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the variable."""
        return dict(self._array.attributes)

    def prepare(self) -> bool:
        """Return True: no library and no lock is needed to read."""
        return True

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read all values; see `tamis.hdf5.opened_array.Array.read`.

        Raises
        ------
        ParameterError
            If `out` does not fit.
        FileError
            If the values cannot be read.
        """
        if out is None:
            return np.asarray(self[()])
        if out.shape != self.shape or not np.can_cast(self.dtype, out.dtype, "safe") or not out.flags.writeable:
            raise ParameterError(
                f"expected out to be writeable, of {self.dtype} and {self.shape}, got {out.dtype} and {out.shape}"
            )
        out[...] = self[()]
        return out

    def __getitem__(self, key: Any) -> Any:
        with located(path=self._file.path, dataset=self.name), closing(self._array.open_reader()) as reader:
            selection = select(key, self.shape)
            out = np.empty(selection.full_shape, reader.dtype)

            def place(piece: Piece) -> None:
                part, inside = _bounding(piece)
                if all(isinstance(index, slice) and index.step in (None, 1) for index in inside):
                    reader.read(part, out[piece.outside])
                else:
                    out[piece.outside] = reader.read(part)[inside]

            if not self.shape:
                out = reader.read(())
            elif out.size:
                with closing(ordered_map(place, selection.pieces(self._box), self._file.threads)) as placed:
                    for _ in placed:
                        pass
        values = out.view(self.dtype) if out.dtype.kind == "V" else out
        return values.reshape(selection.shape) if selection.shape else values.reshape(())[()]

    @property
    def _box(self) -> tuple[int, ...]:
        """Shape of the parts that a thread reads at once."""
        return several_chunks(self.shape, (1,) * self.ndim, _PIECE_NBYTES // self.dtype.itemsize)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("expected to be allowed to copy, got copy=False: values are read from a file")
        return np.asarray(self.read(), dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("expected an array with axes, got a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._file.__reduce__(), self.name)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return what identifies the values for dask: the file as it was opened, and the name."""
        return (*self._file.identity, self.name)

    def __repr__(self) -> str:
        return printable(f"<tamis array {self.name} {self.shape} {self.dtype} of {self._file.path}>")


def _reopened(file: tuple[Any, tuple[Any, ...]], name: str) -> Any:
    return file[0](*file[1])[name]


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
