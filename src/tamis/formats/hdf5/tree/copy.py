"""Copy a whole HDF5 file, object by object, and stop at each dataset that the caller creates.

There are two passes: the first creates all objects and links, in their order; the second copies attributes and
translates references, when all objects exist. Each object keeps its path, so a path means the same object in both
files. Objects that are referred to before their own link exists, or have no link at all, are created in a staging
group, which is removed at the end.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5g, h5i, h5l, h5o, h5t

from tamis.errors import FileError, ParameterError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import set_text_like
from tamis.formats.hdf5.lib.datatypes import has_varying, text_of
from tamis.formats.hdf5.lib.files import shares_messages, writers_of
from tamis.formats.hdf5.lib.foreign_filters import isolate
from tamis.formats.hdf5.lib.labels import Labels
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.lib.new_filters import write_labels
from tamis.formats.hdf5.lib.quick_facts import copy_plain_attributes
from tamis.formats.hdf5.lib.references import (
    Place,
    attribute_names,
    copy_attribute,
    has_more,
    has_references,
    has_short_chunks,
    is_elsewhere,
    rewire_fill,
    rewrite_references,
)
from tamis.formats.hdf5.tree.create import (
    STAGING,
    contiguous_list,
    copy_empty_group,
    copy_plist,
    create_copy,
    create_group_like,
    same_object,
    staging_name,
)
from tamis.formats.hdf5.tree.links import Link, in_order, link_plist, links_of
from tamis.formats.hdf5.tree.relocation import Relocation
from tamis.formats.hdf5.tree.scope import Scope, scope_of
from tamis.formats.hdf5.tree.walk import OpenGroups
from tamis.formatting import plural
from tamis.meaning.variables import HISTORY
from tamis.safety.library_errors import pass_interrupt
from tamis.stores.other_files import OtherFiles, Places


def subject_of(path: bytes, attribute: bytes | None = None) -> str:
    """Return an object or its attribute in words."""
    return text_of(path) + (f" (attribute {text_of(attribute)!r})" if attribute is not None else "")


class _PlacedError(FileError):
    """An error that already names its object, so that outer blocks do not add theirs."""


@contextmanager
def placed(path: bytes, attribute: bytes | None = None) -> Iterator[None]:
    """Turn any error inside into a FileError that names the object."""
    try:
        yield
    except _PlacedError:
        raise
    except Exception as error:
        pass_interrupt(error)
        raise _PlacedError(f"cannot copy {subject_of(path, attribute)}: {error}").at(dataset=text_of(path)) from error


_SCALE_OF, _AXES = "REFERENCE_LIST", "DIMENSION_LIST"


def addresses_of(file: h5py.File, paths: Iterable[str]) -> frozenset[int]:
    """Return the addresses of the datasets at some paths."""
    scope = scope_of(file)
    return frozenset(scope.address_at(file.id, path.encode("utf-8", "surrogateescape")) for path in paths)


def leads_to(scope: Scope, group: Any, name: bytes, addresses: frozenset[int]) -> bool:
    """Return whether a soft link leads to one of some objects."""
    with suppress(KeyError, OSError, RuntimeError):
        return bool(addresses) and scope.address_at(group, name) in addresses
    return False


def check_scales(file: h5py.File, paths: Iterable[str]) -> None:
    """Raise FileError if a dataset that is left out is a dimension of one that stays."""
    paths = [*paths]
    addresses = addresses_of(file, [stored_path(file, path) for path in paths])
    for path in paths:
        users = [name for name, address in _users(file, stored_path(file, path)) if address not in addresses]
        if users:
            raise FileError(
                f"{file.filename}: {path}: cannot be left out alone, because it is a dimension of "
                f"{', '.join(users)}: leave these out as well"
            ).at(path=file.filename, dataset=path)


def _users(file: h5py.File, path: str) -> list[tuple[str, int]]:
    """Return the datasets that have a dimension scale, with their addresses."""
    users, scope = [], scope_of(file)
    with suppress(Exception):  # of damaged lists, h5py raises many kinds
        scale = file[path]
        for reference, _ in scale.attrs.get(_SCALE_OF, ()):
            if reference:
                user = scale.file[reference]
                users.append((str(user.name), scope.address(user.id)))
    return users


def shorten_list(target: h5d.DatasetID) -> None:
    """Remove null references, to datasets that the copy lacks, from the list of those that have a dimension."""
    attributes = h5py.Dataset(target).attrs
    entries = attributes[_SCALE_OF]
    kept = entries[[bool(reference) for reference, _ in entries]]
    datatype = attributes.get_id(_SCALE_OF).dtype
    del attributes[_SCALE_OF]
    if len(kept):
        attributes.create(_SCALE_OF, kept, dtype=datatype)


def shorten_axes(target: h5d.DatasetID) -> None:
    """Remove null references, to dimension scales that the copy lacks, from the axes of a dataset."""
    attributes = h5py.Dataset(target).attrs
    axes = [[reference for reference in axis if reference] for axis in attributes[_AXES]]
    del attributes[_AXES]
    if any(axes):
        values = np.empty(len(axes), object)
        for number, axis in enumerate(axes):
            values[number] = np.array(axis, h5py.ref_dtype)
        attributes.create(_AXES, values, dtype=h5py.vlen_dtype(h5py.ref_dtype))


class Copied(NamedTuple):
    """A dataset that was copied, with a link like that of the source."""

    complete: bool  # Whether it has all of its attributes already, and no references in its values


class DatasetSlot:
    """The place of a dataset that the caller creates, when it is the turn of its link.

    The caller creates the copy under the link's name in the group, and sets `copy` to the new dataset, or to a `Copied`
    if the new link has the character set of the source's. Without a copy, the dataset is copied as stored.
    """

    __slots__ = ("_open", "_source", "copy", "link", "parent", "path")

    def __init__(self, path: str, parent: h5g.GroupID, link: Link, open_source: Callable[[], h5py.Dataset]) -> None:
        self.path, self.parent, self.link = path, parent, link  # the path by which the caller named it
        self.copy: h5py.Dataset | Copied | None = None
        self._open, self._source = open_source, None

    def source(self) -> h5py.Dataset:
        """Open the dataset of the source, the first time; its type is copied if that has a name."""
        if self._source is None:
            self._source = self._open()
        return self._source


# H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG of H5Opublic.h, which h5py does not have.
_MERGE_NAMED_TYPES = 0x0040


class TreeCopy(NamedTuple):
    """Results of a copy."""

    # Notes about names of other files that changed, so that the copy leads to the same files from its own folder, and
    # about names that lead nowhere (see `tamis.formats.hdf5.tree.relocation`); and about what a copy cannot have,
    # such as references to objects that no longer exist
    notes: list[str]
    # Objects that may record times: file, address there and in the target. The library sets those of the copies to now:
    # `tamis.formats.hdf5.tree.times.keep_times` restores the times of the source.
    headers: list[tuple[h5py.File, int, int]]
    # The other files that the copy leads to.
    others: OtherFiles


class _Place(NamedTuple):
    """The place of an object: its path, the address of its group in the source, and its name in that group."""

    path: bytes
    group: int
    name: bytes


class TreeCopier:
    """Copies everything in a file to an empty one, except the datasets that the caller creates.

    Groups with their filters and phase change, links of every kind, named types, attributes, references and the order
    of links and attributes are kept. Datasets are copied as stored, without decoding, so no filter plugin is needed.
    The library only decodes variable-length data and references, which are stored outside the chunks or change. The
    filters of groups must be installed, except optional ones that were skipped.

    Parameters
    ----------
    source, target
        The files.
    anew
        Paths of the datasets that the caller creates; each once, by any of its links.
    left_out
        Paths of datasets that the target does not get.
    other_files
        Where the files are to which the copy leads.

    Notes
    -----
    A reference to an object that no longer exists becomes a null reference, because its address may be that of another
    object in the copy. In an attribute with references and variable-length strings in one compound type, null strings
    become empty strings.

    Groups and datasets that the caller creates do not record times.

    Objects are opened from their group, and groups by references, because opening by path would take time for each
    group on the way.
    """

    def __init__(
        self,
        source: h5py.File,
        target: h5py.File,
        anew: Iterable[str] = (),
        left_out: Iterable[str] = (),
        other_files: Relocation | None = None,
    ) -> None:
        if len(target) or len(target.attrs):
            raise ParameterError(
                f"expected an empty target, got {len(target)} objects and {len(target.attrs)} attributes"
            )
        if STAGING.decode() in source:
            raise ParameterError(f"the source's root has {STAGING.decode()!r}, a name that tamis reserves: rename it")
        self.file, self.left_out = source, addresses_of(source, left_out)
        self.scope = scope_of(source)
        self.source = h5g.open(source.id, b"/")
        self.target = h5g.open(target.id, b"/")
        self.target_number = h5o.get_info(self.target).fileno
        self.anew = self._by_address(source, anew)
        self.shares_messages = shares_messages(source)
        self.other_files = other_files or Relocation(source.filename, target.filename, Places())
        self.labels = Labels()
        self.is_written = source.id.get_access_plist().get_cache()[2] > 0 and bool(writers_of(source.id))
        self.root = self.scope.address(self.source)
        # Address in the source → place, the same in both files; places of one group are consecutive.
        self.places: dict[int, _Place] = {self.root: _Place(b"/", self.root, b"/")}
        # Groups of the source, and their copies, by the address in the source.
        self.groups, self.copies = (OpenGroups(root, self.root) for root in (self.source, self.target))
        # Addresses of objects that the second pass completes.
        self.unfinished = [self.root]
        # What the copy cannot have: its object in the source, what it is, and what became of it.
        self.losses: Counter[tuple[str, str, str]] = Counter()
        # Addresses of objects that may record times in the target, too.
        self.timed: list[int] = []
        # Address in the source → object in source and target, which has, so far, a path in the staging group alone.
        self.staged: dict[int, tuple[Any, Any]] = {}
        self.staging: Any = None
        # Addresses of datasets whose fill values are being copied.
        self.underway: set[int] = set()
        # References to whole objects, each with the number of its file → in the target.
        self.known: dict[tuple[int, bytes], bytes] = {}
        self.history = ""

    def slots(self) -> Iterator[DatasetSlot]:
        """Create all objects and links, and yield the place of each dataset that the caller creates, at its turn."""
        pending = deque([self.root])
        while pending:
            groups = yield from self._copy_group(pending.popleft())
            pending.extend(groups)

    def finish(self, history: str = "") -> TreeCopy:
        """Copy attributes and references, when all objects exist; a history replaces that of the root."""
        self.history = history
        unfinished = (self.places[address] for address in self.unfinished)
        for group, places in itertools.groupby(unfinished, key=lambda place: place.group):
            source, target = self.groups.opened(group), self.copies.opened(group)
            for path, _, name in places:
                with placed(path):
                    piecewise = self.shares_messages or (path == b"/" and self.history)
                    if not piecewise and copy_plain_attributes(source, target, name):
                        continue
                    self._finish(path, h5o.open(source, name), h5o.open(target, name))
                    # h5o.get_comment returns freed memory.
                    if comment := source.get_comment(name):
                        target.set_comment(name, comment)
        self._finish_staged()
        if self.staging is not None:
            self.staging = None
            self.target.unlink(STAGING)
        losses = (f"{subject}: {plural(count, what)} {fate}" for (subject, what, fate), count in self.losses.items())
        return TreeCopy([*self.other_files.notes, *losses], self._headers(), self.other_files.found)

    def _headers(self) -> list[tuple[h5py.File, int, int]]:
        """Return file and address of objects that may record times, and their addresses in the target."""
        headers = []
        for group, addresses in itertools.groupby(self.timed, key=lambda address: self.places[address].group):
            copies = {link.name: link.address for link in links_of(self.copies.opened(group))}
            headers += [(*self.scope.home(address), copies[self.places[address].name]) for address in addresses]
        return headers

    def _by_address(self, source: h5py.File, paths: Iterable[str]) -> dict[int, str]:
        """Return paths by address, because a caller may use any of several paths of a dataset."""
        found: dict[int, str] = {}
        own_number = h5o.get_info(self.source).fileno
        for path in paths:
            try:
                raw = path.encode("utf-8", "surrogateescape")
                info = h5o.get_info(self.source, raw)
                address = self.scope.address_at(self.source, raw) if self.scope.is_linked else int(info.addr)
            except (KeyError, RuntimeError, ValueError) as error:
                raise FileError(f"expected a dataset at {path!r}, got {error.args[0]}") from error
            is_own = self.scope.is_linked or info.fileno == own_number
            if info.type != h5o.TYPE_DATASET or not is_own:
                raise ParameterError(f"expected a dataset of this file at {path!r}, got {source[path]!r}")
            if address in found:
                raise ParameterError(f"name each dataset once: {path!r} and another path lead to the same one")
            found[address] = path
        return found

    def _copy_group(self, address: int) -> Generator[DatasetSlot, None, list[int]]:
        """Copy the links of a group and objects that were not copied yet; return the addresses of new groups."""
        source, target = self.groups.opened(address), self.copies.opened(address)
        path = self.places[address].path
        with placed(path):
            links = in_order(self.scope.links(source))
        groups = []
        for link in links:
            link_path = path.rstrip(b"/") + b"/" + link.name
            link_place = _Place(link_path, address, link.name)
            hard = link.kind == h5l.TYPE_HARD
            if hard:
                is_left_out = link.address in self.left_out
            else:
                is_left_out = leads_to(self.scope, source, link.name, self.left_out)
            if is_left_out:
                continue
            new = link.address not in self.places and link.address not in self.staged
            if hard and new and link.address in self.anew:
                self.places[link.address] = link_place
                yield from self._created(target, link, link_path)
                continue
            with placed(link_path):
                if not hard:
                    self._copy_link(source, target, link, link_path)
                elif link.address in self.places:
                    first_place = self.places[link.address]
                    home = self.copies.opened(first_place.group)
                    target.links.create_hard(link.name, home, first_place.name, link_plist(link.charset))
                else:
                    is_group = yield from self._copy_object(source, target, link, link_path)
                    if is_group:
                        groups.append(link.address)
                    self.places[link.address] = link_place
        return groups

    def _copy_object(self, source: Any, target: Any, link: Link, path: bytes) -> Generator[DatasetSlot, None, bool]:
        """Copy one object without attributes; return whether it is a group whose links must be copied."""
        lcpl = link_plist(link.charset)
        if link.address not in self.staged and copy_empty_group(source, target, link.name, lcpl):
            return False
        item = self.scope.open(source, link)
        if link.address not in self.anew and has_more(item):
            self.unfinished.append(link.address)
        if isinstance(item, h5t.TypeID):
            self._type(item)
        if link.address in self.staged:
            copy = self.staged[link.address][1]
            h5o.link(copy, target, link.name, lcpl)
        elif isinstance(item, h5g.GroupID):
            copy = create_group_like(item, target, link.name, lcpl)
        else:
            yield from self._created_before(item, {link.address})
            self._copy_dataset(item, target, link.name, lcpl, path)
        if isinstance(item, h5g.GroupID):
            self.groups.add(link.address, item, path)
            self.copies.add(link.address, copy, path)
            return True
        if link.address not in self.anew:
            self.timed.append(link.address)
        return False

    def _copy_dataset(self, item: Any, target: Any, name: bytes, lcpl: Any, path: bytes) -> None:
        """Copy a dataset without attributes, under a name in a group."""
        datatype = item.get_type()
        named = datatype.committed()
        plist = item.get_create_plist()
        isolate(plist.get_filter(index)[0] for index in range(plist.get_nfilters()))
        if self.is_written and plist.get_nfilters():  # see `open_source`
            raise FileError(
                f"{self.file.filename}: this process has it open for writing: close it first, or write it with "
                "libver='earliest', because HDF5 opens files of newer formats only once while they are written"
            )
        has_fill = plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        variable = has_varying(datatype)
        if self.scope.is_linked and is_elsewhere(plist):
            anew = plist = contiguous_list(h5py.Dataset(item))
        else:
            anew = self.other_files.creation_list(text_of(path), h5py.Dataset(item))
        if has_short_chunks(item, datatype) or self.labels.are_lacking(
            *self.scope.home(self.scope.address(item)), plist
        ):
            anew = anew or plist
        if has_fill and has_references(datatype):
            anew = anew or plist
            self._rewire_fill(item, anew, datatype, path)
        # H5Ocopy keeps a variable-length fill value as a heap address of the source, and does not find named types of
        # variable length in the target. For other named types it walks over the whole target each time, which only
        # pays if there are filters: they may be missing here, or refuse their stored parameters.
        if anew is not None or (variable and has_fill) or (named and (variable or not plist.get_nfilters())):
            create_copy(item, target, name, self._type(datatype) if named else datatype, lcpl, anew)
        elif named:
            target_type = self._type(datatype)
            flags = h5o.COPY_WITHOUT_ATTR_FLAG | _MERGE_NAMED_TYPES
            h5o.copy(item, b".", target, name, copy_plist(flags), lcpl)
            copy = h5d.open(target, name)
            if same_object(copy.get_type(), target_type):
                write_labels(copy, plist)
            else:
                # The library used another one of several equal types.
                target.unlink(name)
                create_copy(item, target, name, target_type, lcpl)
        else:
            h5o.copy(item, b".", target, name, copy_plist(h5o.COPY_WITHOUT_ATTR_FLAG), lcpl)
            if plist.get_nfilters():
                write_labels(h5d.open(target, name), plist)

    def _rewire_fill(self, item: Any, plist: Any, datatype: Any, path: bytes) -> None:
        """Point the references in a fill value to copies in the staging group, which exist before the dataset."""
        self.underway.add(address := self.scope.address(item))
        rewire_fill(plist, datatype, self._rewire_from(item, f"{text_of(path)} (HDF5's fill value)"))
        self.underway.remove(address)

    def _copy_link(self, source: Any, target: Any, link: Link, link_path: bytes) -> None:
        """Copy a link that is not hard."""
        lcpl = link_plist(link.charset)
        if link.kind == h5l.TYPE_SOFT:
            target.links.create_soft(link.name, source.links.get_val(link.name), lcpl)
        elif link.kind == h5l.TYPE_EXTERNAL:
            name, inner_path = source.links.get_val(link.name)
            target.links.create_external(link.name, self.other_files.linked(text_of(link_path), name), inner_path, lcpl)
        else:
            calls.copy_user_link(source, target, link.name, link.kind, lcpl)

    def _created(self, target: Any, link: Link, path: bytes) -> Iterator[DatasetSlot]:
        """Let the caller create a dataset, and check that it did."""
        slot = DatasetSlot(self.anew[link.address], target, link, partial(self._opened, path))
        yield slot
        if isinstance(slot.copy, Copied):
            if not slot.copy.complete:
                self.unfinished.append(link.address)
            return
        source = slot.source().id
        if slot.copy is None:
            if target.links.exists(link.name):
                target.unlink(link.name)
            yield from self._created_before(source, {link.address})
        with placed(path):
            if has_more(source):
                self.unfinished.append(link.address)
            if slot.copy is None:
                self._copy_dataset(source, target, link.name, link_plist(link.charset), path)
                self.timed.append(link.address)
                return
            record = target.links.get_info(link.name) if target.links.exists(link.name) else None
            info = h5o.get_info(slot.copy.id)
            if record is None or (record.u, self.target_number) != (info.addr, info.fileno):
                raise ValueError(f"expected the new dataset under this path, got {slot.copy!r}")
            if record.cset != link.charset:
                target.unlink(link.name)
                h5o.link(slot.copy.id, target, link.name, link_plist(link.charset))

    def _created_before(self, item: Any, underway: set[int]) -> Iterator[DatasetSlot]:
        """Let the caller create datasets to which the fill value of a dataset refers, before their turn.

        A fill value must be complete when its dataset is created. `underway` has the addresses of the datasets on the
        way to this one, because fill values may refer to each other in a circle.
        """
        for target in self._targets_of_fill(item):
            address = self.scope.address(target)
            if address in underway or address in self.places or address in self.staged or address in self.left_out:
                continue
            if not isinstance(target, h5d.DatasetID):
                continue
            if address not in self.anew:
                yield from self._created_before(target, underway | {address})
                continue
            name = staging_name(address)
            link = Link(name, h5l.TYPE_HARD, address, h5t.CSET_ASCII, None)
            yield from self._created(self._staging_group(), link, h5i.get_name(target))
            self.staged[address] = target, h5o.open(self.staging, name)

    def _targets_of_fill(self, item: Any) -> list[Any]:
        """Return the objects to which references in the fill value of a dataset lead."""
        datatype = item.get_type()
        if not has_references(datatype):
            return []
        plist = item.get_create_plist()
        if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
            return []
        found = []
        root = self._root_of(self.scope.number_of(item))

        def note(place: Place) -> None:
            target = place.follow(root)
            if target is not None and target.item is not None:
                found.append(target.item)

        rewire_fill(plist, datatype, note)
        return found

    def _opened(self, path: bytes) -> h5py.Dataset:
        """Open a dataset of the source, and copy its type if that has a name."""
        with placed(path):
            # Opened by its path, because HDF5 would otherwise search the whole file for its name.
            file, own_path = self.scope.stored(path.decode("utf-8", "surrogateescape"))
            handle = h5d.open(file.id, own_path.encode("utf-8", "surrogateescape"))
            dataset = h5py.Dataset(handle, readonly=True)  # lets h5py cache the shape
            self._target_type(dataset.id.get_type())
            return dataset

    def _target_type(self, datatype: Any) -> Any:
        """Return the type of a copy."""
        return self._type(datatype) if datatype.committed() else datatype

    def _type(self, datatype: Any) -> Any:
        """Return the target's named type for one of the source; the first time, copy it into the staging group.

        A type may be needed before its own link is created, and links must be created in their order.
        """
        address = self.scope.address(datatype)
        if address not in self.staged:
            name = staging_name(address)
            # H5Ocopy aborts the process for some damaged types.
            datatype.copy().commit(self._staging_group(), name)
            self.staged[address] = datatype, h5t.open(self.staging, name)
        return self.staged[address][1]

    def _staging_group(self) -> Any:
        if self.staging is None:
            self.staging = h5g.create(self.target, STAGING)
        return self.staging

    def _stage(self, item: Any, address: int) -> None:
        """Create the copy of an object in the staging group; a group with a link gets its content later."""
        if isinstance(item, h5t.TypeID):
            self._type(item)
            return
        name, lcpl = staging_name(address), link_plist(h5t.CSET_ASCII)
        staging = self._staging_group()
        path = h5i.get_name(item)
        with placed(path or b"an object without a link"):
            if isinstance(item, h5g.GroupID):
                copy = create_group_like(item, staging, name, lcpl) if path else None
                if copy is None:
                    h5o.copy(item, b".", staging, name, copy_plist(0), lcpl)
            else:
                self._copy_dataset(item, staging, name, lcpl, path or b"an object without a link")
        self.staged[address] = item, h5o.open(staging, name)

    def _finish(self, path: bytes, source: Any, target: Any) -> None:
        """Copy the rest of an object: attributes, and references in its values."""
        if isinstance(source, h5d.DatasetID) and has_references(source.get_type()):
            if target.get_create_plist().get_external_count():
                loss = text_of(path), "raw file", "with references that lead into the source, and is shared"
                self.losses[loss] += 1
            else:
                rewrite_references(source, target, self._rewire_from(source, text_of(path)))
        names = attribute_names(source)
        new_history = HISTORY.encode() if path == b"/" and self.history else None
        if new_history is not None and new_history not in names:
            names.append(new_history)
        for name in names:
            with placed(path, name):
                if name == new_history:
                    set_text_like(source, target, name, self.history)
                    continue
                is_list = name == b"REFERENCE_LIST" and bool(self.left_out or self._is_taken_in(source))
                rewire = self._rewire_from(source, None if is_list else subject_of(path, name))
                copy_attribute(source, target, name, rewire, self._target_type)
                if is_list:
                    shorten_list(target)
                elif name == _AXES.encode() and self._is_taken_in(source):
                    shorten_axes(target)

    def _finish_staged(self) -> None:
        """Copy the attributes of objects without a link, which may refer to further ones, and keep these objects."""
        finished = set(self.places)
        while pending := self.staged.keys() - finished:
            for address in pending:
                source, target = self.staged[address]
                path = b"/" + STAGING + b"/" + staging_name(address)
                with placed(path):
                    if not isinstance(source, h5g.GroupID):
                        self._finish(path, source, target)
                    if not isinstance(source, h5t.TypeID):  # a type stays with its datasets
                        calls.call("H5Oincr_refcount", target.id)  # it stays without its link
            finished |= pending

    def _rewire_from(self, owner: Any, subject: str | None) -> Callable[[Place], None]:
        """Return the function that points a reference in an object to the copy of its target."""
        return partial(self._rewire, self.scope.number_of(owner), subject)

    def _rewire(self, number: int, subject: str | None, place: Place) -> None:
        """Point a reference in memory, of the file with this number, to the copy of its target."""
        if (known := self.known.get((number, place.content))) is not None:
            place.put(known)
            return
        content = place.content
        target = place.follow(self._root_of(number))
        elsewhere = target is not None and target.item is None
        home = None if target is None or elsewhere else self._home(target.item)
        if target is None or home is None:
            place.clear()
            if subject is not None:
                self.losses[subject, "reference", f"{self._where(target)} became null"] += 1
            return
        place.lead_to(*home, target)
        if place.is_address:
            self.known[number, content] = place.content

    def _where(self, target: Any) -> str:
        """Return in words where a reference that becomes null leads."""
        if target is None:
            return "to no object"
        if target.item is None:
            return "into another file"
        if self._is_taken_in(target.item):
            name = text_of(h5i.get_name(target.item) or b"an object")
            file = self.scope.files[self.scope.number_of(target.item)]
            return f"to {name} of {file.filename}, where no link leads,"
        return "to a dataset that is left out" if self.scope.address(target.item) in self.left_out else "in a circle"

    def _root_of(self, number: int) -> h5g.GroupID:
        """Return the root of a file."""
        return h5g.open(self.scope.files[number].id, b"/") if number else self.source

    def _is_taken_in(self, item: Any) -> bool:
        """Return whether an object is in another file, to which links of the source lead."""
        return self.scope.number_of(item) > 0

    def _home(self, item: Any) -> tuple[Any, bytes] | None:
        """Return the group and name of the copy of an object; None if the object is being copied."""
        address = self.scope.address(item)
        if address in self.underway or address in self.left_out:
            return None
        if address not in self.places and self._is_taken_in(item):
            return None  # otherwise all that the other file has would be copied, without a link
        if address not in self.places and address not in self.staged:
            self._stage(item, address)
        if address in self.places:
            _, group, name = self.places[address]
            return self.copies.opened(group), name
        return self.target, STAGING + b"/" + staging_name(address)
