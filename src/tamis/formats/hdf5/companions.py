"""Companions: datasets that record missing values of another dataset, so that zfp need not encode them.

A variable names its companion in the attribute `MARK`, and for people and CF's readers in ``ancillary_variables``. The
companion has a flag for each value, and in the attribute `TABLE` the missing value of each flag, in the type of the
variable: docs/missing.md describes both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5t
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.formats.hdf5.lib import datatypes
from tamis.formats.hdf5.lib.attributes import text_attribute
from tamis.meaning import companions as companion_attributes
from tamis.meaning.companions import ANCILLARY, MARK, TABLE, CompanionFlags
from tamis.meaning.missing import MOST_FLAGS, Flags, can_flag


def has_companion(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset has a companion, so that some of its values only fill the place of missing ones."""
    return bool(h5a.exists(dataset.id, MARK.encode()))


def is_companion(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset is the companion of another one, by its attributes."""
    return bool(h5a.exists(dataset.id, TABLE.encode()))


def find_companion(variable: h5py.Dataset, label: str) -> h5py.Dataset:
    """Return the companion of a variable that names one."""
    path = text_attribute(variable, MARK)
    if path is None:
        raise FileError(f"{label}: expected the path of its companion in the attribute {MARK!r}, found no text")
    companion = _at(variable, path)
    if companion is None:
        raise FileError(
            f"{label}: its missing values are in the companion {path!r}, which does not exist: restore or rename it,"
            " or read invented values in their place: tamis.open(…, restore=False)"
        )
    if has_companion(companion):
        raise FileError(
            f"{_not_companion(variable, companion)}: expected flags, found a dataset that has a companion itself"
        )
    dtype = datatypes.numpy_type(companion)
    numbers = datatypes.number_type(companion.id.get_type(), dtype)
    if numbers != np.uint8 or companion.shape is None or len(companion.shape) != variable.ndim:
        raise FileError(
            f"{_not_companion(variable, companion)}: expected uint8 with {variable.ndim} axes, as shape"
            f" {variable.shape} has, found {datatypes.dtype_text(dtype)} of shape {companion.shape}"
        )
    return companion


def read_flags(variable: h5py.Dataset, dtype: np.dtype[Any] | None, companion: h5py.Dataset) -> CompanionFlags:
    """Return the flags of a companion, with their meaning."""
    label = f"{variable.file.filename}: {companion.name}"
    table = _table(dtype, companion, _not_companion(variable, companion), variable)
    return CompanionFlags(Flags(table), label, str(companion.name), companion.shape)


def other_ancillary(dataset: h5py.Dataset) -> list[str]:
    """Return the names of the ancillary variables of a dataset, except its companion."""
    return companion_attributes.other_ancillary(
        text_attribute(dataset, ANCILLARY) or "", text_attribute(dataset, MARK) or ""
    )


def without_companion(attributes: Mapping[str, Any], dataset: h5py.Dataset) -> dict[str, Any]:
    """Return the attributes of a dataset with a companion, without references to the companion."""
    return companion_attributes.without_companion(attributes, other_ancillary(dataset))


def about_companion(name: str, source: Any, target: Any) -> bool:
    """Return whether an attribute of a dataset in two files differs only because it names a companion."""
    if name not in (MARK, ANCILLARY) or not isinstance(source, h5d.DatasetID):
        return False
    before, after = h5py.Dataset(source), h5py.Dataset(target)
    marked = has_companion(before) or has_companion(after)
    return marked and (name == MARK or other_ancillary(before) == other_ancillary(after))


def _not_companion(variable: h5py.Dataset, companion: h5py.Dataset) -> str:
    return f"{variable.file.filename}: {companion.name}: damaged, or not a companion of {variable.name}"


def _at(dataset: h5py.Dataset, path: str) -> h5py.Dataset | None:
    """Return a companion, from the variable's own group first, because groups may have been moved."""
    for candidate in companion_attributes.companion_paths(str(dataset.name or "/"), path):
        try:
            item = dataset.file.get(candidate.encode("utf-8", "surrogateescape"))
        except (OSError, RuntimeError, ValueError):
            continue
        if isinstance(item, h5py.Dataset) and item.file == dataset.file:
            return item
    return None


def _table(stored: np.dtype[Any] | None, companion: h5py.Dataset, refusal: str, variable: h5py.Dataset) -> NDArray[Any]:
    if stored is None or not can_flag(stored):
        text = datatypes.dtype_text(datatypes.numpy_type(variable))
        raise FileError(f"{refusal}: expected it to have numbers of 1, 2, 4 or 8 bytes, found {text}")
    dtype = stored.newbyteorder("=")
    if not is_companion(companion):
        raise FileError(f"{refusal}: expected the attribute {TABLE!r}, found none")
    attribute = h5a.open(companion.id, TABLE.encode())
    kind, shape = attribute.get_type(), attribute.shape
    fits = isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID)) and kind.dtype.newbyteorder("=") == dtype
    if not fits or shape is None or len(shape) > 1 or not 0 < int(np.prod(shape)) <= MOST_FLAGS:
        raise FileError(f"{refusal}: expected up to {MOST_FLAGS} values of {dtype} in {TABLE!r}, found others")
    values = np.empty(shape, kind.dtype)
    attribute.read(values, mtype=kind)
    return values.reshape(-1).astype(dtype)
