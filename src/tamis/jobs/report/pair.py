"""Two arrays of the same shape, read together in blocks of bounded memory, in units of the variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis.arrays import block_shape, read_slab_by_slab
from tamis.rewrite import in_units

if TYPE_CHECKING:
    from tamis.arrays import ArrayReader, Region
    from tamis.stores import StoredArray

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
    repeats: int = 1  # How often a chunk is decoded, about


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
        return Blocks((*steps, *field), True, True, repeats)
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

    def read(self, region: Region) -> Values:
        """Read a part of both."""
        stored = [read_slab_by_slab(reader, region) for reader in (self.before, self.after)]
        return values_of(region, (self.source, self.target), stored)


def values_of(region: Region, arrays: Sequence[StoredArray], stored: Sequence[NDArray[Any]]) -> Values:
    """Return stored values of two arrays in units."""
    pair, absent = [], None
    for array, own in zip(arrays, stored, strict=True):
        values = np.asarray(in_units(array, own))
        # Also after unpacking, and for types that have no markers, what is not finite is missing.
        finite = np.isfinite(values)
        for mask in (array.meaning.missing.find(own), None if finite.all() else ~finite):
            if mask is not None:
                absent = mask if absent is None else absent | mask
        pair.append(values)
    single = all(values.dtype == np.float32 for values in pair)
    pair = [values.astype(np.float32 if single else np.float64, copy=False) for values in pair]
    if absent is not None:
        pair = [np.where(absent, values.dtype.type(0), values) for values in pair]
    return Values(region, pair[0], pair[1], None if absent is None else ~absent)
