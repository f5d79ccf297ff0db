"""A remote HDF5 file as libhdf5 reads it: a cache of small blocks, filled ahead along the pointers of the metadata."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tamis.errors import TamisError
from tamis.remote import disk_cache
from tamis.remote.file import (
    HEAD_NBYTES,
    MOST_GAP,
    TAIL_NBYTES,
    WITH_TAILS,
    RemoteFile,
    in_fewest_rounds,
    requests_for,
)
from tamis.remote.nodes import Crawler, Place, Wanted, guarded
from tamis.remote.object_store import Range

BLOCK_NBYTES = 1024
"""Bytes of a block of the cache: nodes of a chunk index have 3 to 5 KiB, object headers less than one."""

MOST_NBYTES = 64 << 20
"""Limit of the cached blocks."""

_MISSED_NBYTES = 8 * BLOCK_NBYTES  # that are fetched if libhdf5 asks for what is not cached
_LARGE_NBYTES = 1 << 20  # of a read of values
_CRAWLED_NBYTES = 32 << 20  # at most, from one place on
_GAP_NBYTES = 2 * BLOCK_NBYTES
_MOST_MORE_NBYTES = 128 << 10  # that a round may fetch for fewer requests
_ROUNDS = 64
_LEAST_CHUNKS = 128  # whose index has more than two nodes
_MOST_LOOKED_UP = 4096  # chunks

T = TypeVar("T")


class MetadataFile(io.RawIOBase):
    """What h5py's driver for Python objects reads. Data of values do not go through it, as far as tamis decodes them.

    Parameters
    ----------
    remote
        The object.
    """

    def __init__(self, remote: RemoteFile) -> None:
        self.remote = remote
        self.error = None
        # Without a lock, because libhdf5 reads with its own (see `tamis.library_lock`): each change is one step.
        self._blocks: OrderedDict[int, memoryview] = OrderedDict()
        self._at = 0  # Position
        self._looked_up: dict[int, int] = {}  # Number of chunks by the address of the dataset's object header
        # Offsets of reads of so many bytes, which get none: see `place_of`
        self._asked: list[int] = []
        self._asked_nbytes = 0
        self.crawler = Crawler()
        self._blocks.update(disk_cache.read(remote, BLOCK_NBYTES))
        self._kept = len(self._blocks)
        self._put(0, memoryview(remote.head))
        # Some stores, such as Azure, only have last bytes by their offset: these come with what is needed first.
        is_late = not remote.tail and remote.address.lower().endswith(WITH_TAILS)
        self._late = [(max(remote.nbytes - TAIL_NBYTES, 0), remote.nbytes)] if is_late else []
        before = (len(remote.tail) - remote.nbytes) % BLOCK_NBYTES  # up to the first whole block
        self._put(remote.nbytes - len(remote.tail) + before, remote.tail[before:])

    error: TamisError | None
    """Why a read failed: h5py's message does not say it."""

    def crawl(self) -> None:
        """Fetch the metadata that listing the file needs, before libhdf5 asks for it with h5py's lock."""
        head = bytes(self.remote.head)
        if self.remote.nbytes <= len(head):
            return
        offsets = (0, *(512 << n for n in range(32)))
        self.base = next((at for at in offsets if head[at : at + 4] == b"\x89HDF"), 0)
        self._follow([*self.crawler.roots(head[self.base :])])

    base = 0
    """Offset of the superblock, behind a user block."""

    def prefetch_index(self, header: int, *wanted: Any) -> None:
        """Fetch the chunk index of a dataset, by the address of its object header: all of it, or as in `Wanted`."""
        root = self.crawler.indexes.get(header)
        if root is not None:
            self._follow([root(Wanted(*wanted) if wanted else None)])

    def looks_up(self, header: int, count: int, total: int) -> bool:
        """Return whether to look up some chunks of a dataset: until that would cost more than its whole index."""
        known = self._looked_up.get(header, 0)
        is_few = total >= _LEAST_CHUNKS and count <= _MOST_LOOKED_UP and 4 * (known + count) <= total
        self._looked_up[header] = known + count if is_few else total
        return is_few

    def place_of(self, read: Callable[[], T], nbytes: int) -> tuple[T, int]:
        """Return what a read of a chunk returns, without its bytes, and where libhdf5 would have read these.

        The caller holds h5py's lock, and libhdf5 knows the chunk already.
        """
        self._asked = []
        self._asked_nbytes = nbytes
        try:
            result = read()
        finally:
            self._asked_nbytes = 0
        (offset,) = self._asked
        return result, offset

    def _fetch_in_threads(self, spans: Sequence[Range]) -> list[memoryview]:
        sizes = [end - begin for begin, end in spans]
        if max(sizes, default=0) > MOST_GAP and sum(sizes) <= MOST_NBYTES:
            self.remote.begin(self.remote.absent(spans))  # the values between the nodes are kept, too
        with self.remote.ahead([(begin, end - begin) for begin, end in spans], _GAP_NBYTES):
            return [memoryview(self.remote.read(begin, end - begin)) for begin, end in spans]

    def _follow(self, places: Sequence[Place]) -> None:
        """Fetch places, and what they point to, level by level."""
        seen: set[tuple[int, int]] = set()
        nbytes = 0
        can_guess = True
        for _ in range(_ROUNDS):
            most = self.remote.nbytes - self.base
            places = [place for place in places if place.nbytes > 0 <= place.offset < most and place[:2] not in seen]
            seen.update(place[:2] for place in places)
            spans = [self._blocks_of(place) for place in places if not place.are_values]
            guessed = [self._blocks_of(place) for place in places if place.are_values]
            nbytes += sum(end - begin for begin, end in spans)
            if not spans or nbytes > _CRAWLED_NBYTES:
                return
            if guessed and can_guess and self._missing(spans):  # otherwise the values are asked for at once
                self.remote.begin(guessed)
                can_guess = False
            for some in (self.remote.absent(spans), spans):  # those outside of the values come first
                self._load(some, self._fetch_in_threads)
            children: list[Place] = []
            for place in places:
                data = self._cached(place.offset + self.base, place.nbytes) if place.parse is not None else None
                if place.parse is not None and data:
                    children += guarded(place.parse, data)
            places = children

    def _blocks_of(self, place: Place) -> Range:
        """Return the range of the blocks that have a place."""
        begin = place.offset + self.base
        end = min(begin + place.nbytes, self.remote.nbytes)
        return begin - begin % BLOCK_NBYTES, min(end + -end % BLOCK_NBYTES, self.remote.nbytes)

    def _load(self, spans: Iterable[Range], fetch: Callable[[Sequence[Range]], list[memoryview]]) -> None:
        """Fetch the blocks of ranges that are not cached."""
        spans = list(spans)
        if not self._missing(spans):
            return
        missing = self._missing([*spans, *self._late])
        self._late = []
        wanted = [(row * BLOCK_NBYTES, min((row + 1) * BLOCK_NBYTES, self.remote.nbytes)) for row in missing]
        requests = requests_for(wanted)
        if sum(end - begin for begin, end in requests) > len(wanted) * BLOCK_NBYTES + _MOST_MORE_NBYTES:
            requests = in_fewest_rounds(wanted, _GAP_NBYTES)
        for (begin, _), data in zip(requests, fetch(requests), strict=True):
            self._put(begin, data)

    def _missing(self, spans: Iterable[Range]) -> list[int]:
        """Return the blocks of ranges that are not cached."""
        most = self.remote.nbytes
        rows = {row for begin, end in spans for row in range(begin // BLOCK_NBYTES, -(-min(end, most) // BLOCK_NBYTES))}
        return sorted(row for row in rows if row not in self._blocks)

    def _put(self, begin: int, data: memoryview) -> None:
        """Cache the whole blocks of a range that begins with one."""
        is_end = begin + len(data) == self.remote.nbytes
        nbytes = len(data) if is_end else len(data) - len(data) % BLOCK_NBYTES
        for at in range(0, nbytes, BLOCK_NBYTES):
            self._blocks[(begin + at) // BLOCK_NBYTES] = data[at : at + BLOCK_NBYTES]
        while len(self._blocks) * BLOCK_NBYTES > MOST_NBYTES:
            self._blocks.popitem(last=False)

    def _cached(self, begin: int, nbytes: int) -> bytes | None:
        """Return a range from the cache; None if a block is not there."""
        end = min(begin + nbytes, self.remote.nbytes)
        rows = range(begin // BLOCK_NBYTES, -(-end // BLOCK_NBYTES))
        blocks: list[memoryview] = []
        for row in rows:
            block = self._blocks.get(row)
            if block is None:
                return None
            blocks.append(block)
        with suppress(KeyError):  # another thread has dropped one in the meantime
            for row in rows:
                self._blocks.move_to_end(row)
        first = begin - rows.start * BLOCK_NBYTES
        return b"".join(blocks)[first : first + end - begin]

    def _read(self, begin: int, nbytes: int) -> bytes | memoryview:
        """Return what libhdf5 asks for; its thread waits, see `tamis.remote.file`."""
        if nbytes >= _LARGE_NBYTES:  # values that only libhdf5 can read
            end = min(begin + nbytes, self.remote.nbytes)
            return b"".join(self.remote.fetch_here(requests_for([(begin, end)])))
        data = self._cached(begin, nbytes)
        if data is None:
            self._load([(begin, begin + max(nbytes, _MISSED_NBYTES))], self.remote.fetch_here)
            data = self._cached(begin, nbytes)
        if data is None:  # another thread has filled the cache meanwhile
            return self.remote.fetch_here([(begin, min(begin + nbytes, self.remote.nbytes))])[0]
        return data

    def keep(self) -> None:
        """Keep what was read for the next opening, if it is worth it."""
        kept = self._blocks.copy()
        blocks = {row: data for row, data in kept.items() if row * BLOCK_NBYTES >= HEAD_NBYTES}
        if len(blocks) > self._kept:
            self._kept = len(blocks)
            self.remote.confirm()
            disk_cache.write(self.remote, blocks)

    # What h5py's driver calls.

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.remote.nbytes}[whence]
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        """Fill memory from the position on, with zeros beyond the end, where libhdf5 reads ahead."""
        try:
            if len(room) == self._asked_nbytes:
                self._asked.append(self._at)
                return len(room)
            data = self._read(self._at, len(room))
        except TamisError as error:
            self.error = error
            raise
        room[: len(data)] = data
        room[len(data) :] = bytes(len(room) - len(data))
        return len(room)
