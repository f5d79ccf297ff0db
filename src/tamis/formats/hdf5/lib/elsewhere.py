"""Other files that have values of a dataset, or to which links lead, found as HDF5 finds them."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import h5py
from h5py import h5d, h5l

from tamis.errors import FileError
from tamis.formatting import kind_of_mode
from tamis.stores.other_files import NUMBER, numbered, numbered_files
from tamis.system.libraries import folders_in

SAME_FILE = "."
"""Name of a virtual source in the same file."""


class NamedFile(NamedTuple):
    """A file: its folder, and its name there, which may have a number and mean many files."""

    folder: str
    name: str
    is_many: bool = False  # Whether the name has the number of a block

    @property
    def path(self) -> str:
        """The whole path."""
        return os.path.join(self.folder, self.name)

    @property
    def files(self) -> list[str]:
        """The paths of the files that it means."""
        return numbered_files(self.path) if self.is_many else [self.path]

    def is_same(self, other: NamedFile) -> bool:
        """Return whether two names lead to the same file, or, if they mean many, to the same folder."""
        if self.name != other.name or self.is_many != other.is_many:
            return False
        if not self.is_many:
            return os.path.samefile(self.path, other.path)
        return os.path.realpath(self.folder) == os.path.realpath(other.folder)


def find_virtual(name: str, file: str) -> NamedFile | None:
    """Return a source of a virtual dataset of `file`; None if it does not exist."""
    # A percent sign is doubled in these names, unless it means the number of a block.
    return _find(name.replace("%%", "%"), file, "HDF5_VDS_PREFIX", is_many=has_number(name))


def has_number(name: str) -> bool:
    """Return whether the name of a virtual source, or of a dataset in it, has the number of a block."""
    return NUMBER in name.replace("%%", "")


def find_linked(name: str, file: str) -> NamedFile | None:
    """Return the file that an external link of `file` names; None if it does not exist."""
    return _find(name, file, "HDF5_EXT_PREFIX")


def find_raw(name: str, file: str) -> NamedFile | None:
    """Return a raw file of a dataset of `file`, also if only readers in the folder of `file` find it; else None."""
    own_folder = os.path.dirname(file)
    prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace("${ORIGIN}", own_folder)
    folders = [prefix] if prefix else [os.curdir, own_folder]
    if os.path.isabs(name):
        folders = [""]
    for folder in folders:
        if os.path.exists(path := os.path.join(folder, name)):
            return NamedFile(*os.path.split(path))
    return None


def misplaced_raw_file(dataset: h5py.Dataset, file: str) -> str:
    """Return the first raw file of a dataset that is in the folder of `file`, where HDF5 does not look; else empty."""
    if os.environ.get("HDF5_EXTFILE_PREFIX"):
        return ""
    absent = (name for name, _ in _names(dataset) if not os.path.exists(name))
    return next((found.path for name in absent if (found := find_raw(name, file)) is not None), "")


def linked_file(name: bytes, file: str) -> str | None:
    """Return the path of the file that an external link of `file` leads to; None if it does not exist."""
    linked = find_linked(os.fsdecode(name), os.path.abspath(file))
    return None if linked is None else os.path.realpath(linked.path)


def _find(name: str, file: str, prefix: str, *, is_many: bool = False) -> NamedFile | None:
    if os.path.isabs(name):
        if _exists(name, is_many):
            return NamedFile(*os.path.split(name), is_many)
        name = os.path.basename(name)
    folders = [*folders_in(prefix), os.path.dirname(file), os.curdir]
    folders.append(os.path.dirname(os.path.realpath(file)))
    for folder in folders:
        if _exists(path := os.path.join(folder, name), is_many):
            return NamedFile(*os.path.split(path), is_many)
    return None


def _exists(path: str, is_many: bool) -> bool:
    return bool(numbered_files(path)) if is_many else os.path.exists(path)


_MOST_LINKS = 16


class PartElsewhere(NamedTuple):
    """A part of the values."""

    # Name of the file, and path of the dataset in it; empty for a raw file
    file: str
    inner: str
    part: bytes  # Identifies these values, and their place in the file


def sources_of(dataset: h5py.Dataset) -> list[PartElsewhere]:
    """Return the sources of a virtual dataset, or its external raw files; none for other datasets."""
    plist = dataset.id.get_create_plist()
    if plist.get_layout() == h5d.VIRTUAL:
        return [
            PartElsewhere(
                plist.get_virtual_filename(index),
                plist.get_virtual_dsetname(index),
                plist.get_virtual_vspace(index).encode() + plist.get_virtual_srcspace(index).encode(),
            )
            for index in range(plist.get_virtual_count())
        ]
    entries = (plist.get_external(index) for index in range(plist.get_external_count()))
    return [PartElsewhere(os.fsdecode(name), "", f"{offset} {nbytes}".encode()) for name, offset, nbytes in entries]


def _names(dataset: h5py.Dataset) -> list[tuple[str, str]]:
    """Return the file and the inner path of each source once, without its part, which takes most of the time."""
    plist = dataset.id.get_create_plist()
    if plist.get_layout() != h5d.VIRTUAL:
        return list(dict.fromkeys((source.file, source.inner) for source in sources_of(dataset)))
    numbers = range(plist.get_virtual_count())
    return list(dict.fromkeys((plist.get_virtual_filename(at), plist.get_virtual_dsetname(at)) for at in numbers))


def found_sources(dataset: h5py.Dataset, filename: str) -> Iterator[tuple[str, str]]:
    """Yield the files, each with a dataset in it, that have the values of a virtual dataset; empty for its own file.

    A name with the number of a block is not among them.
    """
    for file, inner in _names(dataset):
        path = posixpath.join("/", inner)
        if file == SAME_FILE:
            yield "", path
        elif (found := find_virtual(file, filename)) is not None:
            for each in found.files:
                yield os.path.realpath(each), path


def value_files(dataset: h5py.Dataset, filename: str) -> list[str]:
    """Return the other files that decide on the values of a virtual or external dataset.

    A source may be virtual or external itself, or be behind a link: the files on the way count, too. What cannot be
    opened leads no further; reading the values says why.
    """
    own = os.path.realpath(filename)
    todo = dict.fromkeys(_places(dataset, filename))
    seen = dict[tuple[str, str], None]()
    while todo:
        seen |= todo
        found = (place for path, inner in todo for place in _places_of(dataset.file if path == own else path, inner))
        todo = {place: None for place in found if place not in seen}
    return [path for path in dict.fromkeys(path for path, _ in seen) if path != own]


def _places_of(file: h5py.File | str, inner: str) -> list[tuple[str, str]]:
    """Return the places of a dataset at a path in a file, or in the one to which a link on that path leads."""
    with suppress(OSError, RuntimeError, ValueError, KeyError, FileError):
        if isinstance(file, h5py.File):
            return _places_in(file, inner)
        if inner and stat.S_ISREG(os.stat(file).st_mode):  # a raw file has no paths, and HDF5 may wait for a pipe
            with h5py.File(file, "r") as opened:
                return _places_in(opened, inner)
    return []


def _places_in(file: h5py.File, inner: str) -> list[tuple[str, str]]:
    if has_number(inner):
        return [(os.path.realpath(file.filename), name) for name in _numbered(file, inner)]
    if (end := end_at(file, inner)) is None:
        return []
    if isinstance(end[0], NamedFile):
        return [(os.path.realpath(path), end[1]) for path in end[0].files]
    found = file.get(inner.encode("utf-8", "surrogateescape"))
    return [*_places(found, file.filename)] if isinstance(found, h5py.Dataset) else []


def _numbered(file: h5py.File, inner: str) -> list[str]:
    """Return the paths that a path with the number of a block means."""
    folder, name = posixpath.split(inner)
    group = file.get(folder or "/")
    if has_number(folder) or not isinstance(group, h5py.Group):
        return []
    fits = numbered(name).fullmatch
    return [posixpath.join(folder, each) for each in group if fits(each)]


def _places(dataset: h5py.Dataset, filename: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the values of a virtual or external dataset, and the path in each; none for a raw file."""
    for file, inner in _names(dataset):
        if file == SAME_FILE:
            yield os.path.realpath(filename), inner
        elif (found := _found(file, inner, filename)) is not None:
            yield from ((os.path.realpath(path), inner) for path in found.files)


def absent_sources(dataset: h5py.Dataset, filename: str) -> list[str]:
    """Return the missing files and datasets that a dataset refers to, without opening files."""
    absent: dict[str, None] = {}
    for file, inner in _names(dataset):
        if file != SAME_FILE:
            if _found(file, inner, filename) is None:
                absent[file] = None
        elif not has_number(inner) and end_of(dataset.file, inner) is None:
            absent[f"{inner} in this file"] = None
    return list(absent)


def check_files(dataset: h5py.Dataset, filename: str, label: str) -> None:
    """Raise FileError if a virtual source or raw file is a pipe, device or folder; nothing is opened."""
    for file, inner in _names(dataset):
        if file != SAME_FILE and (found := _found(file, inner, filename)) is not None:
            for path in found.files:
                check_is_file(path, label)


def check_is_file(path: str, label: str) -> None:
    """Raise FileError if a path leads to a pipe, device or folder; nothing is opened."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise FileError(f"{label}: leads to {path}: expected a file, found {kind_of_mode(mode)}")


_DEEPEST = 1000
"""Virtual datasets that show one another; HDF5 calls itself for each."""


def circle_of(dataset: h5py.Dataset, filename: str) -> str:
    """Return why HDF5 would call itself until it crashes: a virtual dataset shows itself; empty if it does not."""
    own = os.path.realpath(filename)
    start = own, posixpath.join("/", dataset.name)
    way = {start: _sources_at(start, dataset, own)}  # from the dataset to the one that is looked at
    seen = {start}
    while way:
        found = next(next(reversed(way.values())), None)
        if found is None:
            way.popitem()
        elif found in way or len(way) == _DEEPEST:
            names = [inner if path == own else f"{inner} in {path}" for path, inner in [*way, found]]
            if len(names) > 5:
                names[3:-2] = ["…"]
            kind = "circle" if found in way else f"row of more than {_DEEPEST}"
            return f"expected a virtual dataset that ends in values, found one in a {kind}: {' shows '.join(names)}"
        elif found not in seen:
            seen.add(found)
            way[found] = _sources_at(found, dataset, own)
    return ""


def _sources_at(place: tuple[str, str], dataset: h5py.Dataset, own: str) -> Iterator[tuple[str, str]]:
    """Yield the places of the sources of what is at a place, with the path from the root."""
    path, inner = place
    places = _places_of(dataset.file if path == own else path, inner)
    for file, name in places:
        if name:
            yield file, posixpath.normpath(posixpath.join("/", name))


def unreadable_source(dataset: h5py.Dataset, filename: str) -> str:
    """Return the first source of a virtual dataset that HDF5 replaces by fill values; empty if there is none."""
    if absent := absent_sources(dataset, filename):
        return f"{absent[0]}, a source of this virtual dataset"
    opened: dict[str, h5py.File] = {}
    try:
        for file, inner in _names(dataset):
            found = None if file == SAME_FILE else find_virtual(file, filename)
            if found is None or has_number(file) or has_number(inner):
                continue
            path = found.path
            if path not in opened:
                opened[path] = h5py.File(path, "r")
            if inner not in opened[path]:
                return f"{inner} in {file}, a source of this virtual dataset"
    except (OSError, RuntimeError, ValueError) as error:
        return f"{file}, a source of this virtual dataset: {error}"
    finally:
        for source_file in opened.values():
            source_file.close()
    return ""


def same_sources(first: tuple[h5py.Dataset, str], second: tuple[h5py.Dataset, str]) -> bool:
    """Return whether datasets, each with its file, certainly have the same values of the same other files."""
    before, after = sources_of(first[0]), sources_of(second[0])
    if not before or len(before) != len(after):
        return False
    for source, other in zip(before, after, strict=True):
        if (source.inner, source.part) != (other.inner, other.part):
            return False
        places = _place(source, *first), _place(other, *second)
        if any(isinstance(place, h5py.File) for place in places):
            return False  # values of these files themselves, which may differ
        if places[0] is None or places[1] is None:
            if places[0] is not places[1] or source.file != other.file:
                return False
        elif not places[0].is_same(places[1]):
            return False
    return True


def _place(source: PartElsewhere, dataset: h5py.Dataset, filename: str) -> NamedFile | h5py.File | None:
    """Return where a source is: in another file or in this one; None if it is absent."""
    if source.file == SAME_FILE:
        return end_of(dataset.file, source.inner)
    return _found(source.file, source.inner, filename)


def _found(file: str, inner: str, filename: str) -> NamedFile | None:
    return find_virtual(file, filename) if inner else find_raw(file, filename)


def check_links(file: h5py.File, path: str) -> None:
    """Raise FileError if an external link on a path leads to a pipe, device or folder: HDF5 may wait for it."""
    end = end_of(file, path)
    if isinstance(end, NamedFile):
        check_is_file(end.path, f"{file.filename}: {path}")


def end_of(file: h5py.File, path: str) -> NamedFile | h5py.File | None:
    """Return the file in which a path ends: another file after a link, or its own; None if it leads nowhere."""
    end = end_at(file, path)
    return None if end is None else end[0]


def end_at(file: h5py.File, path: str, links: int = 0) -> tuple[NamedFile | h5py.File, str] | None:
    """Return the file in which a path ends, another one after an external link, and the path in that file."""
    group: h5py.Group = file["/"]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for index, name in enumerate(parts):
        part = name.encode("utf-8", "surrogateescape")
        if not group.id.links.exists(part):
            return None
        kind = group.id.links.get_info(part).type
        rest = parts[index + 1 :]
        if kind == h5l.TYPE_EXTERNAL:
            other, inner = group.id.links.get_val(part)
            linked = find_linked(os.fsdecode(other), os.path.abspath(file.filename))
            if linked is None:
                return None
            return linked, posixpath.join("/", inner.decode("utf-8", "surrogateescape"), *rest)
        if kind == h5l.TYPE_SOFT:
            target = group.id.links.get_val(part).decode("utf-8", "surrogateescape")
            start = "" if target.startswith("/") else "/".join(parts[:index])
            if links == _MOST_LINKS:
                return None
            return end_at(file, "/".join((start, target, *rest)), links + 1)
        if rest:
            group = group[part]
            if not isinstance(group, h5py.Group):
                return None
    return file, path
