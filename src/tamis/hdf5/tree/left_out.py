"""Datasets that a copy of a file leaves out on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import h5py
from h5py import h5d, h5o

from tamis.errors import FileError
from tamis.hdf5.lib.netcdf_names import stored_path

_SCALE_OF = "REFERENCE_LIST"


def addresses_of(file: h5py.File, paths: Iterable[str]) -> frozenset[int]:
    """Return the addresses of the datasets at some paths."""
    return frozenset(h5o.get_info(file.id, path.encode("utf-8", "surrogateescape")).addr for path in paths)


def leads_to(group: Any, name: bytes, addresses: frozenset[int]) -> bool:
    """Return whether a soft link leads to one of some objects."""
    with suppress(KeyError, OSError, RuntimeError):
        return bool(addresses) and h5o.get_info(group, name).addr in addresses
    return False


def check_scales(file: h5py.File, paths: Iterable[str]) -> None:
    """Raise FileError if a dataset that is to be left out is a dimension of one that stays."""
    paths = [*paths]
    addresses = addresses_of(file, [stored_path(file, path) for path in paths])
    for path in paths:
        users = [name for name, address in _users(file, stored_path(file, path)) if address not in addresses]
        if users:
            raise FileError(
                f"{file.filename}: {path}: expected a dataset to leave out that is no dimension of others, got that of"
                f" {', '.join(users)}: leave these out, too"
            ).at(path=file.filename, dataset=path)


def _users(file: h5py.File, path: str) -> list[tuple[str, int]]:
    """Return the datasets that have a dimension scale, with their addresses."""
    users = []
    with suppress(Exception):  # of damaged lists, h5py raises many kinds
        for reference, _ in file[path].attrs.get(_SCALE_OF, ()):
            if reference:
                user = file[reference]
                users.append((str(user.name), int(h5o.get_info(user.id).addr)))
    return users


def shorten_list(target: h5d.DatasetID) -> None:
    """Remove null references, to datasets that are left out, from the list of those that have a dimension."""
    attributes = h5py.Dataset(target).attrs
    entries = attributes[_SCALE_OF]
    kept = entries[[bool(reference) for reference, _ in entries]]
    datatype = attributes.get_id(_SCALE_OF).dtype
    del attributes[_SCALE_OF]
    if len(kept):
        attributes.create(_SCALE_OF, kept, dtype=datatype)
