"""Values of a dataset that stand for missing ones: fill values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from tamis.chunks.difference import Missing
from tamis.hdf5.facts import layout_plist
from tamis.hdf5.storage import fill_value, number_type

FILL_ATTRIBUTES = ("_FillValue", "missing_value")
"""Attributes that name values which stand for missing ones."""


def missing_of(dataset: h5py.Dataset) -> Missing:
    """Find what stands for missing values: the attributes ``_FillValue`` and ``missing_value``, and the fill value.

    A fill value of 0 that no attribute names is not taken for one: it is what HDF5 has where nobody asked. NaN and the
    infinities are missing in any case, and not among them. Where values are no numbers, nothing stands for them.

    Parameters
    ----------
    dataset
        What it gives is of its type, in native byte order.
    """
    stored = number_type(dataset)
    if stored is None:
        return Missing()
    dtype = stored.newbyteorder("=")
    found: list[Any] = []
    for name in FILL_ATTRIBUTES:
        # What cannot be read, or is no number of this type, names no value.
        with suppress(Exception):
            found.extend(_exact(np.asarray(dataset.attrs[name]), dtype))
    if layout_plist(dataset).fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        with suppress(Exception):
            found.extend(each for each in _exact(fill_value(dataset), dtype) if each != 0)
    unique: list[Any] = []
    for each in found:
        if np.isfinite(each) and each not in unique:
            unique.append(each)
    return Missing(tuple(unique))


def changed_fill(source: h5py.Dataset, target: h5py.Dataset) -> str:
    """Say how HDF5's fill value changed between datasets of one type; empty where it did not, or none can be had."""
    try:
        before, after = (fill_value(each).astype(each.dtype.newbyteorder("=")) for each in (source, target))
    except (TypeError, ValueError, RuntimeError):
        return ""
    return "" if before.tobytes() == after.tobytes() else f"HDF5's fill value {before} became {after}"


def _exact(given: NDArray[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Values of an attribute as the data would hold them."""
    if given.dtype.kind not in "fiu":
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        values = given.astype(dtype).reshape(-1)
    # A missing_value of double type, such as 1e20, stands for the float next to it; an integer has to be exact.
    same = dtype.kind == "f" or (values == given.reshape(-1))
    return list(values[np.broadcast_to(same, values.shape)])
