"""Who must be able to read what plan chooses: the filters that they have, and what others must install."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.filters import Filter
from tamis.jobs.plan.choices import Readers
from tamis.stores import EVERY_PROGRAM, NCO, NETCDF_PLUGINS, OF_HDF5, OF_HDF5PLUGIN, hdf5_text

_ZARR: Readers = "zarr"
_ALLOWED: dict[Readers, frozenset[str]] = {
    "any": EVERY_PROGRAM,
    "netcdf": OF_HDF5,
    "netcdf-plugins": OF_HDF5 | NETCDF_PLUGINS,
    "zfp": OF_HDF5 | {"zfp"},
    "hdf5plugin": OF_HDF5 | OF_HDF5PLUGIN,
    _ZARR: EVERY_PROGRAM | {"blosc", "bzip2", "pcodec", "zstd"},
}
"""Filters that readers have; ``all`` have every filter."""


def readable(filters: Sequence[Filter], readers: Readers, *, from_zarr: bool = False) -> bool:
    """Return whether readers can read what these filters store.

    What was read from Zarr is likely to become Zarr again: then zarr-python is among the readers of netCDF.
    """
    names = {item.name for item in filters}
    if from_zarr and readers == "netcdf" and not names <= _ALLOWED[_ZARR]:
        return False
    return readers not in _ALLOWED or names <= _ALLOWED[readers]


def least_readers(filters: Sequence[Filter], readers: Readers, *, from_zarr: bool = False) -> Readers:
    """Return the readers to ask for so that plan chooses these filters."""
    if readers == _ZARR:
        return "all"
    every: tuple[Readers, ...] = ("any", "netcdf", "netcdf-plugins", "zfp", "hdf5plugin", "all")
    return next(name for name in every if readable(filters, name, from_zarr=from_zarr))


def read_by(filters: Sequence[Filter], readers: Readers) -> str:
    """Return which HDF5 libraries, or packages for Zarr, can read what these filters store."""
    if readers == _ZARR:
        names = {item.name for item in filters} - EVERY_PROGRAM
        package = "tamis" if not names <= _ALLOWED[_ZARR] else "pcodec" if "pcodec" in names else ""
        return f"zarr-python and {package}" if package else "zarr-python"
    return hdf5_text(item.name for item in filters)


def needs_of(filters: Sequence[Filter], readers: Readers) -> str:
    """Return what readers must have to read what these filters store, in words."""
    names = {item.name for item in filters} - EVERY_PROGRAM
    if readers == _ZARR:
        return "tamis"
    if not names - OF_HDF5:
        return f"szip in their HDF5, and do not use {NCO}"
    if names <= NETCDF_PLUGINS | OF_HDF5:
        return "the plugins of netCDF-C or the package hdf5plugin"
    if names <= {"zfp"} | OF_HDF5:
        return "the plugin of tamis or H5Z-ZFP"
    return "the package hdf5plugin"
