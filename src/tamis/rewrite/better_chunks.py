"""Chunk shapes that leave more to zfp where missing values lie beside others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.rewrite.estimate import RECORD_NBYTES
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray
from tamis.zfp.checks import BLOCK_SIDE

_SAMPLE_NBYTES = 4 << 20
_SIDES = (64, 32, 16, 8)
_CHUNK_SIZE = 16384

# What a byte of values becomes, about, without zfp and with it.
_LOSSLESS, _LOSSY = 0.75, 0.15
_WORTH_IT = 0.85


def better_chunks(plan: Plan, source: StoredArray) -> tuple[tuple[int, ...], float] | None:
    """Find a chunk shape in which far fewer values are stored without zfp, by a look at some of them.

    Parameters
    ----------
    plan
        The chunks that were found bad, and what stands for missing values.
    source
        The values.

    Returns
    -------
    tuple of int, float
        The shape, and the fraction of values that would still go without zfp; None if no shape is far better.
    """
    box = _sample(source.shape, plan.dtype.itemsize)
    with closing(source.open_reader()) as values:
        data = values.read(tuple(slice(0, extent) for extent in box)).astype(plan.dtype, copy=False)
    missing = plan.missing.find(data)
    if missing is None:
        return None
    refused = ~np.isfinite(data) if data.dtype.kind == "f" else np.zeros(data.shape, bool)

    def cost(chunks: tuple[int, ...]) -> tuple[float, float]:
        without = _without_zfp(missing, refused, chunks)
        per_value = RECORD_NBYTES / (math.prod(chunks) * plan.dtype.itemsize)
        return without * _LOSSLESS + (1 - without) * _LOSSY + per_value, without

    now, most = cost(plan.chunk_shape)
    found = min(((*cost(each), each) for each in _candidates(source.shape)), default=None)
    better = found is not None and found[0] < _WORTH_IT * now and found[1] < _WORTH_IT * most
    return (found[2], found[1]) if better and found is not None else None


def _sample(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """Extents of a part of the array, from its begin, that is cut along the slowest axes first."""
    box = list(shape)
    for axis in range(len(box)):
        others = math.prod(box) // box[axis] * itemsize
        if math.prod(box) * itemsize > _SAMPLE_NBYTES:
            box[axis] = min(box[axis], max(BLOCK_SIDE, _SAMPLE_NBYTES // others // BLOCK_SIDE * BLOCK_SIDE))
    return box


def _candidates(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    longer = [axis for axis, extent in enumerate(shape) if extent >= BLOCK_SIDE]
    for side in _SIDES:
        chunks = [1] * len(shape)
        for axis in longer[-2:]:
            chunks[axis] = min(side, shape[axis])
        for axis in longer[-3:-2]:
            room = _CHUNK_SIZE // math.prod(chunks) // BLOCK_SIDE * BLOCK_SIDE
            chunks[axis] = min(shape[axis], max(BLOCK_SIDE, room))
        if longer:
            yield tuple(chunks)


def _without_zfp(missing: NDArray[np.bool_], refused: NDArray[np.bool_], chunks: tuple[int, ...]) -> float:
    """Fraction of the values that lie in chunks which zfp cannot keep."""
    bad = missing.astype(np.int64)
    none = refused
    sizes = np.ones((1,) * missing.ndim, np.int64)
    for axis, step in enumerate(chunks):
        # Blocks begin anew in each chunk; one that an edge cuts is filled up with like values.
        starts = _block_starts(missing.shape[axis], step)
        bad = np.add.reduceat(bad, starts, axis)
        none = np.logical_or.reduceat(none, starts, axis)
        extents = np.diff([*starts, missing.shape[axis]])
        sizes = sizes * np.expand_dims(extents, [other for other in range(missing.ndim) if other != axis])
    mixed: Any = (bad > 0) & (bad < sizes) | none
    counts: Any = sizes
    for axis, step in enumerate(chunks):
        starts = _block_starts(missing.shape[axis], step)
        firsts = np.flatnonzero(np.asarray(starts) % step == 0)
        mixed = np.logical_or.reduceat(mixed, firsts, axis)
        counts = np.add.reduceat(counts, firsts, axis)
    return float(counts[mixed].sum() / counts.sum())


def _block_starts(extent: int, step: int) -> list[int]:
    return [at + block for at in range(0, extent, step) for block in range(0, min(step, extent - at), BLOCK_SIDE)]
