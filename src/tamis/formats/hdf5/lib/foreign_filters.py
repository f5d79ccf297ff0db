"""Filters of other packages in h5py's libhdf5, run in a separate process, because they may crash.

HDF5 loads a plugin into the process that reads, and a plugin that crashes on a chunk ends that process. So before HDF5
loads the plugin of a filter that neither tamis nor HDF5 itself decodes, another function replaces it in HDF5's table of
filters. It sends each chunk that HDF5 reads or copies to the separate process.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import h5py
from h5py import h5d, h5f, h5p, h5pl, h5s, h5t, h5z

from tamis.errors import StreamError
from tamis.filters._plugin_worker import CLASS_VERSION, DECODE, LIBC, Callback, FilterClass
from tamis.filters.registry import is_safe
from tamis.formats.hdf5.lib import calls
from tamis.safety.library_errors import INTERRUPTED

if TYPE_CHECKING:
    from tamis.filters.plugin_client import Plugin

_SetLocal = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

_classes: dict[int, FilterClass] = {}
"""What HDF5 knows of each filter that a process runs, by number; it must stay in memory."""


def isolate(codes: Iterable[int]) -> None:
    """Make HDF5 run filters of other packages, by their numbers, in a separate process."""
    for code in codes:
        _isolate(code)


def is_available(code: int) -> bool:
    """Return whether h5py's libhdf5 has a filter, or a plugin for it; raises the errors of `isolate`."""
    _isolate(code)
    return bool(h5z.filter_avail(code))


def decodes(code: int) -> bool:
    """Return whether h5py's libhdf5 can decode with a filter."""
    return is_available(code) and bool(h5z.get_filter_info(code) & h5z.FILTER_CONFIG_DECODE_ENABLED)


def encodes(code: int) -> bool:
    """Return whether h5py's libhdf5 can encode with a filter."""
    return is_available(code) and bool(h5z.get_filter_info(code) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


def _isolate(code: int) -> None:
    if code in _classes or is_safe(code):
        return
    if (folders := _folders()) and (plugin := _plugin(code, folders)) is not None:
        with calls.lock:
            _classes[code] = _class_of(plugin)
            h5z.register_filter(ctypes.addressof(_classes[code]))


@cache
def _plugin(code: int, folders: tuple[str, ...]) -> Plugin | None:
    from tamis.filters.plugin_client import Plugin  # late: it starts processes, and most files need none

    return Plugin.find(code, folders)


def _folders() -> tuple[str, ...]:
    """Return the folders of plugins: that of hdf5plugin, if imported, and those that HDF5 searches."""
    from tamis.filters.plugin_client import hdf5plugin_folder  # late, as above

    folders = [str(hdf5plugin_folder())] if "hdf5plugin" in sys.modules else []
    if calls.loads_filters():
        folders += [os.path.abspath(os.fsdecode(h5pl.get(index))) for index in range(h5pl.size())]
    return tuple(filter(os.path.isdir, folders))


def _class_of(plugin: Plugin) -> FilterClass:
    """Return the H5Z_class2_t of a filter that the separate process runs."""

    def run(flags: int, count: int, cd_values: Any, nbytes: int, room_nbytes: Any, buffer: Any) -> int:
        try:
            data = ctypes.string_at(buffer[0], nbytes)
            result = plugin.filtered(data, tuple(cd_values[:count]), encodes=not flags & DECODE)
        except BaseException as error:  # an interrupt, too: no exception passes through HDF5
            return _failure(error, 0)
        # The buffer never shrinks: H5Ocopy of HDF5 2.0 copies cached chunks unchecked into the previous one's buffer.
        if len(result) > room_nbytes[0]:
            if not (room := LIBC.malloc(len(result))):
                return 0
            LIBC.free(buffer[0])
            buffer[0], room_nbytes[0] = room, len(result)
        ctypes.memmove(buffer[0], result, len(result))
        return len(result)

    def set_local(plist: int, datatype: int, space: int) -> int:
        try:
            _set_stored(plugin, plist, datatype, space)
        except BaseException as error:
            return _failure(error, -1)
        return 0

    numbers = CLASS_VERSION, plugin.id, plugin.encodes, plugin.decodes
    entry = FilterClass(*numbers, plugin.label.encode(), None, None, Callback(run))
    if plugin.sees_datasets:
        entry.callback = _SetLocal(set_local)  # an attribute, so that it stays in memory
        entry.set_local = ctypes.cast(entry.callback, ctypes.c_void_p)
    return entry


def _failure(error: BaseException, status: int) -> int:
    calls.push_error(INTERRUPTED if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__)
    return status


def _set_stored(plugin: Plugin, plist: int, datatype: int, space: int) -> None:
    """Replace the parameters of a filter by those that it leaves in a dataset that is being created."""
    if plist < 0:
        raise StreamError(f"{plugin}: expected a dataset, got links, which have no type and no chunks")
    views = h5p.PropDCID(plist), h5t.TypeID(datatype), h5s.SpaceID(space)
    for view in views:
        view.locked = True  # HDF5 owns the ids
    entry = next(entry for entry in calls.filter_list(views[0]) if entry.id == plugin.id)
    layout = views[0].get_chunk(), views[1].encode().hex(), views[2].encode().hex()
    values = plugin.call(created_parameters, plugin.path, "hdf5plugin" in sys.modules, entry, layout)
    if isinstance(values, str):
        raise StreamError(f"{plugin}: {values}")
    calls.modify_filter(views[0], plugin.id, entry.flags, tuple(values))


def created_parameters(path: str, by_hdf5plugin: bool, entry: list[Any], layout: list[Any]) -> tuple[int, ...] | str:
    """Return the parameters that a filter stores in a new dataset, or why HDF5 refuses (in the separate process)."""
    if by_hdf5plugin:
        import_module("hdf5plugin")
    else:
        h5pl.prepend(os.fsencode(os.path.dirname(path)))
    code, flags, requested, *_ = entry
    chunk_shape, datatype, space = layout
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(tuple(chunk_shape))
    plist.set_filter(code, flags, tuple(requested))
    types = h5t.decode(bytes.fromhex(datatype)), h5s.decode(bytes.fromhex(space))
    try:
        with h5py.File("new", "w", driver="core", backing_store=False) as file:
            dataset = h5d.create(file.id, b"x", *types, plist)
            return calls.filter_list(dataset.get_create_plist())[0].values
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        return str(error)


@atexit.register
def _flush() -> None:
    """Make HDF5 encode its cached chunks while Python can still run filters."""
    for file in h5f.get_obj_ids(types=h5f.OBJ_FILE) if _classes else ():
        with suppress(OSError, RuntimeError, ValueError):
            h5f.flush(file)
