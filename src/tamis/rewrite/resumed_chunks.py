"""Reuse the chunks of one dataset that an earlier, killed run encoded, and record those that this run writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tamis.arrays.index import Parts, as_array
from tamis.meaning.companions import COMPANION_ENDING
from tamis.rewrite.new_chunk import NewChunk
from tamis.safety.journal import Journal, Leftover, companion_key

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.meaning.missing import Flags
    from tamis.rewrite.create import WrittenAtOnce
    from tamis.rewrite.plan import ArrayPlan

_EXPANDED = 4
_EXPANDED_NBYTES = 1 << 20
"""Limit of an encoded chunk: the bytes of its values times the first number, plus the second."""


class ResumedChunks:
    """Chunks that `write` reuses from an earlier run, and records of its own chunks for a later run."""

    def __init__(
        self,
        plan: ArrayPlan,
        grid: Grid,
        journal: Journal,
        numbers: tuple[int, int],
        leftover: Leftover | None,
        taken: Callable[[], None],
        file_of: Callable[[str, Grid, int], str],
    ) -> None:
        self.reused: list[tuple[int, int]] = []  # Number and mask of each chunk, in the order of writing
        self._plan = plan
        self._grid = grid
        self._size = math.prod(plan.chunk_shape)
        self._nbytes = self._size * plan.dtype.itemsize
        self._journal = journal
        self._number, self._companion_number = numbers
        self._leftover = leftover
        self._taken = taken
        self._file_of = file_of

    @property
    def is_resumed(self) -> bool:
        """True if an earlier run left chunks."""
        return self._leftover is not None

    def encoded(self, parts: Parts, flags: Flags | None = None) -> Iterator[NewChunk]:
        """Yield the chunks that an earlier run wrote, in its order, up to the first that differs from its record."""
        self.reused.clear()  # an array that is created anew reuses them again
        if self._leftover is not None:
            yield from self.reusable(self._leftover, parts, flags, self._file_of)
            self._taken()

    def reusable(
        self, leftover: Leftover, parts: Parts, flags: Flags | None, file_of: Callable[[str, Grid, int], str]
    ) -> Iterator[NewChunk]:
        """Yield the chunks of a leftover or segment among some parts; see `encoded`."""
        flag_records = leftover.records(companion_key(self._plan.path)) if flags else iter(())
        numbers = as_array(parts.numbers)
        left = np.ones(len(numbers), bool)
        most_nbytes = _EXPANDED * self._nbytes + _EXPANDED_NBYTES
        for record in leftover.records(self._plan.path):
            at = int(np.searchsorted(numbers, min(record.chunk, self._grid.chunk_count)))
            count = max(record.missing, record.crossed)
            if at == len(numbers) or numbers[at] != record.chunk or not left[at]:
                return
            left[at] = False
            if record.mask >> len(self._plan.pipeline.stages) or count > self._size:
                return
            data = leftover.read(record, most_nbytes, file_of(self._plan.path, self._grid, record.chunk))
            if data is None:
                return
            encoded_flags: tuple[bytes, int] | None = None
            if flags and (record.missing or flags.fill):
                flag_record = next(flag_records, None)
                if not flag_record or flag_record.chunk != record.chunk:
                    return
                companion = f"{self._plan.path}{COMPANION_ENDING}"
                flag_data = leftover.read(flag_record, most_nbytes, file_of(companion, self._grid, record.chunk))
                if not flag_data:
                    return
                encoded_flags = flag_data, flag_record.mask
            self.reused.append((record.chunk, record.mask))
            counts = record.missing, record.crossed
            yield NewChunk(record.chunk, data, record.mask, *counts, flags=encoded_flags, missed=bool(record.missed))

    def add(self, chunks: Sequence[NewChunk], offsets: Sequence[int | None]) -> None:
        """Record written chunks, with their offsets."""
        self._note(self._number, chunks, offsets, self._nbytes)

    def add_flags(self, chunks: Sequence[NewChunk], offsets: Sequence[int | None]) -> None:
        """Record written chunks of the companion, with their offsets."""
        self._note(self._companion_number, chunks, offsets, self._size)

    def add_stored(self, array: WrittenAtOnce) -> None:
        """Record all chunks of an array that was written at once."""
        for chunk, (offset, nbytes, checksum, missing, _) in enumerate(array.chunks):
            place = chunk, offset, nbytes, checksum
            self._journal.add(self._number, *place, array.mask, (missing, 0, 0), self._nbytes)

    def _note(self, array: int, chunks: Sequence[NewChunk], offsets: Sequence[int | None], nbytes: int) -> None:
        for chunk, offset in zip(chunks, offsets, strict=True):
            if offset is not None:
                place = chunk.number, offset, chunk.nbytes, chunk.checksum
                counts = chunk.missing, chunk.crossed, int(chunk.missed)
                self._journal.add(array, *place, chunk.mask, counts, nbytes)
