"""The way from a path to the store that is there; a new storage format has its line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from tamis.hdf5.compare.file_pair import Hdf5Pair
from tamis.hdf5.file import File
from tamis.hdf5.netcdf_target import NetcdfTarget
from tamis.hdf5.store import Hdf5Store
from tamis.netcdf.classic.classic_store import ClassicStore, is_classic
from tamis.rewrite.plan import Recreate
from tamis.rewrite.transfer import transfer
from tamis.store.array import ArrayWriter, Store
from tamis.store.model_pair import ModelPair
from tamis.store.opened.opened_store import GroupedStore, OpenedStore
from tamis.store.pair import Pair


def open(  # noqa: A001 - as xarray and gzip name it
    path: str | os.PathLike[str], threads: int | None = None, *, restore: bool = True
) -> File | OpenedStore:
    """Open an HDF5 or netCDF file, or a Zarr store, whose arrays are read in parallel, without a plugin.

    Parameters
    ----------
    path
        Path of the file, or of the folder of a Zarr store.
    threads
        Number of threads that decode the chunks of a selection; None for as many as the process may use.
    restore
        Restore missing values if a dataset has a companion (``tamis repack --missing companion``). False returns the
        stored values, with invented ones instead of missing ones, as other readers see them.

    Returns
    -------
    File or OpenedStore
        A mapping from paths of arrays to arrays; ``file["group"]`` is a group. Use it in a ``with``, or close it.

    Raises
    ------
    FileError
        If there is no such file, or it is of another kind.
    ParameterError
        If `threads` is not 1 or more.

    Examples
    --------
    ::

        with tamis.open("out.nc") as file:
            ts = file["TS"]
            first = ts[0]
    """
    opens = _other_format(path)
    return File(path, threads, restore) if opens is None else OpenedStore(opens, path, threads, restore)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open what is at a path for reading, whose format its first bytes tell, or its metadata; use it in a ``with``.

    Raises
    ------
    FileError
        If there is nothing, or it is of a format that tamis does not read.
    """
    opens = _other_format(path)
    return Hdf5Store.open(path) if opens is None else opens(os.fsdecode(path))


def _other_format(path: str | os.PathLike[str]) -> Callable[[str], GroupedStore] | None:
    """Return what opens what is at a path, if it is not HDF5; None for anything else."""
    if os.path.isdir(path):
        from tamis.zarr.stored.zarr_store import ZarrStore, is_zarr  # late: few commands open folders

        return ZarrStore if is_zarr(path) else None
    return ClassicStore if is_classic(path) else None


def copy_store(
    source: Store,
    target: Path,
    recreate: Mapping[str, Recreate],
    dropped: Collection[str],
    companions: Callable[[], Mapping[str, ArrayWriter | None]],
    created: Callable[[], None],
) -> list[str]:
    """Copy a store to a new HDF5 file, except the arrays that functions create, and return notes about other files.

    A file of another format becomes a netCDF-4 file.

    Parameters
    ----------
    source
        The store.
    target
        Path of the new file, which must not exist.
    recreate
        Functions by path of an array. If a function raises `CopyInsteadError`, the array is copied as stored.
    dropped
        Paths of outdated companions.
    companions
        Called when all arrays exist: returns new companions by the path of their variables, None for variables that
        lose theirs.
    created
        Called when the new file exists and is empty.

    Raises
    ------
    FileError
        If something cannot be copied. Errors of functions are passed on.
    """
    if isinstance(source, Hdf5Store):
        return source.copy_to(target, recreate, dropped, companions, created)
    with NetcdfTarget(target) as out:
        created()
        transfer(source, out, recreate, companions)
    return []


def is_copied_by_objects(source: Store) -> bool:
    """Return whether `copy_store` copies arrays as they are stored; it writes those of other formats anew."""
    return isinstance(source, Hdf5Store)


def pair_of(source: Store, target: Store) -> Pair:
    """Return what compares two stores except for the numbers in their arrays."""
    if isinstance(source, Hdf5Store) and isinstance(target, Hdf5Store):
        return Hdf5Pair(source, target)
    return ModelPair(source, target)
