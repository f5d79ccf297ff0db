"""Files and groups for reading; their datasets are arrays that are read in parallel."""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import h5py

from tamis.arrays.cache import ChunkCache
from tamis.arrays.threads import checked_threads
from tamis.errors import FileError, MissingFilterError
from tamis.formats.hdf5.lib.attributes import all_attributes
from tamis.formats.hdf5.lib.calls import reading
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths, stored_path
from tamis.formats.hdf5.lib.source_file import open_source
from tamis.formats.hdf5.model.hdf5_model import Hdf5Model
from tamis.formats.hdf5.opened_array import Array
from tamis.formats.hdf5.tree.groups import check_links
from tamis.reading.opened_store import OpenedFile, PathMapping
from tamis.stores.protocols import NotFoundError

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.formats.hdf5.stored_array import Hdf5Array


class Group(PathMapping):
    """A group of a file: a mapping from paths to datasets, including those of inner groups.

    Parameters
    ----------
    file
        The file.
    group
        The h5py group.
    name
        The path by which it was opened.
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
            return all_attributes(self._group)

    def __getitem__(self, name: str) -> Any:
        """Return the `Array` of a dataset, or the `Group` of a group, by its path from here or from the root."""
        return self._file.item(self._group, self.name, name)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator of paths, relative to this group: each dataset once, in the order of paths."""
        return iter(self._file.paths(self._group))


class File(OpenedFile, Group):
    """An HDF5 or netCDF-4 file, open for reading. Returned by `tamis.open`; can be pickled and used in a ``with``.

    Parameters
    ----------
    path
        Path of the file.
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
        Path, size and time of the last change, which identify the file.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int | None = None, restore: bool = True) -> None:
        self._asked_threads, self.threads, self.restore = threads, checked_threads(threads), restore
        self.path = os.path.abspath(os.fsdecode(path))
        self._opened: h5py.File | None = open_source(self.path)
        status = os.stat(self.path)
        self.identity = (self.path, status.st_size, status.st_mtime_ns)
        self.cache = ChunkCache()
        self._sources: dict[str, ChunkReader] = {}
        self._lock = threading.Lock()
        self._group, self.name = self._opened, "/"

    @property
    def _file(self) -> File:
        return self  # not an attribute: a file that refers to itself would not be closed with its last user

    def item(self, group: h5py.Group, base: str, name: str) -> Array | Group:
        """Return the dataset or group at a path, relative to a group with the path `base`.

        Raises
        ------
        NotFoundError
            If there is neither a dataset nor a group.
        FileError
            If it cannot be opened, or NumPy does not have the type of its values.
        """
        self.check_open()
        if not isinstance(name, str):
            raise TypeError(f"expected a name or path as text, got {name!r}")
        if "\0" in name:  # HDF5 would end the name there
            raise NotFoundError(f"{self.path}: expected a dataset or group at {name!r}, found none").at(
                path=self.path, dataset=name
            )
        # The group may be in another file, behind an external link: only the path from this file's root is valid again.
        path = "/" + "/".join(part for part in posixpath.join(base, name).split("/") if part not in ("", "."))
        if path == "/":
            return self
        with reading(self.path, dataset=path):
            owner = self._group if name.startswith("/") else group
            target = owner.get(_key(stored_path(owner, name)))
        if isinstance(target, h5py.Group):
            return Group(self, target, path)
        if not isinstance(target, h5py.Dataset):
            kind = "none" if target is None else "a named type"
            text = f"{self.path}: expected a dataset or group at {name!r}, found {kind}"
            raise NotFoundError(text).at(path=self.path, dataset=name)
        with reading(self.path, dataset=path):
            try:
                return Array(self, target, path)
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(f"{self.path}: {path}: expected values of a type that NumPy has: {error}") from error

    def data_model(self, phony_dims: str = "sort") -> Hdf5Model:
        """Return the file in netCDF's data model: variables with named dimensions, in groups.

        Parameters
        ----------
        phony_dims
            Numbering of unnamed dimensions: ``"sort"`` as in netCDF-C, ``"access"`` from 0 in each group.
        """
        self.check_open()
        return Hdf5Model(self._group, phony_dims, restore=self.restore, follow=True)

    def source(self, name: str, array: Hdf5Array) -> ChunkReader:
        """Return the chunks of a dataset by its path; the chunk index is read once."""
        with self._lock:
            self.check_open()
            if name not in self._sources:
                with reading(self.path, dataset=name):
                    self._sources[name] = array.open_chunks()
            return self._sources[name]

    def paths(self, group: h5py.Group) -> list[str]:
        """Return the paths of the datasets in a group and its inner groups, each dataset once."""
        self.check_open()
        paths: list[str] = []

        def visit(name: str | bytes, item: h5py.HLObject) -> None:
            if isinstance(item, h5py.Group):
                check_links(item)
            elif isinstance(item, h5py.Dataset):
                paths.append(_text(name))

        try:
            with reading(self.path):
                check_links(group)
                group.visititems(visit)
        except MissingFilterError as error:
            raise FileError(f"{self.path}: {error}").at(path=self.path) from error
        names = renamed_paths(group, paths)
        return sorted(names.get(path, path) for path in paths)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self._asked_threads, self.restore)


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _key(name: str) -> str | bytes:
    """Return a name in the form that h5py finds."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape")
