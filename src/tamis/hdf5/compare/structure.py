"""What two HDF5 files have besides values, compared: attributes and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5a, h5l, h5o, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.hdf5.compare.elements import cut, shown, shown_all, unlike
from tamis.hdf5.lib.places import linked_file
from tamis.hdf5.lib.type_text import type_words
from tamis.hdf5.tree.groups import group_filters
from tamis.hdf5.tree.objects import Objects
from tamis.hdf5.tree.references import attribute_names

Array = NDArray[Any]

_NAMED_TYPE = "named type"
_SCALE_OF = b"REFERENCE_LIST"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that two files have not alike.

    Parameters
    ----------
    name
        Of the attribute or link.
    text
        What is so in the source, and what in the target.
    added
        Whether only the target has it.
    """

    name: str
    text: str
    added: bool = False


def attribute_differences(source: Any, target: Any, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Compare the attributes of two objects: names, types but for their byte order, shapes and values.

    Parameters
    ----------
    source, target
        Low-level identifiers.
    objects
        Of the source's file and the target's.

    Raises
    ------
    FileError
        If one cannot be read.
    """
    names, others = attribute_names(source), attribute_names(target)
    for name in names:
        text = _text(name)
        if name not in others:
            if name != _SCALE_OF or _belonging(_attribute_values(h5a.open(source, name)), objects[0]):
                yield Difference(text, f"attribute {text!r} is lost")
            continue
        try:
            said = _attribute_difference(name, (h5a.open(source, name), h5a.open(target, name)), objects)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError) as error:
            raise FileError(f"attribute {text!r} cannot be read: {error}") from error
        if said:
            yield Difference(text, f"attribute {text!r}: {said}")
    for name in others:
        if name not in names:
            yield Difference(_text(name), f"attribute {_text(name)!r} is new", added=True)


def link_differences(source: h5py.Group, target: h5py.Group, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Compare where the links of two groups lead to; leaves datasets and groups that are lost or new to the caller."""
    before, after = (_links(group, own) for group, own in zip((source, target), objects, strict=True))
    for name, link in before.items():
        if name not in after:
            if not link.is_object:
                yield Difference(_text(name), f"{link.text} is lost")
        elif not link.leads_alike(after[name]):
            yield Difference(_text(name), f"{link.text} became {after[name].text}")
        elif link.text.startswith(_NAMED_TYPE):
            types = h5t.open(source.id, name), h5t.open(target.id, name)
            for each in attribute_differences(*types, objects):
                yield Difference(_text(name), each.text, each.added)
    for name, link in after.items():
        if name not in before and not link.is_object:
            yield Difference(_text(name), f"{link.text} is new", added=True)


def group_changes(source: h5py.Group, target: h5py.Group) -> Iterator[tuple[str, str]]:
    """Yield code and text of what changed about a group itself: its filters, and the order of its links."""
    filters = group_filters(source), group_filters(target)
    if filters[0] != filters[1]:
        yield "group-filters", f"filters of the group's links {filters[0]} became {filters[1]}"
    orders = _creation_order(source), _creation_order(target)
    if orders[0] is not None and orders[1] is None:
        yield "creation-order", "the order in which links were created is no longer kept"
    elif orders[0] is not None and orders[1] is not None:
        shared = set(orders[0]) & set(orders[1])
        before, after = ([name for name in each if name in shared] for each in orders if each is not None)
        for was, now in zip(before, after, strict=True):
            if was != now:
                yield "creation-order", f"links were created in another order, {_text(now)} where {_text(was)} was"
                return


def named_type_change(source: h5py.Dataset, target: h5py.Dataset) -> str:
    """Say whether a dataset still has a named type; empty where nothing changed."""
    said = ["a named type" if each.id.get_type().committed() else "one without a name" for each in (source, target)]
    return "" if said[0] == said[1] else f"the type, {said[0]}, became {said[1]}"


def _creation_order(group: h5py.Group) -> list[bytes] | None:
    """Names of the links in the order of their creation; None where the group does not keep it."""
    if not group.id.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED:
        return None
    names: list[bytes] = []
    group.id.links.iterate(names.append)
    return sorted(names, key=lambda name: group.id.links.get_info(name).corder)


def _attribute_difference(name: bytes, pair: tuple[Any, Any], objects: tuple[Objects, Objects]) -> str:
    words = [type_words(each.get_type()) for each in pair]
    shapes = [None if each.get_space().get_simple_extent_type() == h5s.NULL else each.shape for each in pair]
    empty = [shape is None or 0 in shape for shape in shapes]
    alike = words[0] == words[1] and shapes[0] == shapes[1]
    if any(empty):
        return "" if alike else f"{words[0]} of shape {shapes[0]} became {words[1]} of shape {shapes[1]}"
    before, after = map(_attribute_values, pair)
    if name == _SCALE_OF and all(each.dtype.names and each.ndim == 1 for each in (before, after)):
        sets = [_belonging(values, own) for values, own in zip((before, after), objects, strict=True)]
        return "" if sets[0] == sets[1] else f"{cut(', '.join(sets[0]))} became {cut(', '.join(sets[1]))}"
    if alike and not unlike(before, after, before.dtype, objects).any():
        return ""
    said = [shown_all(values, own) for values, own in zip((before, after), objects, strict=True)]
    if said[0] != said[1]:
        return f"{said[0]} became {said[1]}"
    if not alike:
        return f"{words[0]} of shape {shapes[0]} became {words[1]} of shape {shapes[1]}"
    return "values differ"


def _belonging(values: Array, own: Objects) -> list[str]:
    """Which datasets a dimension scale belongs to, but for companions: a set, whose integers have several types."""
    if not values.dtype.names or values.ndim != 1:
        return ["what is no list of references"]
    return sorted(shown(each, own) for each in values if own.led_to(each[0]) not in own.companions)


def _attribute_values(attribute: Any) -> Array:
    file_type = attribute.get_type()
    try:
        dtype = file_type.dtype
    except (TypeError, ValueError):
        dtype = np.dtype((np.void, file_type.get_size()))
        values = np.zeros(attribute.shape, dtype)
        attribute.read(values, mtype=file_type)
        return values
    base, inner = dtype.subdtype or (dtype, ())
    values = np.zeros((*attribute.shape, *inner), base)
    attribute.read(values, mtype=h5t.py_create(dtype))
    return values


class _Link(NamedTuple):
    """Where a link leads to, in words; whether that is a dataset or group of a walk; for an external one, the place."""

    text: str
    is_object: bool = False
    place: tuple[str, bytes] | None = None

    def leads_alike(self, other: _Link) -> bool:
        return self.text == other.text or (self.place is not None and self.place == other.place)


def _links(group: h5py.Group, own: Objects) -> dict[bytes, _Link]:
    """Say of each link where it leads to."""
    found: dict[bytes, _Link] = {}
    names: list[bytes] = []
    group.id.links.iterate(names.append)
    place = own.path_at(h5o.get_info(group.id).addr).rstrip("/")
    for name in names:
        kind = group.id.links.get_info(name).type
        if kind == h5l.TYPE_HARD:
            path = own.path_at(h5o.get_info(group.id, name).addr)
            if not path:
                found[name] = _Link(f"{_NAMED_TYPE} {type_words(h5t.open(group.id, name))}")
            elif path == f"{place}/{name.decode('utf-8', 'surrogateescape')}":
                found[name] = _Link("object", is_object=True)
            else:
                found[name] = _Link(f"hard link to {path}")
        elif kind == h5l.TYPE_SOFT:
            found[name] = _Link(f"soft link to {_text(group.id.links.get_val(name))}")
        elif kind == h5l.TYPE_EXTERNAL:
            file, inner = group.id.links.get_val(name)
            led = linked_file(file, group.file.filename)
            target = None if led is None else (led, inner)
            found[name] = _Link(f"external link to {_text(file)} {_text(inner)}", place=target)
        else:
            found[name] = _Link(f"link of the type {kind}")
    return found


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
