"""Calls of h5py's own libhdf5 that h5py does not wrap.

Ids are shared with h5py, because it is the same library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5i, h5o, h5p, h5s, h5t
from h5py._objects import phil
from numpy.typing import NDArray

from tamis import library_lock
from tamis.errors import FileError
from tamis.safety.library_errors import INTERRUPTED
from tamis.system.libraries import library_with

lock = phil
"""h5py's lock, which is reentrant: for other threads, everything done while holding it is one step."""

library_lock.comes_first(lock)

_hid = ctypes.c_int64
_unsigned = ctypes.c_uint

_WIDE = frozenset(
    (
        "H5Acreate2",
        "H5Oget_comment",
        "H5Pcreate",
        "H5Rdereference2",
        "H5Rget_attr_name",
        "H5Rget_file_name",
        "H5Rget_region",
        "H5Ropen_object",
        "H5Ropen_region",
    )
)
"""Calls that return 64 bits."""

_DONT_FILTER_PARTIAL_CHUNKS = 2
_FILTER_PLUGIN = 1  # H5PL_FILTER_PLUGIN
_UNUSED_BITS = 1  # H5F_RFIC_UNUSUAL_NUM_UNUSED_NUMERIC_BITS
_EXTENSIBLE_ARRAY = 4  # of H5D_chunk_index_t
_LABEL_NBYTES = 512  # limit of the part of a filter's label that is read
_MOST_VALUES = 256  # the library considers a larger count a mistake

SYMBOL_TABLE, COMPACT, DENSE = 0, 1, 2
"""How a group stores its links, H5G_storage_type_t: the format before HDF5 1.8, the object header, a heap."""


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
    """Return whether libhdf5 has a call."""
    return _function(name) is not None


LARGEST_ADDRESS = (1 << 64) - 1
"""Largest address in a file. In a `LinkedScope` the bits above it are the number of the file."""


def place_of(item: Any) -> tuple[int, int]:
    """Return the number of an object's file, and the address of its header.

    It does not read what `h5py.h5o.get_info` also reads: the whole chunk index of a dataset.
    """
    if not has("H5Oget_info3"):
        info = h5o.get_info(item)
        return int(info.fileno), int(info.addr)
    data = (ctypes.c_uint64 * 32)()
    call("H5Oget_info3", item.id, ctypes.byref(data), 1)
    return data[0], data[1]


def address_of(item: Any) -> int:
    """Return the address of an object's header; see `place_of`."""
    return place_of(item)[1]


def link_phase_change(plist: h5p.PropOCID) -> tuple[int, int]:
    """Return the link count above which a group becomes dense, and the one below which it becomes compact."""
    return _pair("H5Pget_link_phase_change", plist)


def set_link_phase_change(plist: h5p.PropOCID, max_compact: int, min_dense: int) -> None:
    """Set the counts of `link_phase_change`; 65535 >= max_compact >= min_dense >= 0."""
    call("H5Pset_link_phase_change", plist.id, max_compact, min_dense)


def estimated_links(plist: h5p.PropOCID) -> tuple[int, int]:
    """Return the number of links, and the length of their names in bytes, that fit a group's header."""
    return _pair("H5Pget_est_link_info", plist)


def set_estimated_links(plist: h5p.PropOCID, count: int, name_nbytes: int) -> None:
    """Set the numbers of `estimated_links`."""
    call("H5Pset_est_link_info", plist.id, count, name_nbytes)


def shares_messages(plist: h5p.PropFCID) -> bool:
    """Return whether objects of a file share parts of their headers; True if the library cannot tell."""
    if not has("H5Pget_shared_mesg_nindexes"):
        return True
    count = _unsigned()
    call("H5Pget_shared_mesg_nindexes", plist.id, ctypes.byref(count))
    return count.value > 0


def share_no_messages(plist: h5p.PropFCID) -> None:
    """Let the objects of a new file share no parts of their headers: HDF5 loses some (observed in 1.10 and 2.0)."""
    if has("H5Pset_shared_mesg_nindexes"):
        call("H5Pset_shared_mesg_nindexes", plist.id, 0)


def unshared(item: Any) -> Any:
    """Return a dataspace or type for another file; one of a shared message leads HDF5 into the heap of its own file."""
    if isinstance(item, h5s.SpaceID):
        return h5s.decode(item.encode())
    return item if item.committed() else h5t.decode(item.encode())


def accept_unused_bits(fapl: h5p.PropFAID) -> None:
    """Let HDF5 open numbers that use few of their bits, as nbit packs them; HDF5 2.0 treats them as damage."""
    if has("H5Pset_relax_file_integrity_checks"):
        call("H5Pset_relax_file_integrity_checks", fapl.id, _UNUSED_BITS)


def use_log_driver(fapl: h5p.PropFAID) -> None:
    """Let HDF5 read a file by its driver for logs, without a log.

    It reads as the default driver does, and shares nothing with a file that this one has open. The driver "stdio" has a
    position in the file, which a forked process would move.
    """
    call("H5Pset_fapl_log", fapl.id, None, 0, 0)


@cache
def log_driver() -> int:
    """Return the number of the driver of `use_log_driver`, which h5py does not name."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    use_log_driver(fapl)
    return int(fapl.get_driver())


class ListedFilter(NamedTuple):
    """A filter of a property list."""

    id: int
    flags: int
    values: tuple[int, ...]  # Parameters; only the first 256, because HDF5 returns no more
    label: str  # The filter's name in the file
    total: int  # Number of all parameters


def filter_list(plist: h5p.PropOCID) -> list[ListedFilter]:
    """Return the filters in any object's creation properties; h5py only has those of datasets, with few parameters."""
    view = as_dataset_plist(plist)
    return [_filter_at(view, index) for index in range(view.get_nfilters())]


def as_dataset_plist(plist: h5p.PropOCID) -> h5p.PropDCID:
    """Return creation properties as a dataset's, because h5py only has filters there, but HDF5 everywhere."""
    view = h5p.PropDCID(plist.id)
    # The view does not own the id, and must not close it.
    view.locked = True
    return view


def _filter_at(plist: h5p.PropDCID, index: int) -> ListedFilter:
    if not has("H5Pget_filter2"):
        number, flags, values, label = plist.get_filter(index)
        cd_values = tuple(value & 0xFFFFFFFF for value in values)
        return ListedFilter(number, flags, cd_values, label.decode("utf-8", "replace"), len(cd_values))
    flags, config, count = _unsigned(), _unsigned(), ctypes.c_size_t(_MOST_VALUES)
    values, label = (_unsigned * _MOST_VALUES)(), ctypes.create_string_buffer(_LABEL_NBYTES)
    out = (ctypes.byref(flags), ctypes.byref(count), values, _LABEL_NBYTES - 1, label, ctypes.byref(config))
    number = call("H5Pget_filter2", plist.id, index, *out)
    cd_values = tuple(values[: min(count.value, _MOST_VALUES)])
    return ListedFilter(number, flags.value, cd_values, label.value.decode("utf-8", "replace"), count.value)


def modify_filter(plist: h5p.PropDCID, code: int, flags: int, values: tuple[int, ...]) -> None:
    """Set flags and parameters of a filter in creation properties."""
    call("H5Pmodify_filter", plist.id, code, flags, len(values), (_unsigned * len(values))(*values))


def loads_filters() -> bool:
    """Return whether libhdf5 loads plugins of filters; True if it cannot tell."""
    kinds = _unsigned(_FILTER_PLUGIN)
    if has("H5PLget_loading_state"):
        call("H5PLget_loading_state", ctypes.byref(kinds))
    return bool(kinds.value & _FILTER_PLUGIN)


@contextmanager
def without_plugins() -> Iterator[None]:
    """Keep libhdf5 from loading plugins of filters while the block runs; those that are loaded stay."""
    kinds = _unsigned()
    with lock:
        call("H5PLget_loading_state", ctypes.byref(kinds))
        call("H5PLset_loading_state", kinds.value & ~_FILTER_PLUGIN)
        try:
            yield
        finally:
            call("H5PLset_loading_state", kinds.value)


def push_error(text: str, library: ctypes.CDLL | None = None) -> None:
    """Tell a libhdf5 why a filter that it called fails, so that errors of h5py and of `call` have the text."""
    # libhdf5 drops what a filter puts on the current stack. This does not use `call`: the thread that has the lock may
    # wait for this one.
    library = library or loaded()
    library.H5Ecreate_stack.restype = _hid
    numbers = [_hid.in_dll(library, f"H5E_{name}_g") for name in ("ERR_CLS", "PLINE", "CANTFILTER")]
    stack = _hid(library.H5Ecreate_stack())
    library.H5Epush2(stack, b"tamis", b"filter", _unsigned(0), *numbers, text.replace("%", "%%").encode())
    library.H5Eset_current_stack(stack)


def failure(error: BaseException, status: int, library: ctypes.CDLL | None = None) -> int:
    """Tell a libhdf5 about an exception in a function that it called; return the status of a failure."""
    push_error(INTERRUPTED if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__, library)
    return status


class _Error(ctypes.Structure):
    """H5E_error2_t."""

    _fields_ = (
        *((name, _hid) for name in ("class", "major", "minor")),
        ("line", _unsigned),
        *((name, ctypes.c_char_p) for name in ("function", "file", "description")),
    )


_Walk = ctypes.CFUNCTYPE(ctypes.c_int, _unsigned, ctypes.POINTER(_Error), ctypes.c_void_p)


def _reason() -> str:
    """Return the innermost description on the error stack of libhdf5; empty if there is none."""
    descriptions: list[str] = []

    def note(_: int, error: Any, __: object) -> int:
        descriptions.append((error.contents.description or b"").decode("utf-8", "replace"))
        return 0

    loaded().H5Ewalk2(_hid(0), ctypes.c_int(0), _Walk(note), None)
    return next(iter(descriptions), "")


def filters_partial_chunks(plist: h5p.PropDCID) -> bool:
    """Return whether chunks that extend beyond the array are filtered, which is the default of HDF5."""
    if not has("H5Pget_chunk_opts"):
        return True
    options = _unsigned()
    call("H5Pget_chunk_opts", plist.id, ctypes.byref(options))
    return not options.value & _DONT_FILTER_PARTIAL_CHUNKS


def set_undefined_fill(plist: h5p.PropDCID, datatype: h5t.TypeID) -> None:
    """Set the fill value of new datasets to undefined, which makes unwritten values undefined."""
    call("H5Pset_fill_value", plist.id, datatype.id, None)


def set_fill_bytes(plist: h5p.PropDCID, datatype: h5t.TypeID, raw: bytes) -> None:
    """Set the fill value of new datasets to bytes of their type, which h5py would convert."""
    call("H5Pset_fill_value", plist.id, datatype.id, raw)


def fill_bytes(plist: h5p.PropDCID, datatype: h5t.TypeID) -> bytes:
    """Return the fill value of a dataset as bytes of a file type."""
    room = ctypes.create_string_buffer(datatype.get_size())
    call("H5Pget_fill_value", plist.id, datatype.id, room)
    return room.raw


def fill_sequence(plist: h5p.PropDCID, datatype: h5t.TypeID, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a copy of a fill value of variable length, whose items have a type.

    h5py makes an array of the library's own memory, which both then free.
    """
    count, address = np.frombuffer(fill_bytes(plist, datatype), np.uintp)
    return np.frombuffer(ctypes.string_at(int(address), int(count) * dtype.itemsize) if count else b"", dtype)


def link_storage(group: h5g.GroupID) -> int:
    """Return how a group currently stores its links: `SYMBOL_TABLE`, `COMPACT` or `DENSE`."""
    info = _GroupInfo()
    call("H5Gget_info", group.id, ctypes.byref(info))
    return int(info.storage_type)


def may_have_comment(owner: Any) -> bool:
    """Return whether an object has a comment; True if the library cannot tell."""
    return not has("H5Oget_comment") or call("H5Oget_comment", owner.id, None, 0) > 0


def create_utf8_attribute(owner: Any, name: bytes, datatype: h5t.TypeID, space: h5s.SpaceID) -> h5a.AttrID:
    """Create an attribute whose name is marked as UTF-8; h5py marks all names as ASCII."""
    kind = _hid.in_dll(loaded(), "H5P_CLS_ATTRIBUTE_CREATE_ID_g").value
    plist = call("H5Pcreate", kind)
    try:
        call("H5Pset_char_encoding", plist, h5t.CSET_UTF8)
        return h5a.AttrID(call("H5Acreate2", owner.id, name, datatype.id, space.id, plist, 0))
    finally:
        call("H5Pclose", plist)


class _LinkClass(ctypes.Structure):
    """H5L_class_t."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("comment", "create", "move", "copy", "traverse", "delete", "query")),
    )


_LEAD_NOWHERE = ctypes.CFUNCTYPE(_hid)(lambda: -1)
"""Tells HDF5 that a link leads nowhere."""


def copy_user_link(source: h5g.GroupID, target: h5g.GroupID, name: bytes, kind: int, lcpl: h5p.PropLCID | None) -> None:
    """Copy a link of a user-defined type with its bytes, as HDF5 does if it knows the type."""
    with lock:
        known = call("H5Lis_registered", kind) > 0
        if not known:
            stand_in = _LinkClass(1, kind, traverse=ctypes.cast(_LEAD_NOWHERE, ctypes.c_void_p))
            call("H5Lregister", ctypes.addressof(stand_in))
        try:
            call("H5Lcopy", source.id, name, target.id, name, id_of(lcpl), 0)
        finally:
            if not known:
                call("H5Lunregister", kind)


def stored_nbytes(dataset: h5d.DatasetID, origin: tuple[int, ...]) -> int:
    """Return the stored bytes of a chunk, 0 if it is not stored, through a lookup in the index instead of a walk."""
    return next(stored_sizes(dataset, [origin]))


def stored_sizes(dataset: h5d.DatasetID, origins: Iterable[tuple[int, ...]]) -> Iterator[int]:
    """Yield the same as `stored_nbytes` for several chunks."""
    function = _required("H5Dget_chunk_storage_size")
    id_ = _hid(dataset.id)
    place = (ctypes.c_uint64 * dataset.rank)()
    nbytes = ctypes.c_uint64()
    pointer = ctypes.byref(nbytes)
    for origin in origins:
        place[:] = origin
        with lock:
            is_stored = function(id_, place, pointer) >= 0  # HDF5 fails for a chunk that is not stored
        yield nbytes.value if is_stored else 0


def has_extensible_array(dataset: h5d.DatasetID) -> bool:
    """Return whether the chunk index of a dataset is an extensible array; True if the library cannot tell."""
    index_type = ctypes.c_int(_EXTENSIBLE_ARRAY)
    if has("H5Dget_chunk_index_type"):
        call("H5Dget_chunk_index_type", dataset.id, ctypes.byref(index_type))
    return index_type.value == _EXTENSIBLE_ARRAY


def use_format_of_18(file: h5f.FileID) -> None:
    """From now on, create objects in a file in the format of HDF5 1.8."""
    if has("H5Fset_libver_bounds"):
        call("H5Fset_libver_bounds", file.id, h5f.LIBVER_V18, h5f.LIBVER_LATEST)


@contextmanager
def new_group_format(location: h5g.GroupID) -> Iterator[None]:
    """Create groups in the file of `location` in the format of HDF5 1.8 while the block runs.

    In a file for the oldest libraries, which is h5py's default, the library otherwise uses the old format, which has no
    phase change, unless filters or creation order require the new one.
    """
    file = h5i.get_file_id(location)
    low, high = file.get_access_plist().get_libver_bounds()
    if low != h5f.LIBVER_EARLIEST or not has("H5Fset_libver_bounds"):
        yield
        return
    with lock:  # so that no other thread creates groups of that format
        call("H5Fset_libver_bounds", file.id, h5f.LIBVER_V18, high)
        try:
            yield
        finally:
            call("H5Fset_libver_bounds", file.id, low, high)


def loaded() -> ctypes.CDLL:
    """Return h5py's libhdf5."""
    # Symbols are also searched in the libraries of an extension module: here h5py's libhdf5, wherever it is.
    return library_with("H5open", h5p.__file__, ctypes.CDLL)


@cache
def _function(name: str) -> Any:
    try:
        function = getattr(loaded(), name)
    except (OSError, AttributeError):
        return None
    function.restype = _hid if name in _WIDE else ctypes.c_int
    return function


def _required(name: str) -> Any:
    if (function := _function(name)) is None:
        raise FileError(f"the libhdf5 that h5py uses has no {name}: use another build of h5py")
    return function


def id_of(plist: h5p.PropLCID | None) -> int:
    """Return the identifier of properties; 0, H5P_DEFAULT, for None."""
    return 0 if plist is None else int(plist.id)


def call(name: str, *arguments: Any) -> int:
    """Call a function of libhdf5; whole numbers are passed as 64 bits, and the function uses as many as it declares."""
    function = _required(name)
    with lock:
        result = int(function(*(_hid(value) if isinstance(value, int) else value for value in arguments)))
        reason = _reason() if result < 0 else ""
    if result < 0:
        text = f"{name} of libhdf5 failed"
        raise FileError(f"{text}: {reason}" if reason else text)
    return result


def _pair(name: str, plist: h5p.PropOCID) -> tuple[int, int]:
    first, second = _unsigned(), _unsigned()
    call(name, plist.id, ctypes.byref(first), ctypes.byref(second))
    return first.value, second.value
