"""Datasets whose chunks can be copied as they are stored, since nothing about them changes."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from tamis.errors import TamisError
from tamis.filters import ChunkType, Filter, Stage
from tamis.hdf5.facts import datatype_of, layout_plist
from tamis.hdf5.lib import calls
from tamis.hdf5.storage import pipeline_of, stored_type
from tamis.pipeline import Pipeline


def stored_so(dataset: h5py.Dataset, pipeline: Pipeline, dtype: np.dtype[Any], chunks: tuple[int, ...]) -> bool:
    """Whether a dataset is stored in such chunks of such values, through filters with these parameters.

    A flag counts where it is not the one that the filter has by itself.
    """
    if dataset.chunks != chunks or stored_type(dataset) != dtype or datatype_of(dataset).committed():
        return False
    found = pipeline_of(dataset)
    if len(found.stages) != len(pipeline.stages) or not calls.filters_partial_chunks(layout_plist(dataset)):
        return False
    chunk = ChunkType(dtype, chunks)
    return all(_same(*each, chunk) for each in zip(pipeline.stages, found.stages, strict=True))


def stored_alike(dataset: h5py.Dataset, other: h5py.Dataset) -> bool:
    """Return whether two datasets have the same type, chunks and filters."""
    return (stored_type(dataset), dataset.chunks, pipeline_of(dataset)) == (
        stored_type(other),
        other.chunks,
        pipeline_of(other),
    )


def _same(wanted: Stage, found: Stage, chunk: ChunkType) -> bool:
    if wanted.optional not in (wanted.filter.optional, found.optional) or wanted.filter.id != found.filter.id:
        return False
    try:
        return wanted.filter == found.filter or _as_stored(wanted.filter, chunk) == found.filter
    except TamisError:
        return False


def _as_stored(wanted: Filter, chunk: ChunkType) -> Filter:
    """Read back what the filter would leave in the file: a tolerance is rounded there."""
    return type(wanted).from_values(wanted.stored(chunk))
