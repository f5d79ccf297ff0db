"""A source of bytes in memory."""

from __future__ import annotations

from collections.abc import Iterable


class MemorySource:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    @property
    def nbytes(self) -> int:
        """Number of all bytes."""
        return len(self._data)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return so many bytes from an offset; fewer only at the end."""
        return bytes(self._data[offset : offset + nbytes])

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""
        data = self._data[offset : offset + len(room)]
        room[: len(data)] = data
        return len(data)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size."""
        return [self.read(offset, nbytes) for offset, nbytes in ranges]
