"""A comparison of two HDF5 files, object by object; see `tamis.stores.protocols.StoreComparison`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5d, h5l, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.formats.hdf5.compare.elements import (
    GONE,
    NOTHING,
    ObjectPaths,
    array_text,
    changed_fill,
    differing,
    element_text,
    followed_values,
    same_stored_chunks,
    unequal_values,
    without_target,
)
from tamis.formats.hdf5.lib.attributes import stored_values, text_attribute
from tamis.formats.hdf5.lib.datatypes import text_of, type_words
from tamis.formats.hdf5.lib.elsewhere import linked_file, same_sources
from tamis.formats.hdf5.lib.quick_facts import bare_address, quick_links
from tamis.formats.hdf5.lib.references import attribute_names, has_references
from tamis.formats.hdf5.stored_array import Hdf5Array, about_companion
from tamis.formats.hdf5.tree.links import group_filters, in_order, is_old_group, link_words, links_of
from tamis.formats.hdf5.tree.scope import group_at
from tamis.formats.hdf5.tree.walk import Contents, address_of
from tamis.formatting import shortened
from tamis.meaning import TIME_ATTRIBUTES
from tamis.meaning.variables import HISTORY
from tamis.safety.library_errors import reading
from tamis.stores.comparison import history_change, new_dataset, times_change
from tamis.stores.facts import ELSEWHERE
from tamis.stores.protocols import Change, Linked, Unequal

if TYPE_CHECKING:
    from tamis.formats.hdf5.store import Hdf5Store


Array = NDArray[Any]

_NAMED_TYPE = "named type"
_SCALE_OF, _AXES = b"REFERENCE_LIST", b"DIMENSION_LIST"
_GONE = "references to objects that do not exist"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two files."""

    name: str  # Name of the attribute or link
    text: str  # The difference in words
    added: bool = False  # Whether only the target has it
    harmless: bool = False  # Whether the source has what no copy can have
    linked: Linked | None = None  # Where external links lead that lead to different files


def attribute_differences(source: Any, target: Any, objects: tuple[ObjectPaths, ObjectPaths]) -> Iterator[Difference]:
    """Yield differences of the attributes of two objects: names, types except for byte order, shapes and values."""
    names, others = attribute_names(source), attribute_names(target)
    objects = objects[0].seen_from(source), objects[1].seen_from(target)
    for name in names:
        text = text_of(name)
        if name not in others:
            if name not in (_SCALE_OF, _AXES) or _has_target(h5a.open(source, name), objects[0]):
                yield Difference(text, f"attribute {text!r} is lost")
            continue
        try:
            change = _attribute_difference(name, (h5a.open(source, name), h5a.open(target, name)), objects)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError) as error:
            raise FileError(f"attribute {text!r} cannot be read: {error}") from error
        if change:
            yield Difference(text, f"attribute {text!r}: {change}", harmless=change.startswith(_GONE))
    for name in sorted({*others} - {*names}):
        yield Difference(text_of(name), f"attribute {text_of(name)!r} is new", added=True)


def link_differences(
    source: h5py.Group, target: h5py.Group, objects: tuple[ObjectPaths, ObjectPaths]
) -> Iterator[Difference]:
    """Yield differences of the targets of links in two groups, except for lost or new datasets and groups."""
    before, after = (_links(group, own) for group, own in zip((source, target), objects, strict=True))
    for name, link in before.items():
        if name not in after:
            if not link.is_object:
                yield Difference(text_of(name), f"{link.text} is lost")
        elif (linked := link.linked(after[name])) is not None:
            yield Difference(text_of(name), f"{link.text} leads to another file", harmless=True, linked=linked)
        elif not link.leads_alike(after[name]):
            yield Difference(text_of(name), f"{link.text} became {after[name].text}")
        elif link.text.startswith(_NAMED_TYPE):
            types = h5t.open(source.id, name), h5t.open(target.id, name)
            for difference in attribute_differences(*types, objects):
                yield replace(difference, name=text_of(name))
    for name, link in after.items():
        if name not in before and not link.is_object:
            yield Difference(text_of(name), f"{link.text} is new", added=True)


def own_links(path: str, group: h5py.Group, own: ObjectPaths) -> list[bytes] | None:
    """Return the names of all links of a group that certainly has nothing else, and only links to its own objects.

    None for other groups, and for unreadable ones: these are compared in full.
    """
    if own.scope.is_linked or (address := bare_address(group.id)) is None or own.path_at(address) != path:
        return None
    if (links := quick_links(group.id)) is None:
        return None
    start = path.rstrip("/")
    for name, kind, target, *_ in links:
        if kind != h5l.TYPE_HARD or own.path_at(target) != f"{start}/{name.decode('utf-8', 'surrogateescape')}":
            return None
    return sorted(name for name, *_ in links)


def group_changes(source: h5py.Group, target: h5py.Group) -> Iterator[tuple[str, str]]:
    """Yield code and text of changes of a group itself: its filters, and the order of its links."""
    if is_old_group(source.id) and is_old_group(target.id):
        return  # such groups have neither
    old_filters, new_filters = group_filters(source), group_filters(target)
    if old_filters != new_filters:
        yield "group-filters", f"filters of the group's links {old_filters} became {new_filters}"
    before, after = _creation_order(source), _creation_order(target)
    if before is None:
        return
    if after is None:
        yield "creation-order", "the order in which links were created is no longer recorded"
        return
    old_names = [name for name in before if name in {*after}]
    new_names = [name for name in after if name in {*before}]
    for old, new in zip(old_names, new_names, strict=True):
        if old != new:
            yield "creation-order", f"links were created in another order, {text_of(new)} where {text_of(old)} was"
            return


def _creation_order(group: h5py.Group) -> list[bytes] | None:
    """Return the names of links in the order of creation; None if the group does not record it."""
    links = links_of(group.id)
    if links:
        return None if links[0].order is None else [link.name for link in in_order(links)]
    tracked = group.id.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    return [] if tracked else None


def _attribute_difference(name: bytes, pair: tuple[Any, Any], objects: tuple[ObjectPaths, ObjectPaths]) -> str:
    """Return how an attribute changed, in words; empty if it did not."""
    types = [type_words(attribute.get_type()) for attribute in pair]
    shapes = [
        None if attribute.get_space().get_simple_extent_type() == h5s.NULL else attribute.shape for attribute in pair
    ]
    alike = types[0] == types[1] and shapes[0] == shapes[1]
    if any(shape is None or 0 in shape for shape in shapes):
        return "" if alike else f"{types[0]} of shape {shapes[0]} became {types[1]} of shape {shapes[1]}"
    before, after = (_attribute_values(attribute, own) for attribute, own in zip(pair, objects, strict=True))
    count = np.count_nonzero(without_target(before, after)) if before.shape == after.shape else 0
    gone = f"{_GONE}: {count} became null" if count else ""
    if name == _SCALE_OF and all(_is_list_of_references(attribute) for attribute in pair):
        old, new = _belonging(before, objects[0]), _belonging(after, objects[1])
        return gone if old == new else f"{shortened(', '.join(old))} became {shortened(', '.join(new))}"
    if name == _AXES:
        before, after = map(_existing, (before, after))
    if alike and not differing(before, after, before.dtype).any():
        return gone
    old_text, new_text = array_text(before), array_text(after)
    if old_text != new_text:
        return f"{old_text} became {new_text}"
    if not alike:
        return f"{types[0]} of shape {shapes[0]} became {types[1]} of shape {shapes[1]}"
    return "values differ"


def _has_target(attribute: Any, own: ObjectPaths) -> bool:
    """Return whether a list of a dimension scale, or of the scales of axes, has an object that a copy can have."""
    values = _attribute_values(attribute, own)
    if _is_list_of_references(attribute):
        return bool(_belonging(values, own))
    return values.dtype.kind != "O" or any(_existing(values).tolist())


def _existing(values: Array) -> Array:
    """Return lists of references without those to objects that do not exist."""
    kept = np.empty(values.shape, object)
    for index in np.ndindex(values.shape):
        is_list = isinstance(values[index], list)
        kept[index] = [item for item in values[index] if item not in (GONE, NOTHING)] if is_list else values[index]
    return kept


def _is_list_of_references(attribute: Any) -> bool:
    kind = attribute.get_type()
    return isinstance(kind, h5t.TypeCompoundID) and has_references(kind) and len(attribute.shape) == 1


def _belonging(values: Array, own: ObjectPaths) -> list[str]:
    """Return the datasets of a dimension scale, without companions, sorted, because their order has no meaning."""
    if values.dtype.kind != "O" or values.ndim != 1:
        return ["a value that is not a list of references"]
    return sorted(element_text(entry) for entry in values if entry[0] not in (*own.companions, GONE, NOTHING))


def _attribute_values(attribute: Any, own: ObjectPaths) -> Array:
    file_type = attribute.get_type()
    if has_references(file_type):
        space = attribute.get_space()
        return followed_values(attribute, file_type, space, space, own)
    return stored_values(attribute)


class _Link(NamedTuple):
    """The target of a link in words; whether it is a dataset or group of the walk; file and path if it is external."""

    text: str
    is_object: bool = False
    external: tuple[str | None, bytes] | None = None

    def leads_alike(self, other: _Link) -> bool:
        if self.external is None or self.external[0] is None:
            return self.text == other.text
        return self.external == other.external

    def linked(self, other: _Link) -> Linked | None:
        """Return where two external links lead if they lead to the same path in different files; None otherwise."""
        if self.external is None or other.external is None or self.external[1] != other.external[1]:
            return None
        before, after = self.external[0], other.external[0]
        if before is None or before == after or (after is None and self.text != other.text):
            return None
        return Linked(before, after, text_of(self.external[1]))


def _links(group: h5py.Group, own: ObjectPaths) -> dict[bytes, _Link]:
    """Return the links of a group by name."""
    links: dict[bytes, _Link] = {}
    own_path = own.path_at(own.scope.address(group.id)).rstrip("/")
    for link in sorted(own.scope.links(group.id), key=lambda link: link.name):
        name, kind, address, *_ = link
        if kind == h5l.TYPE_HARD:
            path = own.path_at(address)
            if not path:
                links[name] = _Link(f"{_NAMED_TYPE} {type_words(own.scope.open(group.id, link))}")
            elif path == f"{own_path}/{name.decode('utf-8', 'surrogateescape')}":
                links[name] = _Link("object", is_object=True)
            else:
                links[name] = _Link(f"hard link to {path}")
        elif kind == h5l.TYPE_EXTERNAL:
            file, inner = group.id.links.get_val(name)
            file_path = linked_file(file, group.file.filename)
            links[name] = _Link(link_words(group, link), external=(file_path, inner))
        else:
            links[name] = _Link(link_words(group, link))
    return links


# Attributes of the netCDF library for its own use; it numbers dimensions anew in each file.
_BOOKKEEPING = ("_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict")


class Hdf5Comparison:
    """Two files; their objects are compared by the paths of the first."""

    same_format = True

    def __init__(self, before: Hdf5Store, after: Hdf5Store, *, dropped: Collection[str] = ()) -> None:
        self._before, self._after = before, after
        left_out = frozenset(before.arrays[path].address for path in dropped)
        self._objects = _objects(before, left_out=left_out), _objects(after, before.contents)

    @property
    def companions(self) -> Mapping[str, str]:
        """Companions of the first file, with the paths of their variables."""
        return self._objects[0].companions

    def as_read(self, path: str, source: Hdf5Array, target: Hdf5Array) -> tuple[Hdf5Array, Hdf5Array]:
        """Return the arrays as they are: both have the same dimensions."""
        return source, target

    def repeated(self) -> Mapping[str, str]:
        """Return nothing: the second file has the same links, which are compared with the groups."""
        return {}

    def counterpart(self, path: str) -> Hdf5Array | None:
        """Return the array of the second file at a path, through any links; None if there is none."""
        return self._after.contents.datasets.get(path) or Hdf5Array.at(self._after.file, path)

    def attribute_changes(self, path: str, source: Hdf5Array, target: Hdf5Array) -> Iterator[Change]:
        """Yield changes of the attributes of an array."""
        return self._attribute_changes(path, source.dataset.id, target.dataset.id)

    def type_note(self, source: Hdf5Array, target: Hdf5Array) -> str:
        """Return how a named type changed; empty if it did not."""
        kinds = ["a named type" if array.type.is_named else "one without a name" for array in (source, target)]
        return "" if kinds[0] == kinds[1] else f"the type, {kinds[0]}, became {kinds[1]}"

    def same_value_type(self, source: Hdf5Array, target: Hdf5Array) -> bool:
        """Return False: the types of HDF5 files are the same, or differ."""
        return False

    def fill_note(self, source: Hdf5Array, target: Hdf5Array) -> str:
        """Return how the fill value of arrays of the same type changed; empty if it did not."""
        return changed_fill(source, target, self._objects)

    def unequal_elements(
        self, source: Hdf5Array, target: Hdf5Array, progress: Callable[[int, int], None]
    ) -> Unequal | None:
        """Compare the elements of arrays of the same shape and type that are not numbers."""
        return unequal_values(source, target, self._objects, progress)

    def same_stored_chunks(self, source: Hdf5Array, target: Hdf5Array) -> bool:
        """Return whether arrays have the same values because all stored bytes are the same."""
        return same_stored_chunks(source, target)

    def same_elsewhere(self, source: Hdf5Array, target: Hdf5Array) -> bool:
        """Return whether arrays have the same values because both refer to the same parts of the same other files."""
        if (
            source.storage.layout not in ELSEWHERE
            or target.storage.layout != source.storage.layout
            or self.fill_note(source, target)
        ):
            return False
        return same_sources((source.dataset, self._before.path), (target.dataset, self._after.path))

    def unlisted(self) -> Iterator[tuple[str, str]]:
        """Yield the groups that cannot be listed, with the reason."""
        for store in (self._before, self._after):
            for path, reason in store.contents.closed.items():
                yield path, f"{store.path}: {reason}"

    def groups(self) -> Iterator[tuple[str, list[Callable[[], Iterator[Change]]]]]:
        """Yield the path of each group of the first file, and functions that yield its changes."""
        for path, group in self._before.contents.groups.items():
            other = self._after.contents.groups.get(path)
            if other is None:
                other = group_at(self._after.file, path)
            yield path, self._comparisons(path, group, other)

    def _comparisons(self, path: str, group: Any, other: Any) -> list[Callable[[], Iterator[Change]]]:
        if other is None:
            return [lambda: iter([Change(path, "missing-group", "no such group in the target", harmless=False)])]
        links = own_links(path, group, self._objects[0])
        if links is not None and links == own_links(path, other, self._objects[1]):
            return []
        attributes = partial(self._attribute_changes, path, group.id, other.id)
        if path in self._before.contents.closed or path in self._after.contents.closed:
            return [attributes]
        return [attributes, partial(self._group_changes, path, group, other)]

    def _group_changes(self, path: str, group: Any, other: Any) -> Iterator[Change]:
        for code, text in group_changes(group, other):
            yield Change(path, code, text)
        for link in link_differences(group, other, self._objects):
            harmless = link.added or link.harmless
            link_path = f"{path.rstrip('/')}/{link.name}"
            yield Change(link_path, "link", link.text, harmless=harmless, linked=link.linked)

    def new_objects(self) -> Iterator[Change]:
        """Yield the objects that only the second file has."""
        before, after = self._before.contents, self._after.contents
        known = before.datasets.keys() | before.groups.keys()
        for kind, members in (("dataset", after.datasets), ("group", after.groups)):
            for path in members:
                # Another path to an object of the source is a new link, not a new object.
                if path in known or not self._objects[1].named(path, address_of(members[path])):
                    continue
                if path in self._objects[1].companions:
                    yield Change.of_companion(path, self._objects[1].companions[path])
                elif kind == "group":
                    yield Change(path, "new-group", "only in the target")
                else:
                    array = after.datasets[path]
                    yield new_dataset(path, array.shape, array.attributes)

    def _attribute_changes(self, path: str, source: Any, target: Any) -> Iterator[Change]:
        for change in attribute_differences(source, target, self._objects):
            if change.added:
                yield Change.of_new_attribute(path, change.name)
                continue
            if (path, change.name) == ("/", HISTORY):
                before, after = (text_attribute(h5py.Group(owner), HISTORY) or "" for owner in (source, target))
                if (note := history_change(path, HISTORY, before, after)) is not None:
                    yield note
                    continue
            bookkeeping = change.name in _BOOKKEEPING or about_companion(change.name, source, target)
            harmless = bookkeeping or change.harmless
            found = Change(path, "attribute", change.text, harmless=harmless, attribute=change.name)
            if change.name in TIME_ATTRIBUTES and isinstance(source, h5d.DatasetID):
                found = times_change(found, *map(_time_attributes, (source, target)))
            yield found


def _time_attributes(owner: Any) -> dict[str, str]:
    """Return the attributes of an object that say which times its numbers are, as far as they are texts."""
    texts = {name: text_attribute(h5py.Dataset(owner), name) for name in TIME_ATTRIBUTES}
    return {name: text for name, text in texts.items() if text is not None}


def _objects(store: Hdf5Store, like: Contents | None = None, left_out: frozenset[int] = frozenset()) -> ObjectPaths:
    with reading(store.path):
        return ObjectPaths(store.file, store.contents, like, left_out)
