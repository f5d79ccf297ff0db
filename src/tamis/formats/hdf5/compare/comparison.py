"""A comparison of two HDF5 files, object by object; see `tamis.stores.comparison.StoreComparison`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import h5py

from tamis.formats.hdf5.companions import about_companion
from tamis.formats.hdf5.compare.elements import changed_fill, same_stored_chunks, unequal_elements
from tamis.formats.hdf5.compare.structure import (
    attribute_differences,
    group_changes,
    link_differences,
    named_type_change,
    own_links,
)
from tamis.formats.hdf5.lib.attributes import text_attribute
from tamis.formats.hdf5.lib.other_files import same_sources
from tamis.formats.hdf5.tree.objects import Objects, array_at, group_at
from tamis.formats.hdf5.tree.walk import Contents, address_of
from tamis.meaning.variables import HISTORY
from tamis.safety.library_errors import reading
from tamis.stores.comparison import companion_note, history_change, new_attribute, new_dataset
from tamis.stores.protocols import ELSEWHERE, Change, Unequal

if TYPE_CHECKING:
    from tamis.formats.hdf5.store import Hdf5Store
    from tamis.formats.hdf5.stored_array import Hdf5Array

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

    def counterpart(self, path: str) -> Hdf5Array | None:
        """Return the array of the second file at a path, through any links; None if there is none."""
        return self._after.contents.datasets.get(path) or array_at(self._after.file, path)

    def attribute_changes(self, path: str, source: Hdf5Array, target: Hdf5Array) -> Iterator[Change]:
        """Yield changes of the attributes of an array."""
        return self._attribute_changes(path, source.dataset.id, target.dataset.id)

    def type_note(self, source: Hdf5Array, target: Hdf5Array) -> str:
        """Return how a named type changed; empty if it did not."""
        return named_type_change(source, target)

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
        return unequal_elements(source, target, self._objects, progress)

    def same_stored_chunks(self, source: Hdf5Array, target: Hdf5Array) -> bool:
        """Return whether arrays have the same values because all stored bytes are the same."""
        return same_stored_chunks(source, target)

    def same_elsewhere(self, source: Hdf5Array, target: Hdf5Array) -> bool:
        """Return whether arrays have the same values because both refer to the same parts of the same other files."""
        if source.layout not in ELSEWHERE or target.layout != source.layout or self.fill_note(source, target):
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
            yield Change(f"{path.rstrip('/')}/{link.name}", "link", link.text, harmless=link.added or link.harmless)

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
                    yield companion_note(path, self._objects[1].companions[path])
                elif kind == "group":
                    yield Change(path, "new-group", "only in the target")
                else:
                    array = after.datasets[path]
                    yield new_dataset(path, array.shape, array.attributes)

    def _attribute_changes(self, path: str, source: Any, target: Any) -> Iterator[Change]:
        for change in attribute_differences(source, target, self._objects):
            if change.added:
                yield new_attribute(path, change.name)
                continue
            if (path, change.name) == ("/", HISTORY):
                before, after = (text_attribute(h5py.Group(owner), HISTORY) or "" for owner in (source, target))
                if (note := history_change(path, HISTORY, before, after)) is not None:
                    yield note
                    continue
            bookkeeping = change.name in _BOOKKEEPING or about_companion(change.name, source, target)
            yield Change(path, "attribute", change.text, harmless=bookkeeping or change.harmless)


def _objects(store: Hdf5Store, like: Contents | None = None, left_out: frozenset[int] = frozenset()) -> Objects:
    with reading(store.path):
        return Objects(store.file, store.contents, like, left_out)
