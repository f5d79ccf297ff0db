"""The objects of a file by their paths, and what references lead to."""

from __future__ import annotations

import itertools
import math
from typing import Any

import h5py
import numpy as np
from h5py import h5g, h5o, h5r, h5s

from tamis.hdf5.companions import companions_in
from tamis.hdf5.tree.walk import Contents, address_of

_LARGEST_MASK = 1 << 24
"""Elements of the box around a selection that is looked at element by element."""


class Objects:
    """The objects of a file, known by address: references are compared by the path of what they lead to.

    Parameters
    ----------
    file
        Must stay open.
    contents
        Of the file.
    like
        Contents of a file that this one is compared with: where several paths lead to an object, the one that leads to
        an object there too is its name.

    Attributes
    ----------
    companions
        Paths of datasets that say where values of others are missing, with those of the others.
    """

    def __init__(self, file: h5py.File, contents: Contents, like: Contents | None = None) -> None:
        self.companions: dict[str, str] = {}
        self.root = h5g.open(file.id, b"/")
        self._paths: dict[int, str] = {}
        if like is not None:
            for path in like.groups:
                self._name(path, group_at(file, path))
            for path in like.datasets:
                self._name(path, dataset_at(file, path))
        for path, each in itertools.chain(contents.groups.items(), contents.datasets.items()):
            self._name(path, each)
        for companion, path in companions_in(contents.datasets, contents.datasets.marked()):
            self.companions[self.path_at(address_of(companion))] = path

    def _name(self, path: str, found: h5py.HLObject | None) -> None:
        if found is not None:
            self._paths.setdefault(address_of(found), path)

    def path_at(self, address: int) -> str:
        """Path of an object; empty where no path leads to it but that of a named type."""
        return self._paths.get(address, "")

    def named(self, path: str, found: h5py.HLObject) -> bool:
        """Return whether a path is the name of an object, rather than another link to it."""
        return self.path_at(address_of(found)) == path

    def led_to(self, reference: Any) -> str:
        """Return where a reference leads to."""
        if not reference:
            return "nothing"
        try:
            found = h5r.dereference(reference, self.root)
            name = None if found is None else self.path_at(h5o.get_info(found).addr)
            if name == "":  # a named type, or what no link leads to
                name = (h5r.get_name(reference, self.root) or b"an object without a path").decode("utf-8", "replace")
            if name is None:
                return "an object that is not there"
            if isinstance(reference, h5r.RegionReference):
                return f"{name}, {selection_words(h5r.get_region(reference, self.root))}"
        except (ValueError, RuntimeError, OSError, KeyError):
            return "an object that is not there"
        return name


def dataset_at(file: h5py.File, path: str) -> h5py.Dataset | None:
    """Find the dataset of this file that a path leads to, by whatever links; None if there is none."""
    return _object_at(file, path, h5py.Dataset)


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """Find the group of this file that a path leads to, by whatever links; None if there is none."""
    return _object_at(file, path, h5py.Group)


def _object_at(file: h5py.File, path: str, kind: type) -> Any:
    try:
        found: Any = file.get(path.encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError):
        return None
    return found if isinstance(found, kind) and found.file == file else None  # type: ignore[attr-defined]


def selection_words(space: h5s.SpaceID) -> str:
    """Return which elements a region reference selects: equal words mean equal elements, points in equal order."""
    kind, count = space.get_select_type(), space.get_select_npoints()
    if kind == h5s.SEL_NONE or not count:
        return "no values"
    if kind == h5s.SEL_POINTS:
        points = (str(tuple(map(int, each))) for each in space.get_select_elem_pointlist())
        return f"points {', '.join(points)}"
    low, high = (tuple(map(int, each)) for each in space.get_select_bounds())
    extents = tuple(last - first + 1 for first, last in zip(low, high, strict=True))
    if kind == h5s.SEL_ALL or math.prod(extents) == count:
        return f"values {low} to {high}"
    blocks = [tuple(tuple(map(int, corner)) for corner in each) for each in space.get_select_hyper_blocklist()]
    if math.prod(extents) <= _LARGEST_MASK:  # larger ones are equal where HDF5 keeps them in equal blocks
        blocks = _runs(blocks, low, extents)
    return f"{count} values: {', '.join(f'{first} to {last}' for first, last in blocks)}"


def _runs(blocks: list[Any], low: tuple[int, ...], extents: tuple[int, ...]) -> list[Any]:
    """Cut blocks into the longest runs along the last axis, so that it does not matter how they were put together."""
    mask = np.zeros((*extents[:-1], extents[-1] + 2), np.int8)
    for first, last in blocks:
        part = [slice(a - at, b - at + 1) for a, b, at in zip(first, last, low, strict=True)]
        mask[(*part[:-1], slice(part[-1].start + 1, part[-1].stop + 1))] = 1
    edges = np.diff(mask, axis=-1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1) - [*[0] * (len(low) - 1), 1]
    return [
        (tuple(map(int, first + low)), tuple(map(int, last + low))) for first, last in zip(starts, ends, strict=True)
    ]
