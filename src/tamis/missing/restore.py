"""Restore missing values from a companion: flags for an array, and a table of missing values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.chunks.reader import ArrayReader, put
from tamis.errors import DataError, FileError
from tamis.missing.table import Flags


@dataclass(frozen=True, slots=True)
class CompanionFlags:
    """The flags of a variable, with their meaning.

    Parameters
    ----------
    flags
        The table of missing values.
    label
        File and path of the companion, for messages.
    path
        Path of the companion.
    shape
        Shape of the companion. It may differ from that of the variable, if another program changed the variable.
    """

    flags: Flags
    label: str
    path: str
    shape: tuple[int, ...]

    def read(self, part: Region, read: Callable[[Region], NDArray[Any]]) -> NDArray[Any]:
        """Return the flags of a part of the variable, read by a function; beyond the companion they are 0."""
        inside = tuple(slice(axis.start, min(axis.stop, n)) for axis, n in zip(part, self.shape, strict=True))
        if inside == part:
            return read(part)
        flags = np.zeros(tuple(axis.stop - axis.start for axis in part), np.uint8)
        if all(axis.start < axis.stop for axis in inside):
            flags[tuple(slice(axis.stop - axis.start) for axis in inside)] = read(inside)
        return flags

    def other_shape(self, shape: tuple[int, ...] | None) -> str:
        """Return a text if the companion has another shape than the variable; empty if not."""
        if self.shape == shape:
            return ""
        return f"its companion {self.path} has shape {self.shape}, not {shape}: values beyond it are read as stored"

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> NDArray[Any]:
        """Restore missing values, in place; see `Flags.restore`.

        Raises
        ------
        FileError
            If a flag is not in the table.
        """
        try:
            self.flags.restore(values, flags)
        except DataError as error:
            raise FileError(f"{self.label}: {error}") from error
        return values


class RestoredReader:
    """Values of a variable with restored missing values. Threads may share it."""

    def __init__(self, values: ArrayReader, companion: CompanionFlags, flags: ArrayReader) -> None:
        self.shape, self.dtype, self.chunk_shape = values.shape, values.dtype, values.chunk_shape
        self._values, self._companion, self._flags = values, companion, flags

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        values, flags = self._values.read(part), self._companion.read(part, self._flags.read)
        return put(self._companion.restore(np.array(values), flags) if flags.any() else values, out)

    def close(self) -> None:
        """Close values and flags."""
        self._values.close()
        self._flags.close()
