"""The chunks of one dataset that an earlier run encoded, and the notes about those that this one writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tamis.chunks.grid import Grid
from tamis.chunks.regions import Parts, as_array
from tamis.missing.table import Flags
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.plan import Plan
from tamis.store.array import ArrayWriter
from tamis.store.journal import Journal, companion_key
from tamis.store.leftovers import Leftover

_EXPANDED = 4
_EXPANDED_NBYTES = 1 << 20
"""No filter makes more of a chunk than so many times its bytes and so many more."""


class History:
    """What `write` takes over from an earlier run, and what it notes for a later one.

    Parameters
    ----------
    plan, grid
        Of the dataset, and of its chunks.
    journal
        Of this run.
    numbers
        Of the dataset in it, and of its companion.
    leftover
        Of an earlier run that made the same of this dataset.
    taken
        Called when nothing more is taken from it.

    Attributes
    ----------
    reused
        Chunks that were taken over.
    """

    def __init__(
        self,
        plan: Plan,
        grid: Grid,
        journal: Journal,
        numbers: tuple[int, int],
        leftover: Leftover | None = None,
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        self.reused = 0
        self._plan = plan
        self._grid = grid
        self._size = math.prod(plan.chunk_shape)
        self._nbytes = self._size * plan.dtype.itemsize
        self._journal = journal
        self._number, self._companion_number = numbers
        self._leftover = leftover
        self._taken = taken

    def encoded(self, parts: Parts, flags: Flags | None = None) -> Iterator[NewChunk]:
        """Return the chunks that an earlier run wrote, in its order, up to the first that is not there as noted.

        All runs write in one order, so that the rest is what comes after.

        Parameters
        ----------
        parts
            Parts of the array, one for each chunk.
        flags
            What those of a companion stand for: a chunk that has some is taken over with them, or not at all.
        """
        if self._leftover is not None:
            yield from self._reusable(self._leftover, parts, flags)
            self._taken()

    def _reusable(self, leftover: Leftover, parts: Parts, flags: Flags | None) -> Iterator[NewChunk]:
        beside = leftover.records(companion_key(self._plan.path)) if flags else iter(())
        numbers = as_array(parts.numbers)
        left = np.ones(len(numbers), bool)
        most_nbytes = _EXPANDED * self._nbytes + _EXPANDED_NBYTES
        for record in leftover.records(self._plan.path):
            at = int(np.searchsorted(numbers, min(record.place, self._grid.chunk_count)))
            counts = max(record.missing, record.crossed)
            if at == len(numbers) or numbers[at] != record.place or not left[at]:
                return
            left[at] = False
            if record.mask >> len(self._plan.pipeline.stages) or counts > self._size:
                return
            data = leftover.read(record, most_nbytes)
            if data is None:
                return
            own: tuple[bytes, int] | None = None
            if flags and (record.missing or flags.fill):
                found = next(beside, None)
                encoded = found and found.place == record.place and leftover.read(found, most_nbytes)
                if not found or not encoded:
                    return
                own = encoded, found.mask
            self.reused += 1
            yield NewChunk(
                self._grid.origin_of(record.place), data, record.mask, record.missing, record.crossed, flags=own
            )

    def add(self, chunk: NewChunk, target: ArrayWriter) -> None:
        """Note a chunk that was just written, when nothing else was written after it."""
        counts = chunk.missing, chunk.crossed
        self._note(self._number, chunk, target.last_offset(), chunk.data, chunk.mask, counts, self._nbytes)

    def add_flags(self, chunk: NewChunk, companion: ArrayWriter) -> None:
        """Note the flags of a chunk, if it has any, when they were just written to the companion."""
        if chunk.flags is not None:
            data, mask = chunk.flags
            self._note(self._companion_number, chunk, companion.last_offset(), data, mask, (0, 0), self._size)

    def _note(
        self,
        number: int,
        chunk: NewChunk,
        offset: int | None,
        data: bytes,
        mask: int,
        counts: tuple[int, int],
        nbytes: int,
    ) -> None:
        if offset is not None:
            place = self._grid.number_of(chunk.origin)
            self._journal.add(number, place, offset, data, mask, counts, nbytes)
