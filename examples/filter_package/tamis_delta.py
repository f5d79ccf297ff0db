"""A filter of your own: integers as differences, which deflate compresses better."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tamis.errors import ParameterError, StreamError
from tamis.filters import ChunkType, Data, Filter, number


@dataclass(frozen=True, slots=True)
class Delta(Filter):
    """Filter 300 (256 to 511 are for tests; register yours with the HDF Group)."""

    lag: int = number("distance of the values that are subtracted", 1, 65535, 1)
    id: ClassVar[int] = 300
    name: ClassVar[str] = "delta"
    registered_name: ClassVar[str] = "delta"
    about: ClassVar[str] = "integers as differences"
    needs_values: ClassVar[bool] = True

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested (lag) or stored (lag, itemsize) parameters."""
        if len(values) not in (1, 2):
            raise ParameterError(f"expected the parameters of delta to be lag or lag, itemsize, got {values}")
        return cls(values[0])

    @property
    def requested(self) -> tuple[int, ...]:
        """The lag."""
        return (self.lag,)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Lag and itemsize: everything that decoding needs must be in the file."""
        if chunk.dtype.kind not in "iu":
            raise ParameterError(f"expected integers for delta, got {chunk.dtype}")
        return (self.lag, chunk.dtype.itemsize)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Subtract."""
        values = np.frombuffer(data, chunk.dtype)
        differences = values.copy()
        differences[self.lag :] -= values[: -self.lag]
        return differences.tobytes()

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Add."""
        if len(data) != chunk.nbytes:
            raise StreamError(f"expected {chunk.nbytes} bytes of differences, got {len(data)}")
        values = np.frombuffer(data, chunk.dtype).copy()
        for start in range(self.lag):
            np.cumsum(values[start :: self.lag], out=values[start :: self.lag], dtype=chunk.dtype)
        return values.tobytes()
