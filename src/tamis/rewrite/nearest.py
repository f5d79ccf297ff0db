"""Filters for an array whose own ones the target's format lacks: those that make a sample of chunks smallest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import TamisError
from tamis.formatting import change_text
from tamis.pipeline import Pipeline
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.plan import Recode

if TYPE_CHECKING:
    from tamis.stores.protocols import StoredArray

_SAMPLES = 4


def nearest_plan(
    array: StoredArray, dtype: np.dtype[Any], chunk_shape: tuple[int, ...], candidates: Sequence[str]
) -> Recode:
    """Return how an array is stored without loss by the candidate that makes a sample of its chunks smallest.

    The sample has chunks at equal distances. Of candidates that are equally small, the first is taken: the choice
    depends on the values alone.
    """
    plans = [
        Recode(array.path, pipeline, dtype, chunk_shape)
        for pipeline in map(Pipeline.parse, candidates)
        if not any(member.unencodable() for member in pipeline.filters)
    ]
    parts = plans[0].parts(array)
    sample = parts[:: -(-len(parts) // _SAMPLES)] if len(parts) else parts
    sizes = dict.fromkeys(range(len(plans)), 0)
    with closing(array.open_reader()) as reader:
        for part in sample:
            values = reader.read(part).astype(dtype, copy=False)
            for number in list(sizes):
                try:
                    sizes[number] += len(make_chunk(plans[number], part, values).data)
                except TamisError:  # it does not take such values
                    del sizes[number]
    return plans[min(sizes, key=lambda number: sizes[number])]


def nearest_text(path: str, array: StoredArray, pipeline: Pipeline, nbytes: int, label: str) -> str:
    """Return the note that an array got other filters, with its sizes before and after."""
    before = "|".join(map(str, array.storage.pipeline.filters))
    after = "|".join(map(str, pipeline.filters))
    sizes = change_text(array.stored_nbytes, nbytes)
    return f"{path}: {before} became {after}, which all readers of {label} have: {sizes}"
