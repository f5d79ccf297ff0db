"""The formats that tamis knows: how to recognize, open and write each. `stores/first_bytes.py` has their first bytes.

Formats are imported late, because most commands need only one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import FileError, ParameterError
from tamis.library_lock import imported
from tamis.remote.address import located_path
from tamis.stores.first_bytes import is_classic, is_references, is_zarr

if TYPE_CHECKING:
    from tamis.reading.file import Reader
    from tamis.reading.listed import GroupedStore
    from tamis.rewrite.transfer import TargetForm
    from tamis.stores.extension import Extension
    from tamis.stores.protocols import Store, StoreComparison

PathLike = str | os.PathLike[str]


class Format(NamedTuple):
    """A storage format."""

    recognizes: Callable[[PathLike], bool]  # Whether a path has this format, by first bytes or metadata
    open_store: Callable[[str], Store]  # Opens the store at a path, for jobs
    open_reader: Callable[[str], Reader]  # Opens the file or folder at a path, for `tamis.open`
    ending: str | None = None  # Name ending of targets in this format; None if tamis does not write it
    form: Callable[[Path, Mapping[str, Any]], TargetForm] | None = None  # By the target and the options of the format
    # Copies what is at a path to another one, with a mode, and opens the copy to extend it; None if tamis cannot
    extend: Callable[[Path, Path, int], Extension] | None = None


def open_store(path: PathLike) -> Store:
    """Open the store at a path for reading, by its first bytes or its metadata; use it in a ``with``.

    Raises
    ------
    FileError
        If there is nothing, or tamis does not read its format.
    """
    place = located_path(path)
    return format_at(place).open_store(place)


def open_packed(path: PathLike) -> Store:
    """Open the store at a path to copy or compare it: packed arrays are integers, whether attributes or codecs say so.

    Raises
    ------
    FileError
        See `open_store`.
    """
    store = open_store(path)
    try:
        store.take_codes()
    except BaseException:
        store.close()
        raise
    return store


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


def extender_of(path: Path) -> Callable[[Path, int], Extension]:
    """Return what copies a file or store to a path, and opens the copy, which can get more values and variables.

    Raises
    ------
    FileError
        If it has a format to which nothing can be added.
    """
    extend = format_at(path).extend
    if extend is None:
        raise FileError(
            f"{path}: expected a netCDF-4 file or a Zarr store, to which variables and steps can be added: write it as"
            " one first (tamis repack)"
        ).at(path=path)
    return partial(extend, path)


def format_at(path: PathLike) -> Format:
    """Return the format of what is at a path, by its first bytes or its metadata."""
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
    store: GroupedStore = imported("tamis.formats.classic.source").open_classic(path)
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


def _extend_zarr(source: Path, copy: Path, mode: int) -> Extension:
    extension: Extension = imported("tamis.formats.zarr.extension").ZarrExtension.of_copy(source, copy, mode)
    return extension


def _extend_hdf5(source: Path, copy: Path, mode: int) -> Extension:
    extension: Extension = imported("tamis.formats.hdf5.extension").Hdf5Extension.of_copy(source, copy, mode)
    return extension


def _listed(opens: Callable[[str], GroupedStore], path: str) -> Reader:
    reader: Reader = imported("tamis.reading.listed").ListedReader(opens(path))
    return reader


FORMATS = (
    Format(is_zarr, _open_zarr, partial(_listed, _open_zarr), ".zarr", _zarr_form, _extend_zarr),
    Format(is_classic, _open_classic, partial(_listed, _open_classic)),
    Format(is_references, _open_references, partial(_listed, _open_references)),
    Format(lambda _: True, _open_hdf5, _read_hdf5, "", _hdf5_form, _extend_hdf5),
)
"""In order of recognition. HDF5 comes last: its error describes a file that no format recognizes."""
