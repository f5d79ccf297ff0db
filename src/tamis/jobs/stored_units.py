"""Convert tolerances from the units of a variable to its packed values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tamis import cf
from tamis.errors import ParameterError
from tamis.filters import Stage, Zfp
from tamis.pipeline import Pipeline
from tamis.zfp import Accuracy


def in_stored_units(pipeline: Pipeline, packing: cf.Packing | None, dtype: np.dtype[Any]) -> Pipeline:
    """Return filters with the accuracy of zfp divided by ``scale_factor``, so that unpacked values keep it.

    Parameters
    ----------
    pipeline
        Filters as requested. Parameters of other filters and modes, and of roundings, always mean stored values.
    packing
        Packing of the variable; None if its values are not packed.
    dtype
        Type of the stored values.

    Raises
    ------
    ParameterError
        If stored values cannot have such an accuracy.
    """
    if packing is None or abs(packing.scale) == 1 or pipeline.rounding is not None:
        return pipeline
    return Pipeline(_convert(stage, packing, dtype) for stage in pipeline.stages)


def units_note(requested: Pipeline, stored: Pipeline, packing: cf.Packing | None) -> tuple[str, ...]:
    """Return a note about an accuracy that was converted for packed values; empty if it was not."""
    if packing is None or requested == stored or requested.zfp is None or stored.zfp is None:
        return ()
    return (f"packed by {packing}: {requested.zfp.setting} of its units is {stored.zfp.setting} of the stored values",)


def _convert(stage: Stage, packing: cf.Packing, dtype: np.dtype[Any]) -> Stage:
    zfp = stage.filter
    if not isinstance(zfp, Zfp) or (zfp.bound is None and not isinstance(zfp.mode, Accuracy)):
        return stage
    size, requested = abs(packing.scale), zfp.error_bound or 0.0
    try:
        bound = packing.stored_bound(requested)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {zfp.setting} with {packing}: {error}"
        ) from error
    if dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {zfp.setting}, which is {requested:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps none"
            " below 1: use reversible=True, or lossless filters"
        )
    filter_ = Zfp(accuracy=bound) if zfp.bound is None else Zfp(bound=bound)
    return replace(stage, filter=filter_, stored=None)
