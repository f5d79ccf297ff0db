"""Find all objects of a file, even if some groups cannot be listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import h5py
from h5py import h5a, h5d, h5f, h5g, h5i, h5l, h5o, h5r

from tamis.errors import FileError, MissingFilterError
from tamis.formats.hdf5.lib.files import remote_of
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths
from tamis.formats.hdf5.lib.quick_facts import (
    Depth,
    QuickFacts,
    quick_look,
)
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.links import Link
from tamis.formats.hdf5.tree.scope import Scope, scope_of
from tamis.meaning.companions import MARK
from tamis.safety.library_errors import reading
from tamis.stores.protocols import Arrays

_MOST_NBYTES = 16 << 20
"""Memory for groups that stay open."""

_GROUP_NBYTES, _PATH_COPIES = 1536, 3
"""What HDF5 takes for an open group: for itself, and for its path."""


K = TypeVar("K", bound=Hashable)


class OpenGroups(Mapping[K, h5py.Group]):
    """Groups by a key, in the order in which they are added.

    Opening a group by its path takes time for each group on the way. The first groups stay open; the others are opened
    through references, without a path. The last of these also stays open.
    """

    def __init__(self, root: h5g.GroupID, key: K) -> None:
        self._root = root
        self._room = _MOST_NBYTES
        self._known: dict[K, h5g.GroupID | h5r.Reference] = {key: root}
        self._last: tuple[K | None, h5g.GroupID] = (None, root)
        self._number = h5o.get_info(root).fileno
        self._homes: dict[K, h5f.FileID] = {}  # Files of groups in other files

    def add(self, key: K, group: h5g.GroupID, path: str | bytes) -> None:
        """Add a group, which was opened by its path."""
        self._room -= _GROUP_NBYTES + _PATH_COPIES * len(path)
        if self._room > 0:
            self._known[key] = group
            return
        self._known[key] = h5r.create(group, b".", h5r.OBJECT)
        if h5o.get_info(group).fileno != self._number:
            self._homes[key] = h5i.get_file_id(group)

    def opened(self, key: K) -> h5g.GroupID:
        """Return the identifier of a group."""
        known = self._known[key]
        if isinstance(known, h5g.GroupID):
            return known
        if self._last[0] != key:
            self._last = key, h5r.dereference(known, self._homes.get(key, self._root))
        return self._last[1]

    def __getitem__(self, key: K) -> h5py.Group:
        return h5py.Group(self.opened(key))

    def __contains__(self, key: object) -> bool:
        return key in self._known  # without opening it

    def __iter__(self) -> Iterator[K]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


_MOST_LINKS = 1_000_000
"""Limit of links that are followed to find all paths of all datasets: a few links can make very many paths."""

_Open = tuple[str, list[Link]]  # path of a group, links still to visit


class _Listed(NamedTuple):
    """A dataset as it is listed."""

    file: h5py.File
    stored_path: str  # HDF5's path in its file
    address: int
    marked: bool  # Whether it names a companion
    facts: QuickFacts | None  # None if they are not known


class Datasets(Arrays[Hdf5Array]):
    """Datasets of a file by their paths in netCDF, in order; each is examined once, on first use."""

    def __init__(self, file: h5py.File) -> None:
        self.entries: dict[str, _Listed] = {}
        self.file, self._arrays = file, dict[str, Hdf5Array]()

    def add(
        self,
        path: str,
        address: int,
        *,
        marked: bool,
        facts: QuickFacts | None = None,
        place: tuple[h5py.File, str] | None = None,
    ) -> None:
        """Add path and address of a dataset, whether it names a companion, and its facts if they are known.

        `place` has its file and its path there, if these are others.
        """
        self.entries[path] = _Listed(*(place or (self.file, path)), address, marked, facts)

    def facts_at(self, path: str, address: int) -> QuickFacts | None:
        """Return the facts of the dataset at a path of HDF5, if they were read with all attributes."""
        listed: _Listed | None = self.entries.get(path)
        is_it = listed is not None and (listed.stored_path, listed.address) == (path, address)
        return listed.facts if listed and is_it and listed.facts and listed.facts.contents is not None else None

    def marked(self) -> list[str]:
        """Return the paths of datasets that name a companion."""
        return [path for path, listed in self.entries.items() if listed.marked]

    def companions(self) -> Iterator[tuple[Hdf5Array, str]]:
        """Yield each companion and the path of its variable; damaged ones are left out."""
        known: dict[int, str] = {}
        for path in self.marked():
            with suppress(FileError), reading(path):
                if (companion := self[path].companion) is not None and self[path].companion_flags is not None:
                    if self.entries[path].file is not self.file:  # it has another path here
                        known = known or self.addresses()
                        companion.path = known[companion.address]
                    yield companion, path

    def check_companions(self) -> None:
        """Raise FileError if a dataset that is taken in has its missing values where no link leads."""
        taken_in = [path for path in self.marked() if self.entries[path].file is not self.file]
        known = self.addresses() if taken_in else {}
        for path in taken_in:
            companion = self[path].companion
            if companion is not None and companion.address not in known:
                raise FileError(
                    f"{path}: its missing values are in {companion.path} of {companion.filename}, to which no link"
                    " leads: link to the group of both"
                ).at(dataset=path)

    def addresses(self) -> dict[int, str]:
        """Return the paths by address, without opening a dataset."""
        return {listed.address: path for path, listed in self.entries.items()}

    def labelled(self, labels: Mapping[str, str], *, others: bool = True) -> Datasets:
        """Return datasets by other paths, `labels`, sorted."""
        datasets = super().labelled(labels, others=others)
        datasets.entries = dict(sorted(datasets.entries.items()))
        return datasets

    def looked_at(self, path: str) -> Hdf5Array | None:
        """Return the array of a path that was used before, here or under other labels."""
        return self._arrays.get(path)

    def __getitem__(self, path: str) -> Hdf5Array:
        listed = self.entries[path]
        if (array := self._arrays.get(path)) is None:
            array = self._arrays[path] = Hdf5Array(
                listed.file, path, stored_path=listed.stored_path, address=listed.address
            )
            if listed.facts is not None:
                array.take(listed.facts)
        return array


@dataclass(slots=True)
class Contents:
    """The contents of a file, each object once."""

    # Objects by path, in the order of names
    datasets: Datasets
    groups: OpenGroups[str]
    closed: dict[str, str] = field(default_factory=dict)  # Groups whose links cannot be listed, with the reason
    places: dict[int, str] = field(default_factory=dict)  # First path of each object by its address
    # Additional hard links: path of the group, name, first path of the target
    links: list[tuple[str, str, str]] = field(default_factory=list)
    external: list[str] = field(default_factory=list)  # Paths of external links
    room: int = 0  # Bytes of memory for values of small datasets that are still to be found
    # File of each group, and its path there, where these are others
    elsewhere: dict[str, tuple[h5py.File, str]] = field(default_factory=dict)

    def paths(self) -> dict[str, str]:
        """Return the first path of each dataset by all its paths through hard links that enter no group twice."""
        first_paths = {path: path for path in self.datasets}
        if not self.links:
            return first_paths
        links = defaultdict(list)
        for path in (*self.groups, *self.datasets):
            if path != "/":
                group, _, name = path.rpartition("/")
                links[group or "/"].append((name, path))
        for group, name, first in self.links:
            links[group].append((name, first))
        steps, entered = 0, {"/"}
        pending = [("", "/", iter(links["/"]))]
        while pending:
            path, first, remaining = pending[-1]
            for name, target in remaining:
                steps += 1
                if target in self.groups and target not in entered:
                    entered.add(target)
                    pending.append((f"{path}/{name}", target, iter(links[target])))
                    break
                if target in self.datasets:
                    first_paths[f"{path}/{name}"] = target
            else:
                pending.pop()
                entered.discard(first)
            if steps > _MOST_LINKS:
                raise FileError(f"expected at most {_MOST_LINKS} paths, found more: name datasets, without a pattern")
        return dict(sorted(first_paths.items()))


def walk(file: h5py.File, *, ahead_nbytes: int = 0) -> Contents:
    """Return every dataset and group of a file once, by its first path in netCDF."""
    filename = file.filename
    with reading(filename):
        # HDF5's own order of visiting decides which of several paths is the first.
        root, scope = h5g.open(file.id, b"/"), scope_of(file)
        contents = Contents(Datasets(file), OpenGroups(root, "/"), room=ahead_nbytes)
        contents.places[scope.address(root)] = "/"
        open_groups = [_enter(contents, scope, "/", root)]
        while open_groups:
            path, links = open_groups[-1]
            if not links:
                open_groups.pop()
                continue
            link = links.pop()
            # A name may not be valid UTF-8; h5py accepts it in this form.
            object_path = f"{path.rstrip('/')}/{link.name.decode('utf-8', 'surrogateescape')}"
            try:
                if inner := _visit(contents, scope, path, link, object_path):
                    open_groups.append(inner)
            except Exception:
                with reading(filename, dataset=object_path):
                    raise
    names = renamed_paths(file, contents.datasets)
    contents.datasets = contents.datasets.labelled(names)
    if names:
        contents.places = {address: names.get(path, path) for address, path in contents.places.items()}
        contents.links = [(group, name, names.get(path, path)) for group, name, path in contents.links]
    return contents


def address_of(item: h5py.Group | Hdf5Array) -> int:
    """Return the address of an object, which identifies it in its file, whatever its path."""
    return item.address if isinstance(item, Hdf5Array) else int(h5o.get_info(item.id).addr)


def _enter(contents: Contents, scope: Scope, path: str, group: h5g.GroupID) -> _Open:
    """Record a group, and return its hard links to visit, the last one first."""
    contents.groups.add(path, group, path)
    links: list[Link] = []
    try:
        links = scope.links(group)
    except MissingFilterError as error:
        contents.closed[path] = str(error)
    contents.external += [f"{path.rstrip('/')}/{link.text}" for link in links if link.kind == h5l.TYPE_EXTERNAL]
    hard_links = (link for link in links if link.kind == h5l.TYPE_HARD)
    # Links that only count as hard ones come last, so that an object has the name of its own link.
    return path, sorted(hard_links, key=lambda link: (link.place is not None, link.name), reverse=True)


def _visit(contents: Contents, scope: Scope, path: str, link: Link, object_path: str) -> _Open | None:
    """Record the target of a hard link; return its links to visit if it is a new group."""
    if link.address in contents.places:
        contents.links.append((path, object_path.rpartition("/")[2], contents.places[link.address]))
        return None
    contents.places[link.address] = object_path
    if (remote := remote_of(contents.datasets.file)) is not None:
        remote.prefetch_index(link.address)  # which is looked at below
    group, place = contents.groups.opened(path), link.place
    if place is None and path in contents.elsewhere:
        file, own_path = contents.elsewhere[path]
        place = file, f"{own_path.rstrip('/')}/{link.text}"
    depth = Depth.values if contents.room > 0 else Depth.facts
    # A link that counts as a hard one leads into another file than that of its group.
    file = contents.datasets.file if place is None else place[0]
    look = None if link.place is not None else quick_look(file, group, link.name, depth)
    item = look or _opened(scope, group, link)
    if isinstance(item, QuickFacts):
        contents.room -= item.nbytes
        marked = any(name == MARK.encode() for name, _ in item.attributes)
        contents.datasets.add(object_path, link.address, marked=marked, facts=item, place=place)
        return None
    if isinstance(item, h5d.DatasetID):
        contents.datasets.add(object_path, link.address, marked=_is_marked(item), place=place)
    elif isinstance(item, h5g.GroupID):
        if place is not None:
            contents.elsewhere[object_path] = place
        return _enter(contents, scope, object_path, item)
    return None


def _opened(scope: Scope, group: h5g.GroupID, link: Link) -> Any:
    """Return an object; None for a named type, or an unknown kind of object, that cannot be opened."""
    try:
        item = scope.open(group, link)
        if isinstance(item, h5d.DatasetID):
            h5o.get_info(item)  # to check its chunk index, too
        return item
    except Exception:
        if h5o.get_info(group, link.name).type in (h5o.TYPE_DATASET, h5o.TYPE_GROUP):
            raise
        return None


def _is_marked(dataset: h5d.DatasetID) -> bool:
    """Return whether a dataset names a companion; also True for damaged attributes, which are reported later."""
    try:
        return bool(h5a.exists(dataset, MARK.encode()))
    except RuntimeError:
        return True
