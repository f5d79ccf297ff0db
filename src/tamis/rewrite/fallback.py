"""The filters of a pipeline that are for chunks without the first one, and the pipeline of all other chunks."""

from __future__ import annotations

from functools import lru_cache

from tamis.filters import Bitshuffle, Filter, Shuffle
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import idle_types


def shorter_pipeline(pipeline: Pipeline) -> Pipeline | None:
    """Return the filters of chunks that go through the first one, without those for other chunks; None if all are."""
    for item in pipeline.filters[1:]:  # most pipelines have no shuffle behind another filter, and need no look-up
        if item.__class__ in (Shuffle, Bitshuffle):
            return _without_fallback(pipeline)
    return None


@lru_cache(maxsize=64)  # many arrays have the same pipeline
def _without_fallback(pipeline: Pipeline) -> Pipeline | None:
    idle = fallback_types(pipeline)
    stages = (stage for stage in pipeline.stages if type(stage.filter) not in idle)
    return Pipeline(stages, bound=pipeline.bound) if idle else None


@lru_cache(maxsize=64)
def fallback_mask(pipeline: Pipeline) -> int:
    """Return the filter mask of chunks that go through the first filter, and skip those that are for other chunks."""
    idle = fallback_types(pipeline)
    return sum(1 << at for at, item in enumerate(pipeline.filters) if type(item) in idle)


def fallback_text(pipeline: Pipeline) -> str:
    """Return the filters for chunks that skip the first one, as text; empty if there are none."""
    idle = fallback_types(pipeline)
    return str(Pipeline(stage for stage in pipeline.stages if type(stage.filter) in idle)) if idle else ""


def fallback_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    """Return the filters that only chunks without the first one go through."""
    return idle_types(pipeline) if pipeline.stages and pipeline.filters[0].needs_values else ()
