"""Create HDF5 files, groups and datasets with the properties of existing ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5o, h5p, h5s, h5t

from tamis.formats.hdf5.lib import calls, quick_facts
from tamis.formats.hdf5.lib.source_file import access_list
from tamis.formats.hdf5.tree.groups import OLD, GroupSettings
from tamis.formats.hdf5.tree.references import copy_values
from tamis.formats.hdf5.tree.walk import link_plist

STAGING = b".tamis-named-types"
"""Group in the target's root that has each named type, by its address in the source, during a copy."""

# For each superblock version the oldest library that writes it, so that readers of the source can read the copy.
_LOW_BOUNDS = {2: h5f.LIBVER_V18, 3: h5f.LIBVER_V110}


def create_target(source: h5py.File, path: str | os.PathLike[str]) -> h5py.File:
    """Create a new file with the creation properties of another, including its user block."""
    fcpl = source.id.get_create_plist()
    GroupSettings.of(h5g.open(source.id, b"/")).set_in(fcpl)
    calls.share_no_messages(fcpl)
    superblock = fcpl.get_version()[0]
    low = _LOW_BOUNDS.get(superblock, h5f.LIBVER_EARLIEST if superblock < 2 else h5f.LIBVER_LATEST)
    fapl = access_list()
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    fapl.set_libver_bounds(low, h5f.LIBVER_LATEST)
    exists = os.path.lexists(path)
    try:
        target = h5py.File(h5f.create(os.fsencode(path), h5f.ACC_EXCL, fcpl, fapl))
    except OSError as error:
        # The library reports another number if the file is open in this process.
        if exists:
            raise FileExistsError(errno.EEXIST, f"expected a new file, got {os.fspath(path)!r}") from error
        raise
    try:
        if size := fcpl.get_userblock():
            with Path(source.filename).open("rb") as origin, Path(path).open("r+b") as copy:
                copy.write(origin.read(size))
    except BaseException:
        target.close()
        Path(path).unlink()
        raise
    return target


def create_like(
    source: h5py.Dataset,
    parent: h5py.Group,
    name: str,
    *,
    chunk_shape: tuple[int, ...] | None,
    filters: Sequence[tuple[int, int, tuple[int, ...]]],
    dtype: h5t.TypeID | None = None,
) -> h5py.Dataset:
    """Create an empty dataset with the properties of another, but with its own chunks and filters.

    Times are not recorded in it, so that the same input gives the same bytes.
    """
    plist = plist_like(source, chunk_shape=chunk_shape, filters=filters)
    datatype = type_like(source, parent) if dtype is None else dtype
    return new_dataset(parent, name, datatype, source.id.get_space(), plist)


def plist_like(
    source: h5py.Dataset, *, chunk_shape: tuple[int, ...] | None, filters: Sequence[tuple[int, int, tuple[int, ...]]]
) -> h5p.PropDCID:
    """Return the creation properties of `create_like`."""
    plist = source.id.get_create_plist()
    if plist.get_external_count():
        plist = without_raw_files(source)
    while plist.get_nfilters():
        plist.remove_filter(calls.filter_list(plist)[0][0])
    if chunk_shape is None:
        plist.set_layout(h5d.CONTIGUOUS)
    else:
        plist.set_chunk(chunk_shape)
    plist.set_alloc_time(h5d.ALLOC_TIME_DEFAULT if chunk_shape is None else h5d.ALLOC_TIME_INCR)
    plist.set_obj_track_times(False)
    for code, flags, values in filters:
        plist.set_filter(code, flags, values)
    return plist


def type_like(source: h5py.Dataset, parent: h5py.Group) -> h5t.TypeID:
    """Return the type of `create_like` for a dataset of the same type."""
    datatype = source.id.get_type()
    return (_staged_type(datatype, parent.id) or datatype.copy()) if datatype.committed() else datatype


def new_dataset(
    parent: h5py.Group, name: str, datatype: h5t.TypeID, space: h5s.SpaceID, plist: h5p.PropDCID
) -> h5py.Dataset:
    """Create a dataset from its type, extents and creation properties, which do not change."""
    raw_name = name.encode("utf-8", "surrogateescape")
    lcpl = link_plist(h5t.CSET_ASCII if raw_name.isascii() else h5t.CSET_UTF8)
    return h5py.Dataset(h5d.create(parent.id, raw_name, calls.unshared(datatype), calls.unshared(space), plist, lcpl))


def create_copy(source: Any, parent: Any, name: bytes, datatype: Any, lcpl: Any, plist: Any = None) -> None:
    """Copy a dataset without its attributes, by creating and filling it."""
    plist = source.get_create_plist() if plist is None else plist
    plist.set_obj_track_times(False)
    copy = h5d.create(parent, name, calls.unshared(datatype), calls.unshared(source.get_space()), plist, lcpl)
    expected, got = (_filters(dataset.get_create_plist()) for dataset in (source, copy))
    if expected != got:
        raise ValueError(
            f"expected the stored filters {expected}, got {got}, because a filter changed its parameters on creation"
        )
    copy_values(source, copy)


def create_group_like(group: Any, parent: Any, name: bytes, lcpl: Any) -> Any:
    """Create an empty group in the format and with the settings of another one."""
    settings = GroupSettings.of(group)
    with calls.new_group_format(parent) if settings.new_format else nullcontext():
        return h5g.create(parent, name, lcpl, _group_plist(settings))


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
    return h5t.open(h5g.open(root, STAGING), staging_name(h5o.get_info(datatype).addr))


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
