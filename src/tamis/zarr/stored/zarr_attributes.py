"""Attributes and dimensions of Zarr groups and arrays, as readers of netCDF have them."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tamis import cf
from tamis.zarr.attribute_types import in_type

DIMENSIONS = "_ARRAY_DIMENSIONS"
_HIDDEN = (DIMENSIONS, "_nczarr_", "_NCZARR", "_nczarr", "_NCProperties", "_Netcdf4")
_OF_VALUES = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks")
"""Attributes that have the type of the values, unless their own is known."""


def netcdf_attributes(
    attributes: Mapping[str, Any], dtype: np.dtype[Any] | None, zarr_format: int, types: Mapping[str, Any]
) -> dict[str, Any]:
    """Return attributes without internal ones; text as `str`, numbers in types of NumPy, anything else as JSON.

    Parameters
    ----------
    attributes
        From JSON.
    dtype
        Type of the values of the array; None for a group.
    zarr_format
        2 or 3: in version 3 xarray encodes ``_FillValue``.
    types
        Types of attributes by name, as far as they are known; see `tamis.zarr.attribute_types`.
    """
    known = {name: value for name, value in attributes.items() if not name.startswith(_HIDDEN)}
    is_number = dtype is not None and dtype.kind in "iuf"
    if zarr_format == 3 and is_number and isinstance(fill := known.get("_FillValue"), str):
        known["_FillValue"] = _decoded_fill(fill)
    result = {name: _value(value) for name, value in known.items()}
    typed = {name: in_type(value, types.get(name)) for name, value in known.items()}
    typed = {name: value for name, value in typed.items() if value is not None}
    result |= typed
    if dtype is None or not is_number:
        return result
    for name in _OF_VALUES:
        value = result.get(name)
        if isinstance(value, (np.generic, np.ndarray)) and name not in typed:
            result[name] = _as_values(value, dtype)
    return result


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, int):
        return np.int64(value) if -(1 << 63) <= value < 1 << 63 else np.float64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value
    if isinstance(value, list) and value and all(type(item) in (int, float) for item in value):
        array = np.array(value)
        return array if array.dtype.kind in "if" else array.astype("f8")
    return json.dumps(value)


def _decoded_fill(text: str) -> Any:
    """Return the number of ``_FillValue`` as xarray writes it for Zarr 3; the text itself if it is none."""
    try:
        return float(struct.unpack("<d", base64.standard_b64decode(text))[0])
    except (binascii.Error, struct.error, ValueError):
        return text


def _as_values(value: Any, dtype: np.dtype[Any]) -> Any:
    native = dtype.newbyteorder("=")
    with np.errstate(all="ignore"):
        converted = np.asarray(value).astype(native)
    same = np.array_equal(converted.astype("f8"), np.asarray(value, "f8"), equal_nan=True)
    wide_enough = same or native.kind == "f"
    return (converted if converted.ndim else converted[()]) if wide_enough else value


def dimension_names(
    names: Sequence[str | None] | None, attributes: Mapping[str, Any], shape: tuple[int, ...]
) -> tuple[str | None, ...]:
    """Return the name of each axis: of Zarr 3, of xarray, or of NCZarr; None where there is none."""
    listed: Any = names if names is not None else attributes.get(DIMENSIONS)
    if listed is None:
        inner = attributes.get("_nczarr_array")
        references = inner.get("dimension_references", inner.get("dimrefs")) if isinstance(inner, dict) else None
        listed = [str(name).rpartition("/")[2] for name in references] if isinstance(references, list) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str) or len(listed) != len(shape):
        return (None,) * len(shape)
    return tuple(name if isinstance(name, str) and name else None for name in listed)


def variable_of(
    path: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any] | None,
    dimensions: tuple[str, ...],
    attributes: Mapping[str, Any],
) -> cf.Variable:
    """Return an array as a variable of the CF conventions."""
    folder, _, name = path.rpartition("/")
    paths = tuple(f"{folder}/{dimension}" for dimension in dimensions)
    return cf.Variable(
        path, shape, dtype, paths, dict(attributes), is_scale=dimensions[:1] == (name,) and len(shape) == 1
    )
