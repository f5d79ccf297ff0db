"""A file and its groups, whose datasets are arrays that are read in parallel."""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Self

import h5py

from tamis.chunks.cache import ChunkCache
from tamis.chunks.chunk_reader import ChunkReader
from tamis.chunks.threads import checked_threads
from tamis.errors import FileError, MissingFilterError
from tamis.formatting import printable
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.source_file import open_source
from tamis.hdf5.opened_array import Array
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.groups import check_links


class NotFoundError(FileError, KeyError):
    """A name that a file does not have; also a KeyError, as of any mapping."""


class Group(Mapping[str, Any]):
    """A group of a file: its datasets by their paths, those of groups in it too.

    Parameters
    ----------
    file
        That it is in.
    group
        The same group, as h5py has it.
    name
        The path that led to it.

    Attributes
    ----------
    name
        The path that led to it.
    """

    def __init__(self, file: File, group: h5py.Group, name: str) -> None:
        self._parent, self._group, self.name = file, group, name

    @property
    def _file(self) -> File:
        return self._parent

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        self._file.check_open()
        with reading(self._file.path, dataset=self.name):
            return dict(self._group.attrs)

    def __getitem__(self, name: str) -> Any:
        """Return the `Array` of a dataset, or the `Group` of a group, by its path from here or from the root."""
        return self._file.item(self._group, self.name, name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        """Return the path of each dataset from here, once, in the order of paths, whatever links lead to it."""
        return iter(self._file.paths(self._group))

    def __len__(self) -> int:
        return len(self._file.paths(self._group))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._file.__reduce__(), self.name)

    def __repr__(self) -> str:
        return printable(f"<tamis group {self.name} of {self._file.path}>")


class File(Group):
    """An HDF5 or netCDF-4 file, open for reading. Made by `tamis.open`; can be pickled, closes with a ``with``.

    Parameters
    ----------
    path
        Of the file.
    threads
        Threads that decode.
    restore
        Whether missing values are put back that a companion of their dataset has.

    Attributes
    ----------
    path
        Absolute.
    threads, restore
        As given.
    cache
        Decoded chunks that are kept, of all arrays together.
    identity
        What tells the file from others: its path, size, and the time of its last change.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int | None = None, restore: bool = True) -> None:
        self._asked_threads, self.threads, self.restore = threads, checked_threads(threads), restore
        self.path = os.path.abspath(os.fsdecode(path))
        self._h5py: h5py.File | None = open_source(self.path)
        status = os.stat(self.path)
        self.identity = (self.path, status.st_size, status.st_mtime_ns)
        self.cache = ChunkCache()
        self._sources: dict[str, ChunkReader] = {}
        self._lock = threading.Lock()
        self._group, self.name = self._h5py, "/"

    @property
    def _file(self) -> File:
        return self  # not kept: a file that refers to itself would not close with its last user

    def close(self) -> None:
        """Close the file; its arrays cannot be read any more. What other threads are reading ends first."""
        with self._lock:
            opened, self._h5py = self._h5py, None
            for each in self._sources.values():
                each.close()
            self._sources.clear()
        self.cache.clear()
        if opened is not None:
            opened.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._h5py is None

    def check_open(self) -> None:
        """Raise FileError if the file is closed."""
        if self.closed:
            raise FileError(f"{self.path}: expected an open file, got one that was closed").at(path=self.path)

    def item(self, group: h5py.Group, base: str, name: str) -> Array | Group:
        """Return what a path leads to from a group that has the path `base`.

        Raises
        ------
        NotFoundError
            If there is neither a dataset nor a group.
        FileError
            If it cannot be opened, or has values of a type that NumPy has not.
        """
        self.check_open()
        if not isinstance(name, str):
            raise TypeError(f"expected a name or path as text, got {name!r}")
        if "\0" in name:  # HDF5 would end the name there
            raise NotFoundError(f"{self.path}: expected a dataset or group at {name!r}, found none").at(
                path=self.path, dataset=name
            )
        # An external link may have led here: only the path from this file's root leads here again.
        path = "/" + "/".join(part for part in posixpath.join(base, name).split("/") if part not in ("", "."))
        if path == "/":
            return self
        with reading(self.path, dataset=path):
            found = group.get(_key(name)) if not name.startswith("/") else self._group.get(_key(name))
        if isinstance(found, h5py.Group):
            return Group(self, found, path)
        if not isinstance(found, h5py.Dataset):
            what = "none" if found is None else "a named type"
            text = f"{self.path}: expected a dataset or group at {name!r}, found {what}"
            raise NotFoundError(text).at(path=self.path, dataset=name)
        with reading(self.path, dataset=path):
            try:
                return Array(self, found, path)
            except (TypeError, ValueError) as error:
                raise FileError(f"{self.path}: {path}: expected values of a type that NumPy has: {error}") from error

    def source(self, name: str, array: Hdf5Array) -> ChunkReader:
        """Return the chunks of a dataset by its path; their index is read once."""
        with self._lock:
            self.check_open()
            if name not in self._sources:
                with reading(self.path, dataset=name):
                    self._sources[name] = array.open_chunks()
            return self._sources[name]

    def paths(self, group: h5py.Group) -> list[str]:
        """List the paths of the datasets in a group, and in groups in it, each dataset once."""
        self.check_open()
        found: list[str] = []

        def visit(name: str | bytes, each: h5py.HLObject) -> None:
            if isinstance(each, h5py.Group):
                check_links(each)
            elif isinstance(each, h5py.Dataset):
                found.append(_text(name))

        try:
            with reading(self.path):
                check_links(group)
                group.visititems(visit)
        except MissingFilterError as error:
            raise FileError(f"{self.path}: {error}").at(path=self.path) from error
        return sorted(found)

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self._asked_threads, self.restore)

    def __repr__(self) -> str:
        return printable(f"<tamis file {self.path}{' (closed)' * self.closed}>")


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _key(name: str) -> str | bytes:
    """Give a name in the form in which h5py finds it."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape")


def _reopened(file: tuple[Any, tuple[Any, ...]], name: str) -> Any:
    return file[0](*file[1])[name]


def open(  # noqa: A001 - as xarray and gzip name it
    path: str | os.PathLike[str], threads: int | None = None, *, restore: bool = True
) -> File:
    """Open an HDF5 or netCDF-4 file whose arrays are read in parallel, without a plugin.

    Parameters
    ----------
    path
        Of the file.
    threads
        Threads that decode the chunks of a selection; as many as the process may use if None.
    restore
        Put missing values back where a dataset has a companion (``tamis repack --missing companion``). False gives the
        values as they are stored, made up where some are missing, as other readers see them.

    Returns
    -------
    File
        A mapping from the paths of datasets to arrays; ``file["group"]`` gives a group by its path. Use it in a
        ``with``, or close it.

    Raises
    ------
    FileError
        If there is no such file, or it is of another kind.
    ParameterError
        If `threads` is not 1 or more.

    Examples
    --------
    ::

        with tamis.open("out.nc") as file:
            ts = file["TS"]
            first = ts[0]
    """
    return File(path, threads, restore)
