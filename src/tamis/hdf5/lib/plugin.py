"""The plugin ``libh5ztamis.so``: its place, and the libhdf5 libraries of this process that it serves."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType

import h5py

from tamis import _native

_NAME = "libh5ztamis.so"

_NETCDF4 = "netCDF4._netCDF4"
"""The extension module of netCDF4-python, which carries a libhdf5 of its own."""


def plugin_path() -> Path:
    """Return the folder of the plugin, for HDF5_PLUGIN_PATH.

    With it h5repack, h5dump, nccopy, ncdump and MATLAB read and write ZFP.
    """
    return Path(_native.__file__).parent / "hdf5_plugin"


@cache
def register() -> None:
    """Register tamis with h5py's libhdf5, and with that of netCDF4, for filter 32013, replacing any other.

    Importing tamis does this; no environment variable is needed. If netCDF4 is imported later, it is registered then.
    """
    h5py.h5z.register_filter(_filter_class())
    if _NETCDF4 in sys.modules:
        _register_with(sys.modules[_NETCDF4])
    else:
        sys.meta_path.insert(0, _Netcdf4Finder())


def writes(filter_id: int) -> bool:
    """Return whether h5py's libhdf5 has a filter, and can encode with it."""
    h5z = h5py.h5z
    return bool(h5z.filter_avail(filter_id)) and bool(h5z.get_filter_info(filter_id) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


@cache
def _filter_class() -> int:
    """Return the address of the plugin's H5Z_class2_t."""
    library = ctypes.CDLL(str(plugin_path() / _NAME), mode=ctypes.RTLD_LOCAL)
    library.H5PLget_plugin_info.restype = ctypes.c_void_p
    return int(library.H5PLget_plugin_info())


def _register_with(extension: ModuleType) -> None:
    """Register the plugin with the libhdf5 of an extension module, wherever that library is."""
    # Symbols are also searched in the libraries that the extension module needs.
    function = getattr(ctypes.PyDLL(extension.__file__), "H5Zregister", None)
    if function is not None:  # otherwise linked statically, without symbols: HDF5_PLUGIN_PATH remains
        function(ctypes.c_void_p(_filter_class()))


class _Netcdf4Loader(ExtensionFileLoader):
    """Loads netCDF4's extension module, and registers the plugin with its libhdf5."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        super().exec_module(module)
        _register_with(module)


class _Netcdf4Finder(MetaPathFinder):
    """Finds netCDF4's extension module as the other finders do."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module with a loader that registers the plugin; None for all other modules."""
        if fullname != _NETCDF4:
            return None
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec is not None and type(spec.loader) is ExtensionFileLoader:
            spec.loader = _Netcdf4Loader(spec.loader.name, spec.loader.path)
        return spec
