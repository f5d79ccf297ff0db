"""Names of variables in netCDF, where HDF5 stores them under other names.

netCDF-C writes a variable that has the name of a dimension, but not this dimension first, under the name with a prefix:
the name itself belongs to the dataset of the dimension. Only netCDF-C and h5netcdf write this prefix, and both drop it
from any dataset that they read, so the prefix alone identifies netCDF's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial

import h5py

from tamis.formats.hdf5.lib.attributes import is_bare_dimension
from tamis.formats.hdf5.lib.quick_facts import quick_links
from tamis.meaning.variables import NON_COORDINATE

_PREFIX = NON_COORDINATE.encode()

_DIMENSION = " (dimension)"
"""What follows the name of a dataset that only stands for a dimension, if a variable has this name."""


def renamed_paths(group: h5py.Group, paths: Iterable[str]) -> dict[str, str]:
    """Return netCDF's paths of datasets by HDF5's, where they differ; all are relative to the group."""
    known = set(paths)
    renamed: dict[str, str] = {}
    for path in [path for path in known if NON_COORDINATE in path]:
        start, name = _split(path)
        if name.startswith(NON_COORDINATE) and _is_variable(group, path):
            variable = renamed[path] = start + name.removeprefix(NON_COORDINATE)
            if variable in known:
                dimension = variable + _DIMENSION
                while dimension in known:
                    dimension += _DIMENSION
                renamed[variable] = dimension
    return renamed


def stored_paths(file: h5py.File) -> Callable[[str], str]:
    """Return a function like `stored_path` that asks each group once whether it has other names than netCDF."""
    asked = cache(partial(_has_renamed, file))
    return lambda path: stored_path(file, path) if asked(path.rpartition("/")[0] or "/") else path


def _has_renamed(file: h5py.File, path: str) -> bool:
    """Return whether a group may have variables with another name in netCDF."""
    group = _item(file, path)
    links = quick_links(group.id) if isinstance(group, h5py.Group) else None
    return links is None or bool([link for link in links if _PREFIX in link[0]])


def stored_path(group: h5py.Group, path: str) -> str:
    """Return HDF5's path for a path in netCDF; both are relative to the group, or absolute."""
    start, name = _split(path)
    if _is_variable(group, stored := f"{start}{NON_COORDINATE}{name}"):
        return stored
    if name.endswith(_DIMENSION) and _item(group, path) is None:
        bare = name.removesuffix(_DIMENSION)
        while bare.endswith(_DIMENSION) and _item(group, start + bare) is not None:
            bare = bare.removesuffix(_DIMENSION)
        if _is_variable(group, f"{start}{NON_COORDINATE}{bare}"):
            return start + bare
    return path


def _split(path: str) -> tuple[str, str]:
    """Return the part before the name of an object, with its slash, and the name."""
    start, slash, name = path.rstrip("/").rpartition("/")
    return start + slash, name


def _is_variable(group: h5py.Group, path: str) -> bool:
    """Return whether the object at a path with the prefix is a dataset, and no other variable has its name."""
    start, name = _split(path)
    if not (name := name.removeprefix(NON_COORDINATE)) or not isinstance(_item(group, path), h5py.Dataset):
        return False
    other = _item(group, start + name)
    return other is None or (isinstance(other, h5py.Dataset) and is_bare_dimension(other))


def _item(group: h5py.Group, path: str) -> h5py.HLObject | None:
    """Return the object at a path; None if there is none, or it cannot be opened."""
    raw = path.encode("utf-8", "surrogateescape")
    with suppress(OSError, RuntimeError, ValueError, KeyError):
        return group.get(raw) if raw in group.id else None
    return None
