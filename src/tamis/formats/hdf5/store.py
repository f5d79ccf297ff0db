"""An HDF5 or netCDF-4 file as a store of arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import h5py
from h5py import h5r

from tamis import meaning
from tamis.errors import FileError
from tamis.formats.hdf5.lib.attributes import known_attributes
from tamis.formats.hdf5.lib.elsewhere import NamedFile, end_at
from tamis.formats.hdf5.lib.files import is_being_written, open_source, remote_of
from tamis.formats.hdf5.lib.netcdf_names import stored_paths
from tamis.formats.hdf5.library_reader import readers_of
from tamis.formats.hdf5.model.hdf5_model import Hdf5Model
from tamis.formats.hdf5.model.header import read_header
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.links import group_filters
from tamis.formats.hdf5.tree.relocation import Relocation
from tamis.formats.hdf5.tree.scope import Scope, group_at, scope_of
from tamis.formats.hdf5.tree.taken_in import take_in
from tamis.formats.hdf5.tree.walk import Contents, Datasets, walk
from tamis.lazy_property import lazy_property
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.filters import Filter
    from tamis.formats.hdf5.tree.taken_in import LinkedScope
    from tamis.pipeline import Pipeline
    from tamis.stores.header import Header
    from tamis.stores.other_files import OtherFiles, Places
    from tamis.stores.readers import Readers


def variable_of(path: str, array: Hdf5Array, addresses: Mapping[int, str], scope: Scope) -> meaning.Variable:
    """Return a dataset as a variable of the conventions."""
    dtype, attributes, shape = array.type.numbers, array.attributes, tuple(array.shape or ())
    is_scale = meaning.text(attributes, "CLASS") == "DIMENSION_SCALE"
    dimensions = _dimensions(array, addresses, scope)
    return meaning.Variable(
        path,
        shape,
        None if dtype is None else dtype.newbyteorder("="),
        (path,) if is_scale and not any(dimensions) and len(shape) == 1 else dimensions,
        attributes,
        is_scale,
        array.facts.is_enum,
    )


def _dimensions(array: Hdf5Array, addresses: Mapping[int, str], scope: Scope) -> tuple[str | None, ...]:
    """Return the path of the first dimension scale of each axis."""
    with suppress(Exception):  # HDF5 and h5py raise many kinds
        if array.has_scales:
            axes: Iterable[Any] = array.dataset.attrs["DIMENSION_LIST"]
            return tuple(_scale(array.dataset, scales, addresses, scope) for scales in axes)
    return ()


def _scale(dataset: h5py.Dataset, scales: Any, addresses: Mapping[int, str], scope: Scope) -> str | None:
    with suppress(Exception):
        target = h5r.dereference(scales[0], dataset.id)
        return addresses.get(scope.address(target))
    return None


_AHEAD_NBYTES = 8 << 20


class Hdf5Store:
    """A file for reading, and its contents."""

    has_objects = True
    _ahead_nbytes = 0
    _taken_in: LinkedScope | None = None

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.path = str(file.filename)
        self.stored_path = stored_paths(file)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a file."""
        return cls(open_source(path, keeps_chunks=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and those that were taken in."""
        if self._taken_in is not None:
            self._taken_in.close()
        self.file.close()

    def take_in(self) -> None:
        """Treat what external links lead to as objects of the file; see `Store.take_in`."""
        self._taken_in = take_in(self.file)
        for name in ("contents", "model", "roles"):
            vars(self).pop(name, None)

    def take_codes(self) -> None:
        """Do nothing: HDF5 has no such codecs."""

    def check_finished(self) -> None:
        """Raise FileError if another program is still writing the file."""
        if is_being_written(self.file):
            raise FileError(
                f"{self.path}: another program is writing it (SWMR), so that a new file could lack its last steps. "
                "Wait until it is closed there; if no program has it open any more, `h5clear -s FILE` removes the mark "
                "of the writer"
            ).at(path=self.path)

    def linked_files(self) -> dict[str, list[str]]:
        """Return the files that are taken in, with the paths of the datasets that each has."""
        entries = self.arrays.entries  # listing them opens the files
        files = {str(file.filename): list[str]() for file in scope_of(self.file).files[1:]}
        if not files:
            return {}
        for path, listed in entries.items():
            if (name := str(listed.file.filename)) in files:
                files[name].append(path)
        return files

    def links_elsewhere(self) -> list[str]:
        """Return the paths of external links; none if they are taken in."""
        return self.contents.external

    def linked(self, path: str) -> tuple[str, str] | None:
        """Return the other file to which an external link on a path leads, and the path in it."""
        if not self.links_elsewhere() or remote_of(self.file) is not None:
            return None
        with reading(self.path):
            end = end_at(self.file, self.stored_path(path))
        return (end[0].path, end[1]) if end is not None and isinstance(end[0], NamedFile) else None

    def has(self, path: str) -> bool:
        """Return whether there is a dataset or a group at a path."""
        return bool(self.first_path(path)) or group_at(self.file, path) is not None

    @lazy_property
    def contents(self) -> Contents:
        """All arrays and groups, even if some groups cannot be listed."""
        with reading(self.path):
            contents = walk(self.file, ahead_nbytes=self._ahead_nbytes)
            if self._taken_in is not None:
                contents.datasets.check_companions()
            return contents

    def read_ahead(self) -> None:
        """Read values and attributes of small datasets when the file is listed, for the first use of each."""
        self._ahead_nbytes = _AHEAD_NBYTES

    @property
    def arrays(self) -> Datasets:
        """All datasets by their first paths."""
        return self.contents.datasets

    def paths(self) -> dict[str, str]:
        """Return the first path of each dataset by all its paths."""
        return self.contents.paths()

    def filtered_groups(self) -> Iterator[tuple[str, Pipeline, str]]:
        """Yield groups whose links are filtered or cannot be listed: path, filters, and why they cannot."""
        for path, group in self.contents.groups.items():
            pipeline = group_filters(group)
            if pipeline.stages or path in self.contents.closed:
                yield path, pipeline, self.contents.closed.get(path, "")

    def readers_of(self, filters: Iterable[Filter]) -> Readers:
        """Return which readers can read data with these filters."""
        return readers_of(filters)

    def check_listed(self) -> None:
        """Raise FileError if the links of a group cannot be listed."""
        for reason in self.contents.closed.values():
            raise FileError(f"{self.path}: {reason}")

    @lazy_property
    def roles(self) -> dict[str, meaning.Role]:
        """The role of each array by path, found without reading values."""
        addresses = self.arrays.addresses()
        scope = scope_of(self.file)
        variables = [variable_of(path, array, addresses, scope) for path, array in self.arrays.items()]
        groups: dict[str, dict[str, Any]] = {}
        for group in dict.fromkeys(path.rpartition("/")[0] or "/" for path in self.arrays):
            with suppress(OSError, RuntimeError, ValueError, KeyError):
                groups[group] = known_attributes(self.file[group.encode("utf-8", "surrogateescape")])
        return meaning.roles_of(variables, groups)

    @lazy_property
    def model(self) -> Hdf5Model:
        """The file in netCDF's data model, with companions of missing values as variables."""
        with reading(self.path):
            return Hdf5Model(self.file, restore=False, datasets=self.arrays)

    def header(self) -> Header:
        """Return variables, dimensions, attributes and types as CDL describes them."""
        with reading(self.path):
            return read_header(self.file, self.model)

    def array(self, path: str) -> Hdf5Array:
        """Return the array at a path, which must exist."""
        if "contents" in vars(self) and path in self.contents.datasets:
            return self.contents.datasets[path]  # its facts are known, or kept for the next call
        if self._taken_in is not None and (array := Hdf5Array.at(self.file, path)) is not None:
            return array
        return Hdf5Array(self.file, path, stored_path=self.stored_path(path))

    def first_path(self, path: str) -> str:
        """Return the first path of the array at a path, through any links; empty if there is none."""
        if path in self.contents.datasets:
            return path
        array = Hdf5Array.at(self.file, path)
        return "" if array is None else self.contents.places.get(array.address, "")

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return int(self.file.id.get_filesize())

    def survey_other_files(self, target: str, places: Places, rewritten: Collection[str] = ()) -> OtherFiles:
        """Return what a copy at `target` would lead to."""
        with reading(self.path):
            return self.relocation(target, places).survey(self.file, rewritten)

    def relocation(self, target: str, places: Places) -> Relocation:
        """Return the conversion of references to other files for a copy at `target`, in a run with these places."""
        return Relocation(self.path, places.target_of(self.path) or target, places)
