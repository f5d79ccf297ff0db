"""Open the store at a path, or begin a new one; each storage format has one line here.

Formats are imported late, because most commands need only one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.formats.hdf5.store import Hdf5Store
from tamis.kinds import FLAG, PATH, checked
from tamis.stores.first_bytes import is_classic, is_zarr

if TYPE_CHECKING:
    from tamis.formats.hdf5.file import File
    from tamis.reading.opened_store import GroupedStore, OpenedStore
    from tamis.rewrite.rewrite import Recreate
    from tamis.safety.transaction import Transaction
    from tamis.stores.comparison import Pair
    from tamis.stores.protocols import ArrayWriter, Store


@checked(path=PATH, restore=FLAG)
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
    from tamis.formats.hdf5.file import File
    from tamis.reading.opened_store import OpenedStore

    opens = _other_format(path)
    return File(path, threads, restore) if opens is None else OpenedStore(opens, path, threads, restore)


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open the store at a path for reading, by its first bytes or its metadata; use it in a ``with``.

    Raises
    ------
    FileError
        If there is nothing, or tamis does not read its format.
    """
    opens = _other_format(path)
    return Hdf5Store.open(path) if opens is None else opens(os.fsdecode(path))


def _other_format(path: str | os.PathLike[str]) -> Callable[[str], GroupedStore] | None:
    """Return the function that opens a path, if it is not HDF5; None for an unknown format."""
    if is_zarr(path):
        from tamis.formats.zarr.stored.store import ZarrStore

        return ZarrStore
    if not is_classic(path):
        return None
    from tamis.formats.classic.store import ClassicStore

    return ClassicStore


def is_zarr_name(target: Path) -> bool:
    """Return whether a target of this name becomes a Zarr hierarchy: by its ending, or because it already is one."""
    return target.suffix == ".zarr" or is_zarr(target)


def begin(target: Path, *, overwrite: bool = True, **form: Any) -> Transaction:
    """Return the transaction of a target, whose format depends on its name.

    Parameters
    ----------
    target
        The final name.
    overwrite
        Whether an existing target is replaced.
    **form
        Parameters of `tamis.formats.zarr.writing.writer.ZarrForm`; those that are None are left out.

    Raises
    ------
    FileError
        If there cannot be a file or folder of that name.
    ParameterError
        If the format does not support such a form.
    MissingFilterError
        If zarr is not installed; names the extra.
    """
    from tamis.safety.transaction import FolderTransaction, Transaction

    known = {name: value for name, value in form.items() if value is not None}
    if is_zarr_name(target):
        from tamis.formats.zarr.stored.store import check_installed

        check_installed(target)
        from tamis.formats.zarr.writing.writer import ZarrForm  # after the check: it imports zarr

        return FolderTransaction(target, ZarrForm(**known), overwrite=overwrite)
    if known:
        raise ParameterError(
            f"{target}: expected the name of a Zarr store, such as {target.stem}.zarr, for {' and '.join(known)}"
        )
    return Transaction(target, overwrite=overwrite)


def check_copy(source: Store, target: Transaction, dropped: Collection[str] = ()) -> None:
    """Raise an error if the target's format does not support an array of the source that is not left out."""
    if target.form is not None:
        from tamis.formats.zarr.writing.new_array import check_array as check_zarr
        from tamis.formats.zarr.writing.writer import ZarrForm
        from tamis.rewrite.transfer import check_storable

        assert isinstance(target.form, ZarrForm)
        check_storable(source, partial(check_zarr, target.form), dropped)
    elif not isinstance(source, Hdf5Store):
        from tamis.formats.hdf5.netcdf_target import check_array
        from tamis.rewrite.transfer import check_storable

        check_storable(source, check_array, dropped)
    elif dropped:
        from tamis.formats.hdf5.tree.copy import check_scales

        check_scales(source.file, dropped)


def copy_store(
    source: Store,
    target: Transaction,
    recreate: Mapping[str, Recreate],
    outdated: Collection[str],
    companions: Callable[[], Mapping[str, ArrayWriter | None]],
    threads: int = 1,
    line: Callable[[], str] = str,
    dropped: Collection[str] = (),
) -> list[str]:
    """Copy a store to a new one, except the arrays that functions create, and return notes about other files.

    `check_copy` says before what the target cannot have. A file of another format becomes a netCDF-4 file; any store
    becomes a Zarr hierarchy if the target is a folder.

    Parameters
    ----------
    source
        The store.
    target
        Transaction of the target, whose temporary name must be free.
    recreate
        Functions by path of an array. If a function raises `CopyInsteadError`, the array is copied as stored.
    outdated
        Paths of outdated companions.
    companions
        Called when all arrays exist: returns new companions by the path of their variables, None for variables that
        lose theirs.
    threads
        Number of threads that encode arrays without a function, if these cannot stay unchanged.
    line
        Called when all arrays exist: returns a line for the history of the target, empty for none.
    dropped
        First paths of arrays that are left out.

    Raises
    ------
    FileError
        If something cannot be copied. Errors of functions are passed on.
    """
    if target.form is not None:
        from tamis.formats.zarr.writing.target import ZarrTarget
        from tamis.formats.zarr.writing.writer import ZarrForm
        from tamis.rewrite.transfer import transfer

        assert isinstance(target.form, ZarrForm)
        folder = ZarrTarget(target.path, target.form, threads)
        target.protect()
        transfer(source, folder, recreate, companions, line, dropped)
        return []
    if isinstance(source, Hdf5Store):
        from tamis.formats.hdf5.copying import copy_file

        return copy_file(source, target.path, recreate, outdated, companions, target.protect, line, dropped)
    from tamis.formats.hdf5.netcdf_target import NetcdfTarget
    from tamis.rewrite.transfer import transfer

    values_nbytes = sum(array.values_nbytes for array in source.arrays.values())
    with NetcdfTarget(target.path, values_nbytes) as out:
        target.protect()
        transfer(source, out, recreate, companions, line, dropped)
    return out.notes


def is_copied_by_objects(source: Store, target: Transaction) -> bool:
    """Return whether `copy_store` copies objects as stored; objects of other formats are written anew."""
    return isinstance(source, Hdf5Store) and target.form is None


def pair_of(source: Store, target: Store, *, whole: bool = False, dropped: Collection[str] = ()) -> Pair:
    """Return the pair that compares two stores except for the numbers in their arrays.

    `whole` if all arrays are compared; `dropped` has those of the source that the target leaves out.
    """
    if isinstance(source, Hdf5Store) and isinstance(target, Hdf5Store):
        from tamis.formats.hdf5.compare.file_pair import Hdf5Pair

        return Hdf5Pair(source, target, whole=whole, dropped=dropped)
    from tamis.stores.comparison import ModelPair

    return ModelPair(source, target)
