"""Datasets as variables of the CF and netCDF conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import h5py
from h5py import h5a, h5o, h5r, h5t

from tamis import cf
from tamis.hdf5.lib.attributes import known_attributes
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.walk import Datasets


def roles_in(file: h5py.File, datasets: Datasets) -> dict[str, cf.Role]:
    """Return the role of each dataset of a file, without reading values."""
    addresses = datasets.addresses()
    variables = [variable_of(path, array, addresses) for path, array in datasets.items()]
    groups: dict[str, dict[str, Any]] = {}
    for group in {path.rpartition("/")[0] or "/" for path in datasets}:
        with suppress(OSError, RuntimeError, ValueError, KeyError):
            groups[group] = known_attributes(file[group.encode("utf-8", "surrogateescape")])
    return cf.roles_of(variables, groups)


def variable_of(path: str, array: Hdf5Array, addresses: Mapping[int, str] | None = None) -> cf.Variable:
    """Return a dataset as a variable of the conventions.

    Parameters
    ----------
    path, array
        The dataset and its path.
    addresses
        Paths of all datasets of the file by address, to name dimensions.
    """
    dtype, attributes, shape = array.number_type, array.attributes, tuple(array.shape or ())
    is_scale = cf.text(attributes, "CLASS") == "DIMENSION_SCALE"
    dimensions = _dimensions(array.dataset, addresses) if addresses else ()
    return cf.Variable(
        path,
        shape,
        None if dtype is None else dtype.newbyteorder("="),
        (path,) if is_scale and not any(dimensions) and len(shape) == 1 else dimensions,
        attributes,
        is_scale,
        isinstance(array.datatype, h5t.TypeEnumID),
    )


def _dimensions(dataset: h5py.Dataset, addresses: Mapping[int, str]) -> tuple[str | None, ...]:
    """Return the path of the first dimension scale of each axis."""
    with suppress(Exception):  # HDF5 and h5py raise many kinds
        if not h5a.exists(dataset.id, b"DIMENSION_LIST"):
            return ()
        axes: Iterable[Any] = dataset.attrs["DIMENSION_LIST"]
        return tuple(_scale(dataset, scales, addresses) for scales in axes)
    return ()


def _scale(dataset: h5py.Dataset, scales: Any, addresses: Mapping[int, str]) -> str | None:
    with suppress(Exception):
        target = h5r.dereference(scales[0], dataset.id)
        return addresses.get(int(h5o.get_info(target).addr))
    return None
