"""How an array that no recipe changes is stored in Zarr."""

from __future__ import annotations

import numpy as np

from tamis.chunks.grid import default_chunks
from tamis.errors import FileError
from tamis.filters import Deflate, Filter, Shuffle
from tamis.pipeline import Pipeline
from tamis.rewrite.growth import compresses
from tamis.rewrite.plan import Plan
from tamis.rewrite.streams import as_stored, masks_of
from tamis.store.array import StoredArray
from tamis.zarr.references.codec_choice import choose_codecs

_LEVEL = 4


def kept_plan(array: StoredArray) -> Plan:
    """Return how an array is stored without a recipe.

    Chunks stay as they are if every reader of Zarr has codecs for them, and also if filters were lossy: their values
    would take more room otherwise. Other filters are replaced by shuffle and deflate, and other values get chunks.
    """
    carried = as_stored(array)
    if carried is not None:
        codecs = choose_codecs(carried.pipeline, array.chunk, dict.fromkeys(masks_of(array), 1))
        if codecs.masked is None or carried.pipeline.error_bound != 0:
            return carried
    if array.dtype is None:
        raise FileError(f"{array.label}: expected numbers, characters or text, got {array.type_text}").at(
            dataset=array.path
        )
    chunk_shape = array.chunk_shape or default_chunks(array.shape, array.dtype.itemsize, zfp=False)
    filters: list[Filter] = []
    if compresses(array.pipeline):
        filters = [*([Shuffle()] if array.dtype.itemsize > 1 else ()), Deflate(_LEVEL)]
    return Plan(array.path, Pipeline(filters), np.dtype(array.dtype), chunk_shape)
