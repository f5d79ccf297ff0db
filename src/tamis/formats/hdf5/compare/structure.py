"""Compare two HDF5 files except for values: attributes and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5l, h5o, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.formats.hdf5.compare.elements import array_text, differing, element_text, followed_values, without_target
from tamis.formats.hdf5.lib.attributes import stored_values
from tamis.formats.hdf5.lib.datatypes import type_words
from tamis.formats.hdf5.lib.other_files import linked_file
from tamis.formats.hdf5.lib.quick_facts import bare_address, quick_links
from tamis.formats.hdf5.lib.references import has_references
from tamis.formats.hdf5.tree.groups import group_filters, is_old_group
from tamis.formats.hdf5.tree.objects import GONE, NOTHING, Objects
from tamis.formats.hdf5.tree.references import attribute_names
from tamis.formats.hdf5.tree.walk import in_order, link_words, links_of
from tamis.formatting import shortened

if TYPE_CHECKING:
    from tamis.formats.hdf5.stored_array import Hdf5Array

Array = NDArray[Any]

_NAMED_TYPE = "named type"
_SCALE_OF = b"REFERENCE_LIST"
_GONE = "references to objects that do not exist"


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two files."""

    name: str  # Name of the attribute or link
    text: str  # The difference in words
    added: bool = False  # Whether only the target has it
    harmless: bool = False  # Whether the source has what no copy can have


def attribute_differences(source: Any, target: Any, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Yield differences of the attributes of two objects: names, types except for byte order, shapes and values."""
    names, others = attribute_names(source), attribute_names(target)
    for name in names:
        text = _text(name)
        if name not in others:
            if name != _SCALE_OF or _belonging(_attribute_values(h5a.open(source, name), objects[0]), objects[0]):
                yield Difference(text, f"attribute {text!r} is lost")
            continue
        try:
            change = _attribute_difference(name, (h5a.open(source, name), h5a.open(target, name)), objects)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError) as error:
            raise FileError(f"attribute {text!r} cannot be read: {error}") from error
        if change:
            yield Difference(text, f"attribute {text!r}: {change}", harmless=change.startswith(_GONE))
    for name in sorted({*others} - {*names}):
        yield Difference(_text(name), f"attribute {_text(name)!r} is new", added=True)


def link_differences(source: h5py.Group, target: h5py.Group, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Yield differences of the targets of links in two groups, except for lost or new datasets and groups."""
    before, after = (_links(group, own) for group, own in zip((source, target), objects, strict=True))
    for name, link in before.items():
        if name not in after:
            if not link.is_object:
                yield Difference(_text(name), f"{link.text} is lost")
        elif not link.leads_alike(after[name]):
            yield Difference(_text(name), f"{link.text} became {after[name].text}")
        elif link.text.startswith(_NAMED_TYPE):
            types = h5t.open(source.id, name), h5t.open(target.id, name)
            for difference in attribute_differences(*types, objects):
                yield replace(difference, name=_text(name))
    for name, link in after.items():
        if name not in before and not link.is_object:
            yield Difference(_text(name), f"{link.text} is new", added=True)


def own_links(path: str, group: h5py.Group, own: Objects) -> list[bytes] | None:
    """Return the names of all links of a group that certainly has nothing else, and only links to its own objects.

    None for other groups, and for unreadable ones: these are compared in full.
    """
    if (address := bare_address(group.id)) is None or own.path_at(address) != path:
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
    filters = group_filters(source), group_filters(target)
    if filters[0] != filters[1]:
        yield "group-filters", f"filters of the group's links {filters[0]} became {filters[1]}"
    orders = _creation_order(source), _creation_order(target)
    if orders[0] is not None and orders[1] is None:
        yield "creation-order", "the order in which links were created is no longer recorded"
    elif orders[0] is not None and orders[1] is not None:
        shared = set(orders[0]) & set(orders[1])
        before, after = ([name for name in order if name in shared] for order in orders if order is not None)
        for old, new in zip(before, after, strict=True):
            if old != new:
                yield "creation-order", f"links were created in another order, {_text(new)} where {_text(old)} was"
                return


def named_type_change(source: Hdf5Array, target: Hdf5Array) -> str:
    """Return how a dataset gained or lost a named type; empty if it did not."""
    kinds = ["a named type" if array.has_named_type else "one without a name" for array in (source, target)]
    return "" if kinds[0] == kinds[1] else f"the type, {kinds[0]}, became {kinds[1]}"


def _creation_order(group: h5py.Group) -> list[bytes] | None:
    """Return the names of links in the order of creation; None if the group does not record it."""
    links = links_of(group.id)
    if links:
        return None if links[0].order is None else [link.name for link in in_order(links)]
    tracked = group.id.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    return [] if tracked else None


def _attribute_difference(name: bytes, pair: tuple[Any, Any], objects: tuple[Objects, Objects]) -> str:
    types = [type_words(attribute.get_type()) for attribute in pair]
    shapes = [
        None if attribute.get_space().get_simple_extent_type() == h5s.NULL else attribute.shape for attribute in pair
    ]
    empty = [shape is None or 0 in shape for shape in shapes]
    alike = types[0] == types[1] and shapes[0] == shapes[1]
    if any(empty):
        return "" if alike else f"{types[0]} of shape {shapes[0]} became {types[1]} of shape {shapes[1]}"
    before, after = (_attribute_values(attribute, own) for attribute, own in zip(pair, objects, strict=True))
    count = np.count_nonzero(without_target(before, after)) if before.shape == after.shape else 0
    gone = f"{_GONE}: {count} became null" if count else ""
    if name == _SCALE_OF and all(_is_list_of_references(attribute) for attribute in pair):
        sets = [_belonging(values, own) for values, own in zip((before, after), objects, strict=True)]
        return gone if sets[0] == sets[1] else f"{shortened(', '.join(sets[0]))} became {shortened(', '.join(sets[1]))}"
    if alike and not differing(before, after, before.dtype).any():
        return gone
    texts = [array_text(values) for values in (before, after)]
    if texts[0] != texts[1]:
        return f"{texts[0]} became {texts[1]}"
    if not alike:
        return f"{types[0]} of shape {shapes[0]} became {types[1]} of shape {shapes[1]}"
    return "values differ"


def _is_list_of_references(attribute: Any) -> bool:
    kind = attribute.get_type()
    return isinstance(kind, h5t.TypeCompoundID) and has_references(kind) and len(attribute.shape) == 1


def _belonging(values: Array, own: Objects) -> list[str]:
    """Return the datasets of a dimension scale, without companions, sorted, because their order has no meaning."""
    if values.dtype.kind != "O" or values.ndim != 1:
        return ["a value that is not a list of references"]
    return sorted(element_text(entry) for entry in values if entry[0] not in (*own.companions, GONE, NOTHING))


def _attribute_values(attribute: Any, own: Objects) -> Array:
    file_type = attribute.get_type()
    if has_references(file_type):
        space = attribute.get_space()
        return followed_values(attribute, file_type, space, space, own)
    return stored_values(attribute)


class _Link(NamedTuple):
    """The target of a link in words; whether it is a dataset or group of the walk; file and path if it is external."""

    text: str
    is_object: bool = False
    external: tuple[str, bytes] | None = None

    def leads_alike(self, other: _Link) -> bool:
        return self.text == other.text or (self.external is not None and self.external == other.external)


def _links(group: h5py.Group, own: Objects) -> dict[bytes, _Link]:
    """Return the links of a group by name."""
    links: dict[bytes, _Link] = {}
    own_path = own.path_at(h5o.get_info(group.id).addr).rstrip("/")
    for link in sorted(links_of(group.id), key=lambda link: link.name):
        name, kind, address, *_ = link
        if kind == h5l.TYPE_HARD:
            path = own.path_at(address)
            if not path:
                links[name] = _Link(f"{_NAMED_TYPE} {type_words(h5t.open(group.id, name))}")
            elif path == f"{own_path}/{name.decode('utf-8', 'surrogateescape')}":
                links[name] = _Link("object", is_object=True)
            else:
                links[name] = _Link(f"hard link to {path}")
        elif kind == h5l.TYPE_EXTERNAL:
            file, inner = group.id.links.get_val(name)
            file_path = linked_file(file, group.file.filename)
            target = None if file_path is None else (file_path, inner)
            links[name] = _Link(link_words(group, link), external=target)
        else:
            links[name] = _Link(link_words(group, link))
    return links


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
