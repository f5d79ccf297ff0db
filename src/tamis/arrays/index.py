"""Chunks of a grid as parts of an array, and the chunk index: number, offset, size and filter mask of stored chunks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.grid import Grid, Origin, Region, first_element
from tamis.distinct import distinct
from tamis.errors import FileError

_AT_ONCE = 4096
"""Chunks whose origins are computed at once."""

_FEW = 64
"""Chunks of a small array, whose origins are kept: many arrays have the same grid."""

Numbers = range | NDArray[np.int64]
"""Numbers of chunks in a grid."""


class Parts(Sequence[Region]):
    """Chunks of a grid as parts of an array, in the order of their numbers."""

    __slots__ = ("grid", "numbers")

    def __init__(self, grid: Grid, numbers: Numbers | None = None) -> None:
        self.grid = grid
        self.numbers: Numbers = range(grid.chunk_count) if numbers is None else numbers

    @property
    def are_all(self) -> bool:
        """True if these are all chunks of the grid."""
        return len(self) == self.grid.chunk_count

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Region: ...
    @overload
    def __getitem__(self, index: slice) -> Parts: ...
    def __getitem__(self, index: int | slice) -> Region | Parts:
        if isinstance(index, slice):
            return Parts(self.grid, self.numbers[index])
        return self.grid.region_of(int(self.numbers[index]))

    def __iter__(self) -> Iterator[Region]:
        return map(self.grid.region_of, self._each())

    def origins(self) -> Iterator[Origin]:
        """Yield the origin of each chunk."""
        for begin in range(0, len(self), _AT_ONCE):
            yield from map(tuple, self[begin : begin + _AT_ONCE].origin_table().tolist())

    def numbered(self) -> Iterator[tuple[int, Origin]]:
        """Yield number and origin of each chunk."""
        return zip(self._each(), self.origins(), strict=True)

    def _each(self) -> Iterator[int]:
        if isinstance(self.numbers, range):
            yield from self.numbers
            return
        for begin in range(0, len(self.numbers), _AT_ONCE):
            yield from self.numbers[begin : begin + _AT_ONCE].tolist()

    def origin_table(self) -> NDArray[np.int64]:
        """Return the origins of all parts, one in each row; do not change them."""
        if self.are_all and len(self) <= _FEW:
            return _origins_of_all(self.grid)
        return _origins(self.grid, as_array(self.numbers))

    def absent_sample(self) -> Parts:
        """Return the first part of the grid that is not among these; none if all are."""
        if self.are_all:
            return Parts(self.grid, range(0))
        numbers = as_array(self.numbers)
        gaps = np.flatnonzero(numbers != np.arange(len(numbers)))
        first = int(gaps[0]) if len(gaps) else len(numbers)
        return Parts(self.grid, range(first, first + 1))

    def by_number(self) -> Parts:
        """Return the same chunks in the order of their numbers."""
        return Parts(self.grid, np.sort(as_array(self.numbers)))

    def boxes(self) -> Iterator[Parts]:
        """Yield runs of parts that fill a box of the array without gaps, so that each run can be read at once."""
        counts, numbers = self.grid.counts, as_array(self.numbers)
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            begin, end = int(run[0]), int(run[-1]) + 1
            while begin < end:
                axis, step = len(counts) - 1, 1
                # Whole rows, planes and so on, as long as the run begins with one.
                while axis and begin % (step * counts[axis]) == 0 and step * counts[axis] <= end - begin:
                    axis, step = axis - 1, step * counts[axis]
                count = min((end - begin) // step, counts[axis] - begin // step % counts[axis])
                yield Parts(self.grid, range(begin, begin + count * step))
                begin += count * step

    def without(self, numbers: NDArray[np.int64]) -> Parts:
        """Return these parts without some of them."""
        own = as_array(self.numbers)
        if np.array_equal(own, numbers):
            return Parts(self.grid, range(0))
        return Parts(self.grid, np.setdiff1d(own, numbers, assume_unique=True))

    def touching(self, grid: Grid) -> Parts:
        """Return the parts of another grid that overlap any of these."""
        if grid == self.grid:
            return self
        if self.are_all and all(own >= other for own, other in zip(self.grid.shape, grid.shape, strict=True)):
            return Parts(grid)
        if not len(self):
            return Parts(grid, range(0))
        first, span = self._reach(grid)
        inside = (span > 0).all(axis=0)
        return Parts(grid, _expanded(first[:, inside], span[:, inside], grid.counts))

    def _reach(self, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return first chunk and number of chunks of another grid that each part overlaps, along each axis."""
        starts = np.unravel_index(as_array(self.numbers), self.grid.counts)
        first, span = [], []
        extents = map(min, self.grid.shape, grid.shape)
        for at, own, step, extent in zip(starts, self.grid.chunk_shape, grid.chunk_shape, extents, strict=True):
            begin = at.astype(np.int64) * own
            end = np.minimum(begin + own, extent)
            first.append(begin // step)
            span.append(np.where(begin < end, -(-end // step) - begin // step, 0))
        return np.stack(first), np.stack(span)

    def bounding(self) -> Region:
        """Return the smallest region that contains all parts."""
        if len(self) == 1:
            return self[0]
        places = np.unravel_index(as_array(self.numbers), self.grid.counts)
        axes = zip(places, self.grid.chunk_shape, self.grid.shape, strict=True)
        return tuple(slice(int(at.min()) * step, min((int(at.max()) + 1) * step, extent)) for at, step, extent in axes)

    def grouped(self, shape: tuple[int, ...]) -> Iterator[Parts]:
        """Yield groups of chunks in the same part of `shape`, which is whole chunks, in the order of these parts."""
        factors = [step // own for step, own in zip(shape, self.grid.chunk_shape, strict=True)]
        if isinstance(self.numbers, range) and self.are_all:
            yield from self._grouped_whole(factors)
            return
        numbers = as_array(self.numbers)
        counts = [-(-count // factor) for count, factor in zip(self.grid.counts, factors, strict=True)]
        places = np.unravel_index(numbers, self.grid.counts)
        group = np.ravel_multi_index([at // factor for at, factor in zip(places, factors, strict=True)], counts)
        order = np.argsort(group, kind="stable")
        ends = np.flatnonzero(np.diff(group[order])) + 1
        for members in np.split(order, ends):
            if len(members):
                yield Parts(self.grid, numbers[members])

    def _grouped_whole(self, factors: Sequence[int]) -> Iterator[Parts]:
        """Yield groups of all chunks of the grid, without a list of all numbers."""
        counts = self.grid.counts
        firsts = [range(0, count, factor) for count, factor in zip(counts, factors, strict=True)]
        for begins in itertools.product(*firsts):
            spans = zip(begins, factors, counts, strict=True)
            axes = [np.arange(begin, min(begin + factor, count)) for begin, factor, count in spans]
            yield Parts(self.grid, np.ravel_multi_index(np.ix_(*axes), counts).reshape(-1).astype(np.int64))


def parts_to_compare(first: Parts, second: Parts, equal: Callable[[Region], bool]) -> Parts:
    """Return the parts in which two arrays of one grid can differ: those that either stores, or all parts.

    The parts that neither stores have one value in each array, so one element tells whether they are equal.
    """
    stored = joined(first, second)
    are_equal = all(equal(first_element(part)) for part in stored.absent_sample())
    return stored if are_equal else Parts(stored.grid)


def joined(first: Parts, second: Parts) -> Parts:
    """Return the union of two sets of parts of the same grid."""
    if first.are_all or not len(second):
        return first
    if second.are_all or not len(first):
        return second
    return Parts(first.grid, np.union1d(as_array(first.numbers), as_array(second.numbers)))


def as_array(numbers: Numbers) -> NDArray[np.int64]:
    """Return numbers as an array."""
    return np.arange(numbers.start, numbers.stop, numbers.step) if isinstance(numbers, range) else numbers


def _expanded(first: NDArray[np.int64], span: NDArray[np.int64], counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the numbers of the chunks in boxes, each once, by the shorter loop: over boxes or over offsets in them."""
    if not first.shape[1]:
        return np.empty(0, np.int64)
    widest = span.max(axis=1)
    numbers: list[Any] = []
    if math.prod(map(int, widest)) <= first.shape[1]:
        for steps in itertools.product(*map(range, widest.tolist())):
            offset = np.array(steps)[:, None]
            inside = (offset < span).all(axis=0)
            numbers.append(np.ravel_multi_index(tuple((first + offset)[:, inside]), counts))
    else:
        for begins, extents in zip(first.T.tolist(), span.T.tolist(), strict=True):
            axes = [np.arange(begin, begin + extent) for begin, extent in zip(begins, extents, strict=True)]
            numbers.append(np.ravel_multi_index(np.ix_(*axes), counts).reshape(-1))
    return distinct(np.concatenate(numbers)).astype(np.int64)


def _origins(grid: Grid, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the origins of chunks, one in each row."""
    return np.stack(np.unravel_index(numbers, grid.counts), axis=1) * np.array(grid.chunk_shape, np.int64)


@lru_cache(maxsize=64)
def _origins_of_all(grid: Grid) -> NDArray[np.int64]:
    """Return the origins of all chunks of a small grid, which nobody can change."""
    table = _origins(grid, np.arange(grid.chunk_count))
    table.flags.writeable = False
    return table


class UnsureIndexError(FileError):
    """An index that lists other chunks than HDF5 finds by lookup: only reading through HDF5 is right."""


class ChunkRecord(NamedTuple):
    """The place and filter mask of a chunk."""

    # Offset and size of its bytes in the file
    offset: int
    nbytes: int
    mask: int  # Bit i is set if the chunk skipped filter i


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The stored chunks of an array, in the order of their numbers; 28 bytes for each, or 20 if all are stored."""

    grid: Grid  # The grid of all chunks
    numbers: Numbers  # Numbers of the stored chunks, increasing
    # Their places and masks: see `ChunkRecord`
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    masks: NDArray[np.uint32]

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays of numbers have no single answer

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def parts(self) -> Parts:
        """The parts of the array that are stored."""
        return Parts(self.grid, self.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks."""
        return int(self.sizes.sum())

    def mask_counts(self) -> dict[int, int]:
        """Return how many chunks have each filter mask."""
        masks, counts = np.unique(self.masks, return_counts=True)
        return dict(zip(masks.tolist(), counts.tolist(), strict=True))

    def position_of(self, origin: Origin) -> int:
        """Return the position of a chunk in the arrays; -1 if it is not stored."""
        number = self.grid.number_of(origin)
        if isinstance(self.numbers, range):
            return number if 0 <= number < len(self.numbers) else -1
        position = int(self.numbers.searchsorted(number))
        is_stored = position < len(self.numbers) and self.numbers[position] == number
        return position if is_stored else -1

    def positions_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of chunks by their numbers, as `position_of`."""
        if isinstance(self.numbers, range):
            return np.where(numbers < len(self.numbers), numbers, -1)
        at = self.numbers.searchsorted(numbers)
        stored = at < len(self.numbers)
        stored[stored] = self.numbers[at[stored]] == numbers[stored]
        return np.where(stored, at, -1)

    def __contains__(self, origin: object) -> bool:
        return isinstance(origin, tuple) and self.position_of(origin) >= 0

    def records(self) -> Iterator[tuple[Origin, ChunkRecord]]:
        """Yield origins and records of all stored chunks."""
        rows = zip(self.offsets.tolist(), self.sizes.tolist(), self.masks.tolist(), strict=True)
        return zip(self.parts.origins(), map(ChunkRecord._make, rows), strict=True)

    def record_of(self, origin: Origin) -> ChunkRecord | None:
        """Return the record of a chunk; None if it is not stored."""
        position = self.position_of(origin)
        if position < 0:
            return None
        return ChunkRecord(int(self.offsets[position]), int(self.sizes[position]), int(self.masks[position]))
