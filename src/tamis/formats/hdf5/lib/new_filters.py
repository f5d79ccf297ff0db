"""The filters of new datasets, with the parameters that tamis computes, so that no plugin is asked for them.

When HDF5 creates a dataset, it calls a function of each filter (``set_local``), which replaces the parameters by those
that the file records. A plugin does that by calls of the libhdf5 that it was built for. That of a plugin from
HDF5_PLUGIN_PATH, such as those of netCDF4 and hdf5plugin, is not h5py's, and the calls fail. So the list of filters for
H5Dcreate has stand-ins, filters of tamis whose parameters are another filter. A last filter, of tamis, too, follows all
others, and its function puts the filters in the places of their stand-ins.

HDF5 reads no more of the list once the function of its last filter has returned (1.14 and 2.0).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from h5py import h5d, h5g, h5p, h5s, h5t, h5z

from tamis.errors import FileError
from tamis.filters._plugin_worker import CLASS_VERSION, Callback, FilterClass, SetLocal
from tamis.filters.registry import needs_plugin
from tamis.formats.hdf5.lib import calls

STAND_IN, LAST = 65534, 65535
"""Numbers that no other filter has: HDF5 reserves those from 32768 on."""

MOST_VALUES = 254
"""Parameters that a stand-in has room for: HDF5 gives 256 of a filter."""


class NewFilter(NamedTuple):
    """A filter of a dataset that is created."""

    id: int
    flags: int
    values: tuple[int, ...]
    # Whether these are the parameters that the file records; otherwise HDF5 asks the filter to complete them
    is_stored: bool = False


def set_filters(plist: h5p.PropDCID, filters: Iterable[NewFilter]) -> None:
    """Set the filters of datasets that are created, in place of those in their creation properties."""
    filters = tuple(filters)
    if any(entry.is_stored for entry in filters):
        _register()
    plist.remove_filter(h5z.FILTER_ALL)
    for code, flags, values, is_stored in filters:
        if is_stored:
            plist.set_filter(STAND_IN, h5z.FLAG_MANDATORY, (code, flags, *values))
        else:
            plist.set_filter(code, flags, values)
    if any(entry.is_stored for entry in filters):
        plist.set_filter(LAST, h5z.FLAG_MANDATORY, ())


def create_dataset(
    parent: h5g.GroupID,
    name: bytes | None,
    datatype: h5t.TypeID,
    space: h5s.SpaceID,
    plist: h5p.PropDCID,
    lcpl: h5p.PropLCID | None = None,
) -> h5d.DatasetID:
    """Create a dataset, with filters of `set_filters` if it has any."""
    dataset = h5d.create(parent, name, datatype, space, plist, lcpl)
    write_labels(dataset, plist)
    return dataset


def write_labels(item: h5d.DatasetID | h5g.GroupID, plist: h5p.PropOCID) -> None:
    """Make HDF5 write the list of filters of a new dataset or group, which has these creation properties.

    HDF5 reserves room for the labels that the filters have when the object is created, and fills it with those that
    they have when it writes the list. If a plugin is loaded in between, nobody can open the object (seen in 2.0).
    """
    view = calls.as_dataset_plist(plist)
    if any(needs_plugin(view.get_filter(index)[0]) for index in range(view.get_nfilters())):
        calls.call("H5Oflush", item.id)


def is_registered(code: int) -> bool:
    """Return whether h5py's libhdf5 has a filter, without looking for plugins."""
    with calls.without_plugins():
        return bool(h5z.filter_avail(code))


@cache
def _register() -> None:
    """Register the filters of `set_filters` with h5py's libhdf5."""
    for entry in (_STAND_IN, _LAST):
        h5z.register_filter(ctypes.addressof(entry))


def _put_in_place(plist: h5p.PropDCID) -> None:
    """Put the filters of a list in the places of their stand-ins, and remove the last one."""
    filters = []
    for code, flags, values, *_ in calls.filter_list(plist)[:-1]:
        filters.append((values[0], values[1], values[2:]) if code == STAND_IN else (code, flags, values))
    plist.remove_filter(h5z.FILTER_ALL)
    with calls.without_plugins():
        for entry in filters:
            _append(plist, *entry)
    if filters != (listed := [entry[:3] for entry in calls.filter_list(plist)]):
        raise FileError(f"libhdf5 made {listed} of the filters {filters}")


def _append(plist: h5p.PropDCID, code: int, flags: int, values: tuple[int, ...]) -> None:
    if flags & h5z.FLAG_OPTIONAL or h5z.filter_avail(code):
        plist.set_filter(code, flags, values)
    else:  # HDF5 takes filters that it does not have for optional ones only
        plist.set_filter(code, flags | h5z.FLAG_OPTIONAL, values)
        calls.modify_filter(plist, code, flags, values)


def _set_local(plist: int, datatype: int, space: int) -> int:
    try:
        view = h5p.PropDCID(plist)
        view.locked = True  # HDF5 owns the id
        _put_in_place(view)
    except BaseException as error:  # an interrupt, too: no exception passes through HDF5
        return calls.failure(error, -1)
    return 0


_UNUSED = Callback(lambda *_: 0)
_STAND_IN = FilterClass(CLASS_VERSION, STAND_IN, 1, 1, b"tamis", None, SetLocal(), _UNUSED)
_LAST = FilterClass(CLASS_VERSION, LAST, 1, 1, b"tamis", None, SetLocal(_set_local), _UNUSED)
"""What HDF5 knows of these filters; it must stay in memory."""
