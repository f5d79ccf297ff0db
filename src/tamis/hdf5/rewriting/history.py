"""The chunks of one dataset that an earlier run encoded, and the notes about those that this one writes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h5py

from tamis.chunks.grid import Origin, Region, origin_of
from tamis.hdf5.lib.chunk_index import chunk_info
from tamis.hdf5.rewriting.encoding import NewChunk
from tamis.hdf5.rewriting.plans import Plan
from tamis.missing.table import Flags
from tamis.store.journal import Journal, companion_key
from tamis.store.leftovers import Leftover

_EXPANDED = 4
_EXPANDED_NBYTES = 1 << 20
"""No filter makes more of a chunk than so many times its bytes and so many more."""

_MOST_GAPS = 1000
"""Chunks that HDF5 is asked the place of, so that the cost does not grow with the square of their number."""


class History:
    """What `write` takes over from an earlier run, and what it notes for a later one.

    Parameters
    ----------
    plan, shape
        Of the dataset.
    path
        The file that is written.
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
        shape: tuple[int, ...],
        path: Path,
        journal: Journal,
        numbers: tuple[int, int],
        leftover: Leftover | None = None,
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        self.reused = 0
        self._plan = plan
        self._grid = [(-(-extent // step), step) for extent, step in zip(shape, plan.chunks, strict=True)]
        self._size = math.prod(plan.chunks)
        self._nbytes = self._size * plan.dtype.itemsize
        self._path = str(path)
        self._end = self._gaps = 0
        self._journal = journal
        self._number, self._companion_number = numbers
        self._leftover = leftover
        self._taken = taken

    def encoded(self, parts: Sequence[Region], flags: Flags | None = None) -> Iterator[NewChunk]:
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

    def _reusable(self, leftover: Leftover, parts: Sequence[Region], flags: Flags | None) -> Iterator[NewChunk]:
        beside = leftover.records(companion_key(self._plan.path)) if flags else iter(())
        origins = {self._place(origin): origin for origin in map(origin_of, parts)}
        most_nbytes = _EXPANDED * self._nbytes + _EXPANDED_NBYTES
        for record in leftover.records(self._plan.path):
            origin = origins.pop(record.place, None)
            counts = max(record.missing, record.crossed)
            if origin is None or record.mask >> len(self._plan.pipeline.stages) or counts > self._size:
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
            yield NewChunk(origin, data, record.mask, record.missing, record.crossed, flags=own)

    def add(self, each: NewChunk, target: h5py.Dataset) -> None:
        """Note a chunk that was just written to the dataset, when nothing else was written after it."""
        offset = self._offset(each.origin, each.data, target)
        place = self._place(each.origin)
        counts = each.missing, each.crossed
        self._journal.add(self._number, place, offset, each.data, each.mask, counts, self._nbytes)

    def add_flags(self, each: NewChunk, companion: h5py.Dataset | None) -> None:
        """Note the flags of a chunk, if it has any, when they were just written to the companion."""
        if each.flags is not None and companion is not None:
            data, mask = each.flags
            offset = self._offset(each.origin, data, companion)
            self._journal.add(self._companion_number, self._place(each.origin), offset, data, mask, (0, 0), self._size)

    def _offset(self, origin: Origin, data: bytes, target: h5py.Dataset) -> int:
        """Find out where a chunk was put; should it be elsewhere, its checksum does not fit, and it is encoded anew."""
        # HDF5 puts a chunk at the end of the file, at once. To tell where, it walks over all chunks: it is asked only
        # where the file has not grown, since the chunk went into a gap that was left by something else.
        before, self._end = self._end, os.stat(self._path).st_size
        if self._end == before and self._gaps < _MOST_GAPS:
            self._gaps += 1
            return int(chunk_info(target.id, origin).byte_offset)
        return max(self._end - len(data), 0)

    def _place(self, origin: tuple[int, ...]) -> int:
        """Return the number of a chunk, last axis fastest."""
        place = 0
        for (count, step), start in zip(self._grid, origin, strict=True):
            place = place * count + start // step
        return place
