"""The meaning of variables of an xarray Dataset by the conventions of CF and netCDF."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import cf
from tamis.errors import DataError
from tamis.pipeline import Pipeline
from tamis.rounding import BitGroom, Granular, Rounding


def attributes_of(variable: Any) -> dict[str, Any]:
    """Return those attributes a variable will have in a file that `tamis.cf` knows."""
    both = {**variable.encoding, **variable.attrs}
    return {name: value for name, value in both.items() if cf.is_known(str(name)) and value is not None}


def roles_in_dataset(ds: Any) -> dict[str, cf.Role]:
    """Return the role of each variable by name; coordinates of the dataset count as coordinates."""
    variables = [
        cf.Variable(
            f"/{name}",
            tuple(variable.shape),
            _number_type(variable),
            tuple(f"/{dim}" for dim in variable.dims),
            attributes_of(variable),
            name in variable.dims,
        )
        for name, variable in ds.variables.items()
    ]
    by_path = cf.roles_of(variables)
    roles = {str(name): by_path[f"/{name}"] for name in ds.variables}
    for name in map(str, ds.coords):
        if not roles[name].is_exact:
            roles[name] = cf.Role("auxiliary coordinate", "coordinate of the dataset")
    return roles


def refuse_limits(array: Any, dtype: np.dtype[Any], pipeline: Pipeline) -> None:
    """Raise DataError if a lossy filter could move values across a limit of the valid range. All values are read.

    Parameters
    ----------
    array
        The array in xarray, unpacked if xarray unpacked it.
    dtype, pipeline
        Type and filters of the stored values.
    """
    attributes = attributes_of(array.variable)
    low, high = cf.valid_range(attributes, dtype.newbyteorder("="))
    packing = cf.packing_of(attributes) if "scale_factor" in array.encoding or "add_offset" in array.encoding else None
    reach = np.inf if pipeline.error_bound is None else pipeline.error_bound
    for name, limit in (("smallest", low), ("largest", high)):
        if limit is None:
            continue
        near, shown = (
            (reach, float(limit)) if packing is None else (reach * abs(packing.scale), packing.unpacked(limit))
        )
        count = int((abs(array - shown) <= near).sum())
        if count:
            raise DataError(
                f"{array.name}: expected no values within {near:g} of {shown:g}, the {name} valid one, for {pipeline},"
                f" found {count}, which a lossy filter may make invalid: save it without that filter and let tamis"
                " repack add it, which keeps them valid"
            )


def refuse_spoiled(array: Any, dtype: np.dtype[Any], rounding: Rounding) -> None:
    """Raise DataError if netCDF, which protects ``_FillValue`` only, would spoil values. All values are read.

    Parameters
    ----------
    array
        The array in xarray, unpacked if xarray unpacked it.
    dtype
        Type of the stored values.
    rounding
        The rounding that netCDF applies to them.
    """
    attributes, dtype = attributes_of(array.variable), dtype.newbyteorder("=")
    packing = cf.packing_of(attributes) if "scale_factor" in array.encoding or "add_offset" in array.encoding else None
    values = array.values if packing is None else (array.values - packing.offset) / packing.scale
    stored = np.asarray(values).astype(dtype)
    marks = cf.missing_values(attributes, dtype)
    count = rounding.rounded(stored, marks, cf.valid_range(attributes, dtype), None, stored.shape).unrounded
    protected = cf.missing_values({name: value for name, value in attributes.items() if name == "_FillValue"}, dtype)
    exposed = [mark for mark in (*marks, dtype.type(np.inf), dtype.type(-np.inf)) if mark not in protected]
    for mark in exposed:
        if not np.array_equal(_alone(rounding, mark), [mark, mark]):
            count += int((stored == mark).sum())
    if count:
        raise DataError(
            f"{array.name}: expected values that netCDF can round by {rounding} without harm, found {count} that would"
            " be another missing value, or cross a limit of the valid range: save it without rounding and let tamis"
            " repack round it, which leaves those values as they are"
        )


def _alone(rounding: Rounding, value: Any) -> NDArray[Any]:
    """Return what netCDF makes of a value that it does not protect, at even and odd indices."""
    if np.isinf(value):  # granular makes 0 of it, and bitgroom NaN at an odd index
        return np.array(
            [0 if isinstance(rounding, Granular) else value, np.nan if isinstance(rounding, BitGroom) else value]
        )
    return rounding.round(np.array([value, value]))


def _number_type(variable: Any) -> np.dtype[Any] | None:
    """Return the type in which numbers and times will be stored; None for other values."""
    if variable.dtype.kind in "mM":
        return np.dtype(np.int64)
    try:
        dtype: np.dtype[Any] = np.dtype(variable.encoding.get("dtype", variable.dtype))
    except TypeError:
        return None
    return dtype if dtype.kind in "iuf" and variable.dtype.kind in "iufb" else None
