"""Fill gaps of missing values from their neighbours, so that a codec of blocks keeps valid values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.zfp.checks import BLOCK_SIDE, MAX_RANK

_NO_VALUE = (1 << BLOCK_SIDE) - 1
_FOUR_GAPS = 0x01010101


def _nearest(gaps: int) -> list[int]:
    """Return the nearest valid value for each of four values of a line; bit i of `gaps` means that i is a gap."""
    valid = [i for i in range(BLOCK_SIDE) if not gaps >> i & 1]
    return [min(valid, key=lambda other: abs(other - i), default=i) for i in range(BLOCK_SIDE)]


_NEAREST = np.array([_nearest(gaps) for gaps in range(1 << BLOCK_SIDE)])


def fill_gaps(values: NDArray[Any], gaps: NDArray[np.bool_], chunk: tuple[int, ...]) -> NDArray[Any]:
    """Return values whose gaps are filled.

    In a block of 4^d with valid values, each gap gets the nearest of them along the second axis, then the third, …, and
    last along the slowest, which is mostly time: coasts do not move. Blocks without valid values get one value of the
    chunk, so that they take almost no space, or 0 if the chunk has none. Values are only copied, never computed, so
    that any type works.

    Parameters
    ----------
    values
        The part of a chunk inside the array, which begins with the chunk's first value.
    gaps
        True for missing values.
    chunk
        Shape of the whole chunk; blocks ignore axes of 1.
    """
    if not gaps.any():
        return values
    valid = np.flatnonzero(~gaps)
    shape = tuple(extent for extent, step in zip(values.shape, chunk, strict=True) if step > 1)
    filled = np.where(gaps, values.reshape(-1)[valid[valid.size // 2]] if valid.size else values.dtype.type(0), values)
    if valid.size and 0 < len(shape) <= MAX_RANK:
        _fill_blocks(filled.reshape(shape), gaps.reshape(shape))
    return filled


def _fill_blocks(values: NDArray[Any], gaps: NDArray[np.bool_]) -> None:
    """Fill blocks with both gaps and valid values, in place."""
    padding = [-extent % BLOCK_SIDE for extent in values.shape]
    padded = [
        np.pad(array, [(0, n) for n in padding], mode="edge") if any(padding) else array for array in (values, gaps)
    ]
    # (blocks, 4) for each axis
    split = list(itertools.chain.from_iterable((extent // BLOCK_SIDE, BLOCK_SIDE) for extent in padded[0].shape))
    blocks, holes = (array.reshape(split) for array in padded)
    mixed = np.nonzero(_mixed(np.ascontiguousarray(holes)))
    if not mixed[0].size:
        return
    # Numbers of the mixed blocks and all their values: numpy puts the axis of the numbers first.
    index: Any = tuple(itertools.chain.from_iterable((numbers, slice(None)) for numbers in mixed))
    blocks[index] = _flow(blocks[index], holes[index])
    if any(padding):
        values[...] = padded[0][tuple(slice(extent) for extent in values.shape)]


def _mixed(holes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks have both gaps and valid values."""
    any_gap = all_gaps = holes.view("u4")[..., 0]  # the four bytes of a line at once
    for axis in range(holes.ndim - 3, 0, -2):
        any_gap, all_gaps = np.bitwise_or.reduce(any_gap, axis), np.bitwise_and.reduce(all_gaps, axis)
    mixed: NDArray[np.bool_] = (any_gap != 0) & (all_gaps != _FOUR_GAPS)
    return mixed


def _flow(blocks: NDArray[Any], gaps: NDArray[np.bool_]) -> NDArray[Any]:
    """Return blocks, numbered along the first axis, filled along one axis after the other."""
    rank = blocks.ndim - 1
    for axis in (*range(2, rank + 1), 1):
        lines = np.moveaxis(gaps, axis, 0).view(np.uint8)
        line_gaps = lines[0] | lines[1] << 1 | lines[2] << 2 | lines[3] << 3
        source = np.moveaxis(_NEAREST[line_gaps], -1, axis)
        blocks = np.take_along_axis(blocks, source, axis)
        gaps = np.broadcast_to(np.expand_dims(line_gaps == _NO_VALUE, axis), gaps.shape)
    return blocks
