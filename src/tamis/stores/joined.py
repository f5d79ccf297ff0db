"""Several files as one store: arrays with a dimension are joined along it, in the order of its coordinate."""

from __future__ import annotations

import hashlib
import posixpath
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.arrays.gather import whole
from tamis.arrays.grid import shape_of
from tamis.arrays.reader import put
from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType
from tamis.lazy_property import lazy_property
from tamis.pipeline import Pipeline
from tamis.stores.arrays import ListedStore, UnchunkedArray
from tamis.stores.facts import Storage
from tamis.stores.header import Header, header_of

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.grid import Region
    from tamis.arrays.reader import ArrayReader
    from tamis.stores.data_model import NamedArray, NamedGroup
    from tamis.stores.protocols import Store, StoredArray

Opens = Callable[[str], "Store"]
"""A function that opens the store at a path."""

_MOST_OPEN = 8
"""Files that stay open."""

_IGNORED = ("_ARRAY_DIMENSIONS", "actual_range")
"""Attributes of arrays that may differ between files."""


class _Files:
    """The files; those that were read last stay open."""

    def __init__(self, paths: Sequence[str], opens: Opens) -> None:
        self.paths = paths
        self._opens = opens
        self._open: OrderedDict[int, _JoinedFile] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def reading(self, number: int, path: str) -> Iterator[ArrayReader]:
        """Yield the reader of an array in a file, which stays open meanwhile."""
        with self._lock:
            file = self._open.get(number)
            if file is None:
                file = self._open[number] = _JoinedFile(self._opens(self.paths[number]))
            self._open.move_to_end(number)
            if path not in file.readers:
                file.readers[path] = file.store.array(path).as_values().open_reader()
            file.users += 1
        try:
            yield file.readers[path]
        finally:
            with self._lock:
                file.users -= 1
                self._close_some(_MOST_OPEN)

    def _close_some(self, most: int) -> None:
        """Close the files that nobody reads and that were read longest ago, until at most so many are open."""
        unused = [number for number, file in self._open.items() if not file.users]
        for number in unused[: max(len(self._open) - most, 0)]:
            self._open.pop(number).close()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._close_some(0)


@dataclass(slots=True)
class _JoinedFile:
    """A file that is open."""

    store: Store
    readers: dict[str, ArrayReader] = field(default_factory=dict)  # Of its arrays, by path
    users: int = 0  # How many threads read from it

    def close(self) -> None:
        for reader in self.readers.values():
            reader.close()
        self.store.close()


class JoinedArray(UnchunkedArray):
    """An array of the first file, continued by those of the other files along an axis."""

    can_read_independently = False

    def __init__(self, first: StoredArray, axis: int, ends: Sequence[int], files: _Files, *, grows: bool) -> None:
        self._first = first
        self._axis = axis
        self._ends = ends
        self._files = files
        self.path = first.path
        self.label = first.label
        self.address = first.address
        self.attributes = first.attributes
        self.shape = (*first.shape[:axis], ends[-1], *first.shape[axis + 1 :])
        self.maxshape = tuple(None if grows and axis == own else extent for own, extent in enumerate(self.shape))
        # Values of varying length are not counted: they are elsewhere in each file.
        self.type = first.type if first.type.dtype is not None else first.type._replace(nbytes=0)
        chunk = ChunkType(first.type.dtype or np.dtype("V1"), ())
        self.storage = Storage("several files", chunk, codec_marks=first.storage.codec_marks)
        self.fill = first.fill

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Return a reader of all files."""
        return cast("ArrayReader", _JoinedReader(self._first, self.shape, self._axis, self._ends, self._files))

    def open_chunks(self) -> ChunkReader:
        """Raise FileError: chunks are in several files."""
        raise FileError(f"{self.label}: expected chunks of one file, found those of several")


class _JoinedReader:
    """The values of several files; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(
        self, first: StoredArray, shape: tuple[int, ...], axis: int, ends: Sequence[int], files: _Files
    ) -> None:
        reader = first.open_reader()
        self.shape = shape
        self.dtype = reader.dtype
        self.chunk_shape = reader.chunk_shape
        reader.close()
        self._path = first.path
        self._axis = axis
        self._ends = ends
        self._files = files

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part, from each file what it has of it."""
        span = part[self._axis]
        pieces = []
        for number, (begin, end) in enumerate(pairwise((0, *self._ends))):
            start, stop = max(span.start, begin), min(span.stop, end)
            if start < stop:
                own = slice(start - begin, stop - begin)
                with self._files.reading(number, self._path) as reader:
                    pieces.append(reader.read((*part[: self._axis], own, *part[self._axis + 1 :])))
        if not pieces:
            return put(np.empty(shape_of(part), self.dtype), out)
        return put(pieces[0] if len(pieces) == 1 else np.concatenate(pieces, self._axis), out)

    def close(self) -> None:
        """Do nothing: the files close with their store."""


class JoinedStore(ListedStore["StoredArray"]):
    """Files whose arrays are joined along a dimension; all else must be the same in all of them.

    Raises
    ------
    ParameterError
        If the files do not fit together: names which, and in what.
    """

    reader_words = "the formats of the files"

    def __init__(self, paths: Sequence[str], dimension: str, opens: Opens) -> None:
        self.dimension = dimension
        contents = [_content_of(opens, path, dimension) for path in paths]
        for other in contents[1:]:
            other.check_like(contents[0])
        self.is_sorted = all(content.coordinate is not None for content in contents)
        contents = _in_order(contents, dimension)
        self.files = _Files([content.path for content in contents], opens)
        self._first = opens(contents[0].path)
        self.path = contents[0].path
        self.ends = [*accumulate(content.extent for content in contents)]
        self._nbytes = sum(content.nbytes for content in contents)
        # Of each array in all files, after filters; what a joined array has itself is its values
        self.stored_nbytes = sum((Counter(content.stored_nbytes) for content in contents), Counter[str]())
        self.kind = self._first.model.kind
        self.is_loose = self._first.model.is_loose
        self._arrays = {path: self._array(path, contents[0]) for path in contents[0].variables}

    def _array(self, path: str, content: _Content) -> StoredArray:
        array = self._first.array(path).as_values()
        variable = content.variables[path]
        if self.dimension not in variable.dimensions:
            return array
        axis = variable.dimensions.index(self.dimension)
        return cast("StoredArray", JoinedArray(array, axis, self.ends, self.files, grows=content.is_unlimited))

    def close(self) -> None:
        """Close all files."""
        self.files.close()
        self._first.close()

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return self._nbytes

    def stored_alike(self) -> tuple[dict[str, Pipeline], dict[str, tuple[int, ...]]]:
        """Return the filters and chunk shapes of the first file, by path of the arrays that have any."""
        filters: dict[str, Pipeline] = {}
        chunk_shapes: dict[str, tuple[int, ...]] = {}
        for path in self._arrays:
            storage = self._first.array(path).storage
            if storage.pipeline.stages:
                filters[path] = Pipeline(replace(stage, stored=None) for stage in storage.pipeline.stages)
            if storage.chunk_shape is not None:
                chunk_shapes[path] = storage.chunk_shape
        return filters, chunk_shapes

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each array in the first file."""
        return self._first.roles

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return a group of the first file, with the extent of all files."""
        group = self._first.model.group(path)
        dimensions = dict(group.dimensions)
        if self.dimension in dimensions:
            dimensions[self.dimension] = dimensions[self.dimension]._replace(size=self.ends[-1])
        variables = {name: self._named(variable) for name, variable in group.variables.items()}
        return replace(group, dimensions=dimensions, variables=variables)

    def _named(self, variable: NamedArray) -> NamedArray:
        if self.dimension not in variable.dimensions:
            return variable
        axes = zip(variable.dimensions, variable.shape, strict=True)
        shape = tuple(self.ends[-1] if name == self.dimension else extent for name, extent in axes)
        joined = replace(variable, shape=shape, stored_shape=shape)
        return joined.with_attributes({"actual_range": None}) if "actual_range" in joined.attributes else joined

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of the groups of the first file."""
        return self._first.model.group_paths(path)


@dataclass(frozen=True, slots=True)
class _Content:
    """What a file has, as it is compared between files."""

    path: str
    dimension: str
    variables: Mapping[str, NamedArray]  # By path
    extent: int  # Along the dimension
    is_unlimited: bool
    coordinate: NDArray[Any] | None  # Values of the dimension's own variable
    constant: Mapping[str, str]  # Checksums of the values of variables without the dimension
    nbytes: int
    stored_nbytes: Mapping[str, int]  # Of each variable, after filters

    def check_like(self, first: _Content) -> None:
        """Raise ParameterError if a file does not continue the first one."""
        for path in (*first.variables, *self.variables):
            if (path in first.variables) != (path in self.variables):
                with_it, without = (first, self) if path in first.variables else (self, first)
                raise self._unlike(f"variable {path}", f"in both, found none in {without.path}", with_it)
        for path, variable in self.variables.items():
            self._check_variable(path, variable, first)

    def _check_variable(self, path: str, variable: NamedArray, first: _Content) -> None:
        """Raise ParameterError if a variable does not continue that of the first file."""
        own = first.variables[path]
        for what, value, expected in (
            ("type", variable.dtype, own.dtype),
            ("dimensions", variable.dimensions, own.dimensions),
            ("extents", _others(variable, self.dimension), _others(own, self.dimension)),
        ):
            if value != expected:
                raise self._unlike(f"{what} of {path}", f"{expected}, found {value}", first)
        for name in {**own.attributes, **variable.attributes}:
            values = own.attributes.get(name), variable.attributes.get(name)
            if name not in _IGNORED and not _are_same(*values):
                words = f"{_words(values[0])}, found {_words(values[1])}"
                if "since" in str(values):
                    words += ": give all files the same reference time first (cdo setreftime)"
                raise self._unlike(f"attribute {name} of {path}", words, first)
        if self.constant.get(path) != first.constant.get(path):
            raise self._unlike(f"values of {path}, which has no dimension {self.dimension},", "equal", first)

    def _unlike(self, what: str, words: str, first: _Content) -> ParameterError:
        """Return the error about what is not as in the first file."""
        return ParameterError(f"{self.path}: expected {what} to be as in {first.path}: {words}")


def _are_same(value: Any, other: Any) -> bool:
    """Return whether attributes or values have the same type and bits."""
    first, second = np.asarray(value), np.asarray(other)
    if first.dtype != second.dtype or first.dtype.kind == "O":
        return bool(np.array_equal(first, second))
    return first.shape == second.shape and first.tobytes() == second.tobytes()


def _words(value: Any) -> str:
    """Return an attribute in words."""
    return "none" if value is None else repr(value.tolist() if hasattr(value, "tolist") else value)


def _others(variable: NamedArray, dimension: str) -> tuple[int, ...]:
    """Return the extents of all axes but those of a dimension."""
    pairs = zip(variable.dimensions, variable.stored_shape, strict=True)
    return tuple(extent for name, extent in pairs if name != dimension)


def _content_of(opens: Opens, path: str, dimension: str) -> _Content:
    """Return what a file has; raise ParameterError if it cannot be joined along the dimension."""
    with opens(path) as store:
        store.check_finished()
        groups = [store.model.group(group) for group in store.model.group_paths()]
        variables = {variable.path: variable for group in groups for variable in group.variables.values()}
        owners = [group for group in groups if dimension in group.dimensions]
        if not owners or not any(dimension in variable.dimensions for variable in variables.values()):
            names = sorted({name for group in groups for name in group.dimensions})
            raise ParameterError(
                f"{path}: expected variables with the dimension {dimension!r}, found {', '.join(names) or 'none'}"
            )
        if any(store.array(name).marks.has_companion for name in variables):
            raise ParameterError(
                f"{path}: expected files without missing-value masks: repack it first with"
                " missing='exact' (--missing exact)"
            )
        constant: dict[str, str] = {}
        extents: set[int] = set()
        for name, variable in variables.items():
            if dimension in variable.dimensions:
                extents.add(variable.stored_shape[variable.dimensions.index(dimension)])
            else:
                constant[name] = _checksum(_values_of(store, name))
        coordinate = posixpath.join(owners[0].path, dimension)
        is_numeric = coordinate in variables and variables[coordinate].dtype.kind in "iuf"
        values = _values_of(store, coordinate) if is_numeric else None
        size, is_unlimited = owners[0].dimensions[dimension]
        if extents != {size}:
            raise ParameterError(f"{path}: expected all variables to have {size} steps of {dimension}")
        stored = {name: store.array(name).stored_nbytes for name in variables}
        return _Content(path, dimension, variables, size, bool(is_unlimited), values, constant, store.nbytes, stored)


def _values_of(store: Store, path: str) -> NDArray[Any]:
    """Return all values of an array."""
    array = store.array(path).as_values()
    with closing(array.open_values()) as reader:
        return np.ascontiguousarray(reader.read(whole(array.shape)))


def _checksum(values: NDArray[Any]) -> str:
    data = repr(values.tolist()).encode("utf-8", "surrogateescape") if values.dtype.kind == "O" else values.tobytes()
    return hashlib.sha256(data).hexdigest()


def _in_order(contents: list[_Content], dimension: str) -> list[_Content]:
    """Return files in the order of the coordinate, which must always rise or fall; as given if there is none.

    Files without steps are left out; if all are, the first one is returned.
    """
    if any(content.coordinate is None for content in contents):
        return contents
    coordinates: dict[str, NDArray[Any]] = {}
    for content in contents:
        if content.coordinate is not None and content.coordinate.size:
            coordinates[content.path] = content.coordinate
    with_steps = [content for content in contents if content.path in coordinates]
    ordered = sorted(with_steps, key=lambda content: coordinates[content.path][0])
    if any(values[-1] < values[0] for values in coordinates.values()):
        ordered.reverse()
    for before, after in pairwise(ordered):
        ends, begins = coordinates[before.path], coordinates[after.path]
        steps = np.diff(np.concatenate([ends, begins]).astype(np.float64))
        if not ((steps > 0).all() or (steps < 0).all()):
            raise ParameterError(
                f"{after.path}: expected {dimension} to continue {before.path}, found {begins[0]} after {ends[-1]}:"
                " leave one of them out, or sort their steps first"
            )
    return ordered or contents[:1]
