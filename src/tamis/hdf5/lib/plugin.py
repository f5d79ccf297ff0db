"""The HDF5 plugin: its folder, and its registration with h5py."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import h5py

from tamis import _native

_NAME = "libh5ztamis.so"


def plugin_path() -> Path:
    """Return the folder of the plugin, for HDF5_PLUGIN_PATH.

    With it h5repack, h5dump, nccopy, ncdump, netCDF4 and MATLAB read and write ZFP.
    """
    return Path(_native.__file__).parent / "hdf5_plugin"


@cache
def register() -> None:
    """Register tamis with h5py's libhdf5 for filter 32013, replacing any other.

    Importing tamis does this; no environment variable is needed.
    """
    library = ctypes.CDLL(str(plugin_path() / _NAME), mode=ctypes.RTLD_LOCAL)
    library.H5PLget_plugin_info.restype = ctypes.c_void_p
    h5py.h5z.register_filter(library.H5PLget_plugin_info())


def writes(filter_id: int) -> bool:
    """Return whether h5py's libhdf5 has a filter, and can encode with it."""
    h5z = h5py.h5z
    return bool(h5z.filter_avail(filter_id)) and bool(h5z.get_filter_info(filter_id) & h5z.FILTER_CONFIG_ENCODE_ENABLED)
