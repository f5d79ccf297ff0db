"""Give the plugin to netCDF4's libhdf5 and NCZarr, whether netCDF4 was imported already or will be."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType

from tamis.errors import TamisError
from tamis.filters._plugin_file import filter_class, has_nczarr_codec, plugin_path

_EXTENSION = "netCDF4._netCDF4"


@cache
def register() -> None:
    """Register tamis with netCDF4's libhdf5 for filter 32013, now or as soon as netCDF4 is imported.

    Importing tamis does this; no environment variable is needed.
    """
    if _EXTENSION in sys.modules:
        _register_with(sys.modules[_EXTENSION])
    else:
        sys.meta_path.insert(0, _Finder())


def _register_with(extension: ModuleType) -> None:
    # Symbols are also searched in the libraries that the extension module needs.
    function = getattr(ctypes.PyDLL(extension.__file__), "H5Zregister", None)
    if function is None:
        return  # linked statically, without symbols: HDF5_PLUGIN_PATH remains
    function(ctypes.c_void_p(filter_class()))
    if has_nczarr_codec():
        # NCZarr loads plugins from folders alone, and all at once when it needs the first.
        from tamis.netcdf.plugin_folders import plugin_path_append

        with suppress(TamisError):  # netcdf-c before 4.9.3 has only HDF5_PLUGIN_PATH
            plugin_path_append(plugin_path())


class _Loader(ExtensionFileLoader):
    """Loads netCDF4's extension module, and registers the plugin with its libhdf5."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        super().exec_module(module)
        _register_with(module)


class _Finder(MetaPathFinder):
    """Finds netCDF4's extension module as the other finders do."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module with a loader that registers the plugin; None for all other modules."""
        if fullname != _EXTENSION:
            return None
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec is not None and type(spec.loader) is ExtensionFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
