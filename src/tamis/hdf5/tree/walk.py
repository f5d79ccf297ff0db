"""Every object of a file, also where some groups cannot be listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import h5py
from h5py import h5, h5a, h5d, h5g, h5l, h5o

from tamis.errors import FileError, MissingFilterError
from tamis.hdf5.companions import MARK
from tamis.hdf5.facts import open_dataset
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.tree.groups import check_links

_MOST_LINKS = 1_000_000
"""Links that are followed to find every path of every dataset: few of them may make very many paths."""

_Open = tuple[str, h5g.GroupID, list[bytes]]  # path, group, names that are still to be visited


class Datasets(Mapping[str, h5py.Dataset]):
    """Datasets of a file by their paths, in the order of names.

    Each is opened when it is asked for: HDF5 takes 64 KiB and more for one that is open, and a file may have very many.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file, self._paths = file, dict[str, bool]()

    def add(self, path: str, *, marked: bool) -> None:
        """Add one that the file has, and say whether it names a companion."""
        self._paths[path] = marked

    def marked(self) -> list[str]:
        """Return the paths of those that name a companion."""
        return [path for path, marked in self._paths.items() if marked]

    def sort(self) -> None:
        """Bring them into the order of names."""
        self._paths = dict(sorted(self._paths.items()))

    def labelled(self, labels: Mapping[str, str], *, others: bool = True) -> Datasets:
        """Return datasets by other paths that lead to them, and those without such a path unless `others` is false."""
        found = Datasets(self._file)
        chosen = ((labels.get(path, path), marked) for path, marked in self._paths.items() if others or path in labels)
        found._paths = dict(sorted(chosen))
        return found

    def __getitem__(self, path: str) -> h5py.Dataset:
        if path not in self._paths:
            raise KeyError(path)
        with reading(self._file.filename, dataset=path):
            return open_dataset(self._file, path)

    def __contains__(self, path: object) -> bool:
        return path in self._paths  # without opening it

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass(slots=True)
class Contents:
    """What is in a file, each object once.

    Parameters
    ----------
    datasets, groups
        By path, in the order of names.
    closed
        Groups whose links cannot be listed, and why.
    places
        First path of each object by its address.
    links
        Further hard links: path of the group, name, first path of what the link leads to.
    """

    datasets: Datasets
    groups: dict[str, h5py.Group] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    links: list[tuple[str, str, str]] = field(default_factory=list)

    def paths(self) -> dict[str, str]:
        """Return the first path of each dataset by every path of hard links that leads to it and enters no group twice.

        Raises
        ------
        FileError
            If there are too many.
        """
        found = {path: path for path in self.datasets}
        if not self.links:
            return found
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
            path, first, left = pending[-1]
            for name, led in left:
                steps += 1
                if led in self.groups and led not in entered:
                    entered.add(led)
                    pending.append((f"{path}/{name}", led, iter(links[led])))
                    break
                if led in self.datasets:
                    found[f"{path}/{name}"] = led
            else:
                pending.pop()
                entered.discard(first)
            if steps > _MOST_LINKS:
                raise FileError(f"expected at most {_MOST_LINKS} paths, found more: name datasets, without a pattern")
        return dict(sorted(found.items()))


def walk(file: h5py.File) -> Contents:
    """Find every dataset and group of a file by its first path, whatever links lead to it.

    Raises
    ------
    FileError
        If an object of the file cannot be read.
    """
    found = Contents(Datasets(file))
    with reading(file.filename):
        # The order in which HDF5 itself visits objects decides which path of several is the first.
        root = h5g.open(file.id, b"/")
        found.places[h5o.get_info(root).addr] = "/"
        open_groups = [_enter(found, "/", root)]
        while open_groups:
            path, group, names = open_groups[-1]
            if not names:
                open_groups.pop()
                continue
            name = names.pop()
            place = f"{path.rstrip('/')}/{name.decode('utf-8', 'surrogateescape')}"
            with reading(file.filename, dataset=place):
                if inner := _meet(found, path, group, name):
                    open_groups.append(inner)
    found.datasets.sort()
    return found


def all_listed(file: h5py.File) -> Contents:
    """Find every dataset and group of a file as `walk` does, and refuse a file with groups that cannot be listed.

    Raises
    ------
    FileError
        If an object of the file cannot be read, or the links of a group cannot be listed.
    """
    found = walk(file)
    for reason in found.closed.values():
        raise FileError(f"{file.filename}: {reason}")
    return found


def address_of(found: h5py.HLObject) -> int:
    """Where an object is in its file, which tells it from others there, whatever path led to it."""
    return int(h5o.get_info(found.id).addr)


def _enter(found: Contents, path: str, group: h5g.GroupID) -> _Open:
    """Take note of a group, and list its links."""
    found.groups[path] = h5py.Group(group)
    names: list[bytes] = []
    try:
        check_links(found.groups[path])
    except MissingFilterError as error:
        found.closed[path] = str(error)
    else:
        group.links.iterate(names.append, order=h5.ITER_NATIVE)
    return path, group, sorted(names, reverse=True)


def _meet(found: Contents, path: str, group: h5g.GroupID, name: bytes) -> _Open | None:
    """Take note of what a link leads to; enter it where it is a group met for the first time."""
    if group.links.get_info(name).type != h5l.TYPE_HARD:
        return None
    info = h5o.get_info(group, name)
    # A name that is no UTF-8 comes as bytes; h5py takes it back in this form.
    label = name.decode("utf-8", "surrogateescape")
    if info.addr in found.places:
        found.links.append((path, label, found.places[info.addr]))
        return None
    place = found.places[info.addr] = f"{path.rstrip('/')}/{label}"
    if info.type == h5o.TYPE_DATASET:
        dataset = h5d.open(group, name)  # to see that it can be, as long as the group is open
        found.datasets.add(place, marked=_is_marked(dataset))
    elif info.type == h5o.TYPE_GROUP:
        return _enter(found, place, h5g.open(group, name))
    return None


def _is_marked(dataset: h5d.DatasetID) -> bool:
    """Return whether a dataset names a companion, or may do so in damaged attributes, which are reported later."""
    try:
        return bool(h5a.exists(dataset, MARK.encode()))
    except RuntimeError:
        return True
