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
from functools import cache, partial
from importlib import import_module
from typing import Any

import h5py
from h5py import h5d, h5f, h5p, h5pl, h5s, h5t, h5z

from tamis.errors import MissingFilterError, StreamError
from tamis.filters._plugin_worker import FilterClass, is_loaded
from tamis.filters.plugin_client import Plugin
from tamis.filters.plugin_folders import hdf5plugin_folder
from tamis.filters.registry import is_known, is_safe, needs_plugin
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.new_filters import is_registered
from tamis.formats.hdf5.lib.plugin_classes import class_of

_classes: dict[int, FilterClass] = {}
"""What HDF5 knows of each filter that a process runs, by number; it must stay in memory."""

_of_hdf5plugin: set[int] = set()
"""Those whose plugin HDF5 does not search: it is in the folder of hdf5plugin."""


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


def decodes_alone(code: int) -> bool:
    """Return whether h5py's libhdf5 can decode with a filter in a program that does not import tamis."""
    if not decodes(code):
        return False
    return code not in _of_hdf5plugin or "hdf5plugin" in sys.modules


def encodes(code: int) -> bool:
    """Return whether h5py can create datasets with a filter and encode, from now on by the parameters of tamis."""
    _provide(code)
    return is_available(code) and bool(h5z.get_filter_info(code) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


def _isolate(code: int) -> None:
    if code in _classes or is_safe(code):
        return
    plugin = _plugin(code, _folders())
    # tamis asks hdf5plugin itself for the filters that it knows.
    if plugin is None and not is_known(code) and (plugin := _plugin(code, _folder_of_hdf5plugin())) is not None:
        _of_hdf5plugin.add(code)
    if plugin is not None:
        with calls.lock:
            _register(plugin)


def _provide(code: int) -> None:
    """Register a filter in place of the plugin that HDF5 would load, or has loaded: it may be for another libhdf5."""
    if code in _classes or not needs_plugin(code) or not is_safe(code):
        return
    plugin = _plugin(code, _searched())
    if plugin is not None and (is_loaded(plugin.path) or not is_registered(code)):
        with calls.lock:
            _register(plugin)


def _register(plugin: Plugin) -> None:
    ask = partial(_set_stored, plugin) if plugin.sees_datasets else None
    _classes[plugin.id] = class_of(plugin, calls.loaded(), ask)
    h5z.register_filter(ctypes.addressof(_classes[plugin.id]))


@cache
def _plugin(code: int, folders: tuple[str, ...]) -> Plugin | None:
    if not folders:
        return None
    return Plugin.find(code, folders)


def _folders() -> tuple[str, ...]:
    """Return the folders of plugins: that of hdf5plugin, if imported, and those that HDF5 searches."""
    return (_folder_of_hdf5plugin() if "hdf5plugin" in sys.modules else ()) + _searched()


def _folder_of_hdf5plugin() -> tuple[str, ...]:
    """Return the folder of hdf5plugin's plugins, if it is installed."""
    try:
        return (str(hdf5plugin_folder()),)
    except MissingFilterError:
        return ()


def _searched() -> tuple[str, ...]:
    """Return the folders in which HDF5 searches plugins."""
    if not calls.loads_filters():
        return ()
    folders = [os.path.abspath(os.fsdecode(h5pl.get(index))) for index in range(h5pl.size())]
    return tuple(filter(os.path.isdir, folders))


def _set_stored(plugin: Plugin, plist: int, datatype: int, space: int) -> None:
    """Replace the parameters of a filter by those that it leaves in a dataset that is being created."""
    if plist < 0:
        raise StreamError(f"{plugin}: cannot filter the links of a group, which have no type and no chunks")
    views = h5p.PropDCID(plist), h5t.TypeID(datatype), h5s.SpaceID(space)
    for view in views:
        view.locked = True  # HDF5 owns the ids
    entry = next(entry for entry in calls.filter_list(views[0]) if entry.id == plugin.id)
    layout = views[0].get_chunk(), views[1].encode().hex(), views[2].encode().hex()
    values = plugin.call(created_parameters, plugin.path, plugin.is_of_hdf5plugin, entry, layout)
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
    if not _classes:
        return
    for file in h5f.get_obj_ids(types=h5f.OBJ_FILE):
        with suppress(OSError, RuntimeError, ValueError):
            h5f.flush(file)
