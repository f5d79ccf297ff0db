"""Check that the stored parameters of zfp fit their dataset."""

from __future__ import annotations

import math

from tamis.filters import StoredZfp, UnknownFilter, Zfp
from tamis.filters.zfp import is_stored
from tamis.pipeline import Pipeline


def zfp_problem(pipeline: Pipeline, chunk_nbytes: int) -> str:
    """Return how the stored parameters of zfp contradict the dataset; empty if they do not."""
    for stage in pipeline.stages:
        if stage.filter.id != Zfp.id:
            continue
        if isinstance(stage.filter, UnknownFilter):
            return stage.filter.reason
        if is_stored(stage.stored or ()):
            stored = StoredZfp.parse(stage.stored or ())
            described = math.prod(stored.shape) * stored.dtype.itemsize
            if described != chunk_nbytes:
                return (
                    f"damaged: its ZFP parameters describe chunks of {described} bytes, its chunks have {chunk_nbytes}"
                )
    return ""
