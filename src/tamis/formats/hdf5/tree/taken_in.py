"""Files that external links lead to, seen as parts of the file that has the links."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import h5py
from h5py import h5f, h5g, h5i, h5l, h5o

from tamis.errors import FileError, TamisError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.datatypes import text_of
from tamis.formats.hdf5.lib.elsewhere import linked_file
from tamis.formats.hdf5.lib.files import is_being_written, open_source, remote_of
from tamis.formats.hdf5.tree.links import Link, links_of
from tamis.formats.hdf5.tree.scope import Scope, set_scope
from tamis.formatting import kind_of_mode

_MOST_LINKS = 64
"""Limit of soft and external links on the way to one object."""


class LinkedScope(Scope):
    """The objects of a file, and those that its external links lead to, through any number of files.

    External links count as hard links, and so do the soft links of the other files, whose paths mean other objects in
    the first one. Addresses have the number of the file in their upper bits, 0 for the first one. The other files stay
    open, as `open_source` opens them, until `close`.
    """

    is_linked = True

    def __init__(self, file: h5py.File) -> None:
        super().__init__(file)
        self._numbers = {h5o.get_info(file.id).fileno: 0}  # Number of each file, by HDF5's number
        self._paths = {os.path.realpath(file.filename): 0}
        self._places: dict[tuple[int, bytes], Link] = {}

    def close(self) -> None:
        """Close the other files."""
        for file in self.files[1:]:
            file.close()

    def links(self, group: h5g.GroupID) -> list[Link]:
        """See `Scope.links`."""
        number = self.number_of(group)
        found: list[Link] = []
        for link in links_of(group):
            if link.kind == h5l.TYPE_HARD:
                found.append(link._replace(address=_global(number, link.address)))
            elif link.kind == h5l.TYPE_EXTERNAL or (link.kind == h5l.TYPE_SOFT and number):
                found.append(self._hard(group, link))
            else:
                found.append(link)
        return found

    def address(self, item: Any) -> int:
        """See `Scope.address`."""
        return _global(self.number_of(item), h5o.get_info(item).addr)

    def address_at(self, group: Any, name: bytes) -> int:
        """See `Scope.address_at`."""
        info = h5o.get_info(group, name)
        if info.fileno in self._numbers:
            return _global(self._numbers[info.fileno], info.addr)
        return self.address(h5o.open(group, name))

    def open(self, group: h5g.GroupID, link: Link) -> Any:
        """See `Scope.open`; HDF5 itself might open the other file in another way."""
        if link.place is None:
            return h5o.open(group, link.name)
        file, path = link.place
        return h5o.open(file.id, _raw(path))

    def home(self, address: int) -> tuple[h5py.File, int]:
        """See `Scope.home`."""
        return self.files[address // (calls.LARGEST_ADDRESS + 1)], address & calls.LARGEST_ADDRESS

    def stored(self, path: str) -> tuple[h5py.File, str]:
        """See `Scope.stored`."""
        return self._end(self.file, path)

    def number_of(self, item: Any) -> int:
        """See `Scope.number_of`."""
        number = h5o.get_info(item).fileno
        if number not in self._numbers:  # HDF5 has a file twice that is open in two ways
            path = os.path.realpath(os.fsdecode(h5f.get_name(item)))
            if path not in self._paths:
                raise FileError(f"{path}: expected a file that links lead to, found another one")
            self._numbers[number] = self._paths[path]
        return self._numbers[number]

    def _hard(self, group: h5g.GroupID, link: Link) -> Link:
        """Return a soft or external link as a hard one; a soft link that leads nowhere as it is."""
        key = self.address(group), link.name
        if key not in self._places:
            self._places[key] = self._followed(group, link)
        return self._places[key]._replace(order=link.order)

    def _followed(self, group: h5g.GroupID, link: Link) -> Link:
        file = self.files[self.number_of(group)]
        own_path = (h5i.get_name(group) or b"/").rstrip(b"/") + b"/" + link.name
        try:
            place = self._end(file, own_path.decode("utf-8", "surrogateescape"))
            address = self.address_at(place[0].id, _raw(place[1]))
        except TamisError as error:
            if link.kind == h5l.TYPE_SOFT and isinstance(error, _NowhereError) and not error.has_left:
                return link
            text = text_of(own_path)
            raise FileError(f"{file.filename}: {text}: {error}").at(path=file.filename, dataset=text) from error
        return Link(link.name, h5l.TYPE_HARD, address, link.charset, link.order, place)

    def _end(self, file: h5py.File, path: str) -> tuple[h5py.File, str]:
        """Return the file and path, without links, of the object at a path; open the files on the way to it."""
        group = h5g.open(file.id, b"/")
        done: list[bytes] = []  # Names of hard links from the root to the group, and to the object at the end
        todo = _parts(_raw(path))
        links = 0
        asked = path  # Where the last link on the way leads, for messages
        has_left = False  # Whether the way led into another file
        while todo:
            name = todo.pop(0)
            if not group.links.exists(name):
                raise _NowhereError(f"leads to {asked} in {file.filename}, which does not exist", has_left)
            kind = group.links.get_info(name).type
            if kind == h5l.TYPE_HARD:
                done.append(name)
                if todo and not isinstance(group := h5o.open(group, name), h5g.GroupID):
                    raise _NowhereError(f"leads to {asked} in {file.filename}, which does not exist", has_left)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise FileError(f"expected at most {_MOST_LINKS} links on the way to an object, got more: a circle")
            if kind == h5l.TYPE_SOFT:
                value = group.links.get_val(name)
                is_absolute = value.startswith(b"/")
                todo = [*_parts(value), *todo]
            elif kind == h5l.TYPE_EXTERNAL:
                other, value = group.links.get_val(name)
                file = self._other(other, file)
                has_left = is_absolute = True
                todo = [*_parts(value), *todo]
            else:
                raise FileError(f"expected a soft or external link, got one of the type {kind}")
            asked = text_of(value)
            if is_absolute:
                group = h5g.open(file.id, b"/")
                done = []
        return file, "/" + b"/".join(done).decode("utf-8", "surrogateescape")

    def _other(self, name: bytes, file: h5py.File) -> h5py.File:
        """Return the file that a link of a file names."""
        if remote_of(file) is not None:
            raise FileError(f"leads to the file {text_of(name)}: only links of files here are followed")
        if (path := linked_file(name, file.filename)) is None:
            raise FileError(f"leads to the file {text_of(name)}: No such file or directory")
        if path not in self._paths:
            if not stat.S_ISREG(mode := os.stat(path).st_mode):  # HDF5 may wait for a pipe
                raise FileError(f"leads to {path}: expected a file, found {kind_of_mode(mode)}")
            opened = open_source(Path(path), keeps_chunks=False)
            if is_being_written(opened):
                opened.close()
                raise FileError(f"{path}: another program is writing it: wait until it is closed there")
            self.files.append(opened)
            self._paths[path] = self._numbers[h5o.get_info(opened.id).fileno] = len(self.files) - 1
        return self.files[self._paths[path]]


class _NowhereError(FileError):
    """A path leads nowhere; `has_left` if it led into another file."""

    def __init__(self, text: str, has_left: bool) -> None:
        super().__init__(text)
        self.has_left = has_left


def take_in(file: h5py.File) -> LinkedScope:
    """Let a file have the objects that its external links lead to."""
    scope = LinkedScope(file)
    set_scope(scope)
    return scope


def _global(number: int, address: int) -> int:
    return number * (calls.LARGEST_ADDRESS + 1) + int(address)


def _parts(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part not in (b"", b".")]


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
