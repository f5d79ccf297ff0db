"""A cache of decoded chunks, because the next selection may need another part of them."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from tamis.forks import begin_in_each_process

KEPT_NBYTES = 16 << 20
"""Bytes of decoded chunks in the cache, unless a single chunk is larger."""

_COUNTED = 4096
"""Chunks of which parts were decoded that are remembered."""

_MOST_WAITING = 16
"""Chunks that wait for a thread that is adding others."""


class ChunkCache:
    """The most recently used chunks, as many as fit, but at least one. Threads may share it.

    No thread waits for another one, which may wait for HDF5 (see `tamis.library_lock`): chunks of a thread that finds
    another one at work are added by that one.
    """

    def __init__(self, most_nbytes: int = KEPT_NBYTES) -> None:
        self._most = most_nbytes
        begin_in_each_process(self.clear)

    def clear(self) -> None:
        """Drop all chunks."""
        self._chunks: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self._shares: OrderedDict[Hashable, float] = OrderedDict()
        self._waiting: deque[tuple[Hashable, NDArray[Any]]] = deque(maxlen=_MOST_WAITING)
        self._nbytes = 0
        self._adding = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size of all cached chunks, in bytes."""
        return self._nbytes

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """Return a cached chunk; None if it is not cached."""
        values = self._chunks.get(key)
        if values is not None:
            with suppress(KeyError):  # another thread has just dropped it
                self._chunks.move_to_end(key)
        return values

    def put(self, key: Hashable, values: NDArray[Any]) -> None:
        """Add a chunk, and drop the least recently used ones if there is no room."""
        # Kept, because `clear` may replace both meanwhile.
        adding, waiting = self._adding, self._waiting
        waiting.append((key, values))
        while waiting and adding.acquire(blocking=False):
            try:
                while waiting:
                    self._add(*waiting.popleft())
            finally:
                adding.release()

    def _add(self, key: Hashable, values: NDArray[Any]) -> None:
        self._shares.pop(key, None)
        self._drop(key)
        while self._chunks and self._nbytes + values.nbytes > self._most:
            self._drop(next(iter(self._chunks)))
        self._chunks[key] = values
        self._nbytes += values.nbytes

    def add_part(self, key: Hashable, share: float) -> float:
        """Count a part of a chunk that is decoded separately; return the sum of its parts since it was last cached.

        Once they add up to the whole chunk, it is better to decode and cache it whole. So no sequence of selections
        costs more than twice as much as necessary.
        """
        total = self._shares.pop(key, 0) + share
        self._shares[key] = total
        if len(self._shares) > _COUNTED:
            self._shares.popitem(last=False)
        return total

    def _drop(self, key: Hashable) -> None:
        if (values := self._chunks.pop(key, None)) is not None:
            self._nbytes -= values.nbytes
