"""What `tamis.open` returns, whatever the format: a file or folder whose groups and arrays are found by path."""

from __future__ import annotations

import os
import posixpath
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, Self

from numpy.typing import NDArray

from tamis.arrays.cache import ChunkCache
from tamis.arrays.threads import checked_threads
from tamis.errors import FileError
from tamis.forks import begin_in_each_process
from tamis.formatting import printable, shape_text
from tamis.library_lock import unless_held
from tamis.reading.array import Array, reopened, unpacked
from tamis.remote.address import Address, absolute
from tamis.stores.protocols import NotFoundError

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.stores.data_model import DataModel


_MOST_ROWS = 100
"""Arrays that a notebook lists."""


class Reader(Protocol):
    """An open file or folder of one format, by absolute paths."""

    def array(self, file: File, path: str) -> Array | None:
        """Return the array at a path; None for a group.

        Raises
        ------
        NotFoundError
            If there is neither an array nor a group; its message ends with what is there.
        """

    def small_values(self, path: str) -> NDArray[Any] | None:
        """Return all values of a small array of numbers, if they can be read at once; None for others."""

    def array_paths(self, group: str) -> list[str]:
        """Return the paths of the arrays in a group and its inner groups, relative to the group."""

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""

    def data_model(self, phony_dims: str, *, restore: bool) -> DataModel:
        """Return everything in netCDF's data model; see `File.data_model`."""

    def close(self) -> None:
        """Close it."""


class Group(Mapping[str, Any]):
    """A group: a mapping from paths to arrays, including those of inner groups. It is equal only to itself.

    Parameters
    ----------
    file
        The file that it belongs to.
    name
        Its path.
    """

    def __init__(self, file: File, name: str) -> None:
        self._parent = file
        self.name = name

    @property
    def _file(self) -> File:
        return self._parent

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the group."""
        return self._file.reader.group_attributes(self.name)

    def __getitem__(self, name: str) -> Any:
        """Return the `Array` or the `Group` at a path, from here or from the root.

        Raises
        ------
        NotFoundError
            If there is neither.
        FileError
            If it cannot be opened, or NumPy does not have the type of its values.
        """
        if not isinstance(name, str):
            raise TypeError(f"expected a name or path as text, got {name!r}")
        file = self._file
        parts = posixpath.join(self.name, name).split("/")
        path = "/" + "/".join(part for part in parts if part not in ("", "."))
        if path == "/":
            return file
        try:
            array = file.reader.array(file, path)
        except NotFoundError as error:
            text = f"{file.path}: expected an array or group at {name!r}, found {error.args[0]}"
            raise NotFoundError(text).at(path=file.path, dataset=name) from None
        if array is None:
            return Group(file, path)
        return unpacked(array) if file.unpack else array

    def __iter__(self) -> Iterator[str]:
        """Return an iterator of paths, relative to this group: each array once."""
        return iter(self._file.reader.array_paths(self.name))

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

    def _repr_html_(self) -> str:
        if self._file.closed:
            return escape(repr(self))
        rows = ["<tr><th>array</th><th>shape</th><th>type</th><th>chunks</th></tr>"]
        names = list(self)
        for name in names[:_MOST_ROWS]:
            array = self[name]
            chunks = shape_text(array.chunks) if array.chunks else ""
            cells = (printable(name), shape_text(array.shape), str(array.dtype), chunks)
            rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        note = f"<p>and {len(names) - _MOST_ROWS} more</p>" if len(names) > _MOST_ROWS else ""
        return f"<details open><summary>{escape(repr(self))}</summary><table>{''.join(rows)}</table>{note}</details>"


class File(Group):
    """An HDF5 or netCDF file, or a Zarr store, open for reading; it can be pickled and used in a ``with``.

    Parameters
    ----------
    opens
        Opens a path.
    path
        Path of the file or folder.
    threads
        Number of threads that decode.
    restore
        Whether missing values in missing-value masks are restored.
    unpack
        Whether packed arrays give values in units of the variable.

    Attributes
    ----------
    path
        Absolute path.
    threads, restore, unpack
        As given.
    cache
        Cache of decoded chunks, shared by all arrays.
    identity
        Path, size and modification time of a file; for a folder, which does not record changes, the time of opening.
    """

    def __init__(
        self,
        opens: Callable[[str], Reader],
        path: str | os.PathLike[str],
        threads: int | None = None,
        restore: bool = True,
        unpack: bool = False,
    ) -> None:
        self._opens = opens
        self._asked_threads = threads
        self.restore = restore
        self.unpack = unpack
        self.threads = checked_threads(threads)
        self.name = "/"
        self.path = absolute(path)
        self._opened: Reader | None = opens(self.path)
        self.identity = self._identity()
        self.cache = ChunkCache()
        self._sources: dict[str, ChunkReader] = {}
        begin_in_each_process(self._make_lock)

    def _make_lock(self) -> None:
        self._opening = threading.Lock()

    @property
    def _file(self) -> File:
        return self  # not an attribute: a file that refers to itself would not be closed with its last user

    @property
    def reader(self) -> Reader:
        """What reads the file.

        Raises
        ------
        FileError
            If the file is closed.
        """
        opened = self._opened
        if opened is None:
            raise self._closed_error()
        return opened

    def _identity(self) -> tuple[str, int, int]:
        if isinstance(self.path, Address) or os.path.isdir(self.path):
            return self.path, 0, time.time_ns()
        status = os.stat(self.path)
        return self.path, status.st_size, status.st_mtime_ns

    def data_model(self, phony_dims: str = "sort") -> DataModel:
        """Return the file in netCDF's data model: variables with named dimensions, in groups.

        Parameters
        ----------
        phony_dims
            Numbering of unnamed dimensions: ``"sort"`` as in netCDF-C, ``"access"`` from 0 in each group.
        """
        return self.reader.data_model(phony_dims, restore=self.restore)

    def source(self, name: str, open_chunks: Callable[[], ChunkReader]) -> ChunkReader:
        """Return the chunks of an array, which are opened once; by a thread with HDF5's lock perhaps once more."""
        source = self._sources.get(name)
        if source is None:
            with unless_held(self._opening):
                source = self._sources.get(name)
                if source is None:
                    self.check_open()
                    source = self._sources.setdefault(name, open_chunks())
                    if self.closed:  # meanwhile
                        source.close()
        return source

    def close(self) -> None:
        """Close the file after running reads of other threads; its arrays cannot be read afterwards."""
        with unless_held(self._opening):
            opened, self._opened = self._opened, None
            for name in [*self._sources]:
                if (source := self._sources.pop(name, None)) is not None:
                    source.close()
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
        return FileError(f"{self.path}: the file is closed: open it again").at(path=self.path)

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._opens, self.path, self._asked_threads, self.restore, self.unpack)

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return printable(f"<tamis file {self.path}{state}>")
