"""The HDF5 plugin ``libh5ztamis.so``, which any libhdf5 can be given: it links none."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from tamis import _native


def plugin_path() -> Path:
    """Return the folder of the plugin, for HDF5_PLUGIN_PATH.

    With it h5repack, h5dump, nccopy, ncdump and MATLAB read and write ZFP; h5py and netCDF4 do after ``import tamis``.
    """
    return Path(_native.__file__).parent / "hdf5_plugin"


def filter_class() -> int:
    """Return the address of the H5Z_class2_t of filter 32013, for H5Zregister."""
    function = _library().H5PLget_plugin_info
    function.restype = ctypes.c_void_p
    return int(function())


def has_nczarr_codec() -> bool:
    """Return whether NCZarr can use the plugin, too."""
    return hasattr(_library(), "NCZ_get_codec_info")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(plugin_path() / "libh5ztamis.so"), mode=ctypes.RTLD_LOCAL)
