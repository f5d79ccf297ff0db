"""Calls of h5py's own libhdf5 that h5py has no name for. Ids are shared with h5py, since it is the same library."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

from h5py import h5a, h5d, h5f, h5g, h5i, h5p, h5s, h5t
from h5py._objects import phil

from tamis.errors import FileError

lock = phil
"""h5py's lock: what a thread does while it holds it is one step for the others. It may be taken more than once."""

_hid = ctypes.c_int64
_unsigned = ctypes.c_uint

_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "H5Pget_link_phase_change": (_hid, ctypes.POINTER(_unsigned), ctypes.POINTER(_unsigned)),
    "H5Pset_link_phase_change": (_hid, _unsigned, _unsigned),
    "H5Pget_est_link_info": (_hid, ctypes.POINTER(_unsigned), ctypes.POINTER(_unsigned)),
    "H5Pset_est_link_info": (_hid, _unsigned, _unsigned),
    "H5Pget_filter2": (
        _hid,
        _unsigned,
        ctypes.POINTER(_unsigned),
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(_unsigned),
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.POINTER(_unsigned),
    ),
    "H5Pget_chunk_opts": (_hid, ctypes.POINTER(_unsigned)),
    "H5Pset_fill_value": (_hid, _hid, ctypes.c_void_p),
    "H5Pget_fill_value": (_hid, _hid, ctypes.c_void_p),
    "H5Dget_chunk_storage_size": (_hid, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)),
    "H5Dget_chunk_index_type": (_hid, ctypes.POINTER(ctypes.c_int)),
    "H5Gget_info": (_hid, ctypes.c_void_p),
    "H5Fset_libver_bounds": (_hid, ctypes.c_int, ctypes.c_int),
    "H5Pset_char_encoding": (_hid, ctypes.c_int),
    "H5Pcreate": (_hid,),
    "H5Pclose": (_hid,),
    "H5Acreate2": (_hid, ctypes.c_char_p, _hid, _hid, _hid, _hid),
}
_GIVE_ID = ("H5Pcreate", "H5Acreate2")

_DONT_FILTER_PARTIAL_CHUNKS = 2
_EXTENSIBLE_ARRAY = 4  # of H5D_chunk_index_t
_LABEL_NBYTES = 512  # of a filter's label that are read
_MOST_VALUES = 256  # for more the library takes the count for a mistake

SYMBOL_TABLE, COMPACT, DENSE = 0, 1, 2
"""How a group holds its links, H5G_storage_type_t: the format before HDF5 1.8, the object header, a heap."""


class _GroupInfo(ctypes.Structure):
    """H5G_info_t."""

    _fields_ = (
        ("storage_type", ctypes.c_int),
        ("nlinks", ctypes.c_uint64),
        ("max_corder", ctypes.c_int64),
        ("mounted", ctypes.c_bool),
    )


@cache
def has(name: str) -> bool:
    """Return whether the call can be found."""
    return _found(name) is not None


def link_phase_change(plist: h5p.PropOCID) -> tuple[int, int]:
    """Return the link counts above which a group becomes dense, and below which compact.

    Parameters
    ----------
    plist
        Creation properties of a group or file.
    """
    return _pair("H5Pget_link_phase_change", plist)


def set_link_phase_change(plist: h5p.PropOCID, max_compact: int, min_dense: int) -> None:
    """Set what `link_phase_change` gives; 65535 >= max_compact >= min_dense >= 0."""
    _call("H5Pset_link_phase_change", plist.id, max_compact, min_dense)


def estimated_links(plist: h5p.PropOCID) -> tuple[int, int]:
    """Return the count of links, and the length of their names in bytes, that a group's header makes room for."""
    return _pair("H5Pget_est_link_info", plist)


def set_estimated_links(plist: h5p.PropOCID, count: int, name_nbytes: int) -> None:
    """Set what `estimated_links` gives."""
    _call("H5Pset_est_link_info", plist.id, count, name_nbytes)


class ListedFilter(NamedTuple):
    """A filter of a property list.

    Parameters
    ----------
    id, flags
        As HDF5 has them.
    values
        Parameters, the first 256, since HDF5 gives out no more.
    label
        How its writer called it.
    total
        Parameters that there are.
    """

    id: int
    flags: int
    values: tuple[int, ...]
    label: str
    total: int


def filter_list(plist: h5p.PropOCID) -> list[ListedFilter]:
    """List the filters of any object's creation properties; h5py lists those of datasets with few parameters.

    Parameters
    ----------
    plist
        Creation properties of a dataset, group or file.
    """
    view = as_dataset_plist(plist)
    return [_filter_at(view, index) for index in range(view.get_nfilters())]


def as_dataset_plist(plist: h5p.PropOCID) -> h5p.PropDCID:
    """See any object's creation properties as a dataset's: HDF5 has filters in all of them, h5py only there."""
    view = h5p.PropDCID(plist.id)
    # It does not own the id, so that it must not close it.
    view.locked = True
    return view


def _filter_at(plist: h5p.PropDCID, index: int) -> ListedFilter:
    if not has("H5Pget_filter2"):
        number, flags, values, label = plist.get_filter(index)
        words = tuple(value & 0xFFFFFFFF for value in values)
        return ListedFilter(number, flags, words, label.decode("utf-8", "replace"), len(words))
    flags, config, count = _unsigned(), _unsigned(), ctypes.c_size_t(_MOST_VALUES)
    values, label = (_unsigned * _MOST_VALUES)(), ctypes.create_string_buffer(_LABEL_NBYTES)
    out = (ctypes.byref(flags), ctypes.byref(count), values, _LABEL_NBYTES - 1, label, ctypes.byref(config))
    number = _call("H5Pget_filter2", plist.id, index, *out)
    words = tuple(values[: min(count.value, _MOST_VALUES)])
    return ListedFilter(number, flags.value, words, label.value.decode("utf-8", "replace"), count.value)


def filters_partial_chunks(plist: h5p.PropDCID) -> bool:
    """Return whether chunks that reach beyond the array go through the filters, which is the default of HDF5.

    Parameters
    ----------
    plist
        Creation properties of a chunked dataset.
    """
    if not has("H5Pget_chunk_opts"):
        return True
    options = _unsigned()
    _call("H5Pget_chunk_opts", plist.id, ctypes.byref(options))
    return not options.value & _DONT_FILTER_PARTIAL_CHUNKS


def set_undefined_fill(plist: h5p.PropDCID, datatype: h5t.TypeID) -> None:
    """Let new datasets have no fill value, so that nothing says what reads where nothing was written."""
    _call("H5Pset_fill_value", plist.id, datatype.id, None)


def fill_bytes(plist: h5p.PropDCID, datatype: h5t.TypeID) -> bytes:
    """Return the fill value of a dataset as bytes of a type of the file."""
    room = ctypes.create_string_buffer(datatype.get_size())
    _call("H5Pget_fill_value", plist.id, datatype.id, room)
    return room.raw


def link_storage(group: h5g.GroupID) -> int:
    """Return how a group holds its links now: `SYMBOL_TABLE`, `COMPACT` or `DENSE`."""
    info = _GroupInfo()
    _call("H5Gget_info", group.id, ctypes.byref(info))
    return int(info.storage_type)


def create_utf8_attribute(owner: Any, name: bytes, datatype: h5t.TypeID, space: h5s.SpaceID) -> h5a.AttrID:
    """Create an attribute whose name is marked as UTF-8; h5py marks all as ASCII.

    Parameters
    ----------
    owner
        Low-level identifier of the object.
    name, datatype, space
        As for h5py's `h5a.create`.
    """
    kind = _hid.in_dll(_loaded(), "H5P_CLS_ATTRIBUTE_CREATE_ID_g").value
    plist = _call("H5Pcreate", kind)
    try:
        _call("H5Pset_char_encoding", plist, h5t.CSET_UTF8)
        return h5a.AttrID(_call("H5Acreate2", owner.id, name, datatype.id, space.id, plist, 0))
    finally:
        _call("H5Pclose", plist)


def stored_nbytes(dataset: h5d.DatasetID, origin: tuple[int, ...]) -> int:
    """Return the stored size of a chunk, 0 if it is not stored: by a lookup in the index, not a walk over it."""
    found = ctypes.c_uint64()
    with suppress(FileError):  # which is how HDF5 says that it is not
        _call("H5Dget_chunk_storage_size", dataset.id, (ctypes.c_uint64 * len(origin))(*origin), ctypes.byref(found))
    return found.value


def has_extensible_array(dataset: h5d.DatasetID) -> bool:
    """Return whether the index of a dataset's chunks is an extensible array; also where the library cannot tell."""
    found = ctypes.c_int(_EXTENSIBLE_ARRAY)
    if has("H5Dget_chunk_index_type"):
        _call("H5Dget_chunk_index_type", dataset.id, ctypes.byref(found))
    return found.value == _EXTENSIBLE_ARRAY


@contextmanager
def new_group_format(location: h5g.GroupID) -> Iterator[None]:
    """Let groups that are created meanwhile in the file of `location` have the format of HDF5 1.8.

    In a file that shall be read by the oldest libraries, which is h5py's default, the library otherwise takes the old
    format, which has no phase change, unless filters or the order of creation ask for the new one.
    """
    file = h5i.get_file_id(location)
    low, high = file.get_access_plist().get_libver_bounds()
    if low != h5f.LIBVER_EARLIEST or not has("H5Fset_libver_bounds"):
        yield
        return
    with lock:  # no other thread shall get it
        _call("H5Fset_libver_bounds", file.id, h5f.LIBVER_V18, high)
        try:
            yield
        finally:
            _call("H5Fset_libver_bounds", file.id, low, high)


def _loaded() -> ctypes.CDLL:
    # What an extension module of h5py is linked to is searched with it: that is h5py's libhdf5, whatever its place.
    return ctypes.CDLL(h5p.__file__)


@cache
def _found(name: str) -> Any:
    try:
        function = getattr(_loaded(), name)
    except (OSError, AttributeError):
        return None
    function.argtypes = _ARGUMENTS[name]
    function.restype = _hid if name in _GIVE_ID else ctypes.c_int
    return function


def _call(name: str, *arguments: Any) -> int:
    function = _found(name)
    if function is None:
        raise FileError(f"expected {name} in the libhdf5 that h5py uses, found none: use another build of h5py")
    with lock:
        result = int(function(*arguments))
    if result < 0:
        raise FileError(f"{name} of libhdf5 failed")
    return result


def _pair(name: str, plist: h5p.PropOCID) -> tuple[int, int]:
    first, second = _unsigned(), _unsigned()
    _call(name, plist.id, ctypes.byref(first), ctypes.byref(second))
    return first.value, second.value
