"""Values of a virtual dataset, read from its sources by tamis, so that filters that libhdf5 lacks are no obstacle."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5s
from numpy.typing import NDArray

from tamis.arrays.grid import Region, shape_of
from tamis.arrays.reader import ArrayReader
from tamis.errors import FileError
from tamis.formats.hdf5.lib.elsewhere import SAME_FILE, find_virtual, has_number
from tamis.formats.hdf5.lib.files import open_source
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.library_reader import LibraryReader
from tamis.stores.facts import fill_as

if TYPE_CHECKING:
    from tamis.formats.hdf5.dataset import Hdf5Dataset

_MOST_OPEN = 64
"""Sources that stay open; a master may have thousands."""
_MOST_LOOKED_AT = 32


class _Box(NamedTuple):
    """A part of an array: its first element, and its extents."""

    start: tuple[int, ...]
    extents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """A part of the values, and where it is."""

    file: str | None  # Path; empty for the file of the virtual dataset, None if it does not exist
    inner: str
    place: _Box  # In the virtual dataset
    box: _Box | None  # In the source; None for all of it


class _Opened(NamedTuple):
    """A source that is open. File and reader are closed when nobody uses them any more."""

    file: h5py.File | None  # None for that of the virtual dataset
    array: Hdf5Dataset
    reader: ArrayReader


Shown = tuple["Hdf5Dataset", ArrayReader]
"""A dataset that a virtual one shows, and the reader of its values."""


class VirtualReader:
    """A virtual dataset whose sources are boxes. See `tamis.arrays.reader.ArrayReader`; threads may share it.

    Parameters
    ----------
    array
        The virtual dataset.
    sources
        Its parts.
    open_shown
        Opens the dataset at a path in a file; None if HDF5 has to follow links to it.
    check_files
        Raises FileError if HDF5 must not read the dataset itself.
    """

    def __init__(
        self,
        array: Hdf5Dataset,
        sources: list[_Source],
        open_shown: Callable[[h5py.File, str], Shown | None],
        check_files: Callable[[], None],
    ) -> None:
        self.array, self._sources = array, sources
        self._open_shown, self._check_files = open_shown, check_files
        self.shape: tuple[int, ...] = tuple(array.shape or ())
        self.dtype: np.dtype[Any] = np.dtype(array.type.numbers)
        self.chunk_shape: tuple[int, ...] | None = None
        self._starts = np.array([source.place.start for source in sources], np.int64).reshape(len(sources), -1)
        self._ends = self._starts + np.array([source.place.extents for source in sources], np.int64).reshape(
            len(sources), -1
        )
        self._opened: OrderedDict[tuple[str | None, str], _Opened | None] = OrderedDict()

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array from the sources that it touches; the fill value where there are none."""
        values = np.empty(shape_of(part), self.dtype) if out is None else out
        begin, end = np.array([axis.start for axis in part]), np.array([axis.stop for axis in part])
        touched = np.flatnonzero(((self._starts < end) & (begin < self._ends)).all(axis=1))
        pieces = [(self._sources[row], *self._overlap(row, begin, end)) for row in touched.tolist()]
        pieces = [piece for piece in pieces if piece[0].file is not None]
        covered = sum(int(np.prod(high - low)) for _, low, high in pieces)
        if covered < values.size:
            values[...] = fill_as(self.array.fill, self.dtype)
        is_checked = False
        for source, low, high in pieces:
            inside = tuple(slice(*pair) for pair in zip((low - begin).tolist(), (high - begin).tolist(), strict=True))
            if not self._read_from(source, low, high, values[inside]):
                place = tuple(slice(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True))
                if not is_checked:
                    self._check_files()
                    is_checked = True
                values[inside] = LibraryReader(self.array).read(place)
        return values

    def _overlap(self, row: int, begin: NDArray[Any], end: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.maximum(begin, self._starts[row]), np.minimum(end, self._ends[row])

    def _read_from(self, source: _Source, low: NDArray[Any], high: NDArray[Any], out: NDArray[Any]) -> bool:
        """Read a part of the virtual dataset from a source; return whether its shape and type fit."""
        opened = self._source(source)
        if opened is None or opened.reader.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
            return False
        shape = tuple(opened.array.shape or ())
        box = source.box or _Box((0,) * len(shape), shape)
        ends = [start + extent for start, extent in zip(box.start, box.extents, strict=True)]
        axes = _matching(source.place.extents, box.extents)
        if axes is None or len(ends) != len(shape) or any(map(int.__gt__, ends, shape)):
            return False
        start, extents = list(box.start), list(np.minimum(box.extents, 1))
        for own, other in axes:
            start[other] += int(low[own]) - source.place.start[own]
            extents[other] = int(high[own] - low[own])
        part = tuple(slice(first, first + int(extent)) for first, extent in zip(start, extents, strict=True))
        out[...] = opened.reader.read(part).reshape(out.shape)
        return True

    def _source(self, source: _Source) -> _Opened | None:
        """Open a source, or take it from those that are open; None if HDF5 has to follow links to it."""
        key = source.file, source.inner
        if key not in self._opened:  # no lock: opening takes that of h5py
            self._opened.setdefault(key, self._open(source))
        found = self._opened.get(key) or self._open(source)
        try:
            self._opened.move_to_end(key)
            while len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)
        except KeyError:  # another thread removed it
            pass
        return found

    def _open(self, source: _Source) -> _Opened | None:
        own = open_source(source.file, keeps_chunks=False) if source.file else None
        file: h5py.File = self.array.file if own is None else own
        if (shown := self._open_shown(file, source.inner)) is not None:
            return _Opened(own, *shown)
        is_there = source.inner in file
        if own is not None:
            own.close()
        if not is_there:
            raise FileError(
                f"{self.array.label}: No such file or directory: {source.inner} in {source.file or 'this file'}, a"
                " source of this virtual dataset"
            )
        return None

    def has_filters(self) -> bool:
        """Return whether libhdf5 has the filters of all sources, judging by one of each file; False for many files."""
        by_file = {source.file: source for source in self._sources if source.file is not None}
        if len(by_file) > _MOST_LOOKED_AT:
            return False
        opened = map(self._source, by_file.values())
        return all(
            found is not None and all(is_available(stage.filter.id) for stage in found.array.storage.pipeline.stages)
            for found in opened
        )

    def close(self) -> None:
        """Close the sources."""
        while self._opened:
            _, found = self._opened.popitem()
            if found is not None:
                found.reader.close()
                if found.file is not None:
                    found.file.close()


def virtual_reader(
    array: Hdf5Dataset,
    filename: str,
    open_shown: Callable[[h5py.File, str], Shown | None],
    check_files: Callable[[], None],
) -> VirtualReader | None:
    """Return the reader of a virtual dataset of numbers; None if HDF5 has to read it: its sources are no boxes."""
    plist = array.dataset.id.get_create_plist()
    if array.type.numbers is None or not array.shape:
        return None
    found: dict[str, str | None] = {SAME_FILE: ""}
    sources = []
    for index in range(plist.get_virtual_count()):
        name, inner = plist.get_virtual_filename(index), plist.get_virtual_dsetname(index)
        place = _box_of(plist.get_virtual_vspace(index))
        source_space = plist.get_virtual_srcspace(index)
        is_all = source_space.get_select_type() == h5s.SEL_ALL
        box = None if is_all else _box_of(source_space)
        if place is None or (box is None and not is_all) or has_number(name) or has_number(inner):
            return None
        if name not in found:
            file = find_virtual(name, filename)
            found[name] = None if file is None else os.path.realpath(file.path)
        sources.append(_Source(found[name], inner.replace("%%", "%"), place, box))
    return VirtualReader(array, sources, open_shown, check_files)


def _box_of(space: h5s.SpaceID) -> _Box | None:
    """Return the selection of a dataspace if it is a box; None otherwise."""
    if space.get_select_type() == h5s.SEL_ALL:
        shape = space.get_simple_extent_dims()
        return _Box((0,) * len(shape), tuple(shape))
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return None
    starts, strides, counts, blocks = space.get_regular_hyperslab()
    extents = []
    for stride, count, block in zip(strides, counts, blocks, strict=True):
        if h5s.UNLIMITED in (count, block) or (count > 1 and stride != block):
            return None
        extents.append(int(count * block))
    return _Box(tuple(map(int, starts)), tuple(extents))


def _matching(extents: tuple[int, ...], others: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """Return the axes of two boxes of the same shape but for axes of one element; None if they have other shapes."""
    own = [axis for axis, extent in enumerate(extents) if extent != 1]
    other = [axis for axis, extent in enumerate(others) if extent != 1]
    if [extents[axis] for axis in own] != [others[axis] for axis in other]:
        return None
    return list(zip(own, other, strict=True))
