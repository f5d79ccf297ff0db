"""Facts of open files and datasets that never change, asked for once: each costs some calls of HDF5."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import h5py
from h5py import h5d, h5p, h5t

T = TypeVar("T")

_FACTS, _OPENED, _DATASETS = "_tamis_facts", "_tamis_opened", "_tamis_datasets"
"""Names in h5py's objects: facts, open handles, and facts of the datasets of a file by path."""

_NEW_SUPERBLOCK = 3
"""Version of the superblock that HDF5 1.10 writes when it may use its newest formats."""


def once(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Keep what a function says of an h5py file or dataset, for facts that cannot change while it is open."""
    return _kept(function, lambda owner: vars(owner).setdefault(_FACTS, {}))


def once_opened(function: Callable[[Any], T]) -> Callable[[Any], T]:
    """Keep what a function opens for a dataset, for as long as this object of it."""
    return _kept(function, lambda owner: vars(owner).setdefault(_OPENED, {}))


def _kept(function: Callable[[Any], T], kept: Callable[[Any], dict[str, Any]]) -> Callable[[Any], T]:
    key = function.__name__

    @functools.wraps(function)
    def ask(owner: Any) -> T:
        known = kept(owner)
        if key not in known:
            known[key] = function(owner)
        found: T = known[key]
        return found

    return ask


def open_dataset(file: h5py.File, path: str) -> h5py.Dataset:
    """Open a dataset of a file; facts of it that were asked for before are not asked for again."""
    handle = h5d.open(file.id, path.encode("utf-8", "surrogateescape"))
    dataset = h5py.Dataset(handle, readonly=is_read_only(file))  # h5py then asks for its shape once
    vars(dataset)[_OPENED] = {file_of.__name__: file}
    if is_read_only(file):
        vars(dataset)[_FACTS] = vars(file).setdefault(_DATASETS, {}).setdefault(path, {})
    return dataset


@once_opened
def file_of(dataset: h5py.Dataset) -> h5py.File:
    """Return the file of a dataset."""
    return dataset.file


@once_opened
def layout_plist(dataset: h5py.Dataset) -> h5p.PropDCID:
    """Return the creation properties of a dataset, which must not be changed."""
    return dataset.id.get_create_plist()


@once_opened
def datatype_of(dataset: h5py.Dataset) -> h5t.TypeID:
    """Return the type of a dataset's values in the file."""
    return dataset.id.get_type()


@once
def place_of(dataset: h5py.Dataset) -> str:
    """Name a dataset and its file, for messages."""
    return f"{file_of(dataset).filename}: {dataset.name}"


@once
def driver_of(file: h5py.File) -> str:
    """Name the driver by which HDF5 reads a file."""
    return str(file.driver)


@once
def is_plain(file: h5py.File) -> bool:
    """Return whether a file is one ordinary file, which can be read past HDF5."""
    return driver_of(file) in ("sec2", "stdio") and Path(file.filename).is_file()


@once
def is_read_only(file: h5py.File) -> bool:
    """Return whether a file is open for reading only."""
    return bool(file.mode == "r")


@once
def address_nbytes(file: h5py.File) -> int:
    """Return the size of an address in a file."""
    return int(file.id.get_create_plist().get_sizes()[0])


@once
def user_block_nbytes(file: h5py.File) -> int:
    """Return the size of what comes before HDF5's part of a file."""
    return int(file.userblock_size)


@once
def has_tree_indexes(file: h5py.File) -> bool:
    """Return whether chunks have B-trees of the oldest kind as index, as in all files without libver 1.10 or later."""
    return bool(file.id.get_create_plist().get_version()[0] < _NEW_SUPERBLOCK)
