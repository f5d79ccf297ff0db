"""References to other files, for a copy in another folder: those to files of the run lead to their new places."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import h5py
from h5py import h5d, h5l, h5p, h5s

from tamis.formats.hdf5.lib.elsewhere import (
    SAME_FILE,
    NamedFile,
    find_linked,
    find_raw,
    find_virtual,
)
from tamis.formats.hdf5.tree.create import without_raw_files
from tamis.formats.hdf5.tree.walk import walk
from tamis.remote.address import Address
from tamis.stores.facts import ELSEWHERE
from tamis.stores.other_files import Kind, OtherFile, OtherFiles, Places, place


class Relocation:
    """Converts references to other files for a copy: those to files of the run lead to their new places.

    Parameters
    ----------
    source
        Path of the file that is copied.
    target
        Path that the copy will have.
    places
        Where the files of the run go.
    """

    def __init__(self, source: str, target: str | Address, places: Places) -> None:
        self._source = os.path.abspath(source)
        self._is_elsewhere = isinstance(target, Address)
        if self._is_elsewhere:  # names of files here mean nothing there
            target = self._source
        target = os.path.realpath(target) if os.path.islink(target) else os.path.abspath(target)
        self._folder = os.path.realpath(os.path.dirname(target))
        self._target = os.path.join(self._folder, os.path.basename(target))
        self._is_moved = os.path.realpath(os.path.dirname(self._source)) != self._folder
        self._places = Places({**places.targets, place(self._source): self._target})
        self.notes: list[str] = []
        self.others: list[OtherFile] = []
        self._names: set[tuple[str, str]] = set()
        self._of_run: dict[OtherFile, None] = {}

    def linked(self, path: str, name: bytes) -> bytes:
        """Return the name of the file of an external link at `path`."""
        return os.fsencode(self._renamed(path, [os.fsdecode(name)], _Role("external link", find_linked))[0])

    def creation_list(self, path: str, dataset: h5py.Dataset) -> h5p.PropDCID | None:
        """Return creation properties for the copy of a virtual or external dataset; None if no name changes."""
        plist = dataset.id.get_create_plist()
        if plist.get_layout() == h5d.VIRTUAL:
            return self._virtual(path, plist)
        return self._external(path, dataset, plist) if plist.get_external_count() else None

    def survey(self, file: h5py.File, rewritten: Collection[str] = ()) -> OtherFiles:
        """Return what a copy of the whole file would lead to, except for datasets whose values are stored anew."""
        contents = walk(file)
        for path, group in contents.groups.items():
            names: list[bytes] = []
            group.id.links.iterate(names.append)
            for name in names:
                if group.id.links.get_info(name).type == h5l.TYPE_EXTERNAL:
                    link_path = f"{path.rstrip('/')}/{name.decode('utf-8', 'backslashreplace')}"
                    self.linked(link_path, group.id.links.get_val(name)[0])
        for path, array in contents.datasets.items():
            if path not in rewritten and array.storage.layout in ELSEWHERE:
                self.creation_list(path, array.dataset)
        return self.found

    @property
    def found(self) -> OtherFiles:
        """Notes about names that change, and the files that are not of the run."""
        return OtherFiles(self.notes, self.others, self._names, tuple(self._of_run))

    def _virtual(self, path: str, plist: h5p.PropDCID) -> h5p.PropDCID | None:
        count = range(plist.get_virtual_count())
        old = [plist.get_virtual_filename(i) for i in count]
        new = self._renamed(path, old, _Role("virtual source", find_virtual))
        if new == old:
            return None
        rest = [
            (plist.get_virtual_vspace(i), plist.get_virtual_dsetname(i), plist.get_virtual_srcspace(i)) for i in count
        ]
        plist.set_layout(h5d.CONTIGUOUS)  # drops all sources
        for name, (space, inner, source_space) in zip(new, rest, strict=True):
            fitting = _fitting(space, source_space)
            plist.set_virtual(space, name.encode("utf-8", "surrogateescape"), inner.encode("utf-8"), fitting)
        return plist

    def _external(self, path: str, dataset: h5py.Dataset, plist: h5p.PropDCID) -> h5p.PropDCID | None:
        files = [plist.get_external(i) for i in range(plist.get_external_count())]
        old = [os.fsdecode(name) for name, *_ in files]
        new = self._renamed(path, old, _Role("raw file", find_raw))
        if new == old:
            return None
        new_plist = without_raw_files(dataset)
        for name, (_, offset, nbytes) in zip(new, files, strict=True):
            new_plist.set_external(os.fsencode(name), offset, nbytes)
        return new_plist

    def _renamed(self, path: str, names: Sequence[str], role: _Role) -> list[str]:
        """Return the names of files of an object after conversion; add notes about changes, and files elsewhere."""
        new: dict[str, str] = {}
        absent: list[str] = []
        moved: list[str] = []
        for name in dict.fromkeys(names):
            if role.kind == "virtual source" and name == SAME_FILE:
                new[name] = name
                continue
            linked = role.find(name, self._source)
            target = None if linked is None else self._target_of(linked)
            if linked is None:
                absent.append(name)
                self.others.append(OtherFile(path, role.kind, name, exists=False))
                new[name] = name
            elif target is not None:
                new[name] = self._name_of_new(name, linked, target, role)
                targets = filter(None, map(self._places.target_of, linked.files))
                self._of_run.update(dict.fromkeys(OtherFile(path, role.kind, place(each)) for each in targets))
            else:
                self.others.append(OtherFile(path, role.kind, os.path.abspath(linked.path)))
                new[name] = name if self._is_elsewhere else self._name_of_old(name, linked, role)
                if new[name] != name:
                    moved.append(name)
        if absent and (self._is_moved or role.kind != "external link"):
            text = f"refers to the file {absent[0]!r}, which does not exist: kept unchanged"
            self.notes.append(f"{path}: {text}{_in_all(absent)}")
        if moved:
            own_new = new[moved[0]]
            where = "" if os.path.isabs(own_new) else ", relative to the target's folder"
            text = f"refers to the file {moved[0]!r}, now {own_new!r}"
            self.notes.append(f"{path}: {text}{where}{_in_all(moved)}")
        self._names.update((path, name) for name in new.values())
        return [new[name] for name in names]

    def _target_of(self, linked: NamedFile) -> str | None:
        """Return the new place of a file of the run, or of files whose names have a number; None for others."""
        new = self._places.targets_of(linked.path) if linked.is_many else self._places.target_of(linked.path)
        return None if new is None else place(new)

    def _name_of_new(self, name: str, linked: NamedFile, target: str, role: _Role) -> str:
        """Return the name of a new file: absolute if the old one was found so, else as seen from the target."""
        if target == self._target and role.kind == "virtual source":
            return SAME_FILE
        plain = role.plain(name)
        if os.path.isabs(plain) and linked.path == plain:
            return name if plain == target else role.written(target, name)
        if os.path.normpath(os.path.join(self._folder, plain)) == target:
            return name
        if role.kind == "raw file":  # a relative name is looked up in the reader's current folder
            return target
        return role.written(os.path.relpath(target, self._folder), name)

    def _name_of_old(self, name: str, linked: NamedFile, role: _Role) -> str:
        """Return the name by which the target finds a file that stays where it is."""
        if role.kind == "raw file":
            # HDF5 looks for a relative name only in the reader's current folder.
            stays = os.path.isabs(name) or not self._is_moved
            return name if stays else os.path.join(os.path.realpath(linked.folder), linked.name)
        same_name = role.find(name, self._target)
        if same_name is not None and same_name.is_same(linked):
            return name
        folder = os.path.relpath(os.path.realpath(linked.folder), self._folder)
        return role.written(os.path.join(folder, linked.name), name)


def _in_all(names: Sequence[str]) -> str:
    """Return how many names a note about the first one is about; empty for one."""
    return f" ({len(names)} files in all)" if len(names) > 1 else ""


class _Role(NamedTuple):
    """How an object names another file."""

    kind: Kind
    find: Callable[[str, str], NamedFile | None]

    def plain(self, name: str) -> str:
        """Return a name as a path."""
        return name.replace("%%", "%") if self.kind == "virtual source" else name

    def written(self, path: str, old: str) -> str:
        """Return a path as a name; the last part is spelled as in the old name if it is the same."""
        if self.kind != "virtual source":
            return path
        folder, last = os.path.split(path)
        if last == os.path.basename(self.plain(old)):
            return os.path.join(_doubled(folder), os.path.basename(old))
        return os.path.join(_doubled(folder), last.replace("%", "%%"))


def _doubled(folder: str) -> str:
    """Return a folder with percent signs doubled, as names of virtual sources have them."""
    return folder.replace("%", "%%")


def _fitting(space: h5s.SpaceID, source_space: h5s.SpaceID) -> Any:
    """Return the source's dataspace of a mapping, with a size, which HDF5 does not store for whole datasets."""
    if source_space.get_select_type() != h5s.SEL_ALL:
        return source_space
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return h5s.create_simple((space.get_select_npoints(),))
    _, _, counts, blocks = space.get_regular_hyperslab()
    nvalues = 1
    for count, block in zip(counts, blocks, strict=True):
        nvalues *= block * (1 if count == h5s.UNLIMITED else count)
    return h5s.create_simple((nvalues,))
