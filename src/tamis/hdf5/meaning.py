"""What the values of a dataset mean: which stand for missing ones, which are valid, how they are packed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import h5py
from h5py import h5d
from numpy.typing import NDArray

from tamis import cf
from tamis.hdf5.facts import layout_plist
from tamis.hdf5.lib.attributes import known_attributes
from tamis.hdf5.storage import fill_value, number_type
from tamis.missing.definition import Missing


def missing_of(dataset: h5py.Dataset) -> Missing:
    """Find what stands for missing values and what is valid, by attributes and the fill value: see `tamis.cf.validity`.

    NaN and the infinities are missing in any case, and not among the values. Where values are no numbers, nothing
    stands for missing ones.

    Parameters
    ----------
    dataset
        What is returned is of its type, in native byte order.
    """
    stored = number_type(dataset)
    if stored is None:
        return Missing()
    dtype, attributes = stored.newbyteorder("="), known_attributes(dataset)
    fill: NDArray[Any] | None = None
    if layout_plist(dataset).fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        with suppress(Exception):  # one that cannot be read is none
            fill = fill_value(dataset)
    return Missing(cf.missing_values(attributes, dtype, fill), *cf.valid_range(attributes, dtype))


def packing_of(dataset: h5py.Dataset) -> cf.Packing | None:
    """Return how the values of a dataset are packed, by its attributes."""
    return None if number_type(dataset) is None else cf.packing_of(known_attributes(dataset))


def changed_fill(source: h5py.Dataset, target: h5py.Dataset) -> str:
    """Say how HDF5's fill value changed between datasets of one type; empty where it did not, or none can be had."""
    try:
        before, after = (fill_value(each).astype(each.dtype.newbyteorder("=")) for each in (source, target))
    except (TypeError, ValueError, RuntimeError):
        return ""
    return "" if before.tobytes() == after.tobytes() else f"HDF5's fill value {before} became {after}"
