"""An HDF5 or netCDF-4 file as a store of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import h5py
from h5py import h5g

from tamis import cf
from tamis.cf.history_attribute import HISTORY, with_line
from tamis.errors import FileError
from tamis.filters import Filter
from tamis.hdf5.cf_variables import roles_in
from tamis.hdf5.companion_writer import create_empty, replace_companions
from tamis.hdf5.lib.attributes import known_attributes
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.netcdf_names import has_renamed, stored_path
from tamis.hdf5.lib.rounding_attributes import name_containers
from tamis.hdf5.lib.source_file import open_source
from tamis.hdf5.readers import readers_of
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree import copy as tree
from tamis.hdf5.tree.copy import Copied, copy_tree, create_target
from tamis.hdf5.tree.groups import group_filters
from tamis.hdf5.tree.links import Link
from tamis.hdf5.tree.objects import array_at
from tamis.hdf5.tree.relocation import Relocation
from tamis.hdf5.tree.times import keep_times
from tamis.hdf5.tree.walk import Contents, Datasets, walk
from tamis.hdf5.writer import GrowingFile, Hdf5Writer, create_writer, write_small
from tamis.pipeline import Pipeline
from tamis.rewrite.plan import CreateAtOnce, Plan, Recreate, WrittenAtOnce
from tamis.rounding import Rounding
from tamis.store.array import ArrayWriter
from tamis.store.cdl_model import Header
from tamis.store.readability import Readers

if TYPE_CHECKING:
    from tamis.hdf5.model.hdf5_model import Hdf5Model


class _Create(CreateAtOnce):
    """Creates the copy of a dataset in a group.

    Attributes
    ----------
    copy
        The copy, or what was done at once.
    rounding
        The rounding of its values; None if they are not rounded.
    """

    copy: h5py.Dataset | Copied
    rounding: Rounding | None = None

    def __init__(
        self,
        source: Hdf5Array,
        open_source: Callable[[], h5py.Dataset],
        parent: h5g.GroupID,
        link: Link,
        growing: GrowingFile,
    ) -> None:
        self._source, self._open_source, self._parent, self._link, self._growing = (
            source,
            open_source,
            parent,
            link,
            growing,
        )
        self._writer: Hdf5Writer | None = None

    def __call__(self, plan: Plan) -> Hdf5Writer:
        if self._writer is not None:
            self._writer.discard()
        self._source.keep(self._open_source())
        writer = create_writer(plan, self._source, h5py.Group(self._parent), self._link.text, self._growing)
        self._writer, self.copy = writer, writer.dataset
        self.rounding = None if plan.rounding is None else plan.rounding.rounding
        return writer

    def at_once(self, plan: Plan, most_nbytes: int | None) -> WrittenAtOnce | None:
        small = write_small(plan, self._source, self._parent, self._link, self._growing, most_nbytes)
        if small is None:
            return None
        written, complete = small
        self.copy = Copied(complete)
        return written


class Hdf5Store:
    """A file for reading, and its contents.

    Attributes
    ----------
    kept_nbytes
        Memory for the values of small datasets, which the first look at the contents reads, if all are to be compared.
    """

    kept_nbytes = 0

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.path = str(file.filename)
        self._renames: dict[str, bool] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a file.

        Raises
        ------
        FileError
            If there is no such file, or it is of another kind.
        """
        return cls(open_source(path, keeps_chunks=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @cached_property
    def contents(self) -> Contents:
        """All arrays and groups, even if some groups cannot be listed."""
        with reading(self.path):
            return walk(self.file, kept_nbytes=self.kept_nbytes)

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

    @cached_property
    def roles(self) -> dict[str, cf.Role]:
        """The role of each array by path, found without reading values."""
        return roles_in(self.file, self.contents.datasets)

    @cached_property
    def model(self) -> Hdf5Model:
        """The file in netCDF's data model, with companions of missing values as variables."""
        from tamis.hdf5.model.hdf5_model import Hdf5Model  # late: few commands need it

        return Hdf5Model(self.file, restore=False)

    def header(self) -> Header:
        """Return variables, dimensions, attributes and types as CDL describes them."""
        from tamis.hdf5.model.header_reader import read_header  # late: few commands need it

        return read_header(self.file, self.model)

    def array(self, path: str) -> Hdf5Array:
        """Return the array at a path, which must exist."""
        listed = self.contents.datasets.looked_at(path) if "contents" in vars(self) else None
        return listed or Hdf5Array(self.file, path, stored_path=self._stored_path(path))

    def _stored_path(self, path: str) -> str:
        """Return HDF5's path of an array; each group is asked once whether it has other names than netCDF."""
        group = path.rpartition("/")[0]
        if group not in self._renames:
            self._renames[group] = has_renamed(self.file, group or "/")
        return stored_path(self.file, path) if self._renames[group] else path

    def first_path(self, path: str) -> str:
        """Return the first path of the array at a path, through any links; empty if there is none."""
        if path in self.contents.datasets:
            return path
        array = array_at(self.file, path)
        return "" if array is None else self.contents.places.get(array.address, "")

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return int(self.file.id.get_filesize())

    def survey_other_files(self, target: str) -> list[str]:
        """Return notes about names of other files that change, or lead nowhere, in a copy at `target`."""
        return Relocation(self.path, target).survey(self.file)

    def copy_to(
        self,
        target: Path,
        recreate: Mapping[str, Recreate],
        outdated: Collection[str],
        companions: Callable[[], Mapping[str, ArrayWriter | None]],
        created: Callable[[], None],
        line: Callable[[], str] = str,
        dropped: Collection[str] = (),
    ) -> list[str]:
        """Copy everything to a new file, except the arrays that functions create; see `tamis._open.copy_store`."""
        growing = GrowingFile(str(target))
        stored = self._stored_path
        roundings: dict[str, Rounding] = {}

        def history() -> str:
            return with_line(known_attributes(self.file, HISTORY, "Conventions"), line())

        def adapted(path: str, function: Recreate) -> tree.Recreate:
            def make(open_source: Callable[[], h5py.Dataset], parent: h5g.GroupID, link: Link) -> h5py.Dataset | Copied:
                source = self.contents.datasets.looked_at(path) or Hdf5Array(self.file, path)
                create = _Create(source, open_source, parent, link, growing)
                function(source, create)
                if create.rounding is not None:
                    roundings[stored(path)] = create.rounding
                return create.copy

            return make

        with create_target(self.file, target) as out:
            created()
            functions = {stored(path): adapted(path, function) for path, function in recreate.items()}
            old = [*map(stored, outdated)]
            recreated = {**functions, **dict.fromkeys(old, create_empty)}
            notes, headers = copy_tree(self.file, out, recreated, history, [*map(stored, dropped)])
            datasets = {
                stored(path): writer.dataset if isinstance(writer, Hdf5Writer) else None
                for path, writer in companions().items()
            }
            replace_companions(out, old, datasets)
            name_containers(out, roundings)
        keep_times(self.file, target, headers)
        return notes
