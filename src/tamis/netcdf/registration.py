"""Give the plugin to netCDF4's libhdf5 and NCZarr, whether netCDF4 is already imported or will be."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from types import ModuleType

from tamis.errors import TamisError
from tamis.filters._plugin_client import filter_class, has_nczarr_codec, plugin_path
from tamis.imports import after_import

_EXTENSION = "netCDF4._netCDF4"


def register() -> None:
    """Register tamis with netCDF4's libhdf5 for filter 32013, now or as soon as netCDF4 is imported.

    Importing tamis does this; no environment variable is needed.
    """
    after_import(_EXTENSION, _register_with)


def _register_with(extension: ModuleType) -> None:
    # Symbols are also searched in the libraries that the extension module needs.
    function = getattr(ctypes.PyDLL(extension.__file__), "H5Zregister", None)
    if function is None:
        return  # linked statically, without symbols: HDF5_PLUGIN_PATH remains
    function(ctypes.c_void_p(filter_class()))
    if has_nczarr_codec():
        # NCZarr loads plugins only from folders, and all at once when it needs the first.
        from tamis.netcdf.plugin_folders import plugin_path_append

        with suppress(TamisError):  # netcdf-c before 4.9.3 has only HDF5_PLUGIN_PATH
            plugin_path_append(plugin_path())
