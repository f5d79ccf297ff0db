"""Filters whose tolerance is given in the units of a variable, and that work on its packed values."""

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
        As it was asked for. Parameters of other filters and modes are about stored values.
    packing
        Of the variable; None where its values are stored as they are.
    dtype
        Of the stored values.

    Raises
    ------
    ParameterError
        If stored values cannot have such an accuracy.
    """
    if packing is None or abs(packing.scale) == 1:
        return pipeline
    return Pipeline(_converted(each, packing, dtype) for each in pipeline.stages)


def units_note(asked: Pipeline, stored: Pipeline, packing: cf.Packing | None) -> tuple[str, ...]:
    """Say what an accuracy became for packed values; nothing where it stayed what it was."""
    if packing is None or asked == stored or asked.zfp is None or stored.zfp is None:
        return ()
    return (f"packed by {packing}: {asked.zfp.mode} of its units is {stored.zfp.mode} of the stored values",)


def _converted(stage: Stage, packing: cf.Packing, dtype: np.dtype[Any]) -> Stage:
    mode = stage.filter.mode if isinstance(stage.filter, Zfp) else None
    if not isinstance(mode, Accuracy):
        return stage
    size = abs(packing.scale)
    try:
        bound = packing.stored_bound(mode.tolerance)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {mode} with {packing}: {error}"
        ) from error
    if dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {mode}, which is {mode.tolerance:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps none"
            " below 1: use reversible=True, or lossless filters"
        )
    return replace(stage, filter=Zfp(accuracy=bound), stored=None)
