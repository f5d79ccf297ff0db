"""Chunk shapes that let zfp store more values when missing values are next to valid ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import whole
from tamis.rewrite.growth import RECORD_NBYTES
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.rewrite.rewrite import Rewrite
    from tamis.stores.protocols import StoredArray

_SAMPLE_NBYTES = 4 << 20
_SIDES = (64, 32, 16, 8)
_CHUNK_SIZE = 16384

# Roughly, the stored bytes for one byte of values, without zfp and with it.
_LOSSLESS, _LOSSY = 0.75, 0.15
# A shape is far better if both costs fall below this fraction of the present ones.
_WORTH_IT = 0.85


def better_chunks(plan: Rewrite, source: StoredArray) -> tuple[tuple[int, ...], float] | None:
    """Return a chunk shape in which far fewer values are stored without zfp, judged by a sample of the values."""
    box = _sample(source.shape, plan.dtype.itemsize)
    with closing(source.open_reader()) as reader:
        data = reader.read(whole(box)).astype(plan.dtype, copy=False)
    missing = plan.missing.find(data)
    if missing is None:
        return None
    refused = ~np.isfinite(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)

    def cost(chunk_shape: tuple[int, ...]) -> tuple[float, float]:
        fraction = _fraction_without_zfp(missing, refused, chunk_shape)
        per_value = RECORD_NBYTES / (math.prod(chunk_shape) * plan.dtype.itemsize)
        return fraction * _LOSSLESS + (1 - fraction) * _LOSSY + per_value, fraction

    present_cost, present_fraction = cost(plan.chunk_shape)
    best = min(((*cost(shape), shape) for shape in _candidates(source.shape)), default=None)
    if best is not None and best[0] < _WORTH_IT * present_cost and best[1] < _WORTH_IT * present_fraction:
        return best[2], best[1]
    return None


def _sample(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """Return the extents of a sample at the beginning of the array, cut along the slowest axes first."""
    box = list(shape)
    for axis in range(len(box)):
        others = math.prod(box) // box[axis] * itemsize
        if math.prod(box) * itemsize > _SAMPLE_NBYTES:
            box[axis] = min(box[axis], max(BLOCK_SIDE, _SAMPLE_NBYTES // others // BLOCK_SIDE * BLOCK_SIDE))
    return box


def _candidates(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    longer = [axis for axis, extent in enumerate(shape) if extent >= BLOCK_SIDE]
    for side in _SIDES:
        chunk_shape = [1] * len(shape)
        for axis in longer[-2:]:
            chunk_shape[axis] = min(side, shape[axis])
        for axis in longer[-3:-2]:
            room = _CHUNK_SIZE // math.prod(chunk_shape) // BLOCK_SIDE * BLOCK_SIDE
            chunk_shape[axis] = min(shape[axis], max(BLOCK_SIDE, room))
        if longer:
            yield tuple(chunk_shape)


def _fraction_without_zfp(
    missing: NDArray[np.bool_], refused: NDArray[np.bool_], chunk_shape: tuple[int, ...]
) -> float:
    """Return the fraction of values in chunks with a block that mixes missing and valid values, or a refused value."""
    missing_counts = missing.astype(np.int64)
    any_refused = refused
    sizes = np.ones((1,) * missing.ndim, np.int64)
    for axis, step in enumerate(chunk_shape):
        # Each chunk begins with a new block; a block cut by an edge is padded with similar values.
        starts = _block_starts(missing.shape[axis], step)
        missing_counts = np.add.reduceat(missing_counts, starts, axis)
        any_refused = np.logical_or.reduceat(any_refused, starts, axis)
        extents = np.diff([*starts, missing.shape[axis]])
        sizes = sizes * np.expand_dims(extents, [other for other in range(missing.ndim) if other != axis])
    mixed: Any = (missing_counts > 0) & (missing_counts < sizes) | any_refused
    counts: Any = sizes
    for axis, step in enumerate(chunk_shape):
        starts = _block_starts(missing.shape[axis], step)
        firsts = np.flatnonzero(np.asarray(starts) % step == 0)
        mixed = np.logical_or.reduceat(mixed, firsts, axis)
        counts = np.add.reduceat(counts, firsts, axis)
    return float(counts[mixed].sum() / counts.sum())


def _block_starts(extent: int, step: int) -> list[int]:
    return [at + block for at in range(0, extent, step) for block in range(0, min(step, extent - at), BLOCK_SIDE)]
