"""Open files for reading."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import h5py
from h5py import h5f, h5o, h5p

from tamis.errors import FileError
from tamis.filters._plugin_client import filter_class
from tamis.formats.hdf5.lib import calls
from tamis.stores.first_bytes import FORMATS, kind_of


@cache
def register() -> None:
    """Register tamis with h5py's libhdf5 for filter 32013, replacing any other.

    Importing tamis does this; no environment variable is needed.
    """
    h5py.h5z.register_filter(filter_class())


CACHE_SLOTS = 521
"""Slots of HDF5's cache of decoded chunks: HDF5 2 has 8191, and clears 64 KiB whenever it opens a dataset."""


class SourceFile(h5py.File):  # type: ignore[misc]  # h5py has no types
    """A file that is only read, so that errors on closing, as on network file systems, do not matter."""

    def close(self) -> None:
        """Close the file."""
        for _ in range(2):  # after a failure HDF5 has released the descriptor, and keeps only the identifier
            with suppress(OSError, RuntimeError):
                super().close()
                return


def access_list(*, keeps_chunks: bool = True) -> h5p.PropFAID:
    """Return how files are opened."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    *_, nbytes, preemption = fapl.get_cache()
    fapl.set_cache(0, CACHE_SLOTS, nbytes if keeps_chunks else 0, preemption)
    calls.accept_unused_bits(fapl)
    return fapl


def open_source(path: str | os.PathLike[str], *, keeps_chunks: bool = True) -> h5py.File:
    """Open an HDF5 or netCDF-4 file for reading.

    Without `keeps_chunks`, HDF5 keeps no decoded chunks. H5Ocopy would encode these again instead of copying the stored
    bytes, which changes lossy values, ends the process in filters that can only decode, and writes beyond the end of a
    chunk in memory (HDF5 2.0). A file that is open in this process already is therefore opened by another driver, with
    which HDF5 shares nothing.
    """
    place = Path(os.fsdecode(path))
    try:
        os.stat(place)  # raises errors that exists() hides: permission denied, too many links, a name that is too long
        if not place.is_file() or not h5py.is_hdf5(place):
            raise FileError(f"{place}: expected {FORMATS}, got {kind_of(place)}")
        fapl = access_list(keeps_chunks=keeps_chunks)
        file = h5f.open(os.fsencode(place), h5f.ACC_RDONLY, fapl)
        if not keeps_chunks and file.get_access_plist().get_cache()[2]:
            for other in writers_of(file):
                h5f.flush(other)
            fapl.set_fapl_stdio()
            fapl.set_file_locking(False, False)
            with suppress(OSError):
                file = h5f.open(os.fsencode(place), h5f.ACC_RDONLY, fapl)
        return SourceFile(file)
    except FileError as error:
        error.at(path=place)
        raise
    except FileNotFoundError as error:
        raise FileError(f"{place}: No such file or directory").at(path=place) from error
    except PermissionError as error:
        raise FileError(f"{place}: Permission denied").at(path=place) from error
    except Exception as error:  # h5py raises many kinds
        advice = ": truncated, copy it again" if "truncated file" in str(error) else ""
        raise FileError(f"{place}: cannot be opened as HDF5{advice}: {error}").at(path=place) from error


def writers_of(file: h5f.FileID) -> list[h5f.FileID]:
    """Return the identifiers with which this process writes a file that HDF5 shares with them."""
    others = (other for other in h5f.get_obj_ids(types=h5f.OBJ_FILE) if other.get_intent() != h5f.ACC_RDONLY)
    return [other for other in others if h5o.get_info(other).fileno == h5o.get_info(file).fileno]


def is_hdf5(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is HDF5 or netCDF-4, by its signature."""
    return bool(h5py.is_hdf5(os.fspath(path)))
