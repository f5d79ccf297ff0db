"""Decoded chunks that are kept, because the next selection may want another part of them. Knows no file format."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from numpy.typing import NDArray

KEPT_NBYTES = 16 << 20
"""Bytes of decoded chunks that are kept, unless a single one is larger."""

_COUNTED = 4096  # chunks whose use is counted


class ChunkCache:
    """Chunks that were used last, as many as fit; at least one. Threads may share it.

    Parameters
    ----------
    most_nbytes
        Of the chunks together.
    """

    def __init__(self, most_nbytes: int = KEPT_NBYTES) -> None:
        self._most, self._nbytes = most_nbytes, 0
        self._kept: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self._decoded: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the chunks that are kept."""
        return self._nbytes

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """Return a chunk, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, values: NDArray[Any]) -> None:
        """Keep a chunk, and let go of those that were used longest ago where there is no room."""
        with self._lock:
            self._decoded.pop(key, None)
            self._drop(key)
            while self._kept and self._nbytes + values.nbytes > self._most:
                self._drop(next(iter(self._kept)))
            self._kept[key] = values
            self._nbytes += values.nbytes

    def decoded(self, key: Hashable, blocks: int) -> int:
        """Count blocks of a chunk that are decoded without the rest; return how many they have been since it was kept.

        Once they are as many as the chunk has, it had better been decoded whole and kept: so no sequence of selections
        costs more than twice what it must.
        """
        with self._lock:
            count = self._decoded.pop(key, 0) + blocks
            self._decoded[key] = count
            if len(self._decoded) > _COUNTED:
                self._decoded.popitem(last=False)
            return count

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._kept.clear()
            self._decoded.clear()
            self._nbytes = 0

    def _drop(self, key: Hashable) -> None:
        if (values := self._kept.pop(key, None)) is not None:
            self._nbytes -= values.nbytes
