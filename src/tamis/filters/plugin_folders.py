"""The folders in which HDF5 finds plugins of filters: those of packages, and those that HDF5_PLUGIN_PATH names."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tamis.errors import MissingFilterError


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
