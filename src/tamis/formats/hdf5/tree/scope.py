"""The objects that count as those of a file, found by their paths."""

from __future__ import annotations

from typing import Any

import h5py
from h5py import h5g, h5o

from tamis.errors import FileError
from tamis.formats.hdf5.lib.elsewhere import end_of
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.tree.links import Link, links_of


class Scope:
    """The objects that count as those of a file: here its own.

    `tamis.formats.hdf5.tree.taken_in.LinkedScope` also counts those that external links lead to.
    """

    is_linked = False

    def __init__(self, file: h5py.File) -> None:
        self.file = file
        self.files = [file]

    def links(self, group: h5g.GroupID) -> list[Link]:
        """List a group's links; the addresses of hard ones are those of `address`."""
        return links_of(group)

    def address(self, item: Any) -> int:
        """Return the number that no other object has."""
        return int(h5o.get_info(item).addr)

    def address_at(self, group: Any, name: bytes) -> int:
        """Return the address of the object that a path leads to."""
        return int(h5o.get_info(group, name).addr)

    def number_of(self, item: Any) -> int:
        """Return the number of the file of an object among `files`."""
        return 0

    def open(self, group: h5g.GroupID, link: Link) -> Any:
        """Open what a hard link leads to."""
        return h5o.open(group, link.name)

    def home(self, address: int) -> tuple[h5py.File, int]:
        """Return the file of an object, and its address there."""
        return self.file, address

    def stored(self, path: str) -> tuple[h5py.File, str]:
        """Return the file of an object, and its path there, by a path."""
        return self.file, path


_SCOPE = "_tamis_scope"
"""Attribute of h5py's file objects with their scope."""


def scope_of(file: h5py.File) -> Scope:
    """Return the objects that count as those of a file."""
    return vars(file).get(_SCOPE) or Scope(file)


def set_scope(scope: Scope) -> None:
    """Let a file have the objects of a scope."""
    vars(scope.file)[_SCOPE] = scope


def info_at(file: h5py.File, path: str) -> Any:
    """Return HDF5's record of the object that a path in netCDF leads to, through any links; None if there is none."""
    try:
        return h5o.get_info(file.id, stored_path(file, path).encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError, KeyError):
        return None


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """Return the group of this file at a path, through any links; None if there is none."""
    return object_at(file, path, h5py.Group)


def object_at(file: h5py.File, path: str, kind: type) -> Any:
    """Return the object of a class of h5py at a path, through any links; None if it is in a file of no scope."""
    try:
        if (scope := scope_of(file)).is_linked:
            own_file, own_path = scope.stored(path)
            item = own_file.get(own_path.encode("utf-8", "surrogateescape"))
            return item if isinstance(item, kind) else None
        is_here = end_of(file, path) is file
        if not is_here:
            return None  # in another file, which is not opened
        item = file.get(path.encode("utf-8", "surrogateescape"))
    except (FileError, OSError, RuntimeError, ValueError):
        return None
    return item if isinstance(item, kind) and item.file == file else None  # type: ignore[attr-defined]
