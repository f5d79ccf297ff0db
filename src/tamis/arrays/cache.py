"""A cache of decoded chunks, because the next selection may need another part of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from numpy.typing import NDArray

KEPT_NBYTES = 16 << 20
"""Bytes of decoded chunks in the cache, unless a single chunk is larger."""

_COUNTED = 4096  # chunks with counted blocks


class ChunkCache:
    """The most recently used chunks, as many as fit, but at least one. Threads may share it."""

    def __init__(self, most_nbytes: int = KEPT_NBYTES) -> None:
        self._most, self._nbytes = most_nbytes, 0
        self._chunks: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self._block_counts: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size of all cached chunks, in bytes."""
        return self._nbytes

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """Return a cached chunk; None if it is not cached."""
        with self._lock:
            if key in self._chunks:
                self._chunks.move_to_end(key)
            return self._chunks.get(key)

    def put(self, key: Hashable, values: NDArray[Any]) -> None:
        """Add a chunk, and drop the least recently used ones if there is no room."""
        with self._lock:
            self._block_counts.pop(key, None)
            self._drop(key)
            while self._chunks and self._nbytes + values.nbytes > self._most:
                self._drop(next(iter(self._chunks)))
            self._chunks[key] = values
            self._nbytes += values.nbytes

    def decoded(self, key: Hashable, blocks: int) -> int:
        """Count blocks of a chunk that were decoded separately; return their number since the chunk was last cached.

        Once they add up to the whole chunk, it is better to decode and cache it whole. So no sequence of selections
        costs more than twice as much as necessary.
        """
        with self._lock:
            count = self._block_counts.pop(key, 0) + blocks
            self._block_counts[key] = count
            if len(self._block_counts) > _COUNTED:
                self._block_counts.popitem(last=False)
            return count

    def clear(self) -> None:
        """Drop all chunks."""
        with self._lock:
            self._chunks.clear()
            self._block_counts.clear()
            self._nbytes = 0

    def _drop(self, key: Hashable) -> None:
        if (values := self._chunks.pop(key, None)) is not None:
            self._nbytes -= values.nbytes
