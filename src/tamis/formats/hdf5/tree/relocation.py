"""References to other files for a copy in another folder, so that it leads to the same files as its source.

`tamis.formats.hdf5.lib.other_files` has the rules by which HDF5 looks for files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import h5py
from h5py import h5d, h5l, h5p, h5s

from tamis.formats.hdf5.lib.other_files import SAME_FILE, NamedFile, find_linked, find_raw, find_virtual
from tamis.formats.hdf5.tree.create import without_raw_files
from tamis.formats.hdf5.tree.walk import walk


class Relocation:
    """Converts references to other files for a copy in another folder."""

    def __init__(self, source: str, target: str) -> None:
        self._source = os.path.abspath(source)
        target = os.path.realpath(target) if os.path.islink(target) else os.path.abspath(target)
        self._folder = os.path.realpath(os.path.dirname(target))
        self._target = os.path.join(self._folder, os.path.basename(target))
        self.notes: list[str] = []

    @property
    def moved(self) -> bool:
        """True if the files are in different folders."""
        return os.path.realpath(os.path.dirname(self._source)) != self._folder

    def linked(self, path: str, name: bytes) -> bytes:
        """Return the name of the file of an external link at `path`."""
        old = os.fsdecode(name)
        new = self._renamed(path, [old], self._of_link) if self.moved else [old]
        return os.fsencode(new[0])

    def creation_list(self, path: str, dataset: h5py.Dataset) -> h5p.PropDCID | None:
        """Return creation properties for the copy of a virtual or external dataset; None if no name changes."""
        plist = dataset.id.get_create_plist()
        if plist.get_layout() == h5d.VIRTUAL:
            return self._virtual(path, plist)
        return self._external(path, dataset, plist) if plist.get_external_count() else None

    def survey(self, file: h5py.File) -> list[str]:
        """Return the notes that a copy of the whole file would give."""
        contents = walk(file)
        for path, group in contents.groups.items() if self.moved else ():
            names: list[bytes] = []
            group.id.links.iterate(names.append)
            for name in names:
                if group.id.links.get_info(name).type == h5l.TYPE_EXTERNAL:
                    link_path = f"{path.rstrip('/')}/{name.decode('utf-8', 'backslashreplace')}"
                    self.linked(link_path, group.id.links.get_val(name)[0])
        for path, array in contents.datasets.items():
            self.creation_list(path, array.dataset)
        return self.notes

    def _virtual(self, path: str, plist: h5p.PropDCID) -> h5p.PropDCID | None:
        count = range(plist.get_virtual_count())
        old = [plist.get_virtual_filename(i) for i in count]
        new = self._renamed(path, old, self._of_virtual)
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
        new = self._renamed(path, old, self._of_raw)
        if new == old:
            return None
        new_plist = without_raw_files(dataset)
        for name, (_, offset, nbytes) in zip(new, files, strict=True):
            new_plist.set_external(os.fsencode(name), offset, nbytes)
        return new_plist

    def _renamed(self, path: str, names: Sequence[str], rename: Callable[[str], str | None]) -> list[str]:
        """Return the names of files of an object after conversion, and add notes about changes."""
        cache = {name: rename(name) for name in dict.fromkeys(names)}
        changed = {old: new for old, new in cache.items() if self.moved and new is not None and new != old}
        absent = [old for old, new in cache.items() if new is None]
        for names_with_note, text in (
            (absent, "refers to the file {!r}, which does not exist: kept unchanged"),
            ([*changed], "refers to the file {!r}, now {!r}, relative to the target's folder"),
        ):
            if names_with_note:
                more = f" ({len(names_with_note)} files in all)" if len(names_with_note) > 1 else ""
                self.notes.append(f"{path}: {text.format(names_with_note[0], changed.get(names_with_note[0]))}{more}")
        return [changed.get(name, name) for name in names]

    def _of_link(self, name: str) -> str | None:
        linked = find_linked(name, self._source)
        return linked and self._seen_from_target(name, linked, find_linked(name, self._target))

    def _of_virtual(self, name: str) -> str | None:
        if name == SAME_FILE or (linked := find_virtual(name, self._source)) is None:
            return name if name == SAME_FILE else None
        new = self._seen_from_target(name, linked, find_virtual(name, self._target))
        return new if new == name else os.path.join(os.path.dirname(new).replace("%", "%%"), os.path.basename(name))

    def _of_raw(self, name: str) -> str | None:
        raw_file = find_raw(name, self._source)
        # HDF5 looks for a relative name only in the reader's current folder.
        return raw_file and (
            name if os.path.isabs(name) else os.path.join(os.path.realpath(raw_file.folder), raw_file.name)
        )

    def _seen_from_target(self, name: str, linked: NamedFile, same_name: NamedFile | None) -> str:
        if same_name is not None and same_name.is_same(linked):
            return name
        return os.path.join(os.path.relpath(os.path.realpath(linked.folder), self._folder), linked.name)


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
