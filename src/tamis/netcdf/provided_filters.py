"""Filters that netCDF's HDF5 has from tamis, because their plugins were built for another HDF5.

hdf5plugin's plugins, for example, find no HDF5 in netCDF4: with them variables can be read, but not created. Or no
folder that netCDF's HDF5 searches has the plugin, but hdf5plugin is installed.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from tamis.errors import MissingFilterError
from tamis.filters._plugin_worker import FilterClass
from tamis.filters.plugin_client import Plugin
from tamis.filters.plugin_folders import hdf5plugin_folder, netcdf4_folder
from tamis.filters.registry import is_known, needs_plugin
from tamis.formats.hdf5.lib.plugin_classes import class_of
from tamis.netcdf.library import Unsigned, call, has, loaded, open_files
from tamis.netcdf.variable import HDF5, OpenedGroup

_MOST_NBYTES = 4096
_LOCAL = 0  # H5F_SCOPE_LOCAL

_classes: dict[int, FilterClass] = {}
"""What HDF5 knows of each filter, by number; it must stay in memory."""


def status_of(group: OpenedGroup, code: int) -> int:
    """Return the status of a filter in a dataset, NC_NOERR if it can be used."""
    provide(group, code)
    return call("nc_inq_filter_avail", group.ncid, code)


def provide(group: OpenedGroup, code: int) -> None:
    """Give netCDF's HDF5 a filter that tamis knows, if only a plugin for another HDF5 has it."""
    if group.format == HDF5 and needs_plugin(code) and is_known(code) and has("H5Zregister") and has("H5PLget"):
        _provide(code, _folders())


@cache
def _provide(code: int, folders: tuple[str, ...]) -> None:
    plugin = Plugin.find(code, folders)
    if code in _classes or plugin is None or _is_own(plugin):
        return
    _classes[code] = class_of(plugin, loaded())
    call("H5Zregister", ctypes.addressof(_classes[code]))


def _folders() -> tuple[str, ...]:
    """Return the folders of plugins that netCDF's HDF5 searches, in that order, and that of hdf5plugin."""
    count, room = Unsigned(), ctypes.create_string_buffer(_MOST_NBYTES)
    call("H5PLsize", ctypes.byref(count))
    folders = []
    for index in range(count.value):
        call("H5PLget", index, room, len(room))
        folders.append(os.path.abspath(os.fsdecode(room.value)))
    with suppress(MissingFilterError):
        folders.append(str(hdf5plugin_folder()))
    return tuple(filter(os.path.isdir, folders))


def _is_own(plugin: Plugin) -> bool:
    """Return whether netCDF4 carries a plugin, which was then built for its HDF5."""
    own = netcdf4_folder()
    return own is not None and Path(plugin.path).parent.samefile(own)


@atexit.register
def _flush() -> None:
    """Make HDF5 encode its cached chunks while Python can still run filters."""
    for file in open_files() if _classes else ():
        call("H5Fflush", file, _LOCAL)
