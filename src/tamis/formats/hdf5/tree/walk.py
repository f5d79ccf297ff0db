"""Find all objects of a file, even if some groups cannot be listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import h5py
from h5py import h5, h5a, h5d, h5f, h5g, h5i, h5l, h5o, h5p, h5r, h5t

from tamis.errors import FileError, MissingFilterError, TamisError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.files import remote_of
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.lib.netcdf_names import renamed_paths, stored_path
from tamis.formats.hdf5.lib.quick_facts import (
    Depth,
    QuickFacts,
    bare_address,
    listed_pipeline,
    quick_links,
    quick_look,
)
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.kinds import Kind, checked
from tamis.library_lock import imported
from tamis.meaning.companions import MARK
from tamis.pipeline import Pipeline
from tamis.safety.library_errors import reading
from tamis.stores.protocols import Arrays

_MOST_NBYTES = 16 << 20
"""Memory for groups that stay open."""

_GROUP_NBYTES, _PATH_COPIES = 1536, 3
"""What HDF5 takes for an open group: for itself, and for its path."""


GROUP = Kind("an h5py file or group", lambda value: isinstance(value, h5py.Group))

_OLD_HEADER = 1

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


INSTALL = "set HDF5_PLUGIN_PATH to the folder of its plugin, or import hdf5plugin first in Python"


class Link(NamedTuple):
    """A copy of h5py's record of a link, which h5py reuses for the next link; `address` is for hard links."""

    name: bytes
    kind: int
    address: int
    charset: int
    order: int | None
    """Number in creation order; None if the group does not track it."""
    place: tuple[h5py.File, str] | None = None
    """File of the object, and its path there, if the link counts as a hard one; see `Scope`."""

    @property
    def text(self) -> str:
        """The name in h5py."""
        return self.name.decode("utf-8", "surrogateescape")


def links_of(group: h5g.GroupID) -> list[Link]:
    """List a group's links, in the order in which they are stored.

    Other orders are not safe: HDF5 1.14.2 then builds a table of links, frees it wrongly on failure, and corrupts the
    memory of the process.
    """
    if (listed := quick_links(group)) is not None:
        return [Link(*fields) for fields in listed]
    links: list[Link] = []

    def note(name: bytes, info: Any) -> None:
        links.append(Link(name, info.type, info.u, info.cset, info.corder if info.corder_valid else None))

    try:
        group.links.iterate(note, info=True, order=h5.ITER_NATIVE)
    except (ValueError, OSError, RuntimeError) as error:
        raise _listing_error(h5py.Group(group), error) from error
    return links


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


def link_words(group: h5py.Group, link: Link) -> str:
    """Return a link that is no hard one in words."""
    if link.kind not in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
        return f"link of the type {link.kind}"
    place = group.id.links.get_val(link.name)
    names = [place] if link.kind == h5l.TYPE_SOFT else place
    kind = "soft" if link.kind == h5l.TYPE_SOFT else "external"
    return f"{kind} link to {' '.join(name.decode('utf-8', 'backslashreplace') for name in names)}"


def in_order(links: list[Link]) -> list[Link]:
    """Sort links in creation order if it is tracked, otherwise by name."""
    if any(link.order is None for link in links):
        return sorted(links, key=lambda link: link.name)
    return sorted(links, key=lambda link: link.order or 0)


def link_plist(charset: int) -> h5p.PropLCID | None:
    """Return the creation properties of a link for a name in this character set; None, HDF5's default, for ASCII."""
    if charset == h5t.CSET_ASCII:
        return None
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(charset)
    return lcpl


def raw_name(path: str) -> tuple[bytes, h5p.PropLCID | None]:
    """Return a path as HDF5 takes it, and the properties of its link."""
    raw = path.encode("utf-8", "surrogateescape")
    return raw, link_plist(h5t.CSET_ASCII if raw.isascii() else h5t.CSET_UTF8)


def filter_text(code: int, label: str) -> str:
    """Return a filter's number and the beginning of its label, which may have whole sentences."""
    short = label.partition(";")[0]
    return f"HDF5 filter {code} ({short})" if short else f"HDF5 filter {code}"


def _listing_error(group: h5py.Group, error: Exception) -> TamisError:
    filters = calls.filter_list(group.id.get_create_plist())
    missing = [filter_text(entry.id, entry.label) for entry in filters if not is_available(entry.id)]
    if missing:
        return MissingFilterError(f"links of {group.name} cannot be read without {' and '.join(missing)}: {INSTALL}")
    return FileError(f"{group.file.filename}: {group.name}: damaged or incomplete: links cannot be read: {error}")


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


def info_at(file: h5py.File, path: str) -> Any:
    """Return HDF5's record of the object that a path in netCDF leads to, through any links; None if there is none."""
    try:
        return h5o.get_info(file.id, stored_path(file, path).encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError, KeyError):
        return None


def array_at(file: h5py.File, path: str) -> Hdf5Array | None:
    """Find the dataset of this file that a path in netCDF leads to, through any links; None if there is none."""
    stored, scope = stored_path(file, path), scope_of(file)
    dataset = _object_at(file, stored, h5py.Dataset)
    if dataset is None:
        return None
    own_file, own_path = scope.stored(stored)
    address = scope.address(dataset.id) if scope.is_linked else None
    return Hdf5Array(own_file, path, dataset, stored_path=own_path, address=address)


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """Return the group of this file at a path, through any links; None if there is none."""
    return _object_at(file, path, h5py.Group)


def _object_at(file: h5py.File, path: str, kind: type) -> Any:
    end_of = imported("tamis.formats.hdf5.tree.other_files").end_of  # late: that module imports this one
    try:
        if (scope := scope_of(file)).is_linked:
            own_file, own_path = scope.stored(path)
            item = own_file.get(own_path.encode("utf-8", "surrogateescape"))
            return item if isinstance(item, kind) else None
        if end_of(file, path) is not file:
            return None  # in another file, which is not opened
        item = file.get(path.encode("utf-8", "surrogateescape"))
    except (FileError, OSError, RuntimeError, ValueError):
        return None
    return item if isinstance(item, kind) and item.file == file else None  # type: ignore[attr-defined]


@checked(group=GROUP)
def group_filters(group: h5py.Group) -> Pipeline:
    """Return the filters of a group's links, with the parameters in the file.

    Parameters
    ----------
    group
        A group of any file; the filters need not be installed. A file means its root group.
    """
    item = group_id(group)
    return Pipeline() if is_old_group(item) else listed_pipeline(item.get_create_plist())


def is_old_group(group: h5g.GroupID) -> bool:
    """Return whether a group and its header have formats before HDF5 1.8; False if h5py's libhdf5 cannot tell.

    Most groups do, and have no settings; asking for a property list takes 6 µs.
    """
    if bare_address(group) is not None:
        return True
    if not calls.has("H5Gget_info") or calls.link_storage(group) != calls.SYMBOL_TABLE:
        return False
    info = h5o.get_info(group)  # which must live as long as its parts: h5py's point into it
    return bool(info.hdr.version == _OLD_HEADER)


def group_id(group: h5py.Group) -> h5g.GroupID:
    """Return the identifier of a group; for a file, that of its root group, because h5py has the file's."""
    return h5g.open(group.id, b"/") if isinstance(group, h5py.File) else group.id
