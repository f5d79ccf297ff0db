"""Fixed-rate streams: every block of 4 values along each axis has the same number of bits, and is decoded by itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.zfp.checks import refuse
from tamis.zfp.header import Bytes
from tamis.zfp.modes import Mode

_SIDE = 4
_CALL_NVALUES = 1000
"""Values that are decoded in the time that another call takes."""


class Run(NamedTuple):
    """Blocks that follow each other in the stream and fill a box of the array.

    Parameters
    ----------
    first
        Number of the first block.
    nblocks
        Number of blocks.
    where
        The box.
    """

    first: int
    nblocks: int
    where: tuple[slice, ...]


def block_nbits(mode: Mode, dtype: np.dtype[Any], rank: int) -> int | None:
    """Bits of each block, where all have the same number of them."""
    params = mode.params(dtype, rank)
    return params.maxbits if params.minbits == params.maxbits else None


def block_count(shape: tuple[int, ...]) -> int:
    """Blocks of an array."""
    return math.prod(_counts(shape))


def touched(index: Sequence[Any], shape: tuple[int, ...]) -> list[Run] | None:
    """Find the blocks that hold selected values of an array.

    Parameters
    ----------
    index
        For each axis a slice with start, stop and step, or an array of increasing numbers; where there are arrays only,
        and more than one, they are the coordinates of points.
    shape
        Of the array.

    Returns
    -------
    list of Run or None
        In the order of the stream; None where decoding all of it is no more work.
    """
    points = len(index) > 1 and not any(isinstance(each, slice) for each in index)
    runs = _runs_of_points(index, shape) if points else _runs_of_axes(index, shape)
    all_nvalues = block_count(shape) * _SIDE ** len(shape)
    found, work = [], 0
    for run in runs:
        work += run.nblocks * _SIDE ** len(shape) + _CALL_NVALUES
        if work >= all_nvalues + _CALL_NVALUES:
            return None
        found.append(run)
    return None if sum(run.nblocks for run in found) == block_count(shape) else found


def nbytes_of(runs: Sequence[Run], nbits: int) -> tuple[int, int]:
    """Bytes of the stream that hold the blocks: start and stop."""
    last = runs[-1]
    return runs[0].first * nbits // 8, -(-(last.first + last.nblocks) * nbits // 8)


def decode_blocks(
    buffer: Bytes, offset: int, runs: Sequence[Run], out: NDArray[Any], mode: Mode, nbits: int
) -> NDArray[Any]:
    """Decode some blocks of a fixed-rate stream to their places.

    Parameters
    ----------
    buffer
        Part of the stream that holds them.
    offset
        Where it starts in the stream, in bytes.
    runs
        The blocks.
    out
        The whole array, native and writeable; other blocks are left as they are.
    mode, nbits
        Of the stream; see `block_nbits`.

    Raises
    ------
    StreamError
        If the stream ends before the blocks do.
    """
    params = mode.params(out.dtype, out.ndim)
    for run in runs:
        box = out[run.where]
        end = _native.decode(buffer, box, params, run.first * nbits - 8 * offset)
        if not isinstance(end, int):
            refuse(end, out.dtype, box.shape, mode)
    return out


def _counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-extent // _SIDE) for extent in shape)


def _box(first: int, last: int, extent: int) -> slice:
    return slice(_SIDE * first, min(_SIDE * last, extent))


def _runs_of_axes(index: Sequence[Any], shape: tuple[int, ...]) -> Iterator[Run]:
    counts = _counts(shape)
    ranges = [_ranges(each) for each in index]
    axis = len(shape) - 1  # the one along which runs lie: blocks along those behind it are all touched
    while axis and ranges[axis] == [(0, counts[axis])]:
        axis -= 1
    behind = math.prod(counts[axis + 1 :])
    rest = tuple(slice(0, extent) for extent in shape[axis + 1 :])
    before = [list(itertools.chain.from_iterable(itertools.starmap(range, each))) for each in ranges[:axis]]
    for places in itertools.product(*before):
        row = 0
        for place, count in zip(places, counts, strict=False):
            row = row * count + place
        boxes = tuple(_box(place, place + 1, extent) for place, extent in zip(places, shape, strict=False))
        for first, last in ranges[axis]:
            yield Run(
                (row * counts[axis] + first) * behind,
                (last - first) * behind,
                (*boxes, _box(first, last, shape[axis]), *rest),
            )


def _ranges(index: Any) -> list[tuple[int, int]]:
    """Blocks along an axis, as ranges that do not touch each other."""
    if isinstance(index, slice):
        if index.step <= _SIDE:
            return [(index.start // _SIDE, (index.stop - 1) // _SIDE + 1)]
        index = np.arange(index.start, index.stop, index.step)
    blocks = np.unique(index // _SIDE)
    ends = np.flatnonzero(np.diff(blocks) != 1)
    firsts, lasts = blocks[np.r_[0, ends + 1]], blocks[np.r_[ends, len(blocks) - 1]]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def _runs_of_points(coordinates: Sequence[NDArray[np.intp]], shape: tuple[int, ...]) -> Iterator[Run]:
    counts = _counts(shape)
    numbers = np.unique(np.ravel_multi_index(tuple(each // _SIDE for each in coordinates), counts))
    for number in numbers.tolist():
        places = [int(each) for each in np.unravel_index(number, counts)]
        boxes = tuple(_box(place, place + 1, extent) for place, extent in zip(places, shape, strict=True))
        yield Run(number, 1, boxes)
