"""Convert tolerances from the units of a variable to its packed values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tamis import cf
from tamis.errors import ParameterError
from tamis.filters import Stage, Zfp
from tamis.pipeline import Pipeline
from tamis.rounding import Absolute
from tamis.zfp import Accuracy


def in_stored_units(pipeline: Pipeline, packing: cf.Packing | None, dtype: np.dtype[Any]) -> Pipeline:
    """Return filters whose accuracy of zfp, or bound of a rounding, is divided by ``scale_factor`` for stored values.

    Parameters
    ----------
    pipeline
        Filters as requested. Parameters of other filters and modes, and of netCDF's roundings, always mean stored
        values.
    packing
        Packing of the variable; None if its values are not packed.
    dtype
        Type of the stored values.

    Raises
    ------
    ParameterError
        If stored values cannot have such an accuracy.
    """
    if packing is None or abs(packing.scale) == 1:
        return pipeline
    if pipeline.rounding is None:
        return Pipeline(_convert(stage, packing, dtype) for stage in pipeline.stages)
    if not isinstance(pipeline.rounding, Absolute):
        return pipeline
    rounding = Absolute(stored_bound(packing, pipeline.rounding.bound, str(pipeline.rounding)))
    return Pipeline((rounding, *pipeline.stages))


def units_note(requested: Pipeline, stored: Pipeline, packing: cf.Packing | None) -> tuple[str, ...]:
    """Return a note about an accuracy that was converted for packed values; empty if it was not."""
    if packing is None or requested == stored:
        return ()
    if requested.rounding is not None:
        return (f"packed by {packing}: {requested.rounding} in its units is {stored.rounding} of the stored values",)
    if requested.zfp is None or stored.zfp is None:
        return ()
    return (f"packed by {packing}: {requested.zfp.setting} of its units is {stored.zfp.setting} of the stored values",)


def stored_bound(packing: cf.Packing, bound: float, setting: str) -> float:
    """Return an error in units of the variable, which a setting asks for, in stored units.

    Raises
    ------
    ParameterError
        If no float can hold it.
    """
    try:
        return packing.stored_bound(bound)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {setting} with {packing}: {error}"
        ) from error


def _convert(stage: Stage, packing: cf.Packing, dtype: np.dtype[Any]) -> Stage:
    zfp = stage.filter
    if not isinstance(zfp, Zfp) or (zfp.bound is None and not isinstance(zfp.mode, Accuracy)):
        return stage
    size, requested = abs(packing.scale), zfp.error_bound or 0.0
    bound = stored_bound(packing, requested, zfp.setting)
    if dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {zfp.setting}, which is {requested:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps none"
            " below 1: use reversible=True, or lossless filters"
        )
    filter_ = Zfp(accuracy=bound) if zfp.bound is None else Zfp(bound=bound)
    return replace(stage, filter=filter_, stored=None)
