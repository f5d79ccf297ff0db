"""The filters that a file has for a variable, compared with those that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis import meaning
from tamis.errors import ParameterError, TamisError
from tamis.filters import Fletcher32
from tamis.filters.registry import Stage
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import fallback_types
from tamis.rounding import recorded_rounding
from tamis.xarray.existing import Existing

if TYPE_CHECKING:
    pass


def is_stored_by(found: Existing, asked: Pipeline) -> bool:
    """Return whether the file stores a variable by filters that are asked for, apart from checksums.

    Filters behind zfp that no chunk needed yet may be absent.
    """
    storage, attributes = found.array.storage, found.array.attributes
    rounding = recorded_rounding(attributes, found.array.type.numbers)
    if asked.rounding is not None and (
        rounding is None or (type(asked.rounding), asked.rounding.number) != (type(rounding), rounding.number)
    ):
        return False
    own, new = (
        [stage for stage in item.stages if not isinstance(stage.filter, Fletcher32)]
        for item in (storage.pipeline, asked)
    )
    if len(own) != len(new):
        idle = fallback_types(asked)
        own, new = ([stage for stage in stages if type(stage.filter) not in idle] for stages in (own, new))
    bound = meaning.asked_bound(found.array.attributes)
    if asked.bound is not None or any(item.open_bound is not None for item in asked.filters):
        bounds = [asked.bound, *(item.open_bound for item in asked.filters)]
        return (
            bound in bounds
            and bound is not None
            and [type(stage.filter) for stage in own] == [type(stage.filter) for stage in new]
        )
    chunk = storage.chunk
    return len(own) == len(new) and all(
        before.filter == after.filter or _recorded(after, chunk) == before.filter
        for before, after in zip(own, new, strict=True)
    )


def lacks_loss(found: Existing, asked: Pipeline) -> bool:
    """Return whether a file stores a variable by the filters that are asked for, except the lossy ones.

    So does a Zarr store that was made by these filters, as long as each chunk had to be stored without loss.
    """
    if found.array.storage.pipeline.error_bound != 0 or asked.bounded is None:
        return False
    return is_stored_by(found, Pipeline(stage for stage in asked.stages if stage.filter.error_bound == 0))


def _recorded(stage: Stage, chunk: Any) -> object:
    """Return a filter as a file has it, which rounds a tolerance; None if it is not for such chunks."""
    try:
        return type(stage.filter).from_values(stage.filter.stored(chunk))
    except TamisError:
        return None


def other_filters(found: Existing, asked: Pipeline) -> ParameterError:
    """Return the error about filters that a file does not have for a variable."""
    return ParameterError(
        f"{found.path}: expected the filters that it has in the file, {found.array.storage.pipeline}, got {asked}:"
        " leave out its recipe, or write the file anew with other filters (tamis repack)"
    ).at(dataset=found.path)
