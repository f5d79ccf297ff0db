"""An HDF5 file in netCDF's data model: its groups, and which variable has which dimensions."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5g, h5i, h5l, h5o, h5r, h5t

from tamis.errors import FileError, ParameterError
from tamis.formats.hdf5.lib.attributes import is_bare_name
from tamis.formats.hdf5.lib.calls import place_of
from tamis.formats.hdf5.lib.datatypes import type_words
from tamis.formats.hdf5.lib.elsewhere import check_links, end_of
from tamis.formats.hdf5.lib.files import filename_of
from tamis.formats.hdf5.lib.foreign_filters import isolate
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths
from tamis.formats.hdf5.lib.quick_facts import Attributes, quick_headers
from tamis.formats.hdf5.model.attributes import (
    INTERNAL,
    OF_SCALES,
    is_scale_class,
    listed_attributes,
    read_attributes,
    references,
)
from tamis.formats.hdf5.stored_array import Hdf5Array, without_companion
from tamis.formats.hdf5.tree.links import Link, in_order, link_words
from tamis.formats.hdf5.tree.scope import scope_of
from tamis.formats.hdf5.tree.walk import Datasets
from tamis.lazy_property import lazy_property
from tamis.safety.library_errors import reading
from tamis.stores.data_model import Dimension, EnumType, NamedArray, NamedGroup, Translation

if TYPE_CHECKING:
    from tamis.stores.data_model import AttributeForm


Enum = tuple[np.dtype[Any], Mapping[str, int]]
"""An enumeration: type of its numbers, and numbers by member."""


Place = tuple[int, int]
"""What identifies an object in open files: HDF5's number of its file, and its address there."""

_NOWHERE = "the link leads nowhere"


class LinkedFiles:
    """A file, and the other files that its links lead to, which stay open so that HDF5 keeps their numbers."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.number = h5o.get_info(file.id).fileno
        self._others: dict[int, h5py.File] = {}
        self.places: set[Place] = set()  # Of objects that hard links were found to lead to

    def file_of(self, item: h5d.DatasetID | h5g.GroupID) -> h5py.File:
        """Return the file of an object."""
        number = place_of(item)[0]
        if number == self.number:
            return self.file
        if number not in self._others:
            self._others[number] = h5py.File(h5i.get_file_id(item))
        return self._others[number]


@dataclass(frozen=True, slots=True)
class ScannedArray:
    """A dataset of a group."""

    name: str  # Name as a variable
    link: str  # Name in the file
    array: Hdf5Array
    place: Place
    attributes: Mapping[str, Any]  # Its attributes, without internal ones
    # Whether it is a dimension, and a dimension alone
    is_scale: bool
    is_bare: bool
    # Number of its dimension, and those of its axes if it is a coordinate of several; None and none if not known
    dimension_id: int | None
    dimension_ids: tuple[int, ...]
    scales: tuple[Place | None, ...]  # Place of the dimension of each axis; None for an axis without one
    user_count: int  # Number of axes of datasets that have this dimension
    scale_name: str  # Its name as a dimension, if it is another one
    enum: Enum | None  # The enumeration of its values
    forms: Mapping[str, AttributeForm]  # Forms of its attributes; see `tamis.stores.data_model.AttributeForm`

    @property
    def is_unlimited(self) -> bool:
        """True if it is an unlimited dimension."""
        return self.is_scale and self.array.maxshape[0] is None


class InnerGroup(NamedTuple):
    """A group in another one: its place, and whether a soft or external link leads to it."""

    place: Place
    is_linked: bool


@dataclass(frozen=True, slots=True)
class ScannedGroup:
    """A group: datasets in the order of the file, groups in it, named enumerations, forms of attributes."""

    group: h5py.Group
    place: Place
    attributes: Mapping[str, Any]
    arrays: tuple[ScannedArray, ...]
    groups: dict[str, InnerGroup]
    enums: Mapping[str, Enum]
    left_out: dict[str, str] = field(default_factory=dict)
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)
    # What has no form in netCDF's data model, by the name of its link: its kind (`tamis.stores.translation`), in words
    lost: dict[str, tuple[str, str]] = field(default_factory=dict)


def scan_group(
    files: LinkedFiles, path: str, group: h5py.Group, datasets: Datasets | None, *, follow: bool
) -> ScannedGroup:
    """Scan all objects of a group; external links, and soft links to groups, are only followed on request.

    `datasets` are those of the file, if they are listed: they may have facts that need not be read again.
    """
    scan = _Scan(files, path, group, follow=follow)
    scan.add_all(datasets)
    # All others are opened before any attribute is read: libhdf5 trusts the references of variable-length values,
    # and may crash on a damaged file.
    scanned = []
    names = renamed_paths(group, [*scan.arrays, *scan.left_out])
    for name, array in scan.arrays.items():
        with reading(filename_of(files.file), dataset=_inside(path, name)):
            scanned.append(_scanned(files, array, names.get(name, name), name, scan.known.get(name)))
    values, forms = read_attributes(lambda: group, listed_attributes(group))
    return ScannedGroup(
        group=group,
        place=scan.place,
        attributes=_own(values, is_scale=False),
        arrays=tuple(scanned),
        groups=scan.groups,
        enums=scan.enums,
        left_out={names.get(name, name): reason for name, reason in scan.left_out.items()},
        forms=forms,
        lost=scan.lost,
    )


class _Scan:
    """What the links of a group lead to, by the names of the links; no attribute is read."""

    def __init__(self, files: LinkedFiles, path: str, group: h5py.Group, *, follow: bool) -> None:
        self._files, self._path, self._group, self._follow = files, path, group, follow
        self._scope = scope_of(files.file)
        self.place = place_of(group.id)
        self.arrays: dict[str, Hdf5Array] = {}
        self.known: dict[str, Attributes] = {}  # Attributes of those arrays that were read with them
        self.groups: dict[str, InnerGroup] = {}
        self.enums: dict[str, Enum] = {}
        self.left_out: dict[str, str] = {}  # Why there is no variable, group or type
        self.lost: dict[str, tuple[str, str]] = {}  # See `ScannedGroup.lost`

    def add_all(self, datasets: Datasets | None) -> None:
        """Find what all links lead to; `datasets` are those of the file, if they are listed."""
        file = self._files.file
        is_own = self._files.file_of(self._group.id) is file
        listed = in_order(self._scope.links(self._group.id))
        hard = [link for link in listed if link.kind == h5l.TYPE_HARD and link.place is None]
        self._files.places.update((self.place[0], self._scope.home(link.address)[1]) for link in hard)
        looked = _looked(file, self._path, self._group, hard, datasets) if is_own else {}
        for link in listed:
            if link.kind != h5l.TYPE_HARD:
                self.lost[link.text] = "links", link_words(self._group, link)
            if link.kind in (h5l.TYPE_HARD, h5l.TYPE_SOFT) or (link.kind == h5l.TYPE_EXTERNAL and self._follow):
                with reading(filename_of(file), dataset=_inside(self._path, link.text)):
                    self._add(link, looked.get(link.text))

    def _add(self, link: Link, known: Literal[True] | tuple[Hdf5Array, Attributes] | None) -> None:
        """Note what a link leads to; `known` is what `_looked` found, if anything."""
        name, is_hard = link.text, link.kind == h5l.TYPE_HARD
        if known is True:
            self.groups[name] = InnerGroup((self.place[0], link.address), is_linked=False)
            return
        if known is not None:
            self.arrays[name], self.known[name] = known
            return
        item = self._opened(link)
        if isinstance(item, h5g.GroupID):
            if is_hard or self._follow:
                self.groups[name] = InnerGroup(place_of(item), is_linked=not is_hard)
                self.lost.pop(name, None)
        elif isinstance(item, h5t.TypeID):
            self.lost[name] = "named types", f"named type {type_words(item)}"
            if enum := _enum(item):
                self.enums[name] = enum
        elif isinstance(item, h5d.DatasetID):
            self.lost.pop(name, None)
            array = _array(self._files, item, _inside(self._path, name))
            if reason := _no_variable(array):
                self.left_out[name] = reason
            else:
                self.arrays[name] = array

    def _opened(self, link: Link) -> Any:
        """Return what a link leads to; None if that is not here, or a type of values that HDF5 cannot open."""
        file, path, is_hard = self._files.file, _inside(self._path, link.text), link.kind == h5l.TYPE_HARD
        stays = link.kind == h5l.TYPE_SOFT and not (self._follow or self._scope.is_linked)
        try:
            if stays and end_of(file, path) is not file:
                return None  # it leads to another file, or nowhere
            if self._follow and not is_hard:
                check_links(file, path)
            return self._scope.open(self._group.id, link)
        except FileError as error:
            self.left_out[link.text] = str(error)
        except (KeyError, OSError, RuntimeError):
            if is_hard and h5o.get_info(self._group.id, link.name).type == h5o.TYPE_DATASET:
                raise
            if self._follow and not is_hard:
                self.left_out[link.text] = _NOWHERE
        return None


def _inside(path: str, name: str) -> str:
    """Return the path of an object in a group."""
    return f"{path.rstrip('/')}/{name}"


def _looked(
    file: h5py.File, path: str, group: h5py.Group, links: list[Link], datasets: Datasets | None
) -> dict[str, Literal[True] | tuple[Hdf5Array, Attributes]]:
    """Return the targets of hard links that are read at once, by name: True for groups; datasets, with attributes."""
    found: dict[str, Literal[True] | tuple[Hdf5Array, Attributes]] = {}
    if datasets is not None:
        for link in links:
            facts = datasets.facts_at(own_path := _inside(path, link.text), link.address)
            if facts is not None and facts.contents is not None and None not in facts.contents:
                attributes = Attributes(tuple(name for name, _ in facts.attributes), facts.contents, None, 0)
                found[link.text] = datasets[own_path], attributes
    others = {link.name: link for link in links if link.text not in found}
    for name, header in quick_headers(group.id, [*others]).items():
        link = others[name]
        if isinstance(header, bool):
            found[link.text] = True
            continue
        array = Hdf5Array(file, own_path := _inside(path, link.text), stored_path=own_path, address=link.address)
        array.take(header.facts, with_attributes=False)
        if array.form is not None and array.numpy_type is not None:
            isolate(stage.filter.id for stage in array.storage.pipeline.stages)
            found[link.text] = array, header.attributes
    return found


def _array(files: LinkedFiles, item: h5d.DatasetID, path: str) -> Hdf5Array:
    """Return an open dataset as a stored array of its own file."""
    file, dataset = files.file_of(item), h5py.Dataset(item, readonly=True)
    own_path = path if file is files.file else str(dataset.name)
    array = Hdf5Array(file, own_path, stored_path=own_path)
    array.keep(dataset)
    return array


def _no_variable(array: Hdf5Array) -> str:
    """Return why a dataset cannot be a variable; empty if it can."""
    if array.shape is None:
        return "expected an array or a scalar, got a null dataspace, which has no values"
    if array.numpy_type is None:
        return f"expected numbers, characters or text, got {array.type.text}"
    if array.numpy_type.subdtype is not None:
        return "expected numbers, characters or text, got elements that are arrays, which netCDF allows only in records"
    if array.datatype.detect_class(h5t.REFERENCE):
        return "expected numbers, characters or text, got references to objects, which mean nothing outside the file"
    return ""


def _scanned(files: LinkedFiles, array: Hdf5Array, name: str, link: str, known: Attributes | None) -> ScannedArray:
    """Read everything about a dataset while it is open; `known` are its attributes if they were read."""
    place = (files.number, array.address) if known else place_of(array.dataset.id)
    attributes = known or listed_attributes(array.dataset)
    values, forms = read_attributes(lambda: array.dataset, attributes)
    is_scale = bool(array.shape) and is_scale_class(values.get("CLASS"))
    is_bare = is_scale and is_bare_name(values.get("NAME", ""))
    ids = np.atleast_1d(values.get("_Netcdf4Coordinates", ())).tolist() if is_scale else ()
    number = values.get("_Netcdf4Dimid") if is_scale else None
    if known is None:
        _ = array.maxshape, array.facts, array.marks
    scale_name = values.get("NAME") if is_scale and not is_bare else ""
    return ScannedArray(
        name=link if is_bare else name,
        link=link,
        array=array,
        place=place,
        attributes=_own(values, is_scale=is_scale),
        is_scale=is_scale,
        is_bare=is_bare,
        dimension_id=int(number) if isinstance(number, np.integer) else None,
        dimension_ids=tuple(ids) if len(ids) == len(array.shape) else (),
        scales=_scales(files, array, place[0], attributes),
        user_count=attributes.user_count if is_scale else 0,
        scale_name=scale_name if isinstance(scale_name, str) and scale_name not in (name, link) else "",
        enum=None if known else _enum(array.datatype),
        forms=forms,
    )


def _own(values: Mapping[str, Any], *, is_scale: bool) -> dict[str, Any]:
    """Return attributes without internal ones; images of HDF5 and files of PyTables have their own of such names."""
    internal = INTERNAL if is_scale else INTERNAL - OF_SCALES
    return {name: value for name, value in values.items() if name not in internal}


def _scales(files: LinkedFiles, array: Hdf5Array, file_number: int, attributes: Attributes) -> tuple[Place | None, ...]:
    """Return the place of the last scale of each axis, which is the one that netCDF uses."""
    nothing = (None,) * len(array.shape)
    if b"DIMENSION_LIST" not in attributes.names:
        return nothing
    if attributes.scales is not None:
        places = [None if address is None else (file_number, address) for address in attributes.scales]
        if {*places} <= {None, *files.places}:  # others may lead nowhere
            return tuple(places) if len(places) == len(nothing) else nothing
    with suppress(Exception):  # HDF5 and h5py raise many kinds
        axes = references(array.dataset, "DIMENSION_LIST")
        return tuple(_target(array.dataset, refs) for refs in axes) if len(axes) == len(nothing) else nothing
    return nothing


def _other_scales(item: ScannedArray) -> Iterator[Translation]:
    """Yield the scales of the axes of a dataset that are not the last ones."""
    if not any(item.scales):
        return
    with suppress(Exception):  # as above
        for axis, refs in enumerate(references(item.array.dataset, "DIMENSION_LIST")):
            for ref in refs[:-1]:
                name = h5i.get_name(h5r.dereference(ref, item.array.dataset.id)) or b"without a name"
                text = f"dimension scale {name.decode('utf-8', 'surrogateescape')} of axis {axis}"
                yield Translation(item.array.path, "other scales", text)


def _target(dataset: h5py.Dataset, refs: list[Any]) -> Place | None:
    return place_of(h5r.dereference(refs[-1], dataset.id)) if refs else None


def largest_extent(scale: h5py.Dataset) -> int:
    """Return the largest extent of the axes that have a dimension, in all groups of the file."""
    largest = int(scale.shape[0])
    for ref, axis in scale.attrs.get("REFERENCE_LIST", ()):
        with suppress(Exception):  # of a dataset that was deleted
            largest = max(largest, h5r.dereference(ref, scale.id).shape[axis])
    return largest


def _enum(datatype: h5t.TypeID) -> Enum | None:
    """Return an enumeration; None for other types."""
    if not isinstance(datatype, h5t.TypeEnumID):
        return None
    indexes = range(datatype.get_nmembers())
    members = {datatype.get_member_name(i).decode("utf-8"): int(datatype.get_member_value(i)) for i in indexes}
    return datatype.get_super().dtype, members


@dataclass(slots=True)
class GroupDimensions:
    """The dimensions of a group."""

    around: GroupDimensions | None  # Dimensions of the enclosing group; None for the root group
    # Dimensions by name. Unnamed ones are numbered: see `name_axes`.
    own: dict[str, Dimension] = field(default_factory=dict)
    places: dict[Place, str] = field(default_factory=dict)  # Names by place of their datasets
    ids: dict[int, str] = field(default_factory=dict)
    # Names of the dimensions of each dataset, by its name in the file
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def size(self, name: str) -> int:
        """Return the size of a dimension of this group or an enclosing one."""
        return self.own[name].size if name in self.own or self.around is None else self.around.size(name)

    def at(self, place: Place) -> str | None:
        """Return the name of the dimension at a place, in this group or an enclosing one."""
        if place in self.places or self.around is None:
            return self.places.get(place)
        return self.around.at(place)

    def of_id(self, number: int) -> str | None:
        """Return the name of the dimension with a number, in this group or an enclosing one."""
        return self.ids.get(number) or (None if self.around is None else self.around.of_id(number))


def named_dimensions(group: ScannedGroup, around: GroupDimensions | None) -> GroupDimensions:
    """Return the named dimensions of a group; `axes` is still empty."""
    dimensions = GroupDimensions(around)
    users: dict[Place, list[int]] = {}
    for item in group.arrays:
        for scale, extent in zip(item.scales, item.array.shape, strict=True):
            if scale is not None:
                users.setdefault(scale, []).append(extent)
    for item in group.arrays:
        if item.is_scale:
            size = item.array.shape[0]
            if item.is_unlimited:
                extents = users.get(item.place, [])
                # Its other users are in other groups.
                elsewhere = item.user_count > len(extents)
                size = largest_extent(item.array.dataset) if elsewhere else max(size, *extents, size)
            dimensions.own[item.name] = Dimension(size, item.is_unlimited)
            dimensions.places[item.place] = item.name
            if item.dimension_id is not None:
                dimensions.ids[item.dimension_id] = item.name
    return dimensions


def count_phony(group: ScannedGroup, dimensions: GroupDimensions) -> int:
    """Return how many numbered dimensions a group has."""
    before = len(dimensions.own)
    trial = GroupDimensions(dimensions.around, dict(dimensions.own), dimensions.places, dimensions.ids)
    name_axes(group, trial, 0)
    return len(trial.own) - before


def name_axes(group: ScannedGroup, dimensions: GroupDimensions, first: int) -> None:
    """Name the dimensions of each dataset; unnamed dimensions are numbered from `first`.

    As in netCDF-C, an axis without a dimension takes one of the group with the same size, unlimited or not like the
    axis, that no other axis of the dataset uses. A new dimension of no elements is unlimited.
    """
    for item in group.arrays:
        names: list[str | None] = list(_known_names(item, dimensions))
        for axis, (size, most) in enumerate(zip(item.array.shape, item.array.maxshape, strict=True)):
            if names[axis] is None:
                wanted = Dimension(size, most is None)
                alike = (name for name, own in dimensions.own.items() if own == wanted and name not in names)
                names[axis] = name = next(alike, f"phony_dim_{first}")
                if name not in dimensions.own:
                    dimensions.own[name] = Dimension(size, most is None or not size)
                    first += 1
        dimensions.axes[item.link] = tuple(name or "" for name in names)


def _known_names(item: ScannedArray, dimensions: GroupDimensions) -> tuple[str | None, ...]:
    """Return the names that the file gives to the axes of a dataset; None for an axis without a fitting one."""
    array = item.array
    if item.dimension_ids:
        names = tuple(map(dimensions.of_id, item.dimension_ids))
    elif item.is_scale:
        names = (item.name, *(None,) * (len(array.shape) - 1))
    else:
        names = tuple(None if place is None else dimensions.at(place) for place in item.scales)

    def fits(name: str, extent: int, most: int | None) -> bool:
        """Return whether an axis has the length of a dimension, or may grow to it."""
        size = dimensions.size(name)
        return size == extent or (most is None and size > extent)

    # HDF5 accepts scales of another length, such as edges of cells; netCDF does not.
    axes = zip(names, array.shape, array.maxshape, strict=True)
    return tuple(name if name is not None and fits(name, extent, most) else None for name, extent, most in axes)


_MOST_LEVELS = 500
"""Limit of groups within groups, which Python can recurse into."""

_MOST_REPEATED = 10_000
"""Limit of paths to groups that have another path: with links upon links their number grows without measure."""

_TOO_MANY = f"hard links give groups more than {_MOST_REPEATED:,} further paths"


class GroupPaths:
    """A walk over groups."""

    def __init__(
        self, scan: Callable[[str], ScannedGroup], leads_to_group: Callable[[str], bool], follow: bool, own_first: bool
    ) -> None:
        self._scan, self._leads_to_group, self._follow, self._own_first = scan, leads_to_group, follow, own_first
        self._listed: set[Place] = set()
        self._repeated_count = 0

    def inside(self, path: str, *, repeated: bool = False) -> Iterator[str]:
        """Yield the paths of a group, and of the groups in it; `repeated` if it has another path, too."""
        if path.count("/") > _MOST_LEVELS:
            raise FileError(f"expected at most {_MOST_LEVELS} levels of groups, found more in {path[:80]}…")
        scanned = self._scan(path)
        if not repeated:
            self._listed.add(scanned.place)
        if self._own_first:
            yield path
        for name, inner in scanned.groups.items():
            inner_path = posixpath.join(path, name)
            is_repeated = repeated or inner.is_linked or inner.place in self._listed
            if is_repeated and not self._enters(scanned, name, inner_path):
                continue
            yield from self.inside(inner_path, repeated=is_repeated)
        if not self._own_first:
            yield path

    def _enters(self, scanned: ScannedGroup, name: str, path: str) -> bool:
        """Return whether an additional path to a group is included; others are left out."""
        self._repeated_count += 1
        if self._repeated_count > _MOST_REPEATED:
            if self._follow:
                scanned.left_out[name] = _TOO_MANY
            else:
                scanned.lost[name] = "hard links", f"hard link to a group: {_TOO_MANY}"
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
        lost = [Translation(posixpath.join(path, name), kind, words) for name, (kind, words) in group.lost.items()]
        lost += [
            Translation(posixpath.join(path, item.name), "scale names", f"name {item.scale_name!r} of its dimension")
            for item in group.arrays
            if item.scale_name
        ]
        return NamedGroup(
            path=path,
            dimensions=dimensions.own,
            variables=variables,
            attributes=self._visible(group.attributes),
            left_out=group.left_out,
            forms=group.forms,
            lost=lost,
        )

    def _visible(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return attributes for readers of netCDF, who hide all with names of internal ones; all for copies."""
        if not self._follow or not OF_SCALES & attributes.keys():
            return attributes
        return {name: value for name, value in attributes.items() if name not in OF_SCALES}

    def extras(self) -> Iterator[Translation]:
        """Yield all scales of axes but the last ones, and the user block."""
        users: Counter[Place] = Counter()
        scanned = [self._scan(path) for path in self.group_paths()]
        arrays = {item.place: item for group in scanned for item in group.arrays}.values()
        for item in arrays:
            users.update(place for place in item.scales if place is not None)
        if any(item.user_count > users[item.place] for item in arrays):
            for item in arrays:
                yield from _other_scales(item)
        if nbytes := int(self._file.userblock_size):
            yield Translation("/", "user block", f"user block of {nbytes} bytes")

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it, by all hard links, in the order of the file."""
        return list(self._inner_paths(_normal(path), own_first=True))

    def _variable(self, item: ScannedArray, dimensions: GroupDimensions, group: str) -> NamedArray:
        array, names = item.array, dimensions.axes[item.link]
        attributes = item.attributes
        if self._restored(item):
            attributes = without_companion(attributes, array.dataset)
        return NamedArray(
            path=posixpath.join(group, item.name),
            dimensions=names,
            shape=tuple(map(dimensions.size, names)),
            stored_shape=array.shape,
            dtype=array.numpy_type or array.storage.chunk.dtype,
            fill_value=array.fill.value,
            attributes=self._visible(attributes),
            chunk_shape=array.storage.chunk_shape,
            pipeline=array.storage.pipeline,
            enum=self._enum(item, group),
            forms=item.forms,
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
        return self._restore and item.array.marks.has_companion

    def _scan(self, path: str) -> ScannedGroup:
        if path not in self._scanned:
            filename = filename_of(self._file)
            with reading(filename, dataset=path):
                group = self._file.get(path.encode("utf-8", "surrogateescape"))
                if not isinstance(group, h5py.Group):
                    kind = "none" if group is None else "a dataset"
                    raise FileError(f"{filename}: expected a group at {path!r}, found {kind}").at(dataset=path)
                scanned = scan_group(self._linked_files, path, group, self._datasets, follow=self._follow)
            self._scanned[path] = scanned
            self._leave_out_cycles(path, scanned)
        return self._scanned[path]

    def _leave_out_cycles(self, path: str, scanned: ScannedGroup) -> None:
        """Make links of the groups in a group that are itself or enclose it: their paths would never end."""
        around = {scanned.place: path}
        while path != "/" and scanned.groups:
            path = posixpath.dirname(path)
            around[self._scan(path).place] = path
        for name, inner in list(scanned.groups.items()):
            if inner.place in around:
                del scanned.groups[name]
                words = f"hard link to {around[inner.place]}, which encloses it"
                scanned.lost.setdefault(name, ("cycles", words))

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

    @lazy_property
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
