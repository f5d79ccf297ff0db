"""The rounding that the values of a source still need, by its attributes."""

from __future__ import annotations

from tamis.accuracy.rounded import ArrayRounding
from tamis.pipeline import Pipeline
from tamis.rounding import recorded_rounding, still_needed
from tamis.store.array import StoredArray


def needed_rounding(source: StoredArray, pipeline: Pipeline) -> tuple[ArrayRounding | None, list[str]]:
    """Return the rounding that a pipeline asks for, None if there is none or the values have it; and notes.

    Raises
    ------
    ParameterError
        If the values are rounded otherwise.
    """
    if pipeline.rounding is None:
        before = recorded_rounding(source.attributes, source.number_type)
        lossy = before is not None and pipeline.error_bound != 0
        return None, [f"its values were rounded by {before} before: the new error adds to the old"] * lossy
    rounding = still_needed(pipeline.rounding, source.attributes)
    if rounding is None:
        return None, [f"its values are rounded by {pipeline.rounding} already, and are not rounded again"]
    offset = source.packing is not None and source.packing.offset != 0
    notes = [f"packed by {source.packing}: errors of the rounding are relative to the stored values"] * offset
    return ArrayRounding(rounding, source.shape), notes
