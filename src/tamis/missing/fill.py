"""Gaps that missing values leave, filled from beside them so that a codec of blocks keeps what is valid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.zfp.checks import BLOCK_SIDE, MAX_RANK

_NO_VALUE = (1 << BLOCK_SIDE) - 1
_FOUR_GAPS = 0x01010101


def _nearest(gaps: int) -> list[int]:
    """For each of the four values of a line, the next one that is no gap; bit i of `gaps` says that value i is one."""
    valid = [i for i in range(BLOCK_SIDE) if not gaps >> i & 1]
    return [min(valid, key=lambda other: abs(other - i), default=i) for i in range(BLOCK_SIDE)]


_NEAREST = np.array([_nearest(gaps) for gaps in range(1 << BLOCK_SIDE)])


def fill_gaps(values: NDArray[Any], gaps: NDArray[np.bool_], chunk: tuple[int, ...]) -> NDArray[Any]:
    """Return values whose gaps are filled.

    In a block of 4^d with valid values, each gap takes the nearest of them along the second axis, then the third, …,
    and then the slowest one, which is mostly time: coasts do not move. Blocks without any take one value of the chunk,
    so that they cost next to nothing, and 0 where the chunk has none. Nothing is computed, only copied, so that any
    type will do.

    Parameters
    ----------
    values
        The part of a chunk that lies in the array, from the chunk's first value on.
    gaps
        Where a value is missing.
    chunk
        Shape of the whole chunk; axes of 1 are none for the blocks.
    """
    if not gaps.any():
        return values
    inner = np.flatnonzero(~gaps)
    shape = tuple(extent for extent, step in zip(values.shape, chunk, strict=True) if step > 1)
    filled = np.where(gaps, values.reshape(-1)[inner[inner.size // 2]] if inner.size else values.dtype.type(0), values)
    if inner.size and 0 < len(shape) <= MAX_RANK:
        _fill_blocks(filled.reshape(shape), gaps.reshape(shape))
    return filled


def _fill_blocks(values: NDArray[Any], gaps: NDArray[np.bool_]) -> None:
    """Fill the blocks that have both, in place."""
    cut = [-extent % BLOCK_SIDE for extent in values.shape]
    whole = [np.pad(each, [(0, n) for n in cut], mode="edge") if any(cut) else each for each in (values, gaps)]
    # (blocks, 4) for each axis
    split = list(itertools.chain.from_iterable((extent // BLOCK_SIDE, BLOCK_SIDE) for extent in whole[0].shape))
    blocks, holes = (each.reshape(split) for each in whole)
    mixed = np.nonzero(_mixed(np.ascontiguousarray(holes)))
    if not mixed[0].size:
        return
    # A place for each block, and all of its values: numpy puts the places first.
    at: Any = tuple(itertools.chain.from_iterable((each, slice(None)) for each in mixed))
    blocks[at] = _flow(blocks[at], holes[at])
    if any(cut):
        values[...] = whole[0][tuple(slice(extent) for extent in values.shape)]


def _mixed(holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks have both gaps and valid values."""
    any_gap = all_gaps = holes.view("u4")[..., 0]  # the four of a line at once
    for axis in range(holes.ndim - 3, 0, -2):
        any_gap, all_gaps = np.bitwise_or.reduce(any_gap, axis), np.bitwise_and.reduce(all_gaps, axis)
    mixed: NDArray[np.bool_] = (any_gap != 0) & (all_gaps != _FOUR_GAPS)
    return mixed


def _flow(blocks: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Fill blocks, whose number is the first axis, along one axis after the other."""
    rank = blocks.ndim - 1
    for axis in (*range(2, rank + 1), 1):
        lines = np.moveaxis(gaps, axis, 0).view(np.uint8)
        found = lines[0] | lines[1] << 1 | lines[2] << 2 | lines[3] << 3
        source = np.moveaxis(_NEAREST[found], -1, axis)
        blocks = np.take_along_axis(blocks, source, axis)
        gaps = np.broadcast_to(np.expand_dims(found == _NO_VALUE, axis), gaps.shape)
    return blocks
