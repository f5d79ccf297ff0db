"""What every filter has: an HDF5 id, a name, parameters, and a way to encode and decode one chunk's bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tamis.errors import ParameterError


@dataclass(frozen=True, slots=True)
class ChunkType:
    """Type and shape of the values of a chunk, which some parameters are derived from.

    Parameters
    ----------
    dtype
        As in the file.
    shape
        Of the chunk, slowest axis first, unit axes included.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the unfiltered chunk."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))


class Filter(ABC):
    """An entry of HDF5's registry with its parameters. Frozen; equal where id and parameters are.

    Attributes
    ----------
    id
        Registered HDF5 filter id.
    name
        How tamis writes it down.
    """

    __slots__ = ()

    id: ClassVar[int]
    name: ClassVar[str]

    @property
    @abstractmethod
    def requested(self) -> tuple[int, ...]:
        """Parameters for H5Pset_filter."""

    def check(self, chunk: ChunkType) -> None:  # noqa: B027 - most filters take any chunk
        """Raise ParameterError where the filter cannot take such chunks."""

    @abstractmethod
    def encode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Filter the bytes of a chunk."""

    @abstractmethod
    def decode(self, data: bytes, chunk: ChunkType) -> bytes:
        """Undo `encode`. Raises StreamError where the bytes are damaged."""


def integer_parameter(name: str, value: object, low: int, high: int) -> None:
    """Raise ParameterError unless `value` is a whole number within bounds, both included."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not low <= int(value) <= high:
        raise ParameterError(f"expected {name} of {low} to {high}, got {name}={value!r}")
