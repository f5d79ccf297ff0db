"""Copy a whole HDF5 file, object by object, while some of its datasets are made anew.

Two passes: the first makes all objects and links, in their order; the second, when every object has its place, copies
the attributes and translates the references. Each object keeps its path, so that a path means the same object in both
files.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import h5py
from h5py import h5d, h5g, h5l, h5o, h5p, h5r, h5t

from tamis.errors import FileError, ParameterError
from tamis.hdf5.facts import datatype_of, open_dataset
from tamis.hdf5.lib import calls
from tamis.hdf5.tree.create import STAGING, create_like, create_target, group_plist, staging_name
from tamis.hdf5.tree.groups import check_links, make_group_like
from tamis.hdf5.tree.links import Link, link_plist, links_of
from tamis.hdf5.tree.references import (
    attribute_names,
    check_sizes,
    copy_attribute,
    copy_values,
    has_references,
    is_variable,
    rewrite_references,
)
from tamis.hdf5.tree.relocation import Relocation

__all__ = ["CopyInsteadError", "Recreate", "copy_tree", "create_like", "create_target"]

Recreate = Callable[[h5py.Dataset, h5py.Group, str], h5py.Dataset]
"""Makes and fills the copy of a dataset, from the source dataset, the target's group, and the name to use there."""


class CopyInsteadError(Exception):
    """Raised by a `Recreate` that cannot: what it made is removed, and the dataset is copied as it is stored."""


# H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG of H5Opublic.h, for which h5py has no name.
_MERGE_NAMED_TYPES = 0x0040


def copy_tree(source: h5py.File, target: h5py.File, recreate: Mapping[str, Recreate]) -> list[str]:
    """Copy everything in a file to an empty one, except the datasets that `recreate` makes.

    Groups with their filters and phase change, links of every kind, named types, attributes, references and the order
    of links and attributes are kept. Datasets are copied as they are stored, without decoding, so that no filter plugin
    is needed; only where the elements lie outside of the chunks or are references (variable-length data, references)
    does the library have to decode. The filters of groups must be here, except optional ones that left links as they
    were.

    Parameters
    ----------
    source
        Open for reading.
    target
        Open for writing and empty, as `create_target` makes it.
    recreate
        By path of a dataset in the source. A dataset with several hard links is made once, under the link that is
        visited first. Its attributes are copied afterwards; the function must not make any of the same name.

    Returns
    -------
    list of str
        Notes: which names of other files had to change, so that the copy leads to the same files from its own folder,
        and which lead nowhere (see `tamis.hdf5.tree.relocation`).

    Raises
    ------
    FileError
        If an object, link or attribute cannot be copied, or a path of `recreate` leads nowhere; the message names the
        path and the reason. What a function of `recreate` raises is passed on as it is.
    ParameterError
        If a path of `recreate` is no dataset of this file, or two of them lead to the same one, or `target` is not
        empty, or `source` has an object of the name that is used for work.

    Notes
    -----
    A reference whose object is gone becomes a null reference. In an attribute that holds references and variable-length
    strings in one compound type, null strings become empty ones.

    Groups, and datasets that are made anew, do not record times. In the other objects that do, the library sets the
    times of access and change to now: `tamis.hdf5.tree.times.keep_times` gives them those of the source.
    """
    if len(target) or len(target.attrs):
        raise ParameterError(f"expected an empty target, got {len(target)} objects and {len(target.attrs)} attributes")
    if STAGING.decode() in source:
        raise ParameterError(f"expected no {STAGING.decode()!r} in the source's root, a name that tamis uses itself")
    copy = _Copy(source, target, recreate)
    copy.run()
    return copy.other_files.notes


class _Place(NamedTuple):
    """Where an object is: its path, the address of the group in the source that it was found in, and its name there."""

    path: bytes
    group: int
    name: bytes


class _Copy:
    """The state of one `copy_tree`.

    Objects are opened from the group that they are in, and groups by references: finding them by their paths would take
    time for each group on the way.
    """

    def __init__(self, source: h5py.File, target: h5py.File, recreate: Mapping[str, Recreate]) -> None:
        self.file = source
        self.source = h5g.open(source.id, b"/")
        self.target = h5g.open(target.id, b"/")
        self.source_number = h5o.get_info(self.source).fileno
        self.recreate = self._by_address(source, recreate)
        self.other_files = Relocation(source.filename, target.filename)
        self.root = h5o.get_info(self.source).addr
        # Address in the source → place, which is the same in both files; those of one group follow each other.
        self.places: dict[int, _Place] = {self.root: _Place(b"/", self.root, b"/")}
        # Address in the source → references to a group in source and target.
        self.groups: dict[int, tuple[Any, Any]] = {}
        # Address in the source → named type in source and target, which may have no path but the staging one.
        self.types: dict[int, tuple[Any, Any]] = {}
        self.staging: Any = None

    def run(self) -> None:
        """Do both passes."""
        pending = deque([self.root])
        while pending:
            pending.extend(self._copy_group(pending.popleft()))
        for address, places in itertools.groupby(list(self.places.values()), key=lambda place: place.group):
            source, target = self._opened(address)
            for path, _, name in places:
                with _placed(path):
                    self._finish(path, h5o.open(source, name), h5o.open(target, name))
                    # Not by h5o.get_comment, which returns memory that it has freed.
                    if comment := source.get_comment(name):
                        target.set_comment(name, comment)
        self._finish_types()
        if self.staging is not None:
            self.staging = None
            self.target.unlink(STAGING)

    def _by_address(self, source: h5py.File, recreate: Mapping[str, Recreate]) -> dict[int, Recreate]:
        """Key the functions by address, since a path of the caller may be any of several that lead to a dataset."""
        functions: dict[int, Recreate] = {}
        for path, function in recreate.items():
            try:
                info = h5o.get_info(self.source, path.encode("utf-8", "surrogateescape"))
            except (KeyError, RuntimeError, ValueError) as error:
                raise FileError(f"expected a dataset at {path!r}, got {error.args[0]}") from error
            if info.type != h5o.TYPE_DATASET or info.fileno != self.source_number:
                raise ParameterError(f"expected a dataset of this file at {path!r}, got {source[path]!r}")
            if info.addr in functions:
                raise ParameterError(f"expected one path for each dataset, got {path!r} and another for the same one")
            functions[info.addr] = function
        return functions

    def _opened(self, group: int) -> tuple[Any, Any]:
        """Open a group in source and target, by its address in the source."""
        if group == self.root:
            return self.source, self.target
        source, target = self.groups[group]
        return h5r.dereference(source, self.source), h5r.dereference(target, self.target)

    def _copy_group(self, address: int) -> list[int]:
        """Copy the links of a group, and the objects met for the first time; returns the addresses of new groups."""
        source, target = self._opened(address)
        path = self.places[address].path
        with _placed(path):
            check_links(h5py.Group(source))
            links = links_of(source)
        groups = []
        for link in links:
            place = path.rstrip(b"/") + b"/" + link.name
            here = _Place(place, address, link.name)
            hard = link.kind == h5l.TYPE_HARD
            if hard and link.address in self.recreate and link.address not in self.places:
                self.places[link.address] = here
                self._recreate(target, link, place)
                continue
            with _placed(place):
                if not hard:
                    self._copy_link(source, target, link, place)
                elif link.address in self.places:
                    known = self.places[link.address]
                    target.links.create_hard(link.name, self._opened(known.group)[1], known.name, link_plist(link))
                else:
                    if self._copy_object(source, target, link, place):
                        first, second = (h5r.create(each, link.name, h5r.OBJECT) for each in (source, target))
                        self.groups[link.address] = first, second
                        groups.append(link.address)
                    self.places[link.address] = here
        return groups

    def _copy_object(self, source: Any, target: Any, link: Link, place: bytes) -> bool:
        """Copy one object without attributes; returns whether it is a group, whose links are yet to be copied."""
        found = h5o.open(source, link.name)
        lcpl = link_plist(link)
        if isinstance(found, h5g.GroupID):
            make_group_like(found, target, link.name, lcpl, group_plist(found))
            return True
        if isinstance(found, h5t.TypeID):
            h5o.link(self._type(found), target, link.name, lcpl)
            return False
        datatype = found.get_type()
        named = datatype.committed()
        plist = found.get_create_plist()
        filled = plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        variable = is_variable(datatype)
        check_sizes(found, datatype)
        if (moved := self.other_files.creation_list(_text(place), h5py.Dataset(found))) is not None:
            _create_copy(found, target, link, self._type(datatype) if named else datatype, moved)
        elif (variable and filled) or (named and (variable or not plist.get_nfilters())):
            # H5Ocopy keeps a variable-length fill value as a heap address of the source, and finds no named type of
            # variable length in the target. For other named types it walks through all of the target each time,
            # which only filters are worth: they may be missing here, or take their stored parameters amiss.
            _create_copy(found, target, link, self._type(datatype) if named else datatype)
        elif named:
            kept = self._type(datatype)
            flags = h5o.COPY_WITHOUT_ATTR_FLAG | _MERGE_NAMED_TYPES
            h5o.copy(source, link.name, target, link.name, _copy_plist(flags), lcpl)
            if not _same_object(h5d.open(target, link.name).get_type(), kept):
                # The library took another one of several equal types.
                target.unlink(link.name)
                _create_copy(found, target, link, kept)
        else:
            h5o.copy(source, link.name, target, link.name, _copy_plist(h5o.COPY_WITHOUT_ATTR_FLAG), lcpl)
        return False

    def _copy_link(self, source: Any, target: Any, link: Link, place: bytes) -> None:
        """Copy a link that is no hard one."""
        lcpl = link_plist(link)
        if link.kind == h5l.TYPE_SOFT:
            target.links.create_soft(link.name, source.links.get_val(link.name), lcpl)
        elif link.kind == h5l.TYPE_EXTERNAL:
            name, path = source.links.get_val(link.name)
            target.links.create_external(link.name, self.other_files.linked(_text(place), name), path, lcpl)
        else:
            raise ValueError(f"expected a hard, soft or external link, got the user-defined link type {link.kind}")

    def _recreate(self, target: Any, link: Link, place: bytes) -> None:
        """Let the caller's function make a dataset, and check that it did."""
        with _placed(place):
            # By its path, since HDF5 would have to search for the name of the object in all of the file.
            found = open_dataset(self.file, place.decode("utf-8", "surrogateescape"))
            if datatype_of(found).committed():
                self._type(datatype_of(found))
        name = link.name.decode("utf-8", "surrogateescape")
        try:
            made = self.recreate[link.address](found, h5py.Group(target), name)
        except CopyInsteadError:
            if target.links.exists(link.name):
                target.unlink(link.name)
            with _placed(place):
                self._copy_object(self._opened(self.places[link.address].group)[0], target, link, place)
            return
        with _placed(place):
            if not target.links.exists(link.name) or not _same_object(h5o.open(target, link.name), made.id):
                raise ValueError(f"expected the new dataset under this path, got {made!r}")
            if target.links.get_info(link.name).cset != link.charset:
                target.unlink(link.name)
                h5o.link(made.id, target, link.name, link_plist(link))

    def _type(self, datatype: Any) -> Any:
        """Return the target's named type for one of the source; copies it into the staging group when first met.

        A type may be needed before its own link is due, and links must be made in their order.
        """
        address = h5o.get_info(datatype).addr
        if address not in self.types:
            if self.staging is None:
                self.staging = h5g.create(self.target, STAGING)
            name = staging_name(address)
            # Not by H5Ocopy, which ends the process on some damaged types.
            datatype.copy().commit(self.staging, name)
            self.types[address] = datatype, h5t.open(self.staging, name)
        return self.types[address][1]

    def _finish(self, path: bytes, source: Any, target: Any) -> None:
        """Copy what an object's copy still lacks: attributes, and references in the data."""
        if isinstance(source, h5d.DatasetID) and has_references(source.get_type()):
            rewrite_references(source, target, self._rewire)
        for name in attribute_names(source):
            with _placed(path, name):
                datatype = h5py.h5a.open(source, name).get_type()
                created = self._type(datatype) if datatype.committed() else datatype
                copy_attribute(source, target, name, created, self._rewire)

    def _finish_types(self) -> None:
        """Copy the attributes of named types without a link; they may lead to further ones."""
        done = set(self.places)
        while left := self.types.keys() - done:
            for address in left:
                path = b"/" + STAGING + b"/" + staging_name(address)
                with _placed(path):
                    self._finish(path, *self.types[address])
            done |= left

    def _rewire(self, reference: Any) -> Any:
        """Make the target's reference for one of the source."""
        region = isinstance(reference, h5r.RegionReference)
        try:
            found = h5r.dereference(reference, self.source)
        except (ValueError, RuntimeError, OSError, KeyError):
            found = None
        if found is None:
            return h5r.RegionReference() if region else h5r.Reference()
        address = h5o.get_info(found).addr
        if address in self.places:
            _, group, name = self.places[address]
            home = self._opened(group)[1]
        elif address in self.types:
            home, name = self.target, STAGING + b"/" + staging_name(address)
        else:
            raise ValueError(f"expected a reference to an object that links lead to, got the one at address {address}")
        if region:
            return h5r.create(home, name, h5r.DATASET_REGION, h5r.get_region(reference, self.source))
        return h5r.create(home, name, h5r.OBJECT)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")


class _PlacedError(FileError):
    """Says where it happened, so that no outer place is put before it."""


@contextmanager
def _placed(path: bytes, attribute: bytes | None = None) -> Iterator[None]:
    """Turn what goes wrong inside into a FileError that says where."""
    try:
        yield
    except _PlacedError:
        raise
    except Exception as error:
        what = _text(path)
        if attribute is not None:
            what += f" (attribute {attribute.decode('utf-8', 'backslashreplace')!r})"
        raise _PlacedError(f"cannot copy {what}: {error}") from error


def _create_copy(source: Any, target: Any, link: Link, datatype: Any, plist: Any = None) -> None:
    """Copy a dataset with a given type, and perhaps other properties, by creating and filling it."""
    plist = source.get_create_plist() if plist is None else plist
    plist.set_obj_track_times(False)
    made = h5d.create(target, link.name, datatype, source.get_space(), plist, link_plist(link))
    expected, got = (_filters(dataset.get_create_plist()) for dataset in (source, made))
    if expected != got:
        raise ValueError(f"expected the stored filters {expected}, got {got}, which a filter changed on creation")
    copy_values(source, made)


def _filters(plist: Any) -> list[tuple[Any, ...]]:
    return [each[:3] for each in calls.filter_list(plist)]


def _same_object(first: Any, second: Any) -> bool:
    """Compare two objects of one file; a type that is not named is no object."""
    if isinstance(first, h5t.TypeID) and not first.committed():
        return False
    one, other = h5o.get_info(first), h5o.get_info(second)
    return bool(one.fileno == other.fileno and one.addr == other.addr)


def _copy_plist(flags: int) -> Any:
    ocpypl = h5p.create(h5p.OBJECT_COPY)
    ocpypl.set_copy_object(flags)
    return ocpypl
