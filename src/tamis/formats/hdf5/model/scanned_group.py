"""The datasets of a group, with netCDF-4's records of their dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5i, h5l, h5o, h5r, h5t

from tamis.formats.hdf5.lib.attributes import is_bare_name
from tamis.formats.hdf5.lib.file_facts import filename_of
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths
from tamis.formats.hdf5.lib.other_files import end_of
from tamis.formats.hdf5.lib.quick_facts import Depth, QuickFacts, quick_look
from tamis.formats.hdf5.model.attributes import (
    attribute_forms,
    attribute_value,
    attribute_values,
    known_attribute,
    names_of,
    references,
)
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.walk import Datasets, Link, in_order, link_words, links_of
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.stores.data_model import AttributeForm

Enum = tuple[np.dtype[Any], Mapping[str, int]]
"""An enumeration: type of its numbers, and numbers by member."""


Place = tuple[int, int]
"""What identifies an object in open files: HDF5's number of its file, and its address there."""

_NOWHERE = "expected an object, got a link that leads nowhere"


class LinkedFiles:
    """A file, and the other files that its links lead to, which stay open so that HDF5 keeps their numbers."""

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self._number = h5o.get_info(file.id).fileno
        self._others: dict[int, h5py.File] = {}

    def file_of(self, item: h5d.DatasetID | h5g.GroupID) -> h5py.File:
        """Return the file of an object."""
        number = h5o.get_info(item).fileno
        if number == self._number:
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
    groups: Mapping[str, InnerGroup]
    enums: Mapping[str, Enum]
    left_out: dict[str, str] = field(default_factory=dict)
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)  # Links that are not followed, in words


def scan_group(
    files: LinkedFiles, path: str, group: h5py.Group, datasets: Datasets | None, *, follow: bool
) -> ScannedGroup:
    """Scan all objects of a group; external links, and soft links to groups, are only followed on request.

    `datasets` are those of the file, if they are listed: they may have facts that need not be read again.
    """
    arrays: dict[str, Hdf5Array] = {}
    known: dict[str, ScannedArray] = {}
    groups: dict[str, InnerGroup] = {}
    enums: dict[str, Enum] = {}
    left_out: dict[str, str] = {}
    links: dict[str, str] = {}
    filename, is_own = filename_of(files.file), files.file_of(group.id) is files.file
    kinds = (h5l.TYPE_HARD, h5l.TYPE_SOFT, *((h5l.TYPE_EXTERNAL,) if follow else ()))
    for link in in_order(links_of(group.id)):
        name = link.name.decode("utf-8", "surrogateescape")
        if link.kind != h5l.TYPE_HARD:
            links[name] = link_words(group, link)
        if link.kind not in kinds:
            continue
        item_path = f"{path.rstrip('/')}/{name}"
        with reading(filename, dataset=item_path):
            try:
                if link.kind == h5l.TYPE_SOFT and not follow and end_of(files.file, item_path) is not files.file:
                    continue  # it leads to another file, or nowhere
                looked = _look(files.file, group, link, item_path, datasets) if is_own else None
                item = looked or h5o.open(group.id, link.name)
            except (KeyError, OSError, RuntimeError):
                if link.kind == h5l.TYPE_HARD and h5o.get_info(group.id, link.name).type == h5o.TYPE_DATASET:
                    raise
                if link.kind != h5l.TYPE_HARD and follow:
                    left_out[name] = _NOWHERE
                continue  # a link that leads nowhere, or a type of values that HDF5 cannot open
            if isinstance(item, ScannedArray):
                arrays[name], known[name] = item.array, item
            elif isinstance(item, h5g.GroupID):
                if link.kind == h5l.TYPE_HARD or follow:
                    groups[name] = InnerGroup(_place(item), link.kind != h5l.TYPE_HARD)
                    links.pop(name, None)
            elif isinstance(item, h5t.TypeID) and (enum := _enum(item)):
                enums[name] = enum
            elif isinstance(item, h5d.DatasetID):
                links.pop(name, None)
                array = _array(files, item, item_path)
                if reason := _no_variable(array):
                    left_out[name] = reason
                else:
                    arrays[name] = array
    # All others are opened before any attribute is read: libhdf5 trusts the references of variable-length values,
    # and may crash on a damaged file.
    scanned = []
    names = renamed_paths(group, [*arrays, *left_out])
    left_out = {names.get(name, name): reason for name, reason in left_out.items()}
    for name, array in arrays.items():
        if name in known:
            scanned.append(replace(known[name], name=names[name]) if name in names else known[name])
            continue
        with reading(filename, dataset=f"{path.rstrip('/')}/{name}"):
            scanned.append(_scanned(array, names.get(name, name), name))
    attributes, forms = attribute_values(group), attribute_forms(group)
    return ScannedGroup(group, _place(group.id), attributes, tuple(scanned), groups, enums, left_out, forms, links)


def _look(
    file: h5py.File, group: h5py.Group, link: Link, path: str, datasets: Datasets | None
) -> h5g.GroupID | ScannedArray | None:
    """Return the target of a hard link: a group, or a whole small dataset of numbers without internal attributes."""
    if link.kind != h5l.TYPE_HARD:
        return None
    if datasets is not None and (facts := datasets.facts_at(path, link.address)) is not None:
        array, item = datasets[path], facts
    else:
        looked = quick_look(file, group.id, link.name, Depth.attributes)
        if not isinstance(looked, QuickFacts):
            return looked
        array, item = Hdf5Array(file, path, stored_path=path, address=link.address), looked
        array.take(item)
    known = [content and known_attribute(content) for content in item.contents or ()]
    if array.form is None or not all(known):
        return None
    place, scales, name = (h5o.get_info(group.id).fileno, link.address), (None,) * len(array.shape), link.text
    attributes = {entry[0]: entry[1] for entry in known if entry}
    forms = {entry[0]: entry[2] for entry in known if entry and entry[2]}
    return ScannedArray(name, name, array, place, attributes, False, False, None, (), scales, 0, None, forms)


def _array(files: LinkedFiles, item: h5d.DatasetID, path: str) -> Hdf5Array:
    """Return an open dataset as a stored array of its own file."""
    file, dataset = files.file_of(item), h5py.Dataset(item, readonly=True)
    own_path = path if file is files.file else str(dataset.name)
    array = Hdf5Array(file, own_path, stored_path=own_path)
    array.keep(dataset)
    return array


def _place(item: h5d.DatasetID | h5g.GroupID) -> Place:
    info = h5o.get_info(item)
    return int(info.fileno), int(info.addr)


def _no_variable(array: Hdf5Array) -> str:
    """Return why a dataset cannot be a variable; empty if it can."""
    if array.shape is None:
        return "expected an array or a scalar, got a null dataspace, which has no values"
    if array.numpy_type is None:
        return f"expected numbers, characters or text, got {array.type_text}"
    if array.numpy_type.subdtype is not None:
        return "expected numbers, characters or text, got elements that are arrays, which netCDF allows only in records"
    if array.datatype.detect_class(h5t.REFERENCE):
        return "expected numbers, characters or text, got references to objects, which mean nothing outside the file"
    return ""


def _scanned(array: Hdf5Array, name: str, link: str) -> ScannedArray:
    """Read everything about a dataset while it is open."""
    dataset = array.dataset
    names = names_of(dataset)
    is_scale = bool(array.shape) and _internal(dataset, names, "CLASS") == "DIMENSION_SCALE"
    is_bare = is_scale and is_bare_name(_internal(dataset, names, "NAME", ""))
    ids = np.atleast_1d(_internal(dataset, names, "_Netcdf4Coordinates", ())).tolist() if is_scale else ()
    number = _internal(dataset, names, "_Netcdf4Dimid") if is_scale else None
    _ = array.maxshape, array.chunk_shape, array.pipeline, array.fill_value, array.has_companion
    return ScannedArray(
        link if is_bare else name,
        link,
        array,
        _place(dataset.id),
        attribute_values(dataset, names),
        is_scale,
        is_bare,
        int(number) if isinstance(number, np.integer) else None,
        tuple(ids) if len(ids) == len(array.shape) else (),
        _scales(dataset, names),
        h5a.open(dataset.id, b"REFERENCE_LIST").shape[0] if is_scale and "REFERENCE_LIST" in names else 0,
        _enum(array.datatype),
        attribute_forms(dataset),
    )


def _internal(dataset: h5py.Dataset, names: list[str], name: str, default: Any = None) -> Any:
    """Return the value of an internal attribute; the default if it does not exist or is damaged."""
    if name in names:
        with suppress(Exception):  # HDF5 and h5py raise many kinds
            return attribute_value(dataset, name)
    return default


def _scales(dataset: h5py.Dataset, names: list[str]) -> tuple[Place | None, ...]:
    """Return the place of the last scale of each axis, which is the one that netCDF uses."""
    nothing = (None,) * len(dataset.shape)
    if "DIMENSION_LIST" in names:
        with suppress(Exception):  # HDF5 and h5py raise many kinds
            axes = references(dataset, "DIMENSION_LIST")
            return tuple(_target(dataset, refs) for refs in axes) if len(axes) == len(nothing) else nothing
    return nothing


def _target(dataset: h5py.Dataset, refs: list[Any]) -> Place | None:
    return _place(h5r.dereference(refs[-1], dataset.id)) if refs else None


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
