"""Two arrays of the same shape, read together in blocks of bounded memory, in units of the variable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import block_shape, cut, whole, within
from tamis.arrays.grid import Region, shape_of
from tamis.arrays.threads import ordered_map
from tamis.rewrite.packed_array import in_units

if TYPE_CHECKING:
    from tamis.arrays.reader import ArrayReader
    from tamis.stores.protocols import StoredArray

Shape = tuple[int, ...]

_BLOCK_COUNT = 1 << 18
"""Values of a block, if chunks and fields allow it."""

_MOST_COUNT = 1 << 20
"""Values of a block at most, unless a single chunk has more."""

_MOST_REPEATS = 8
"""How often a chunk may be decoded, so that blocks have whole fields."""


class Values(NamedTuple):
    """The values of a block, in units, float32 or float64; those that are missing in either array are 0."""

    region: Region
    before: NDArray[Any]
    after: NDArray[Any]
    valid: NDArray[np.bool_] | None  # Whether a value is valid in both; None if all are


class Blocks(NamedTuple):
    """A division of an array."""

    shape: Shape  # Extents of a block
    # Whether blocks have whole fields, the last two axes, and whole rows, the last axis
    has_fields: bool
    has_rows: bool


def blocks_of(shape: Shape, grids: Sequence[Shape]) -> Blocks:
    """Return blocks that decode each chunk once or a few times, with whole fields or rows if possible."""
    lead, field = shape[:-2], shape[-2:]
    size = math.prod(field)
    steps = [max((grid[axis] for grid in grids), default=1) for axis in range(len(lead))]
    steps = [min(step, extent) for step, extent in zip(steps, lead, strict=True)]
    repeats = 1
    while math.prod(steps) * size > _MOST_COUNT and max(steps, default=1) > 1:
        axis = int(np.argmax(steps))
        steps[axis], repeats = -(-steps[axis] // 2), 2 * repeats
    if math.prod(steps) * size <= _MOST_COUNT and repeats <= _MOST_REPEATS:
        for axis in reversed(range(len(lead))):
            count = max(1, _BLOCK_COUNT // max(math.prod(steps) * size, 1))
            steps[axis] = min(lead[axis], steps[axis] * count)
            if steps[axis] < lead[axis]:
                break
        return Blocks((*steps, *field), True, True)
    block = block_shape(shape, list(grids) or [(*(1 for _ in shape[1:]), shape[-1])], _MOST_COUNT)
    return Blocks(block, False, block[-1] == shape[-1])


@dataclass(slots=True)
class Pair:
    """Two arrays of numbers, open for reading."""

    source: StoredArray
    target: StoredArray
    before: ArrayReader
    after: ArrayReader
    _stack: ExitStack

    @classmethod
    def open(cls, source: StoredArray, target: StoredArray) -> Self:
        """Open two arrays of the same shape."""
        with ExitStack() as stack:
            readers = [stack.enter_context(closing(array.open_reader())) for array in (source, target)]
            return cls(source, target, readers[0], readers[1], stack.pop_all())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def shape(self) -> Shape:
        """Extents of both."""
        return self.before.shape

    @property
    def blocks(self) -> Blocks:
        """How both are divided."""
        return blocks_of(self.shape, [grid for grid in (self.before.chunk_shape, self.after.chunk_shape) if grid])

    def read(self, region: Region) -> Values:
        """Read a part of both."""
        arrays, masks = [], []
        for array, reader in ((self.source, self.before), (self.target, self.after)):
            stored = _read(reader, region)
            masks.append(array.missing.find(stored))
            arrays.append(np.asarray(in_units(array, stored)))
        single = all(values.dtype == np.float32 for values in arrays)
        arrays = [values.astype(np.float32 if single else np.float64, copy=False) for values in arrays]
        absent = None
        for values, mask in zip(arrays, masks, strict=True):
            finite = np.isfinite(values)
            if not finite.all():  # also after unpacking, and for types that have no markers
                absent = ~finite if absent is None else absent | ~finite
            if mask is not None:
                absent = mask if absent is None else absent | mask
        if absent is not None:
            arrays = [np.where(absent, values.dtype.type(0), values) for values in arrays]
        return Values(region, arrays[0], arrays[1], None if absent is None else ~absent)

    def regions(self) -> list[Region]:
        """Return the regions of all blocks, in order."""
        return [*cut(whole(self.shape), self.blocks.shape)]


def _read(reader: ArrayReader, region: Region) -> NDArray[Any]:
    """Read a part, chunk by chunk, so that no more than one chunk is decoded at a time."""
    if not reader.chunk_shape:
        return reader.read(region)
    values = np.empty(shape_of(region), reader.dtype)
    for part in cut(region, reader.chunk_shape):
        values[within(part, region)] = reader.read(part)
    return values


T = TypeVar("T")
R = TypeVar("R")


def mapped(function: Callable[[T], R], regions: Sequence[T], threads: int) -> Iterator[R]:
    """Call a function on regions in threads, and yield the results in order."""
    with closing(ordered_map(function, regions, threads)) as results:
        yield from results
