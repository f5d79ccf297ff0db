"""Copy an HDF5 file to a new one, except for the arrays that are stored anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import h5py
from h5py import h5d, h5g

from tamis.formats.hdf5.companion_writer import create_empty, replace_companions
from tamis.formats.hdf5.lib.attributes import known_attributes, name_containers, replace_attributes
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.copy import Copied, check_scales, copy_tree, create_target
from tamis.formats.hdf5.tree.times import keep_times
from tamis.formats.hdf5.writer import GrowingFile, Hdf5Writer, create_writer, write_small
from tamis.meaning.variables import HISTORY, with_line
from tamis.rewrite.rewrite import CreateAtOnce, Recreate, Rewrite, WrittenAtOnce
from tamis.rewrite.transfer import Changes, check_storable, transfer
from tamis.safety.transaction import Transaction

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.formats.hdf5.tree import copy as tree
    from tamis.formats.hdf5.tree.walk import Link
    from tamis.rounding import Rounding
    from tamis.stores.protocols import Store


class _Create(CreateAtOnce):
    """Creates the copy of a dataset in a group."""

    copy: h5py.Dataset | Copied  # The copy, or what was done at once
    rounding: Rounding | None = None  # The rounding of its values; None if they are not rounded
    packed: Mapping[str, Any] = {}

    def __init__(
        self,
        source: Hdf5Array,
        open_source: Callable[[], h5py.Dataset],
        parent: h5g.GroupID,
        link: Link,
        growing: GrowingFile,
    ) -> None:
        self._source, self._open_source, self._parent = source, open_source, parent
        self._link, self._growing = link, growing
        self._writer: Hdf5Writer | None = None

    def __call__(self, plan: Rewrite) -> Hdf5Writer:
        if self._writer is not None:
            self._writer.discard()
        self._source.keep(self._open_source())
        writer = create_writer(plan, self._source, h5py.Group(self._parent), self._link.text, self._growing)
        self._writer, self.copy = writer, writer.dataset
        self.packed = {} if plan.codes is None else plan.new_attributes(self._source)
        self.rounding = None if plan.rounding is None else plan.rounding.rounding
        return writer

    def at_once(self, plan: Rewrite, most_nbytes: int | None) -> WrittenAtOnce | None:
        small = write_small(plan, self._source, self._parent, self._link, self._growing, most_nbytes)
        if small is None:
            return None
        written, complete = small
        self.copy = Copied(complete)
        self.rounding = None if plan.rounding is None else plan.rounding.rounding
        return written


class Hdf5Form:
    """The form of a new HDF5 file; see `tamis.rewrite.transfer.TargetForm`. Other formats become netCDF-4 files."""

    def begin(self, target: Path, *, overwrite: bool = True) -> Transaction:
        """Return the transaction of a file."""
        return Transaction(target, overwrite=overwrite)

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """Raise an error if HDF5 cannot hold an array of the source, or if one that is left out is needed."""
        if not isinstance(source, Hdf5Store):
            from tamis.formats.hdf5.netcdf_target import check_array  # late, as below: most sources are HDF5

            check_storable(source, check_array, dropped)
        elif dropped:
            check_scales(source.file, dropped)

    def copies_objects_of(self, source: Store) -> bool:
        """Return whether the source is also HDF5."""
        return isinstance(source, Hdf5Store)

    def copy(self, source: Store, target: Transaction, changes: Changes, threads: int = 1) -> list[str]:
        """Copy a store to a new file."""
        if isinstance(source, Hdf5Store):
            return copy_file(source, target, changes)
        from tamis.formats.hdf5.netcdf_target import NetcdfTarget

        values_nbytes = sum(array.values_nbytes for array in source.arrays.values())
        with NetcdfTarget(target.path, values_nbytes) as out:
            target.protect()
            transfer(source, out, changes)
        return out.notes

    def __str__(self) -> str:
        return ""


def copy_file(source: Hdf5Store, target: Transaction, changes: Changes) -> list[str]:
    """Copy everything to a new file, except the arrays that functions create."""
    growing = GrowingFile(str(target.path))
    stored = source.stored_path
    roundings: dict[str, Rounding] = {}
    packed: dict[str, Mapping[str, Any]] = {}

    def history() -> str:
        return with_line(known_attributes(source.file, HISTORY, "Conventions"), changes.line())

    def adapted(path: str, function: Recreate) -> tree.Recreate:
        def make(open_source: Callable[[], h5py.Dataset], parent: h5g.GroupID, link: Link) -> h5py.Dataset | Copied:
            array = source.contents.datasets.looked_at(path) or Hdf5Array(source.file, path)
            create = _Create(array, open_source, parent, link, growing)
            function(array, create)
            if create.rounding is not None:
                roundings[stored(path)] = create.rounding
            if create.packed:
                packed[stored(path)] = create.packed
            return create.copy

        return make

    with create_target(source.file, target.path) as out:
        target.protect()
        functions = {stored(path): adapted(path, function) for path, function in changes.recreate.items()}
        old = [*map(stored, changes.outdated)]
        recreated = {**functions, **dict.fromkeys(old, create_empty)}
        notes, headers = copy_tree(source.file, out, recreated, history, [*map(stored, changes.dropped)])
        datasets = {
            stored(path): writer.dataset if isinstance(writer, Hdf5Writer) else None
            for path, writer in changes.companions().items()
        }
        replace_companions(out, old, datasets)
        name_containers(out, roundings)
        for path, attributes in packed.items():
            replace_attributes(h5py.Dataset(h5d.open(out.id, path.encode("utf-8", "surrogateescape"))), attributes)
    keep_times(source.file, target.path, headers)
    return notes
