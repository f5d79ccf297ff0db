"""Create HDF5 files, groups and datasets with the properties of existing ones, and groups whose links are filtered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5, h5d, h5f, h5g, h5o, h5p, h5s, h5t

from tamis.access import NEW_FILE, create_empty
from tamis.arguments import FLAG
from tamis.caller import warn_caller
from tamis.errors import FileError, MissingFilterError, ParameterError
from tamis.filters import Parameter
from tamis.formats.hdf5.lib import calls, quick_facts
from tamis.formats.hdf5.lib.files import access_list, create_file, source_of
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.lib.new_filters import MOST_VALUES, NewFilter, create_dataset, set_filters, write_labels
from tamis.formats.hdf5.lib.references import copy_values
from tamis.formats.hdf5.tree.links import GROUP, INSTALL, filter_text, group_id, is_old_group, raw_name
from tamis.pipeline import Pipeline, as_pipeline

_MOST_LINKS = 65535
_OPTIONAL = 1


class PhaseChange(NamedTuple):
    """Link counts at which a group changes between header and heap.

    Parameters
    ----------
    max_compact
        Largest number of links in the group's header, unfiltered; with one more, all move to a heap, filtered.
    min_dense
        Smallest number of links in the heap; with one less, all move back to the header.
    """

    max_compact: int
    min_dense: int


_DEFAULT = PhaseChange(8, 6)


def create_group(
    parent: h5py.Group,
    name: str,
    filters: object = "none",
    *,
    max_compact: int = _DEFAULT.max_compact,
    min_dense: int | None = None,
    track_order: bool | None = None,
) -> h5py.Group:
    """Create a group whose links are filtered: their names and targets, not the values of datasets.

    Many links with long names, such as one dataset for each time step, then take a fraction of the space. Any library
    from HDF5 1.8 on with the filters can read them.

    Parameters
    ----------
    parent, name
        Parent and name of the group. Missing intermediate groups are also created, without filters.
    filters
        A `Pipeline`, a filter, or their text such as ``"deflate(9)|fletcher32"``.
    max_compact
        Largest number of unfiltered links in the group's header, 0 to 65535; with one more all links are filtered.
    min_dense
        Smallest number of filtered links, 0 to `max_compact`; with one less they move back to the header. By default 6,
        or `max_compact` if that is less.
    track_order
        Record the creation order of links and attributes; by default as h5py is configured.

    Returns
    -------
    h5py.Group
        The new group, without links.

    Raises
    ------
    ParameterError
        If a filter does not work on groups, or a number is out of range.
    MissingFilterError
        If h5py's libhdf5 does not have a required filter.
    FileError
        If the library cannot create the group: the name is taken, or the file is not open for writing.

    Warns
    -----
    UserWarning
        If h5py's libhdf5 does not have an optional filter: links are stored without it.
    """
    GROUP.check("parent", parent)
    FLAG.check_optional("track_order", track_order)
    pipeline = as_pipeline(filters)
    change = _checked(max_compact, min_dense)
    if pipeline.rounding is not None:
        raise ParameterError(f"expected filters of links, got {pipeline.rounding}, which rounds values of datasets")
    _check_filters(pipeline)
    gcpl = h5p.create(h5p.GROUP_CREATE)
    _set_filters(gcpl, [(stage.filter.id, int(stage.optional), stage.filter.requested) for stage in pipeline.stages])
    _try(pipeline, gcpl)
    if change != _DEFAULT:
        calls.set_link_phase_change(gcpl, *change)
    if h5.get_config().track_order if track_order is None else track_order:
        order = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED
        gcpl.set_link_creation_order(order)
        gcpl.set_attr_creation_order(order)
    gcpl.set_obj_track_times(False)
    if not isinstance(name, str) or not name.strip("/") or "\0" in name:
        raise ParameterError(f"expected the name of a group, got {name!r}")
    folder, slash, last = name.rstrip("/").rpartition("/")
    own_name, lcpl = raw_name(last)
    try:
        owner = parent.require_group(folder or "/") if slash else parent
        with calls.new_group_format(owner.id):
            group = h5g.create(owner.id, own_name, lcpl, gcpl)
        write_labels(group, gcpl)
        return h5py.Group(group)
    except (ValueError, OSError, RuntimeError, TypeError) as error:
        path = parent.file.filename
        raise FileError(f"{path}: cannot create group {name!r}: {error}").at(path=path) from error


def group_phase_change(group: h5py.Group) -> PhaseChange | None:
    """Return the link counts at which a group changes its storage; None in the format before HDF5 1.8.

    Parameters
    ----------
    group
        A group; a file means its root group.
    """
    GROUP.check("group", group)
    opened = group_id(group)
    if calls.link_storage(opened) == calls.SYMBOL_TABLE:
        return None
    return PhaseChange(*calls.link_phase_change(opened.get_create_plist()))


class GroupSettings(NamedTuple):
    """The settings with which a group was created, for groups like it."""

    # Flags of the creation order
    link_order: int
    attribute_order: int
    attribute_phase_change: tuple[int, int]  # As HDF5 gives it
    filters: tuple[tuple[int, int, tuple[int, ...]], ...]  # Number, flags and parameters of each filter of the links
    labels: tuple[str, ...]  # Labels of the filters, for messages
    # Phase change of the links, and room for them; None if h5py's libhdf5 cannot tell
    phase_change: tuple[int, int] | None
    estimated_links: tuple[int, int] | None
    new_format: bool  # Whether the group has the format of HDF5 1.8; False if h5py's libhdf5 cannot tell

    @classmethod
    def of(cls, group: h5g.GroupID) -> GroupSettings:
        """Read the settings of a group."""
        if is_old_group(group):
            return OLD  # no others are possible
        plist = group.get_create_plist()
        filters = calls.filter_list(plist)
        has_links = calls.has("H5Pget_link_phase_change")
        return cls(
            plist.get_link_creation_order(),
            plist.get_attr_creation_order(),
            plist.get_attr_phase_change(),
            tuple(entry[:3] for entry in filters),
            tuple(entry.label for entry in filters),
            calls.link_phase_change(plist) if has_links else None,
            calls.estimated_links(plist) if has_links else None,
            calls.has("H5Gget_info") and calls.link_storage(group) != calls.SYMBOL_TABLE,
        )

    def set_in(self, plist: h5p.PropOCID) -> None:
        """Set the creation properties of a group or file, without times of the group."""
        for (code, flags, _), label in zip(self.filters, self.labels, strict=True):
            if not flags & _OPTIONAL and not is_available(code):
                raise FileError(
                    f"links cannot be written without {filter_text(code, label)}, which they require: {INSTALL}"
                )
        plist.set_link_creation_order(self.link_order)
        plist.set_attr_creation_order(self.attribute_order)
        plist.set_attr_phase_change(*self.attribute_phase_change)
        plist.set_obj_track_times(False)
        _set_filters(plist, self.filters)
        if self.phase_change is not None and self.estimated_links is not None:
            calls.set_link_phase_change(plist, *self.phase_change)
            calls.set_estimated_links(plist, *self.estimated_links)


OLD = GroupSettings(0, 0, (8, 6), (), (), None, None, new_format=False)
"""The defaults, which groups in the format before HDF5 1.8 have."""


def _checked(max_compact: int, min_dense: int | None) -> PhaseChange:
    most = int(Parameter("links", 0, _MOST_LINKS).checked("max_compact", max_compact))
    if min_dense is None:
        return PhaseChange(most, min(_DEFAULT.min_dense, most))
    # The library refuses a min_dense above max_compact.
    return PhaseChange(most, int(Parameter("links", 0, most).checked("min_dense", min_dense)))


def _check_filters(pipeline: Pipeline) -> None:
    """Refuse filters that do not work on links, and required filters that are not installed."""
    for stage in pipeline.stages:
        link_filter = stage.filter
        if not link_filter.group_safe:
            # The library itself notices only at the ninth link, when it moves links to the heap.
            raise ParameterError(
                f"expected filters that work on groups, such as deflate and fletcher32, got {link_filter}: it needs"
                f" {'the type of values' if link_filter.needs_values else 'a type and a chunk shape'}, and links have"
                " none"
            )
        if is_available(link_filter.id):
            continue
        missing = f"h5py's libhdf5 has no {link_filter} (HDF5 filter {link_filter.id})"
        if not stage.optional:
            raise MissingFilterError(f"{missing}: {INSTALL}")
        warn_caller(f"{missing}: links are stored without it, because it is optional")


def _try(pipeline: Pipeline, gcpl: h5p.PropGCID) -> None:
    """Filter some links in memory first: in the file, the library would refuse them too late."""
    if not pipeline.stages:
        return
    try:
        with h5py.File(BytesIO(), "w") as file:
            group = h5py.Group(h5g.create(file.id, b"trial", gcpl=gcpl))
            for i in range(_DEFAULT.max_compact + 1):
                group[f"link {i}"] = h5py.SoftLink("/")
            file.flush()
    except (ValueError, OSError, RuntimeError) as error:
        raise ParameterError(f"{pipeline} does not work on links of groups: {error}") from error


def _set_filters(plist: h5p.PropOCID, filters: Iterable[tuple[int, int, tuple[int, ...]]]) -> None:
    view = calls.as_dataset_plist(plist)
    for code, flags, cd_values in filters:
        view.set_filter(code, flags, cd_values)


STAGING = b".tamis-named-types"
"""Group in the target's root that has each named type, by its address in the source, during a copy."""

# For each superblock version the oldest library that writes it, so that readers of the source can read the copy.
_LOW_BOUNDS = {2: h5f.LIBVER_V18, 3: h5f.LIBVER_V110}


def create_target(
    source: h5py.File, path: str | os.PathLike[str], block_nbytes: int | None = None, mode: int = NEW_FILE
) -> h5py.File:
    """Create a new file with the creation properties of another, including its user block.

    `block_nbytes` is the size of blocks of metadata; None for that of HDF5.
    """
    fcpl = source.id.get_create_plist()
    GroupSettings.of(h5g.open(source.id, b"/")).set_in(fcpl)
    calls.share_no_messages(fcpl)
    superblock = fcpl.get_version()[0]
    low = _LOW_BOUNDS.get(superblock, h5f.LIBVER_EARLIEST if superblock < 2 else h5f.LIBVER_LATEST)
    fapl = access_list()
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    fapl.set_file_locking(False, True)  # a process that is forked meanwhile would keep the lock
    fapl.set_libver_bounds(low, h5f.LIBVER_LATEST)
    if block_nbytes is not None:
        fapl.set_meta_block_size(block_nbytes)
    create_empty(path, mode)
    try:
        target = create_file(path, fcpl, fapl)
    except BaseException:
        os.unlink(path)
        raise
    try:
        if size := fcpl.get_userblock():
            with Path(path).open("r+b") as copy:
                copy.write(source_of(source).read(0, size))
    except BaseException:
        target.close()
        os.unlink(path)
        raise
    return target


def create_like(
    source: h5py.Dataset,
    parent: h5py.Group,
    name: str,
    *,
    chunk_shape: tuple[int, ...] | None,
    filters: Sequence[NewFilter],
    dtype: h5t.TypeID | None = None,
) -> h5py.Dataset:
    """Create an empty dataset with the properties of another, but with its own chunks and filters.

    Times are not recorded in it, so that the same input gives the same bytes.
    """
    plist = plist_like(source, chunk_shape=chunk_shape, filters=filters)
    datatype = type_like(source, parent) if dtype is None else dtype
    return create_named(parent, name, datatype, source.id.get_space(), plist)


def plist_like(
    source: h5py.Dataset, *, chunk_shape: tuple[int, ...] | None, filters: Sequence[NewFilter]
) -> h5p.PropDCID:
    """Return the creation properties of `create_like`."""
    plist = source.id.get_create_plist()
    if plist.get_external_count():
        plist = without_raw_files(source)
    set_filters(plist, filters)
    if chunk_shape is None:
        plist.set_layout(h5d.CONTIGUOUS)
    else:
        plist.set_chunk(chunk_shape)
    plist.set_alloc_time(h5d.ALLOC_TIME_DEFAULT if chunk_shape is None else h5d.ALLOC_TIME_INCR)
    plist.set_obj_track_times(False)
    return plist


def type_like(source: h5py.Dataset, parent: h5py.Group) -> h5t.TypeID:
    """Return the type of `create_like` for a dataset of the same type."""
    datatype = source.id.get_type()
    return (_staged_type(datatype, parent.id) or datatype.copy()) if datatype.committed() else datatype


def create_named(
    parent: h5py.Group, name: str, datatype: h5t.TypeID, space: h5s.SpaceID, plist: h5p.PropDCID
) -> h5py.Dataset:
    """Create a dataset from its type, extents and creation properties, which do not change."""
    own_name, lcpl = raw_name(name)
    return h5py.Dataset(
        create_dataset(parent.id, own_name, calls.unshared(datatype), calls.unshared(space), plist, lcpl)
    )


def create_copy(source: Any, parent: Any, name: bytes, datatype: Any, lcpl: Any, plist: Any = None) -> None:
    """Copy a dataset without its attributes, by creating and filling it."""
    plist = source.get_create_plist() if plist is None else plist
    plist.set_obj_track_times(False)
    filters = calls.filter_list(plist)
    if not _is_varying(datatype) and all(entry.total <= MOST_VALUES for entry in filters):
        set_filters(plist, [NewFilter(*entry[:3], is_stored=True) for entry in filters])
    copy = create_dataset(parent, name, calls.unshared(datatype), calls.unshared(source.get_space()), plist, lcpl)
    expected, got = (_filters(dataset.get_create_plist()) for dataset in (source, copy))
    if expected != got:
        raise ValueError(
            f"expected the stored filters {expected}, got {got}, because a filter changed its parameters on creation"
        )
    copy_values(source, copy)


def _is_varying(datatype: h5t.TypeID) -> bool:
    """Return whether elements are of varying length: HDF5 does not ask their filters anything."""
    is_text = isinstance(datatype, h5t.TypeStringID) and datatype.is_variable_str()
    return is_text or isinstance(datatype, h5t.TypeVlenID)


def create_group_like(group: Any, parent: Any, name: bytes, lcpl: Any) -> Any:
    """Create an empty group in the format and with the settings of another one."""
    settings = GroupSettings.of(group)
    plist = _group_plist(settings)
    with calls.new_group_format(parent) if settings.new_format else nullcontext():
        copy = h5g.create(parent, name, lcpl, plist)
    write_labels(copy, plist)
    return copy


def staging_name(address: int) -> bytes:
    """Return the name of a named type in the staging group, from its address in the source."""
    return f"{address:x}".encode()


def without_raw_files(source: h5py.Dataset) -> Any:
    """Return a dataset's creation properties without layout and raw files, which cannot be removed from a list."""
    old = source.id.get_create_plist()
    new = h5p.create(h5p.DATASET_CREATE)
    new.set_fill_time(old.get_fill_time())
    new.set_obj_track_times(old.get_obj_track_times())
    new.set_attr_creation_order(old.get_attr_creation_order())
    new.set_attr_phase_change(*old.get_attr_phase_change())
    if old.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        value = np.zeros((), dtype=source.dtype)
        old.get_fill_value(value)
        new.set_fill_value(value)
    elif old.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED:
        calls.set_undefined_fill(new, source.id.get_type())
    return new


def contiguous_list(source: h5py.Dataset) -> Any:
    """Return the creation properties for a copy of a virtual or external dataset that has the values itself."""
    plist = without_raw_files(source)
    plist.set_layout(h5d.CONTIGUOUS)
    return plist


def copy_empty_group(source: h5g.GroupID, target: h5g.GroupID, name: bytes, lcpl: h5p.PropLCID | None) -> bool:
    """Copy a group by its name if it is empty and in the format before HDF5 1.8; return whether it was copied."""
    return quick_facts.copy_empty_group(source, target, name, lcpl, _group_plist(OLD))


def _group_plist(settings: GroupSettings) -> h5p.PropGCID:
    """Return the creation properties of a group.

    The library's own list also has the number of links of the group, and corrupts groups that are created with it.
    """
    plist = h5p.create(h5p.GROUP_CREATE)
    settings.set_in(plist)
    return plist


def _filters(plist: Any) -> list[tuple[Any, ...]]:
    return [entry[:3] for entry in calls.filter_list(plist)]


def _staged_type(datatype: Any, location: Any) -> Any:
    """Return the target's named type for one of the source; None if no copy is running."""
    root = h5g.open(location, b"/")
    if not root.links.exists(STAGING):
        return None
    staging = h5g.open(root, STAGING)
    own = staging_name(h5o.get_info(datatype).addr)
    if staging.links.exists(own) and (found := h5t.open(staging, own)).equal(datatype):
        return found
    names: list[bytes] = []
    staging.links.iterate(names.append)
    # Before the address is the number of the file: see `LinkedScope`.
    items = (h5o.open(staging, name) for name in names if name.endswith(own))
    return next(item for item in items if isinstance(item, h5t.TypeID) and item.equal(datatype))


def same_object(first: Any, second: Any) -> bool:
    """Return whether two identifiers are the same object; a type without a name is not an object."""
    if isinstance(first, h5t.TypeID) and not first.committed():
        return False
    info, other_info = h5o.get_info(first), h5o.get_info(second)
    return bool(info.fileno == other_info.fileno and info.addr == other_info.addr)


def copy_plist(flags: int) -> Any:
    """Return the properties of a copy by H5Ocopy."""
    ocpypl = h5p.create(h5p.OBJECT_COPY)
    ocpypl.set_copy_object(flags)
    return ocpypl
