"""Random access to fixed-rate streams, where every block of 4 values along each axis has the same number of bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.zfp.header import BLOCK_SIDE, Bytes, refuse

if TYPE_CHECKING:
    from tamis.zfp.modes import Mode

_CALL_NVALUES = 1000
"""Cost of one more call, as a number of decoded values."""


class Run(NamedTuple):
    """Consecutive blocks of the stream that fill a box of the array."""

    first: int  # Number of the first block
    nblocks: int
    where: tuple[slice, ...]


def block_nbits(mode: Mode, dtype: np.dtype[Any], rank: int) -> int | None:
    """Return the bits of each block; None if blocks differ."""
    params = mode.params(dtype, rank)
    return params.maxbits if params.minbits == params.maxbits else None


def block_count(shape: tuple[int, ...]) -> int:
    """Return the number of blocks of an array."""
    return math.prod(_counts(shape))


def touched(index: Sequence[Any], shape: tuple[int, ...]) -> list[Run] | None:
    """Return the blocks that hold selected values of an array."""
    points = len(index) > 1 and not any(isinstance(axis_index, slice) for axis_index in index)
    runs = _runs_of_points(index, shape) if points else _runs_of_axes(index, shape)
    all_nvalues = block_count(shape) * BLOCK_SIDE ** len(shape)
    runs_to_decode, work = [], 0
    for run in runs:
        work += run.nblocks * BLOCK_SIDE ** len(shape) + _CALL_NVALUES
        if work >= all_nvalues + _CALL_NVALUES:
            return None
        runs_to_decode.append(run)
    return None if sum(run.nblocks for run in runs_to_decode) == block_count(shape) else runs_to_decode


def nbytes_of(runs: Sequence[Run], nbits: int) -> tuple[int, int]:
    """Return start and stop, in bytes of the stream, of the blocks of all runs."""
    last = runs[-1]
    return runs[0].first * nbits // 8, -(-(last.first + last.nblocks) * nbits // 8)


def decode_blocks(
    buffer: Bytes, offset: int, runs: Sequence[Run], out: NDArray[Any], mode: Mode, nbits: int
) -> NDArray[Any]:
    """Decode blocks of a fixed-rate stream into an array."""
    params = mode.params(out.dtype, out.ndim)
    for run in runs:
        box = out[run.where]
        end = _native.decode(buffer, box, params, run.first * nbits - 8 * offset)
        if not isinstance(end, int):
            refuse(end, out.dtype, box.shape, mode)
    return out


def _counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-extent // BLOCK_SIDE) for extent in shape)


def _box(first: int, last: int, extent: int) -> slice:
    return slice(BLOCK_SIDE * first, min(BLOCK_SIDE * last, extent))


def _runs_of_axes(index: Sequence[Any], shape: tuple[int, ...]) -> Iterator[Run]:
    counts = _counts(shape)
    ranges = [_ranges(axis_index) for axis_index in index]
    axis = len(shape) - 1  # the axis of the runs: all blocks along the faster axes are selected
    while axis and ranges[axis] == [(0, counts[axis])]:
        axis -= 1
    blocks_per_step = math.prod(counts[axis + 1 :])
    rest = tuple(slice(0, extent) for extent in shape[axis + 1 :])
    before = [
        list(itertools.chain.from_iterable(itertools.starmap(range, axis_ranges))) for axis_ranges in ranges[:axis]
    ]
    for coordinates in itertools.product(*before):
        row = 0
        for coordinate, count in zip(coordinates, counts, strict=False):
            row = row * count + coordinate
        boxes = tuple(
            _box(coordinate, coordinate + 1, extent) for coordinate, extent in zip(coordinates, shape, strict=False)
        )
        for first, last in ranges[axis]:
            yield Run(
                (row * counts[axis] + first) * blocks_per_step,
                (last - first) * blocks_per_step,
                (*boxes, _box(first, last, shape[axis]), *rest),
            )


def _ranges(index: Any) -> list[tuple[int, int]]:
    """Return the selected blocks along an axis, as separate ranges."""
    if isinstance(index, slice):
        if index.step <= BLOCK_SIDE:
            return [(index.start // BLOCK_SIDE, (index.stop - 1) // BLOCK_SIDE + 1)]
        index = np.arange(index.start, index.stop, index.step)
    blocks = np.unique(index // BLOCK_SIDE)
    ends = np.flatnonzero(np.diff(blocks) != 1)
    firsts, lasts = blocks[np.r_[0, ends + 1]], blocks[np.r_[ends, len(blocks) - 1]]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def _runs_of_points(coordinates: Sequence[NDArray[np.intp]], shape: tuple[int, ...]) -> Iterator[Run]:
    counts = _counts(shape)
    numbers = np.unique(np.ravel_multi_index(tuple(axis_values // BLOCK_SIDE for axis_values in coordinates), counts))
    for number in numbers.tolist():
        block = [int(coordinate) for coordinate in np.unravel_index(number, counts)]
        boxes = tuple(_box(first, first + 1, extent) for first, extent in zip(block, shape, strict=True))
        yield Run(number, 1, boxes)
