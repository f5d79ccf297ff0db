"""The plugin in netCDF4's libraries, and the folders that netCDF-C searches for plugins, from 4.9.3 on.

HDF5 searches a folder when it first needs a filter, so folders can be added at any time; NCZarr loads all plugins once,
when it first needs one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from types import ModuleType

from tamis.errors import FileError, ParameterError, TamisError
from tamis.filters._plugin_client import filter_class, has_nczarr_codec, plugin_path
from tamis.kinds import PATH, Kind, checked
from tamis.netcdf.library import call, status_error


def register(extension: ModuleType) -> None:
    """Give the plugin to libhdf5 and NCZarr of netCDF4, by its extension module."""
    # Symbols are also searched in the libraries that the extension module needs.
    function = getattr(ctypes.PyDLL(extension.__file__), "H5Zregister", None)
    if function is None:
        return  # linked statically, without symbols: HDF5_PLUGIN_PATH remains
    function(ctypes.c_void_p(filter_class()))
    if has_nczarr_codec():
        # NCZarr loads plugins only from folders, and all at once when it needs the first.
        with suppress(TamisError):  # netcdf-c before 4.9.3 has only HDF5_PLUGIN_PATH
            plugin_path_append(plugin_path())


class _List(ctypes.Structure):
    """NCPluginList."""

    _fields_ = (("ndirs", ctypes.c_size_t), ("dirs", ctypes.POINTER(ctypes.c_char_p)))


def plugin_path_get() -> list[str]:
    """Return the folders, in the order of the search."""
    count = ctypes.c_size_t()
    _check(call("nc_plugin_path_ndirs", ctypes.byref(count)))
    room = (ctypes.c_char_p * max(count.value, 1))()
    folders = _List(count.value, room)
    _check(call("nc_plugin_path_get", ctypes.byref(folders)))
    # The texts are netCDF's to allocate and ours to free; a few bytes for a call made a few times are left.
    return [os.fsdecode(folder) for folder in room[: folders.ndirs] if folder is not None]


_FOLDERS = Kind("a list of folders such as ['plugins']", lambda value: isinstance(value, Iterable | os.PathLike))


@checked(folders=_FOLDERS)
def plugin_path_set(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Replace the folders."""
    if isinstance(folders, (str, os.PathLike)):
        raise ParameterError(f"expected a list of folders, got {os.fspath(folders)!r}: write [{os.fspath(folders)!r}]")
    names = [_folder(folder) for folder in folders]
    room = (ctypes.c_char_p * max(len(names), 1))(*names)
    _check(call("nc_plugin_path_set", ctypes.byref(_List(len(names), room))))


@checked(folder=PATH)
def plugin_path_append(folder: str | os.PathLike[str]) -> None:
    """Add a folder that exists, which is searched last.

    For NCZarr, add it before the process first uses a filter there: netCDF-C loads the plugins of NCZarr once.
    """
    _check_exists(folder)
    plugin_path_set([*plugin_path_get(), folder])


@checked(folder=PATH)
def plugin_path_prepend(folder: str | os.PathLike[str]) -> None:
    """Add a folder that exists, which is searched first.

    For NCZarr, add it before the process first uses a filter there: netCDF-C loads the plugins of NCZarr once.
    """
    _check_exists(folder)
    plugin_path_set([folder, *plugin_path_get()])


def _folder(folder: str | os.PathLike[str]) -> bytes:
    name = os.fsencode(folder) if isinstance(folder, (str, os.PathLike)) else b""
    if b"\0" in name or not name:
        raise ParameterError(f"expected the name of a folder, got {folder!r}")
    return name


def _check_exists(folder: str | os.PathLike[str]) -> None:
    if not os.path.isdir(_folder(folder)):
        raise FileError(f"{os.fspath(folder)}: expected a folder with plugins, found none").at(path=folder)


def _check(status: int) -> None:
    if status:
        raise status_error(status)
