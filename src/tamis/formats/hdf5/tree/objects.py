"""The objects of a file by address, and the targets of references in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5g, h5i, h5o, h5s

from tamis.errors import FileError
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.stored_array import Hdf5Array

if TYPE_CHECKING:
    from tamis.formats.hdf5.lib.references import Place
    from tamis.formats.hdf5.tree.walk import Contents

_LARGEST_MASK = 1 << 24
"""Largest box, in elements, around a selection that is examined element by element."""


class Objects:
    """The objects of a file by address, so that references can be compared by the paths of their targets."""

    def __init__(
        self, file: h5py.File, contents: Contents, like: Contents | None = None, left_out: frozenset[int] = frozenset()
    ) -> None:
        self.companions: dict[str, str] = {}
        self._left_out = left_out
        # References to whole objects → their targets in words.
        self._texts: dict[bytes, TargetText] = {}
        self.root = h5g.open(file.id, b"/")
        addresses = {path: address for address, path in contents.places.items()}
        self._paths: dict[int, str] = {}
        if like is not None:
            number = h5o.get_info(self.root).fileno
            for path, kind in _kinds(like):
                own = path in (contents.groups if kind == h5o.TYPE_GROUP else contents.datasets)
                info = None if own else info_at(file, path)
                if own:
                    self._paths.setdefault(addresses[path], path)
                elif info is not None and info.fileno == number and info.type == kind:
                    self._paths.setdefault(info.addr, path)
        for path in (*contents.groups, *contents.datasets):
            self._paths.setdefault(addresses[path], path)
        for companion, path in contents.datasets.companions():
            self.companions[self.path_at(companion.address)] = path

    def path_at(self, address: int) -> str:
        """Return the path of an object; empty for named types and objects without a path."""
        return self._paths.get(address, "")

    def named(self, path: str, address: int) -> bool:
        """Return whether a path is the name of the object at an address, rather than another link to it."""
        return self.path_at(address) == path

    def target_text(self, place: Place) -> TargetText:
        """Return the target of a reference in memory, in words."""
        if not place.is_address:
            return self._followed(place)
        content = place.content
        if (known := self._texts.get(content)) is None:
            known = self._texts[content] = self._followed(place)
        return known

    def _followed(self, place: Place) -> TargetText:
        if place.is_null:
            return NOTHING
        try:
            target = place.follow(self.root)
            if target is None:
                return GONE
            if target.item is None:
                return FOREIGN
            address = h5o.get_info(target.item).addr
            if address in self._left_out:
                return GONE
            name = self.path_at(address)
            if not name:  # a named type, or an object without links
                name = (h5i.get_name(target.item) or b"an object without a path").decode("utf-8", "replace")
            if target.region is not None:
                return TargetText(f"{name}, {selection_text(target.region)}")
        except (ValueError, RuntimeError, OSError, KeyError, FileError):
            return GONE
        attribute = target.attribute.decode("utf-8", "replace")
        return TargetText(f"{name}, attribute {attribute!r}" if attribute else name)


class TargetText(str):
    """The target of a reference in words."""

    __slots__ = ()


NOTHING, GONE = TargetText("nothing"), TargetText("an object that does not exist")
FOREIGN = TargetText("an object in another file")  # HDF5 writes no such reference that it has read


def _kinds(contents: Contents) -> Iterator[tuple[str, int]]:
    """Yield the path of each group and dataset, and which of the two it is."""
    yield from ((path, h5o.TYPE_GROUP) for path in contents.groups)
    yield from ((path, h5o.TYPE_DATASET) for path in contents.datasets)


def info_at(file: h5py.File, path: str) -> Any:
    """Return HDF5's record of the object that a path in netCDF leads to, through any links; None if there is none."""
    try:
        return h5o.get_info(file.id, stored_path(file, path).encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError, KeyError):
        return None


def array_at(file: h5py.File, path: str) -> Hdf5Array | None:
    """Find the dataset of this file that a path in netCDF leads to, through any links; None if there is none."""
    stored = stored_path(file, path)
    dataset = _object_at(file, stored, h5py.Dataset)
    return None if dataset is None else Hdf5Array(file, path, dataset, stored_path=stored)


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """Return the group of this file at a path, through any links; None if there is none."""
    return _object_at(file, path, h5py.Group)


def _object_at(file: h5py.File, path: str, kind: type) -> Any:
    try:
        item: Any = file.get(path.encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError):
        return None
    return item if isinstance(item, kind) and item.file == file else None  # type: ignore[attr-defined]


def selection_text(space: h5s.SpaceID) -> str:
    """Return the selection of a region reference in words: equal texts mean equal elements, points in equal order."""
    kind, count = space.get_select_type(), space.get_select_npoints()
    if kind == h5s.SEL_NONE or not count:
        return "no values"
    if kind == h5s.SEL_POINTS:
        points = (str(tuple(map(int, item))) for item in space.get_select_elem_pointlist())
        return f"points {', '.join(points)}"
    low, high = (tuple(map(int, item)) for item in space.get_select_bounds())
    extents = tuple(last - first + 1 for first, last in zip(low, high, strict=True))
    if kind == h5s.SEL_ALL or math.prod(extents) == count:
        return f"values {low} to {high}"
    blocks = [tuple(tuple(map(int, corner)) for corner in item) for item in space.get_select_hyper_blocklist()]
    if math.prod(extents) <= _LARGEST_MASK:  # larger selections are equal if HDF5 stores them in equal blocks
        blocks = _runs(blocks, low, extents)
    return f"{count} values: {', '.join(f'{first} to {last}' for first, last in blocks)}"


def _runs(blocks: list[Any], low: tuple[int, ...], extents: tuple[int, ...]) -> list[Any]:
    """Return the longest runs along the last axis, which do not depend on how the selection was built."""
    mask = np.zeros((*extents[:-1], extents[-1] + 2), np.int8)
    for first, last in blocks:
        part = [slice(a - origin, b - origin + 1) for a, b, origin in zip(first, last, low, strict=True)]
        mask[(*part[:-1], slice(part[-1].start + 1, part[-1].stop + 1))] = 1
    edges = np.diff(mask, axis=-1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1) - [*[0] * (len(low) - 1), 1]
    return [
        (tuple(map(int, first + low)), tuple(map(int, last + low))) for first, last in zip(starts, ends, strict=True)
    ]
