"""Filters and bounds in units of a variable, for values that are stored packed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.errors import ParameterError
from tamis.filters import Stage, Zfp
from tamis.pipeline import Pipeline
from tamis.rounding import Absolute

if TYPE_CHECKING:
    import numpy as np

    from tamis.meaning import Packing


def in_stored_units(pipeline: Pipeline, packing: Packing | None, dtype: np.dtype[Any]) -> Pipeline:
    """Return filters with the accuracy of zfp, or the bound of a rounding, divided by ``scale_factor``."""
    if packing is None or abs(packing.scale) == 1:
        return pipeline
    if pipeline.rounding is None:
        return Pipeline(_convert(stage, packing, dtype) for stage in pipeline.stages)
    if not isinstance(pipeline.rounding, Absolute):
        return pipeline
    if dtype.kind in "iu":
        raise ParameterError(
            f"expected float32 or float64 for {pipeline.rounding}, got {dtype} with {packing}, which cannot be rounded:"
            f" pack it anew, pack(bound={pipeline.rounding.bound:g}), or use lossless filters"
        ).at(filter=pipeline.rounding)
    rounding = Absolute(stored_bound(packing, pipeline.rounding.bound, str(pipeline.rounding)))
    return Pipeline((rounding, *pipeline.stages))


def units_note(requested: Pipeline, stored: Pipeline, packing: Packing | None) -> tuple[str, ...]:
    """Return a note about an accuracy that was converted for packed values; empty if it was not."""
    if packing is None or requested == stored:
        return ()
    if requested.rounding is not None:
        return (f"packed by {packing}: {requested.rounding} in its units is {stored.rounding} of the stored values",)
    if requested.bounded is None or stored.bounded is None:
        return ()
    before, after = requested.bounded.setting, stored.bounded.setting
    return (f"packed by {packing}: {before} of its units is {after} of the stored values",)


def stored_bound(packing: Packing, bound: float, setting: str) -> float:
    """Convert the error of a setting from units of the variable to stored units."""
    try:
        return packing.stored_bound(bound)
    except OverflowError as error:
        raise ParameterError(
            f"expected an accuracy of packed values that a float can hold, got {setting} with {packing}: {error}"
        ) from error


def _convert(stage: Stage, packing: Packing, dtype: np.dtype[Any]) -> Stage:
    item, requested = stage.filter, stage.filter.error_bound
    if not item.bounds_errors or not requested:
        return stage
    size = abs(packing.scale)
    bound = stored_bound(packing, requested, item.setting)
    if isinstance(item, Zfp) and dtype.kind == "i" and bound < 1:
        raise ParameterError(
            f"expected an accuracy of {size:g} or more, since its values are stored as {dtype} with {packing}, got"
            f" {item.setting}, which is {requested:g} / {size:g} = {bound:g} of the stored integers, and zfp keeps no "
            f"accuracy below 1: pack it anew, pack(bound={requested:g}), or use reversible=True, or lossless filters"
        )
    return replace(stage, filter=item.with_error(bound), stored=None)
