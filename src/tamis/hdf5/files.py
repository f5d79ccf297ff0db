"""Opening files, and finding the datasets in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import h5py

from tamis.errors import FileError

_SIGNATURES = {
    b"CDF\x01": "a netCDF classic file",
    b"CDF\x02": "a netCDF 64-bit offset file",
    b"CDF\x05": "a netCDF CDF-5 file",
    b"\x0e\x03\x13\x01": "an HDF4 file",
    b"GRIB": "a GRIB file",
    b"PK\x03\x04": "a zip archive",
}


def open_source(path: str | os.PathLike[str]) -> h5py.File:
    """Open an HDF5 or netCDF-4 file for reading.

    Raises
    ------
    FileError
        If there is none, or it is of another kind; says which, where it is known.
    """
    place = Path(path)
    if not place.exists():
        raise FileError(f"{place}: expected an HDF5 or netCDF-4 file, found nothing there")
    if place.is_dir():
        raise FileError(f"{place}: expected an HDF5 or netCDF-4 file, found a folder")
    try:
        if not h5py.is_hdf5(place):
            with place.open("rb") as stream:
                found = _SIGNATURES.get(stream.read(4), "a file of another kind")
            raise FileError(f"{place}: expected an HDF5 or netCDF-4 file, found {found}")
        return h5py.File(place, "r")
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{place}: cannot be opened as HDF5: {error}") from error


def datasets(file: h5py.File) -> Iterator[h5py.Dataset]:
    """Every dataset of a file once, in the order of its paths, whatever links lead to it."""
    found: list[h5py.Dataset] = []
    file.visititems(lambda _, each: found.append(each) if isinstance(each, h5py.Dataset) else None)
    return iter(sorted(found, key=lambda each: str(each.name)))
