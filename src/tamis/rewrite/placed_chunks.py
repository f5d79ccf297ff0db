"""Chunks that are in a file already: recorded in the journal beside it, found there by a later run, and read back.

The file is the temporary target, or a segment that another process wrote (`tamis.rewrite.segments`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.arrays.index import Parts, as_array
from tamis.arrays.source import Placed
from tamis.rewrite.new_chunk import NewChunk
from tamis.safety.journal import Journal, JournalRecord, Leftover, companion_key

if TYPE_CHECKING:
    from tamis.meaning.missing import Flags
    from tamis.rewrite.create import WrittenAtOnce
    from tamis.rewrite.plan import ArrayPlan

_EXPANDED = 4
_EXPANDED_NBYTES = 1 << 20
"""Limit of an encoded chunk: the bytes of its values times the first number, plus the second."""

Read = Callable[[Placed, str], bytes | None]
"""Reads a place in a file, or in a file of a folder, by name; None if it has other bytes than were written."""


class PlacedChunk(NamedTuple):
    """A chunk in a file, without its bytes and those of its flags."""

    chunk: NewChunk
    flags: Placed | None = None  # The place of its flags; None if it has none

    def loaded(self, read: Read, file: str, flags_file: str) -> NewChunk | None:
        """Return the chunk with its bytes; None if they, or those of its flags, are others than were written."""
        assert self.chunk.placed is not None
        data = read(self.chunk.placed, file)
        chunk = self.with_flags(read, flags_file)
        return None if data is None or chunk is None else chunk._replace(data=data, placed=None)

    def with_flags(self, read: Read, file: str) -> NewChunk | None:
        """Return the chunk with the bytes of its flags alone; None if they are others than were written."""
        if self.flags is None or self.chunk.flags is None:
            return self.chunk
        data = read(self.flags, file)
        return None if data is None else self.chunk._replace(flags=(data, self.chunk.flags[1]))


class Recorder:
    """Records the chunks of an array, and of its companion, in the journal beside their file."""

    def __init__(self, journal: Journal, plan: ArrayPlan, numbers: tuple[int, int]) -> None:
        self._journal = journal
        self._chunk = plan.chunk
        self._number, self._companion_number = numbers  # Those of the array and its companion in the journal

    def add(self, chunks: Sequence[NewChunk], offsets: Sequence[int | None]) -> None:
        """Record written chunks, with their offsets."""
        self._add(self._number, chunks, offsets, self._chunk.nbytes)

    def add_flags(self, chunks: Sequence[NewChunk], offsets: Sequence[int | None]) -> None:
        """Record written chunks of the companion, with their offsets."""
        self._add(self._companion_number, chunks, offsets, self._chunk.size)

    def add_stored(self, array: WrittenAtOnce) -> None:
        """Record all chunks of an array that was written at once."""
        decoded_nbytes = self._chunk.nbytes
        for chunk, (offset, nbytes, checksum, missing, _) in enumerate(array.chunks):
            record = JournalRecord(self._number, chunk, offset, nbytes, array.mask, missing, 0, 0, checksum)
            self._journal.add(record, decoded_nbytes)

    def add_placed(self, placed: PlacedChunk) -> None:
        """Record a chunk of a segment."""
        chunk, flags = placed
        assert chunk.placed is not None
        self.add([chunk], [chunk.placed.offset])
        if chunk.flags is not None and flags is not None:
            self.add_flags([NewChunk(chunk.number, *chunk.flags, placed=flags)], [flags.offset])

    def _add(self, array: int, chunks: Sequence[NewChunk], offsets: Sequence[int | None], nbytes: int) -> None:
        for chunk, offset in zip(chunks, offsets, strict=True):
            if offset is not None:
                record = JournalRecord(
                    array,
                    chunk.number,
                    offset,
                    chunk.nbytes,
                    chunk.mask,
                    chunk.missing,
                    chunk.crossed,
                    int(chunk.missed),
                    chunk.checksum,
                )
                self._journal.add(record, nbytes)


def left_chunks(leftover: Leftover, plan: ArrayPlan, parts: Parts, flags: Flags | None) -> Iterator[PlacedChunk]:
    """Yield those of some chunks that a leftover has, in the order of writing, up to the first impossible record."""
    flag_records = leftover.records(companion_key(plan.path)) if flags else iter(())
    numbers, size = as_array(parts.numbers), plan.chunk.size
    left = np.ones(len(numbers), bool)
    most_nbytes = _EXPANDED * plan.chunk.nbytes + _EXPANDED_NBYTES
    for record in leftover.records(plan.path):
        at = int(np.searchsorted(numbers, min(record.chunk, parts.grid.chunk_count)))
        if at == len(numbers) or numbers[at] != record.chunk or not left[at]:
            return
        left[at] = False
        if record.mask >> len(plan.pipeline.stages) or max(record.missing, record.crossed) > size:
            return
        if record.nbytes > most_nbytes:
            return
        flags_mask: tuple[bytes, int] | None = None
        flags_place = None
        if flags and (record.missing or flags.fill):
            flag_record = next(flag_records, None)
            if flag_record is None or flag_record.chunk != record.chunk or not 0 < flag_record.nbytes <= most_nbytes:
                return
            flags_place, flags_mask = flag_record.place, (b"", flag_record.mask)
        chunk = NewChunk(
            record.chunk,
            b"",
            record.mask,
            record.missing,
            record.crossed,
            flags=flags_mask,
            missed=bool(record.missed),
            placed=record.place,
        )
        yield PlacedChunk(chunk, flags_place)
