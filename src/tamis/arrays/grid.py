"""The grid of chunks of an array, chunk shapes that suit filters and stores, and tables with a row for each chunk."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.zfp import MAX_RANK, max_extent
from tamis.zfp.header import BLOCK_SIDE

Origin = tuple[int, ...]
"""Index of the first value of a chunk."""

Region = tuple[slice, ...]
"""A part of an array: from where to where along each axis, with steps of 1."""

# 1 MiB: large enough for the codec, small enough for a reader's cache.
_CHUNK_NBYTES = 1 << 20

LEAST_CHUNK_NBYTES = 16 << 10
"""Size of the smallest useful chunks: smaller ones cost more in the index and in calls than zfp saves."""

_EVEN_COUNT = 16
"""Limit of chunks along an axis up to which padding of the last one matters."""


def region(origin: tuple[int, ...], shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> Region:
    """Return the region of a chunk, clipped at the end of the array."""
    return tuple(
        slice(start, min(start + step, extent)) for start, step, extent in zip(origin, chunk_shape, shape, strict=True)
    )


def origin_of(part: Region) -> Origin:
    """Return the index of the first value of a region."""
    return tuple([span.start for span in part])  # a list is faster, and this runs for each chunk


def first_element(part: Region) -> Region:
    """Return the region of the first value of a region."""
    return tuple(slice(span.start, span.start + 1) for span in part)


def shape_of(part: Region) -> tuple[int, ...]:
    """Return the extents of a region."""
    return tuple([span.stop - span.start for span in part])


def inner_count(origin: Sequence[int], chunk_shape: Sequence[int], shape: Sequence[int]) -> int:
    """Return the number of elements of a chunk up to its last one inside the array: some programs store no more."""
    last = 0
    for start, step, extent in zip(origin, chunk_shape, shape, strict=True):
        last = last * step + min(step, extent - start) - 1
    return last + 1


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of chunks of an array, numbered from 0 with the last axis fastest."""

    # Shapes of the array and of its chunks, with the same number of axes
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    counts: tuple[int, ...] = field(init=False)  # Number of chunks along each axis

    def __post_init__(self) -> None:
        """Count the chunks."""
        counts = tuple(-(-extent // step) for extent, step in zip(self.shape, self.chunk_shape, strict=True))
        object.__setattr__(self, "counts", counts)

    @property
    def chunk_count(self) -> int:
        """Number of all chunks."""
        return math.prod(self.counts)

    def number_of(self, origin: Sequence[int]) -> int:
        """Return the number of the chunk at an origin."""
        number = 0
        for start, step, count in zip(origin, self.chunk_shape, self.counts, strict=True):
            number = number * count + start // step
        return number

    def origin_of(self, number: int) -> Origin:
        """Return the index of the first value of a chunk."""
        origin = []
        for count, step in zip(reversed(self.counts), reversed(self.chunk_shape), strict=True):
            number, position = divmod(number, count)
            origin.append(position * step)
        return tuple(origin[::-1])

    def region_of(self, number: int) -> Region:
        """Return the region of a chunk, clipped at the end of the array."""
        return region(self.origin_of(number), self.shape, self.chunk_shape)


@lru_cache(maxsize=256)  # shared by most small arrays of a store
def grid_of(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> Grid:
    """Return the grid of an array and its chunks."""
    return Grid(shape, chunk_shape)


def default_chunks(shape: tuple[int, ...], itemsize: int, *, zfp: bool) -> tuple[int, ...]:
    """Return a chunk shape of at most 1 MiB for an array without chunks; the slowest axes are cut first.

    zfp encodes blocks of 4 along at most four axes. So for zfp, extents are whole blocks if the array is longer, and an
    axis that would mostly hold padding is cut into single values: an axis shorter than a block, or the fourth from the
    end if its last block is mostly empty. A small array is one chunk.
    """
    chunks = [max(extent, 1) for extent in shape]
    if zfp:
        chunks = _without_padding(chunks, itemsize)
    longer = [axis for axis, extent in enumerate(chunks) if extent > 1]
    least = BLOCK_SIDE if len(longer) <= MAX_RANK else 1
    for axis in longer if zfp else ():
        chunks[axis] = min(chunks[axis], max_extent(len(longer)))
    for axis in longer:
        others = math.prod(chunks) // chunks[axis]
        chunks[axis] = min(chunks[axis], _fitting(shape[axis], others * itemsize, least))
    return tuple(chunks)


LARGE_AXES = 3
"""Axes of `large_chunks`, at most."""

_LARGE_NBYTES = 16 << 20


def large_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return a chunk shape of at most 16 MiB along the last three axes, for filters that gain from large chunks."""
    chunks = [max(extent, 1) for extent in shape]
    longer = [axis for axis, extent in enumerate(chunks) if extent > 1]
    for axis in longer[:-LARGE_AXES]:
        chunks[axis] = 1
    while math.prod(chunks) * itemsize > _LARGE_NBYTES:
        axis = max(range(len(chunks)), key=chunks.__getitem__)
        chunks[axis] = -(-chunks[axis] // 2)
    return tuple(chunks)


OBJECT_NBYTES = 4 << 20, 16 << 20
"""Stored bytes of a chunk that suit object stores, where each request takes long: least and most."""

MOST_OBJECT_VALUES_NBYTES = 64 << 20
"""Most bytes of values of such a chunk, which readers hold in memory."""


def chunks_for_objects(
    shape: tuple[int, ...], chunk_shape: tuple[int, ...], itemsize: int, ratio: float
) -> tuple[int, ...]:
    """Return a chunk shape whose stored bytes suit object stores, if the values have `ratio` times as many bytes.

    There are half as many chunks along the axis that has the most, or twice as many along the axis of the longest
    steps, until they fit. Those of a small array become all of it; chunks have at most 64 MiB of values.
    """
    chunks = list(chunk_shape)
    least, most = OBJECT_NBYTES
    shape = tuple(map(max, shape, chunk_shape))  # an axis that grows may have more in a chunk than it has now

    def divide(axis: int, count: int) -> list[int]:
        """Return the chunk shape with so many chunks along an axis."""
        step = -(-shape[axis] // count)
        if step > BLOCK_SIDE:
            step = min(whole_blocks(step), shape[axis])
        return [step if other == axis else extent for other, extent in enumerate(chunks)]

    while math.prod(chunks) * itemsize > most * ratio and max(chunks) > BLOCK_SIDE:
        axis = max(range(len(chunks)), key=chunks.__getitem__)
        chunks = divide(axis, 2 * -(-shape[axis] // chunks[axis]))
    while math.prod(chunks) * itemsize < least * ratio:
        counts = [-(-extent // step) for extent, step in zip(shape, chunks, strict=True)]
        if max(counts) < 2:
            break
        axis = counts.index(max(counts))
        larger = divide(axis, -(-counts[axis] // 2))
        if math.prod(larger) * itemsize > MOST_OBJECT_VALUES_NBYTES:
            break
        chunks = larger
    return tuple(chunks)


def whole_blocks(extent: int) -> int:
    """Return an extent rounded up to whole blocks of zfp."""
    return -(-extent // BLOCK_SIDE) * BLOCK_SIDE


def zfp_padding(chunk_shape: tuple[int, ...]) -> float:
    """Return the fraction of a chunk encoded by ZFP that is padding to whole blocks along axes longer than 1."""
    return 1 - math.prod(chunk_shape) / math.prod(map(_padded, chunk_shape))


def encoded_extent(extent: int, step: int, growing: bool) -> float:
    """Return how many values ZFP encodes along an axis, for each along the others, in chunks of an extent."""
    values = max(extent, 1)
    # An axis that grows will eventually fill its last chunk.
    count = values / step if growing else -(-values // step)
    return count * _padded(step)


def whole_block_steps(
    shape: tuple[int, ...], chunk_shape: tuple[int, ...], growing: tuple[bool, ...]
) -> tuple[int, ...]:
    """Return the chunk shape near another with which ZFP encodes least for an array; the same one if none is better."""
    return tuple(map(_whole_block_step, shape, chunk_shape, growing))


def _whole_block_step(extent: int, step: int, growing: bool) -> int:
    """Return the extent of chunks along an axis near the present one with which ZFP encodes least."""
    if step == 1 or step % BLOCK_SIDE == 0:
        return step
    steps = [step]
    if growing or whole_blocks(step) <= extent:
        steps.append(whole_blocks(step))
    elif step < BLOCK_SIDE:
        steps.append(1)
    if step > BLOCK_SIDE:
        steps.append(step // BLOCK_SIDE * BLOCK_SIDE)
    # The present one if others save nothing, then the nearest, then the larger.
    return min(steps, key=lambda new: (encoded_extent(extent, new, growing), new != step, abs(new - step), -new))


def _padded(step: int) -> int:
    """Return how many values ZFP encodes along an axis of a chunk; it leaves out axes of one value."""
    return step if step == 1 else whole_blocks(step)


def pads_little(extent: int) -> bool:
    """Return whether padding takes at most a tenth of the blocks along an axis."""
    return 10 * extent >= 9 * whole_blocks(extent)


def _without_padding(extents: list[int], itemsize: int) -> list[int]:
    """Cut into single values the axes that zfp would mostly pad, unless chunks get too small; keep at most four."""
    chunks = [extent if extent >= BLOCK_SIDE else 1 for extent in extents]
    if math.prod(chunks) * itemsize < LEAST_CHUNK_NBYTES:
        chunks = [*extents]
    remaining = [axis for axis, extent in enumerate(chunks) if extent > 1][-MAX_RANK:]
    chunks = [extent if axis in remaining else 1 for axis, extent in enumerate(chunks)]
    if len(remaining) == MAX_RANK and not pads_little(chunks[remaining[0]]):
        shorter = [1 if axis == remaining[0] else extent for axis, extent in enumerate(chunks)]
        if math.prod(shorter) * itemsize >= LEAST_CHUNK_NBYTES:
            return shorter
    return chunks


def _fitting(extent: int, others_nbytes: int, least: int) -> int:
    """Return the extent along an axis that gives a chunk at most 1 MiB, but at least `least`."""
    most = _CHUNK_NBYTES // others_nbytes
    if most >= extent:
        return extent
    if most < BLOCK_SIDE:
        return max(most, least)
    return _even_step(extent, most // BLOCK_SIDE * BLOCK_SIDE)


def _even_step(extent: int, most: int) -> int:
    """Return the extent, in whole blocks of `most` / 2 to `most`, for which chunks reach least beyond the array."""
    count = -(-extent // most)
    if count > _EVEN_COUNT:
        return most
    steps = [min(most, whole_blocks(-(-extent // parts))) for parts in range(count, 2 * count + 1)]
    # Compared in steps of 5 %: smaller gains are not worth smaller chunks.
    return min(steps, key=lambda step: (-(-extent // step) * step * 20 // extent, -step))


class ChunkNotes:
    """A table with the number of a chunk and other numbers in each row; `codes` are their types for `struct`."""

    def __init__(self, codes: str) -> None:
        self._row = struct.Struct(f"=q{codes}")
        self._rows = bytearray()
        self._dtype = np.dtype([(str(at), f"={code}") for at, code in enumerate(f"q{codes}")])

    def add(self, number: int, *values: int) -> None:
        """Add a row for a chunk."""
        self._rows += self._row.pack(number, *values)  # one call, because this runs for each chunk

    def extend(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Add rows for several chunks."""
        pack = self._row.pack
        self._rows += b"".join([pack(*row) for row in rows])

    def __len__(self) -> int:
        return len(self._rows) // self._row.size

    def columns(self) -> list[NDArray[Any]]:
        """Return the columns in the order of chunk numbers; of several rows for a chunk, the last one."""
        rows = np.frombuffer(self._rows, self._dtype)
        columns = [rows[name] for name in self._dtype.names or ()]
        if not (columns[0][1:] > columns[0][:-1]).all():
            _, last = np.unique(columns[0][::-1], return_index=True)
            columns = [column[::-1][last] for column in columns]
        return columns
