"""A copy of a netCDF-4 file that gets more values and variables, which other files have already, encoded and proven.

Chunks are moved as they are stored. All else in the file stays where it is.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import h5py
import numpy as np
from h5py import h5ds, h5f, h5i, h5t
from numpy.typing import NDArray

from tamis.access import create_empty
from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid, Origin
from tamis.arrays.index import Parts
from tamis.errors import BoundError, FileError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import (
    created,
    is_bare_dimension,
    set_attribute,
    set_number,
    set_text,
    text_attribute,
)
from tamis.formats.hdf5.lib.chunks import check_recorded, noted, put_chunk, settle, stored_chunks
from tamis.formats.hdf5.lib.datatypes import varies
from tamis.formats.hdf5.lib.files import OwnFile, access_list
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.tree.create import create_copy, create_group_like
from tamis.formats.hdf5.tree.links import raw_name
from tamis.meaning.variables import NON_COORDINATE
from tamis.safety.library_errors import disk_text, reading
from tamis.stores.data_model import JSON_MARK, JSON_TEXT, NamedArray
from tamis.stores.extension import Piece, filter_places, moved_mask
from tamis.stores.facts import ELSEWHERE
from tamis.system.files import copy_content, opened, read_at

if TYPE_CHECKING:
    from tamis.stores.data_model import AttributeForm
    from tamis.stores.protocols import Store

_DIMENSION_NUMBER, _NUMBERS_OF_AXES = "_Netcdf4Dimid", "_Netcdf4Coordinates"
_OF_SCALES = ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", _DIMENSION_NUMBER, _NUMBERS_OF_AXES)
"""Attributes about dimensions, which are made anew: they refer to other objects of a file."""

_AT_ONCE = 1 << 20
"""Values that are moved at once where chunks cannot be."""


class Hdf5Extension:
    """A netCDF-4 file that is open for writing; see `tamis.stores.extension.Extension`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading(path):
            fapl = access_list()
            fapl.set_fclose_degree(h5f.CLOSE_STRONG)
            fapl.set_file_locking(False, True)  # a process that is forked meanwhile would keep the lock
            fapl.set_libver_bounds(h5f.LIBVER_V18, h5f.LIBVER_LATEST)
            self._file = OwnFile.to_write(partial(h5f.open, os.fsencode(path), h5f.ACC_RDWR, fapl))

    @classmethod
    def of_copy(cls, source: Path, copy: Path, mode: int) -> Self:
        """Copy a file, and open the copy."""
        create_empty(copy, mode)
        try:
            copy_content(source, copy)
        except OSError as error:
            raise FileError(f"{copy}: cannot be written: {disk_text(error)}").at(path=copy) from error
        return cls(copy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, RuntimeError):  # after an error, which it must not hide: `finish` closes it
            self._file.close()

    def set_length(self, dimension: str, length: int) -> None:
        """Set the length of a dimension by its path; only one without a variable has a dataset of its own for it."""
        dataset = self._file.get(dimension)
        if isinstance(dataset, h5py.Dataset) and is_bare_dimension(dataset):
            dataset.resize((length,))

    def extend(self, path: str, shape: tuple[int, ...], axis: int, pieces: Sequence[Piece]) -> str:
        """Give an array a shape, and the values of pieces along an axis."""
        dataset = self._file[path]
        if dataset.shape != shape:
            dataset.resize(shape)
        for piece in pieces:
            with Hdf5Store.open(piece.path) as store:
                source = store.file[store.array(piece.array).path]
                masks = _moved_masks(dataset, source)
                if masks is None:
                    _write_values(dataset, source, axis, piece.start)
                else:
                    _move_chunks(dataset, source, axis, piece.start, masks)
        return ""

    def set_attributes(
        self, path: str, attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm] | None = None
    ) -> None:
        """Set attributes of a group or an array; netCDF has text for values of JSON, and a mark that says so."""
        owner = self._file[path]
        for name, value in attributes.items():
            set_attribute(owner, name, value)
        if of_json := {name: form.type for name, form in (forms or {}).items() if form.type == JSON_TEXT}:
            known = json.loads(text_attribute(owner, JSON_MARK) or "{}")
            set_text(owner, JSON_MARK, json.dumps(known | of_json))

    def add(self, new: Path, group_attributes: Mapping[str, Mapping[str, Any]]) -> None:
        """Copy the variables of another netCDF-4 file, with the groups and the dimensions that they need.

        `group_attributes` has the attributes of groups that do not exist yet.
        """
        with Hdf5Store.open(new) as store:
            for path in store.model.group_paths():
                around = set(_outwards(path)) if path in self._file else {path, *group_attributes}
                self._add_group(store.file[path], path, group_attributes.get(path, {}))
                variables = store.model.group(path).variables
                # Variables that are dimensions come first, because others refer to them.
                for variable in sorted(variables.values(), key=_is_no_scale):
                    self._add_variable(store, variable, around)

    def finish(self) -> None:
        """Write what HDF5 holds back, and close the file."""
        self._file.close()

    def check_kept(self, before: Store, after: Store, rewritten: Mapping[str, tuple[int, int]]) -> None:
        """See `tamis.stores.extension.Extension.check_kept`."""
        names = {before.array(path).path: begin for path, begin in rewritten.items()}
        with opened(Path(before.path)) as old, opened(Path(after.path)) as new:
            for path, array in before.arrays.items():
                if array.storage.chunk_shape is None or array.storage.layout in ELSEWHERE:
                    continue
                axis, begin = names.get(path, (0, None))
                later = after.array(path).chunk_index()
                for origin, record in array.chunk_index().records():
                    if begin is not None and origin[axis] >= begin:
                        continue
                    kept = later.record_of(origin)
                    if (
                        kept is None
                        or (kept.nbytes, kept.mask) != (record.nbytes, record.mask)
                        or read_at(old, record.nbytes, record.offset) != read_at(new, kept.nbytes, kept.offset)
                    ):
                        raise BoundError(f"{path}: chunk at {origin}: its bytes are not those that the file had").at(
                            dataset=path
                        )

    def _add_group(self, source: h5py.Group, path: str, attributes: Mapping[str, Any]) -> None:
        if path in self._file:
            return
        create_group_like(source.id, self._file.id, *raw_name(path))
        self.set_attributes(path, attributes)

    def _add_variable(self, store: Hdf5Store, variable: NamedArray, around: Collection[str]) -> None:
        """Copy a variable as it is stored, and let it refer to the dimensions of this file."""
        group, name = posixpath.split(variable.path)
        source = store.file[store.array(variable.path).path]
        bare = self._bare(variable.path)
        is_scale = variable.dimensions[:1] == (name,)
        place = posixpath.join(group, NON_COORDINATE + name) if bare is not None and not is_scale else variable.path
        replaced = bare if is_scale else None
        if replaced is not None:
            self._file.move(variable.path, posixpath.join(group, _SET_ASIDE))
        elif place in self._file:
            raise FileError(f"{variable.path}: the file has another object of this name: choose another name").at(
                dataset=variable.path
            )
        copied = self._copied(source, place)
        axes = zip(variable.dimensions, variable.shape, strict=True)
        scales = [self._scale(store, group, around, *axis) for axis in axes if not (is_scale and axis[0] == name)]
        if is_scale:
            h5ds.set_scale(copied.id, name.encode("utf-8", "surrogateescape"))
            self._number(copied, None if replaced is None else replaced.attrs.get(_DIMENSION_NUMBER))
        if replaced is not None:
            _take_over(replaced, copied)
            del self._file[posixpath.join(group, _SET_ASIDE)]
        if is_scale:
            scales.insert(0, copied)
        for axis, scale in enumerate(scales if not is_scale else ()):
            h5ds.attach_scale(copied.id, scale.id, axis)
        known = [scale.attrs.get(_DIMENSION_NUMBER) for scale in scales]
        if known and None not in known:
            set_attribute(copied, _NUMBERS_OF_AXES, np.array(known, np.int32))

    def _copied(self, source: h5py.Dataset, place: str) -> h5py.Dataset:
        """Copy a dataset as it is stored, without what refers to other objects of its file."""
        datatype = source.id.get_type()
        if datatype.committed():
            datatype = self._named_type(source, posixpath.dirname(place))
        name, lcpl = raw_name(place)
        create_copy(source.id, self._file.id, name, datatype, lcpl)
        copied = self._file[place]
        for attribute in source.attrs:
            if attribute not in _OF_SCALES:
                _copy_attribute(source, copied, attribute)
        return copied

    def _named_type(self, source: h5py.Dataset, group: str) -> h5t.TypeID:
        """Return the named type of a dataset in a group of this file; copy it if it is not there."""
        datatype = source.id.get_type()
        name = posixpath.basename(h5i.get_name(datatype).decode("utf-8", "surrogateescape"))
        place = posixpath.join(group, name)
        raw, lcpl = raw_name(place)
        if place not in self._file:
            copied = datatype.copy()
            copied.commit(self._file.id, raw, lcpl)
            return copied
        known = self._file[place]
        if isinstance(known, h5py.Datatype) and known.id.equal(datatype):
            return known.id
        raise FileError(
            f"{source.name}: its type needs the name {name!r}, which another object of the file has, or a type with"
            " other members"
        ).at(dataset=str(source.name))

    def _bare(self, path: str) -> h5py.Dataset | None:
        """Return the dataset of a dimension without a variable; None if there is none at a path."""
        dataset = self._file.get(path)
        return dataset if isinstance(dataset, h5py.Dataset) and is_bare_dimension(dataset) else None

    def _scale(self, store: Hdf5Store, group: str, around: Collection[str], name: str, extent: int) -> h5py.Dataset:
        """Return the scale of a dimension from the nearest of the groups around; copy it if there is none."""
        for outer in filter(around.__contains__, _outwards(group)):
            scale = self._file.get(posixpath.join(outer, name))
            if isinstance(scale, h5py.Dataset) and h5ds.is_scale(scale.id) and scale.shape[:1] == (extent,):
                return scale
        path = posixpath.join(group, name)
        places = [posixpath.join(outer, name) for outer in _outwards(group)]
        source = next((store.file[place] for place in places if place in store.file), None)
        if source is None or path in self._file:
            raise FileError(
                f"{path}: the file has another object with the name of this dimension: choose another name"
            ).at(dataset=path)
        copied = self._copied(source, path)
        h5ds.set_scale(copied.id, source.attrs["NAME"])
        self._number(copied, None)
        return copied

    def _number(self, scale: h5py.Dataset, number: Any) -> None:
        """Give a new dimension a number, if the file has numbers of its dimensions."""
        if number is None:
            known = [*self._numbers()]
            if None in known:
                return
            number = max((own for own in known if own is not None), default=-1) + 1
        set_number(scale, _DIMENSION_NUMBER, int(number))

    def _numbers(self) -> Iterator[int | None]:
        """Yield the number of each dimension of the file; None for one without."""
        scales: list[h5py.Dataset] = []

        def visit(_: str, item: object) -> None:
            if isinstance(item, h5py.Dataset) and h5ds.is_scale(item.id):
                scales.append(item)

        self._file.visititems(visit)
        new = [scale for scale in scales if _DIMENSION_NUMBER not in scale.attrs]
        yield from (int(scale.attrs[_DIMENSION_NUMBER]) for scale in scales if _DIMENSION_NUMBER in scale.attrs)
        yield from (None for _ in new[1:])  # the first one is that which gets a number


def _copy_attribute(source: h5py.Dataset, target: h5py.Dataset, name: str) -> None:
    """Copy an attribute in its type."""
    attribute = source.attrs.get_id(name)
    kind = attribute.get_type()
    if varies(kind):
        target.attrs.create(name, source.attrs[name], attribute.shape, attribute.dtype)
        return
    copied = created(target, name, kind.copy(), attribute.get_space())
    if attribute.shape is not None:
        values = np.zeros(attribute.shape, (np.void, kind.get_size()))
        attribute.read(values, mtype=kind)
        copied.write(values, mtype=kind)


_SET_ASIDE = "_tamis_replaced_dimension"


def _is_no_scale(variable: NamedArray) -> bool:
    return variable.dimensions != (posixpath.basename(variable.path),)


def _outwards(group: str) -> Iterator[str]:
    """Yield a group and those around it, the nearest first."""
    yield group
    while group != "/":
        group = posixpath.dirname(group)
        yield group


def _take_over(bare: h5py.Dataset, scale: h5py.Dataset) -> None:
    """Let all variables of a dimension refer to its new variable."""
    for reference, axis in [(entry[0], int(entry[1])) for entry in bare.attrs.get("REFERENCE_LIST", ())]:
        variable = bare.file[reference]
        h5ds.detach_scale(variable.id, bare.id, axis)
        h5ds.attach_scale(variable.id, scale.id, axis)


def _moved_masks(dataset: h5py.Dataset, source: h5py.Dataset) -> Callable[[int], int] | None:
    """Return what gives chunks of an array the filter mask that they need in another one; None if they cannot move."""
    if dataset.chunks is None or dataset.chunks != source.chunks or varies(dataset.id.get_type()):
        return None
    if not dataset.id.get_type().equal(source.id.get_type()) and dataset.dtype != source.dtype:
        return None
    before, after = (Hdf5Store(item.file).array(str(item.name)).storage.pipeline for item in (source, dataset))
    places = filter_places(before, after)
    if places is None:
        if after.error_bound != 0:
            raise FileError(f"{dataset.name}: expected chunks with the filters {after}, got {before}").at(
                dataset=str(dataset.name)
            )
        return None
    return lambda mask: moved_mask(mask, places, len(after.filters))


def _move_chunks(
    dataset: h5py.Dataset, source: h5py.Dataset, axis: int, start: int, masks: Callable[[int], int]
) -> None:
    """Write the chunks of an array into another one, further along an axis."""
    recorded: dict[Origin, tuple[int, int]] = {}
    with calls.lock:
        for chunk in stored_chunks(source.id):
            mask, data = source.id.read_direct_chunk(chunk.chunk_offset)
            origin = tuple(n + start * (number == axis) for number, n in enumerate(chunk.chunk_offset))
            put_chunk(dataset, origin, data, masks(mask))
            recorded[origin] = (len(data), masks(mask))
        if recorded:
            last = next(reversed(recorded))
            settle(dataset, last, recorded[last][1], again=True)
    grid = Grid(dataset.shape, dataset.chunks)
    check_recorded(dataset, grid, noted(grid, recorded), others=True)


def _write_values(dataset: h5py.Dataset, source: h5py.Dataset, axis: int, start: int) -> None:
    """Let HDF5 write the values of an array into another one, further along an axis."""
    if not source.shape:
        dataset[()] = source[()]
        return
    box = several_chunks(source.shape, source.chunks or (1,) * source.ndim, _AT_ONCE)
    for part in Parts(Grid(source.shape, box)):
        values: NDArray[Any] = source[part]
        place = tuple(
            slice(own.start + start * (number == axis), own.stop + start * (number == axis))
            for number, own in enumerate(part)
        )
        dataset[place] = values
