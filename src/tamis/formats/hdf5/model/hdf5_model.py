"""An HDF5 file in netCDF's data model: which variable has which dimensions."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property

import h5py

from tamis.errors import FileError, ParameterError
from tamis.formats.hdf5.companions import without_companion
from tamis.formats.hdf5.lib.file_facts import filename_of
from tamis.formats.hdf5.model.dimension_names import GroupDimensions, count_phony, name_axes, named_dimensions
from tamis.formats.hdf5.model.scanned_group import LinkedFiles, Place, ScannedArray, ScannedGroup, scan_group
from tamis.formats.hdf5.tree.walk import Datasets
from tamis.safety.library_errors import reading
from tamis.stores.data_model import EnumType, NamedArray, NamedGroup

_MOST_LEVELS = 500
"""Limit of groups within groups, which Python can recurse into."""

_MOST_REPEATED = 10_000
"""Limit of paths to groups that have another path: with links upon links their number grows without measure."""

_TOO_MANY = f"expected at most {_MOST_REPEATED:,} paths to groups that have other paths, got more"


class GroupPaths:
    """A walk over groups."""

    def __init__(
        self, scan: Callable[[str], ScannedGroup], leads_to_group: Callable[[str], bool], follow: bool, own_first: bool
    ) -> None:
        self._scan, self._leads_to_group, self._follow, self._own_first = scan, leads_to_group, follow, own_first
        self._listed: set[Place] = set()
        self._repeated_count = 0

    def inside(self, path: str, around: frozenset[Place] = frozenset(), *, repeated: bool = False) -> Iterator[str]:
        """Yield the paths of a group, with its enclosing ones, and of the groups in it."""
        if path.count("/") > _MOST_LEVELS:
            raise FileError(f"expected at most {_MOST_LEVELS} levels of groups, found more in {path[:80]}…")
        scanned = self._scan(path)
        around |= {scanned.place}
        if not repeated:
            self._listed.add(scanned.place)
        if self._own_first:
            yield path
        for name, inner in scanned.groups.items():
            if inner.place in (around if self._follow else self._listed):
                continue
            inner_path = posixpath.join(path, name)
            is_repeated = repeated or inner.is_linked or inner.place in self._listed
            if is_repeated and not self._enters(scanned, name, inner_path):
                continue
            yield from self.inside(inner_path, around, repeated=is_repeated)
        if not self._own_first:
            yield path

    def _enters(self, scanned: ScannedGroup, name: str, path: str) -> bool:
        """Return whether an additional path to a group is included; others are left out."""
        self._repeated_count += 1
        if self._repeated_count > _MOST_REPEATED:
            scanned.left_out[name] = _TOO_MANY
            return False
        return self._leads_to_group(path)


PHONY_NAMES = ("sort", "access")
"""How dimensions without a name are numbered."""


class Hdf5Model:
    """A file in netCDF's data model. See `tamis.stores.data_model.DataModel`."""

    is_loose = False

    def __init__(
        self,
        file: h5py.File,
        phony_dims: str = "sort",
        *,
        restore: bool = True,
        follow: bool = False,
        datasets: Datasets | None = None,
    ) -> None:
        if not isinstance(phony_dims, str) or phony_dims not in PHONY_NAMES:
            raise ParameterError(f"expected phony_dims to be {' or '.join(map(repr, PHONY_NAMES))}, got {phony_dims!r}")
        self._file, self._phony_dims, self._restore, self._follow = file, phony_dims, restore, follow
        self._linked_files, self._datasets = LinkedFiles(file), datasets
        self._scanned: dict[str, ScannedGroup] = {}
        self._named: dict[str, GroupDimensions] = {}
        self._groups: dict[str, NamedGroup] = {}
        self._phony_count = 0

    @property
    def kind(self) -> str:
        """The kind of netCDF file, as ``ncdump -k`` calls it."""
        return "netCDF-4 classic model" if "_nc3_strict" in self._file.attrs else "netCDF-4"

    def group(self, path: str) -> NamedGroup:
        """Return the group at a path."""
        path = _normal(path)
        if path not in self._groups:
            self._groups[path] = self._group(path)
        return self._groups[path]

    def _group(self, path: str) -> NamedGroup:
        group, dimensions = self._scan(path), self._dimensions(path)
        if not dimensions.axes:
            self._name_axes(path, group, dimensions)
        hidden = {
            (item.place[0], item.array.companion.address)
            for item in group.arrays
            if self._restored(item) and item.array.companion is not None
        }
        variables = {
            item.name: self._variable(item, dimensions, path)
            for item in group.arrays
            if not item.is_bare and item.place not in hidden
        }
        return NamedGroup(path, dimensions.own, variables, group.attributes, group.left_out, group.forms, group.links)

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it, each group once, in the order of the file."""
        return list(self._inner_paths(_normal(path), own_first=True))

    def _variable(self, item: ScannedArray, dimensions: GroupDimensions, group: str) -> NamedArray:
        array, names = item.array, dimensions.axes[item.link]
        restored = self._restored(item)
        return NamedArray(
            posixpath.join(group, item.name),
            names,
            tuple(map(dimensions.size, names)),
            array.shape,
            array.numpy_type or array.chunk.dtype,
            array.fill_value,
            without_companion(item.attributes, array.dataset) if restored else item.attributes,
            array.chunk_shape,
            array.pipeline,
            self._enum(item, group),
            item.forms,
        )

    def _enum(self, item: ScannedArray, group: str) -> EnumType | None:
        """Return the enumeration of a dataset, if it has a name in its group or an enclosing one."""
        if item.enum is None:
            return None
        names = (name for name, enum in self._scan(group).enums.items() if enum == item.enum)
        if (name := next(names, None)) is not None:
            return EnumType(name, item.enum[1])
        return None if group == "/" else self._enum(item, posixpath.dirname(group))

    def _restored(self, item: ScannedArray) -> bool:
        return self._restore and item.array.has_companion

    def _scan(self, path: str) -> ScannedGroup:
        if path not in self._scanned:
            filename = filename_of(self._file)
            with reading(filename, dataset=path):
                group = self._file.get(path.encode("utf-8", "surrogateescape"))
                if not isinstance(group, h5py.Group):
                    kind = "none" if group is None else "a dataset"
                    raise FileError(f"{filename}: expected a group at {path!r}, found {kind}").at(dataset=path)
                self._scanned[path] = scan_group(self._linked_files, path, group, self._datasets, follow=self._follow)
        return self._scanned[path]

    def _dimensions(self, path: str) -> GroupDimensions:
        """Return the dimensions of a group; unnamed ones may still be missing."""
        if path not in self._named:
            around = None if path == "/" else self._dimensions(posixpath.dirname(path))
            if around is not None and self._scan(path).place[0] != self._scan(posixpath.dirname(path)).place[0]:
                around = None  # dimensions of another file are others
            with reading(filename_of(self._file), dataset=path):
                self._named[path] = named_dimensions(self._scan(path), around)
        return self._named[path]

    def _name_axes(self, path: str, scanned: ScannedGroup, dimensions: GroupDimensions) -> None:
        count = count_phony(scanned, dimensions)
        first = self._phony_count if self._phony_dims == "access" or not count else self._first_numbers[path]
        name_axes(scanned, dimensions, first)
        self._phony_count += count

    @cached_property
    def _first_numbers(self) -> dict[str, int]:
        """The number of the first unnamed dimension in each group, by path, as in netCDF-C."""
        paths = list(self._inner_paths("/", own_first=False))
        ids = [number for path in paths for number in self._dimensions(path).ids]
        first = max(sum(len(self._dimensions(path).own) for path in paths), *(number + 1 for number in ids), 0)
        numbers = {}
        for path in paths:
            numbers[path] = first
            first += count_phony(self._scan(path), self._dimensions(path))
        return numbers

    def _inner_paths(self, path: str, *, own_first: bool) -> Iterator[str]:
        """Return the paths of a group and of the groups in it."""
        return GroupPaths(self._scan, self._leads_to_group, self._follow, own_first=own_first).inside(path)

    def _leads_to_group(self, path: str) -> bool:
        """Return whether HDF5 finds a group at a path: it follows a few links only."""
        with suppress(OSError, RuntimeError, ValueError, KeyError):
            return isinstance(self._file.get(path.encode("utf-8", "surrogateescape")), h5py.Group)
        return False


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(posixpath.join("/", path)).strip("/")
