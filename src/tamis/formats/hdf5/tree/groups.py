"""Filters of the links of groups, and the number of links from which they apply."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from io import BytesIO
from typing import NamedTuple

import h5py
from h5py import h5, h5g, h5o, h5p, h5t

from tamis.errors import FileError, MissingFilterError, ParameterError
from tamis.filters import Parameter
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.lib.quick_facts import bare_address, listed_pipeline
from tamis.formats.hdf5.tree.walk import INSTALL, filter_text, link_plist, links_of
from tamis.kinds import FLAG, Kind, checked
from tamis.pipeline import Pipeline, as_pipeline

_MOST_LINKS = 65535
_OPTIONAL = 1
_OLD_HEADER = 1


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


GROUP = Kind("an h5py file or group", lambda value: isinstance(value, h5py.Group))


@checked(parent=GROUP, track_order=FLAG)
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
    raw_name = last.encode("utf-8", "surrogateescape")
    lcpl = link_plist(h5t.CSET_ASCII if raw_name.isascii() else h5t.CSET_UTF8)
    try:
        owner = parent.require_group(folder or "/") if slash else parent
        with calls.new_group_format(owner.id):
            return h5py.Group(h5g.create(owner.id, raw_name, lcpl, gcpl))
    except (ValueError, OSError, RuntimeError, TypeError) as error:
        path = parent.file.filename
        raise FileError(f"{path}: cannot create group {name!r}: {error}").at(path=path) from error


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


@checked(group=GROUP)
def group_phase_change(group: h5py.Group) -> PhaseChange | None:
    """Return the link counts at which a group changes its storage; None in the format before HDF5 1.8.

    Parameters
    ----------
    group
        A group; a file means its root group.
    """
    opened = group_id(group)
    if calls.link_storage(opened) == calls.SYMBOL_TABLE:
        return None
    return PhaseChange(*calls.link_phase_change(opened.get_create_plist()))


def check_links(group: h5py.Group) -> None:
    """Raise an error if the links of a group cannot be listed."""
    links_of(group_id(group))


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
        filters, has_links = calls.filter_list(plist), calls.has("H5Pget_link_phase_change")
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


def is_old_group(group: h5g.GroupID) -> bool:
    """Return whether a group and its header have formats before HDF5 1.8; False if h5py's libhdf5 cannot tell.

    Most groups do, and have no settings; asking for a property list takes 6 µs.
    """
    if bare_address(group) is not None:
        return True
    old_links = calls.has("H5Gget_info") and calls.link_storage(group) == calls.SYMBOL_TABLE
    return old_links and h5o.get_info(group).hdr.version == _OLD_HEADER


def group_id(group: h5py.Group) -> h5g.GroupID:
    """Return the identifier of a group; for a file, that of its root group, because h5py has the file's."""
    return h5g.open(group.id, b"/") if isinstance(group, h5py.File) else group.id


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
        missing = f"expected {link_filter} (HDF5 filter {link_filter.id}) in h5py's libhdf5, found none"
        if not stage.optional:
            raise MissingFilterError(f"{missing}: {INSTALL}")
        warnings.warn(f"{missing}: links are stored without it, because it is optional", stacklevel=4)


def _try(pipeline: Pipeline, gcpl: h5p.PropGCID) -> None:
    """Filter some links in memory, because the library would refuse them too late in the file."""
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


def _set_filters(plist: h5p.PropOCID, filters: Iterable[tuple[int, int, tuple[int, ...]]]) -> None:
    view = calls.as_dataset_plist(plist)
    for code, flags, cd_values in filters:
        view.set_filter(code, flags, cd_values)
