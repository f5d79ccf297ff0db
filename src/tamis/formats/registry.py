"""The formats that tamis knows: how to recognize, open and write each. `stores/first_bytes.py` has their first bytes.

Formats are imported late, because most commands need only one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import ParameterError
from tamis.kinds import FLAG, LOCATION, MAPPING, checked
from tamis.library_lock import imported
from tamis.remote.address import located_path, with_outside
from tamis.stores.first_bytes import is_classic, is_references, is_zarr

if TYPE_CHECKING:
    from tamis.reading.file import File, Reader
    from tamis.reading.listed import GroupedStore
    from tamis.rewrite.transfer import TargetForm
    from tamis.stores.protocols import Store, StoreComparison

PathLike = str | os.PathLike[str]


class Format(NamedTuple):
    """A storage format."""

    recognizes: Callable[[PathLike], bool]  # Whether a path has this format, by first bytes or metadata
    open_store: Callable[[str], Store]  # Opens the store at a path, for jobs
    open_reader: Callable[[str], Reader]  # Opens the file or folder at a path, for `tamis.open`
    ending: str | None = None  # Name ending of targets in this format; None if tamis does not write it
    form: Callable[[Path, Mapping[str, Any]], TargetForm] | None = None  # By the target and the options of the format


@checked(path=LOCATION, restore=FLAG, unpack=FLAG, storage_options=MAPPING, allow_outside=FLAG)
def open(  # noqa: A001 - xarray and gzip also call it open
    path: Any,
    threads: int | None = None,
    *,
    restore: bool = True,
    unpack: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    allow_outside: bool = False,
) -> File:
    """Open an HDF5 or netCDF file, or a Zarr store, whose arrays are read in parallel, without a plugin.

    Parameters
    ----------
    path
        Path of the file, of the folder of a Zarr store, or of references in JSON (kerchunk); or its address such as
        ``s3://bucket/a.nc`` (extra ``tamis[remote]``), an `Address`, or a file of fsspec.
    threads
        Number of threads that decode the chunks of a selection; None for as many as the process may use.
    restore
        Restore missing values if a dataset has a missing-value mask (``tamis repack --missing mask``). False returns
        the stored values, with invented ones instead of missing ones, as other readers see them.
    unpack
        Return packed integers in units of the variable, by ``scale_factor`` and ``add_offset``: floats of the type of
        these attributes, with NaN in place of ``_FillValue`` and ``missing_value``. Other arrays stay as stored.
    storage_options
        Settings and credentials of an address; see `Address`.
    allow_outside
        Whether references in JSON here may lead to files outside their folder, which you may not want to be read.

    Returns
    -------
    File
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
    place = located_path(path, with_outside(storage_options, is_allowed=allow_outside))
    file: File = imported("tamis.reading.file").File(_format_of(place).open_reader, place, threads, restore, unpack)
    return file


def open_store(path: PathLike) -> Store:
    """Open the store at a path for reading, by its first bytes or its metadata; use it in a ``with``.

    Raises
    ------
    FileError
        If there is nothing, or tamis does not read its format.
    """
    place = located_path(path)
    return _format_of(place).open_store(place)


def comparison_of(before: Store, after: Store, *, dropped: Collection[str] = ()) -> StoreComparison:
    """Return the comparison of two stores, except for the numbers in their arrays: object by object if both are HDF5.

    `dropped` has the arrays that the second store leaves out.
    """
    found: StoreComparison
    if before.has_objects and after.has_objects:
        hdf5 = imported("tamis.formats.hdf5.compare.comparison")  # late: few commands compare, as below
        found = hdf5.Hdf5Comparison(before, after, dropped=dropped)
    else:
        found = imported("tamis.stores.comparison").ModelComparison(before, after)
    return found


def target_form(target: Path, **options: Any) -> TargetForm:
    """Return the form of a target, by its name or by the file or folder it replaces.

    Options are those of the format, such as ``zarr_format``; those that are None are left out.

    Raises
    ------
    ParameterError
        If the format does not have such options, or tamis does not write files of such a name.
    MissingFilterError
        If the library of the format is not installed; names the extra.
    """
    ending = target.suffix.lower()  # as those of netCDF are known
    if ending == ".zip":
        folder = target.stem if target.stem.lower().endswith(".zarr") else f"{target.stem}.zarr"
        raise ParameterError(
            f"{target}: expected a name that ends in .zarr, or that of an HDF5 file, got that of a zip archive, which "
            f"tamis does not write: write {folder}, and zip what is in it, without compression (zip -r0)"
        )
    form = next(
        item.form
        for item in FORMATS
        if item.form is not None and (ending == item.ending or not item.ending or item.recognizes(target))
    )
    return form(target, {name: value for name, value in options.items() if value is not None})


def _format_of(path: PathLike) -> Format:
    return next(item for item in FORMATS if item.recognizes(path))


def _open_zarr(path: str) -> GroupedStore:
    store: GroupedStore = imported("tamis.formats.zarr.stored.store").ZarrStore(path)
    return store


def _open_references(path: str) -> GroupedStore:
    return _open_zarr(imported("tamis.remote.references").references_at(path))


def _zarr_form(target: Path, options: Mapping[str, Any]) -> TargetForm:
    options = dict(options)
    if options.pop("cloud", None) is True:
        raise ParameterError(
            f"{target}: cloud is only for HDF5 and netCDF-4 files: leave it out, or choose another name"
        )
    imported("tamis.formats.zarr.stored.store").check_installed(target)
    form: TargetForm = imported("tamis.formats.zarr.writing.form").ZarrForm(**options)
    return form


def _open_classic(path: str) -> GroupedStore:
    store: GroupedStore = imported("tamis.formats.classic.store").ClassicStore(path)
    return store


def _open_hdf5(path: str) -> Store:
    store: Store = imported("tamis.formats.hdf5.store").Hdf5Store.open(path)
    return store


def _read_hdf5(path: str) -> Reader:
    reader: Reader = imported("tamis.formats.hdf5.reader").Hdf5Reader(path)
    return reader


def _hdf5_form(target: Path, options: Mapping[str, Any]) -> TargetForm:
    others = [name for name in options if name != "cloud"]
    if others:
        raise ParameterError(
            f"{target}: for {' and '.join(others)}, choose the name of a Zarr store, such as {target.stem}.zarr"
        )
    form: TargetForm = imported("tamis.formats.hdf5.form").Hdf5Form(cloud=bool(options.get("cloud")))
    return form


def _listed(opens: Callable[[str], GroupedStore], path: str) -> Reader:
    reader: Reader = imported("tamis.reading.listed").ListedReader(opens(path))
    return reader


FORMATS = (
    Format(is_zarr, _open_zarr, partial(_listed, _open_zarr), ".zarr", _zarr_form),
    Format(is_classic, _open_classic, partial(_listed, _open_classic)),
    Format(is_references, _open_references, partial(_listed, _open_references)),
    Format(lambda _: True, _open_hdf5, _read_hdf5, "", _hdf5_form),
)
"""In order of recognition. HDF5 comes last: its error describes a file that no format recognizes."""
