"""Groups whose links go through filters, and the number of links from which on they do."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from io import BytesIO
from typing import NamedTuple

import h5py
from h5py import h5, h5g, h5p, h5t, h5z

from tamis.errors import FileError, MissingFilterError, ParameterError
from tamis.filters import Parameter
from tamis.hdf5.lib import calls
from tamis.hdf5.storage import listed_pipeline
from tamis.pipeline import Pipeline, as_pipeline

_MOST_LINKS = 65535
_OPTIONAL = 1

_INSTALL = "set HDF5_PLUGIN_PATH to the folder of its plugin, or import hdf5plugin first in Python"


class PhaseChange(NamedTuple):
    """When a group changes how it holds its links.

    Parameters
    ----------
    max_compact
        Most links that stay in the group's header, unfiltered; with one more, all go to a heap, through the filters.
    min_dense
        Fewest links that stay in the heap; with one less, all go back to the header.
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
    """Create a group whose links are filtered: names and what they lead to, not the data of its datasets.

    Many links with long names, as of one dataset for each time step, then take a fraction of the space. Any library
    since HDF5 1.8 that has the filters reads them.

    Parameters
    ----------
    parent, name
        Where to create it. Groups on the way that are not there yet are created too, without filters.
    filters
        A `Pipeline`, a filter, or their text such as ``"deflate(9)|fletcher32"``.
    max_compact
        Most links that the group holds unfiltered in its header, 0 to 65535; with one more all of them are filtered.
    min_dense
        Fewest links that are filtered, 0 to `max_compact`; with one less they go back to the header. By default 6, or
        `max_compact` where that is less.
    track_order
        Keep the order in which links and attributes are created; by default as h5py is configured.

    Returns
    -------
    h5py.Group
        Without links.

    Raises
    ------
    ParameterError
        If a filter does not work on groups, or a number is out of range.
    MissingFilterError
        If h5py's libhdf5 does not have a filter that is required.
    FileError
        If the library cannot create it: the name is taken, or the file not open for writing.

    Warns
    -----
    UserWarning
        If h5py's libhdf5 does not have a filter that is optional: links are stored without it.
    """
    pipeline = as_pipeline(filters)
    change = _checked(max_compact, min_dense)
    _check_filters(pipeline)
    gcpl = h5p.create(h5p.GROUP_CREATE)
    _set_filters(gcpl, [(each.filter.id, int(each.optional), each.filter.requested) for each in pipeline.stages])
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
    raw_name = last.encode("utf-8", "surrogateescape")
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(h5t.CSET_ASCII if raw_name.isascii() else h5t.CSET_UTF8)
    try:
        home = parent.require_group(folder or "/") if slash else parent
        with calls.new_group_format(home.id):
            return h5py.Group(h5g.create(home.id, raw_name, lcpl, gcpl))
    except (ValueError, OSError, RuntimeError, TypeError) as error:
        raise FileError(f"{parent.file.filename}: cannot create group {name!r}: {error}") from error


def group_filters(group: h5py.Group) -> Pipeline:
    """Read the filters that the links of a group go through, with the parameters that the file has.

    Parameters
    ----------
    group
        Of any file; the filters need not be here. A file stands for its root group.
    """
    plist = group_id(group).get_create_plist()
    return listed_pipeline(plist)


def group_phase_change(group: h5py.Group) -> PhaseChange | None:
    """Read when a group changes how it holds its links; None in the format before HDF5 1.8, which never changes.

    Parameters
    ----------
    group
        A file stands for its root group.
    """
    opened = group_id(group)
    if calls.link_storage(opened) == calls.SYMBOL_TABLE:
        return None
    return PhaseChange(*calls.link_phase_change(opened.get_create_plist()))


def check_links(group: h5py.Group) -> None:
    """Find out whether the links of a group can be listed.

    Listing them right away is not safe: where it fails, HDF5 1.14.2 corrupts the memory of the process.

    Parameters
    ----------
    group
        A file stands for its root group.

    Raises
    ------
    MissingFilterError
        If they went through a filter that h5py's libhdf5 does not have; names it.
    FileError
        If they are damaged.
    """
    opened = group_id(group)
    try:
        # Only in this order does the library make no table of them first, which is what it frees amiss.
        opened.links.iterate(lambda name: None, order=h5.ITER_NATIVE)
    except (ValueError, OSError, RuntimeError) as error:
        filters = calls.filter_list(opened.get_create_plist())
        missing = [_described(each.id, each.label) for each in filters if not h5z.filter_avail(each.id)]
        if missing:
            names = " and ".join(missing)
            raise MissingFilterError(f"links of {group.name} cannot be read without {names}: {_INSTALL}") from error
        place = f"{group.file.filename}: {group.name}"
        raise FileError(f"{place}: damaged, or not complete: links cannot be read: {error}") from error


def follow_links(group: h5g.GroupID, plist: h5p.PropOCID) -> None:
    """Give creation properties the filters, phase change and room for links that a group has.

    Parameters
    ----------
    group
        To follow.
    plist
        Creation properties of a group or file.

    Raises
    ------
    FileError
        If h5py's libhdf5 does not have a filter that is required: the copy could not take the links.
    """
    old = group.get_create_plist()
    filters = calls.filter_list(old)
    for each in filters:
        if not each.flags & _OPTIONAL and not h5z.filter_avail(each.id):
            raise FileError(
                f"links cannot be written without {_described(each.id, each.label)}, which they require: {_INSTALL}"
            )
    _set_filters(plist, [each[:3] for each in filters])
    if calls.has("H5Pget_link_phase_change"):
        calls.set_link_phase_change(plist, *calls.link_phase_change(old))
        calls.set_estimated_links(plist, *calls.estimated_links(old))


def make_group_like(
    group: h5g.GroupID, parent: h5g.GroupID, name: bytes, lcpl: h5p.PropLCID, gcpl: h5p.PropGCID
) -> None:
    """Create a group in the format that another one has.

    Parameters
    ----------
    group
        To follow.
    parent, name
        Where to create it.
    lcpl, gcpl
        Properties of link and group.
    """
    known = calls.has("H5Gget_info")
    new = known and calls.link_storage(group) != calls.SYMBOL_TABLE
    with calls.new_group_format(parent) if new else nullcontext():
        h5g.create(parent, name, lcpl, gcpl)


def group_id(group: h5py.Group) -> h5g.GroupID:
    """Open the group that h5py's object stands for; that of a file has the id of the file."""
    return h5g.open(group.id, b"/") if isinstance(group, h5py.File) else group.id


def _checked(max_compact: int, min_dense: int | None) -> PhaseChange:
    most = int(Parameter("links", 0, _MOST_LINKS).checked("max_compact", max_compact))
    if min_dense is None:
        return PhaseChange(most, min(_DEFAULT.min_dense, most))
    # The library refuses what would send links back to the header that it takes to the heap.
    return PhaseChange(most, int(Parameter("links", 0, most).checked("min_dense", min_dense)))


def _check_filters(pipeline: Pipeline) -> None:
    """Refuse filters that do not work on links, or are required and missing."""
    for stage in pipeline.stages:
        each = stage.filter
        if not each.group_safe:
            # The library notices only when it moves links to the heap: with the ninth link.
            raise ParameterError(
                f"expected filters that work on groups, such as deflate and fletcher32, got {each}: it needs"
                f" {'the type of values' if each.needs_values else 'a type and a chunk shape'}, and links have none"
            )
        if h5z.filter_avail(each.id):
            continue
        missing = f"expected {each} (HDF5 filter {each.id}) in h5py's libhdf5, found none"
        if not stage.optional:
            raise MissingFilterError(f"{missing}: {_INSTALL}")
        warnings.warn(f"{missing}: the links are stored without it, since it is optional", stacklevel=3)


def _try(pipeline: Pipeline, gcpl: h5p.PropGCID) -> None:
    """Filter some links in memory: what the library says against it, it says too late for the file."""
    if not pipeline.stages:
        return
    try:
        with h5py.File(BytesIO(), "w") as file:
            group = h5py.Group(h5g.create(file.id, b"trial", gcpl=gcpl))
            for i in range(_DEFAULT.max_compact + 1):
                group[f"link {i}"] = h5py.SoftLink("/")
            file.flush()
    except (ValueError, OSError, RuntimeError) as error:
        raise ParameterError(f"expected filters that work on groups, got {pipeline}, tried: {error}") from error


def _described(code: int, label: str) -> str:
    """Name a filter by its number and the first words of what its writer called it, which may be whole sentences."""
    short = label.partition(";")[0]
    return f"HDF5 filter {code} ({short})" if short else f"HDF5 filter {code}"


def _set_filters(plist: h5p.PropOCID, filters: list[tuple[int, int, tuple[int, ...]]]) -> None:
    view = calls.as_dataset_plist(plist)
    for code, flags, values in filters:
        view.set_filter(code, flags, values)
