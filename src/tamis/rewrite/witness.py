"""A second witness: a sample of an array, read by the libraries of both formats and compared as values.

zarr-python takes many times as long as tamis for a small array. So among many small arrays with equal type, shape,
chunks, filters and fill value, it reads the first 16 and then every 16th; tamis reads all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import equal_values
from tamis.arrays.gather import whole, within
from tamis.arrays.grid import Region, origin_of
from tamis.errors import BoundError
from tamis.stores.facts import ArrayFacts, array_nbytes, size_of

if TYPE_CHECKING:
    from tamis.arrays.index import Parts
    from tamis.arrays.reader import ArrayReader
    from tamis.stores.protocols import StoredArray

SMALL_NBYTES = 64 << 10
"""Arrays of at most this size are read whole: one call for all is cheaper than one for each chunk."""

_EACH = 16
"""A slow library reads this many small arrays of a kind, and then one out of this many."""

Compare = Callable[[Region, NDArray[Any], NDArray[Any]], object]
"""Compares values of source and target in a part, and raises BoundError if they differ too much."""


class SmallArrays:
    """The small arrays so far, counted by kind, which decides which of them a slow library reads."""

    def __init__(self) -> None:
        self._counts: Counter[object] = Counter()

    def takes(self, source: ArrayFacts, target: StoredArray) -> bool:
        """Count an array, and return whether the libraries of the formats read it; they read all large ones."""
        if not target.has_slow_library or array_nbytes(target) > SMALL_NBYTES or not target.can_read_chunks:
            return True
        if source.marks.has_companion or target.marks.has_companion:
            return True
        kind = _kind(source), _kind(target), frozenset(target.chunk_index().masks.tolist())
        number = self._counts[kind]
        self._counts[kind] += 1
        return number < _EACH or number % _EACH == 0


def _kind(array: ArrayFacts) -> tuple[object, ...]:
    """Return everything that determines how a library reads an array, except the bytes of its chunks."""
    stored = array.type.words, array.type.byteorder, array.storage.layout, array.storage.pipeline
    return *stored, array.shape, array.storage.chunk_shape, array.fill.value.tobytes()


def check_witness(
    path: str, source: StoredArray, target: StoredArray, after: ArrayReader, parts: Parts, compare: Compare
) -> int:
    """Compare a sample of chunks with the values that other programs read, and return the number of stored ones.

    The libraries of the formats read source and target, each with its own metadata. If the library cannot read a
    source, it is skipped: tamis has compared all of its values. The sample is one stored chunk of each filter mask, the
    first and last one, and one that is not stored.
    """
    if not target.can_read_independently or not size_of(target):
        return 0
    with ExitStack() as readers:
        theirs = readers.enter_context(closing(target.open_witness()))
        can_read = source.can_read_independently
        before = readers.enter_context(closing(source.open_witness())) if can_read else None

        def check(part: Region, shared: Region) -> None:
            values = theirs.read(part)
            if not equal_values(after.read(part), values):
                raise BoundError(
                    f"{path}: other programs would read other values than tamis in the chunk at {origin_of(part)}"
                ).at(chunk=origin_of(part))
            if before is not None:
                inside: tuple[Any, ...] = (*within(shared, part), ...)  # an array, even without axes
                compare(shared, before.read(shared), values[inside])

        if array_nbytes(target) <= SMALL_NBYTES:
            check(whole(target.shape), whole(target.shape))
            return len(parts)
        steps = source.storage.chunk_shape or parts.grid.chunk_shape
        stored = _stored_samples(target, parts)
        for number in (*stored, *parts.absent_sample().numbers):
            part = parts.grid.region_of(number)
            check(part, _within_one_chunk(part, steps))
        return len(stored)


def _within_one_chunk(part: Region, steps: tuple[int, ...]) -> Region:
    """Cut a part down to one chunk of the source, so that the library does not decode others for the rest."""
    return tuple(
        slice(axis.start, min(axis.stop, (axis.start // step + 1) * step))
        for axis, step in zip(part, steps, strict=True)
    )


def _stored_samples(target: StoredArray, parts: Parts) -> list[int]:
    """Return the numbers of the first stored chunk, the last one, and one of each filter mask."""
    if not len(parts):
        return []
    numbers = {int(parts.numbers[0]), int(parts.numbers[-1])}
    if (
        target.storage.chunk_shape is not None
        and target.can_read_chunks
        and target.storage.chunk_shape == parts.grid.chunk_shape
    ):
        index = target.chunk_index()
        _, first = np.unique(index.masks, return_index=True)
        numbers |= {int(index.numbers[at]) for at in first.tolist()}
    return sorted(numbers)
