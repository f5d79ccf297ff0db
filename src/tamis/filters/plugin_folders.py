"""The folders in which HDF5 finds plugins of filters: those of packages, and those that HDF5_PLUGIN_PATH names."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from tamis.errors import MissingFilterError
from tamis.system.libraries import folders_in


def hdf5plugin_folder() -> Path:
    """Return the folder of hdf5plugin's plugins; raises MissingFilterError if it is not installed."""
    package = _package("hdf5plugin")
    if package is None:
        raise MissingFilterError("hdf5plugin is not installed here: pip install 'tamis[hdf5plugin]'")
    return package / "plugins"


def netcdf4_folder() -> Path | None:
    """Return the folder of the plugins that netCDF4 carries, if it is installed and does."""
    package = _package("netCDF4")
    # netCDF4 names the folder in HDF5_PLUGIN_PATH if it has this one.
    if package is None or not any((package / "plugins").glob("*__nczhdf5filters.*")):
        return None
    return package / "plugins"


def _package(name: str) -> Path | None:
    """Return the folder of a package, without importing it, which could change h5py's filters."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


VARIABLE = "HDF5_PLUGIN_PATH"

_DEFAULTS = """
import ctypes, ctypes.util
def show(names):
    for name in names:
        print(name, flush=True)
try:
    from h5py import h5pl
    show(h5pl.get(index).decode() for index in range(h5pl.size()))
except ImportError:
    pass
for name in map(ctypes.util.find_library, ("hdf5", "hdf5_serial")):
    if name is not None:
        library, count, room = ctypes.CDLL(name), ctypes.c_uint(), ctypes.create_string_buffer(4096)
        library.H5open()
        library.H5PLsize(ctypes.byref(count))
        for index in range(count.value):
            library.H5PLget(ctypes.c_uint(index), room, ctypes.c_size_t(len(room)))
            show([room.value.decode()])
"""
"""Prints the folders in which h5py's libhdf5, and that of the system's programs, search plugins."""


def with_others(own: Path) -> str:
    """Return a value of HDF5_PLUGIN_PATH: a folder of tamis, and those where programs find plugins without it.

    The folder of tamis is first: its zfp works in every libhdf5. Then come the folders of the variable; that of
    netCDF4's plugins, which netCDF4 itself names if the variable is not set; and those in which HDF5 then searches.

    hdf5plugin's folder is there only if the variable names it, and after netCDF4's: its plugins can only decode in
    netCDF4, and ``import hdf5plugin`` leaves out filters that HDF5 finds in a folder, with which h5py cannot write.
    """
    named = folders_in(VARIABLE)
    netcdf4, hdf5plugin = netcdf4_folder(), _package("hdf5plugin")
    last = [] if netcdf4 is None else [str(netcdf4)]
    if hdf5plugin is not None and _has(named, str(hdf5plugin / "plugins")):
        last.append(str(hdf5plugin / "plugins"))
    last += _searched_by_default()
    others = [folder for folder in named if not _has(last, folder)]
    folders: list[str] = []
    for folder in (str(own), *others, *last):
        if not _has(folders, folder):
            folders.append(folder)
    return os.pathsep.join(folders)


def _has(folders: list[str], folder: str) -> bool:
    return os.path.realpath(folder) in map(os.path.realpath, folders)


def _searched_by_default() -> list[str]:
    """Return the folders that exist among those in which HDF5 searches plugins if the variable is not set."""
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run([sys.executable, "-c", _DEFAULTS], env=env, capture_output=True, text=True, check=False)
    return [folder for folder in done.stdout.splitlines() if os.path.isdir(folder)]
