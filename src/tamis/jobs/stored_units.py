"""Convert tolerances from the units of a variable to its packed values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.errors import DataError, ParameterError
from tamis.filters import Stage, Zfp
from tamis.pipeline import Pipeline
from tamis.rounding import Absolute, BitGroom, Granular, Rounding
from tamis.zfp import Accuracy


def attributes_of(variable: Any) -> dict[str, Any]:
    """Return the attributes known to `tamis.cf` that a variable will have in a file."""
    both = {**variable.encoding, **variable.attrs}
    return {name: value for name, value in both.items() if meaning.is_known(str(name)) and value is not None}


def roles_in_dataset(ds: Any) -> dict[str, meaning.Role]:
    """Return the role of each variable by name; coordinates of the dataset count as coordinates."""
    variables = [
        meaning.Variable(
            f"/{name}",
            tuple(variable.shape),
            _number_type(variable),
            tuple(f"/{dim}" for dim in variable.dims),
            attributes_of(variable),
            name in variable.dims,
        )
        for name, variable in ds.variables.items()
    ]
    by_path = meaning.roles_of(variables)
    roles = {str(name): by_path[f"/{name}"] for name in ds.variables}
    for name in map(str, ds.coords):
        if not roles[name].is_exact:
            roles[name] = meaning.Role("auxiliary coordinate", "coordinate of the dataset")
    return roles


def refuse_limits(array: Any, dtype: np.dtype[Any], pipeline: Pipeline) -> None:
    """Raise DataError if a lossy filter could move values across a limit of the valid range. All values are read."""
    attributes = attributes_of(array.variable)
    low, high = meaning.valid_range(attributes, dtype.newbyteorder("="))
    packing = (
        meaning.packing_of(attributes) if "scale_factor" in array.encoding or "add_offset" in array.encoding else None
    )
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
    """Raise DataError if netCDF, which only protects ``_FillValue``, would spoil values. All values are read."""
    attributes, dtype = attributes_of(array.variable), dtype.newbyteorder("=")
    packing = (
        meaning.packing_of(attributes) if "scale_factor" in array.encoding or "add_offset" in array.encoding else None
    )
    values = array.values if packing is None else (array.values - packing.offset) / packing.scale
    stored = np.asarray(values).astype(dtype)
    marks = meaning.missing_values(attributes, dtype)
    count = rounding.rounded(stored, marks, meaning.valid_range(attributes, dtype), None, stored.shape).unrounded
    protected = meaning.missing_values(
        {name: value for name, value in attributes.items() if name == "_FillValue"}, dtype
    )
    exposed = [mark for mark in (*marks, dtype.type(np.inf), dtype.type(-np.inf)) if mark not in protected]
    for mark in exposed:
        if not np.array_equal(_alone(rounding, mark), [mark, mark]):
            count += int((stored == mark).sum())
    if count:
        raise DataError(
            f"{array.name}: expected values that netCDF can round by {rounding} without harm, found {count} that "
            f"would become missing, or cross a limit of the valid range: save it without rounding and let tamis"
            " repack round it, which leaves those values as they are"
        )


def _alone(rounding: Rounding, value: Any) -> NDArray[Any]:
    """Return netCDF's rounding of an unprotected value, at even and odd indices."""
    if np.isinf(value):  # granular turns it into 0, and bitgroom into NaN at an odd index
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


def in_stored_units(pipeline: Pipeline, packing: meaning.Packing | None, dtype: np.dtype[Any]) -> Pipeline:
    """Return filters with the accuracy of zfp, or the bound of a rounding, divided by ``scale_factor``."""
    if packing is None or abs(packing.scale) == 1:
        return pipeline
    if pipeline.rounding is None:
        return Pipeline(_convert(stage, packing, dtype) for stage in pipeline.stages)
    if not isinstance(pipeline.rounding, Absolute):
        return pipeline
    rounding = Absolute(stored_bound(packing, pipeline.rounding.bound, str(pipeline.rounding)))
    return Pipeline((rounding, *pipeline.stages))


def units_note(requested: Pipeline, stored: Pipeline, packing: meaning.Packing | None) -> tuple[str, ...]:
    """Return a note about an accuracy that was converted for packed values; empty if it was not."""
    if packing is None or requested == stored:
        return ()
    if requested.rounding is not None:
        return (f"packed by {packing}: {requested.rounding} in its units is {stored.rounding} of the stored values",)
    if requested.zfp is None or stored.zfp is None:
        return ()
    return (f"packed by {packing}: {requested.zfp.setting} of its units is {stored.zfp.setting} of the stored values",)


def stored_bound(packing: meaning.Packing, bound: float, setting: str) -> float:
    """Convert the error of a setting from units of the variable to stored units."""
    try:
        return packing.stored_bound(bound)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {setting} with {packing}: {error}"
        ) from error


def _convert(stage: Stage, packing: meaning.Packing, dtype: np.dtype[Any]) -> Stage:
    zfp = stage.filter
    if not isinstance(zfp, Zfp) or (zfp.bound is None and not isinstance(zfp.mode, Accuracy)):
        return stage
    size, requested = abs(packing.scale), zfp.error_bound or 0.0
    bound = stored_bound(packing, requested, zfp.setting)
    if dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {zfp.setting}, which is {requested:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps no "
            f"accuracy below 1: use reversible=True, or lossless filters"
        )
    filter_ = Zfp(accuracy=bound) if zfp.bound is None else Zfp(bound=bound)
    return replace(stage, filter=filter_, stored=None)
