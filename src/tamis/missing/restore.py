"""Missing values put back from a companion: flags beside an array, and a table of what they stand for."""

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
    """The flags of a variable, and what they stand for.

    Parameters
    ----------
    flags
        The table.
    label
        File and path of the companion, for messages.
    path
        Of the companion.
    shape
        Of the flags. A program that knows no companions may have made the variable longer or shorter since.
    """

    flags: Flags
    label: str
    path: str
    shape: tuple[int, ...]

    def read(self, part: Region, read: Callable[[Region], NDArray[Any]]) -> NDArray[Any]:
        """Read the flags of a part of the variable by a function; beyond the companion values are as stored, flag 0."""
        known = tuple(slice(axis.start, min(axis.stop, n)) for axis, n in zip(part, self.shape, strict=True))
        if known == part:
            return read(part)
        flags = np.zeros(tuple(axis.stop - axis.start for axis in part), np.uint8)
        if all(axis.start < axis.stop for axis in known):
            flags[tuple(slice(axis.stop - axis.start) for axis in known)] = read(known)
        return flags

    def other_shape(self, shape: tuple[int, ...] | None) -> str:
        """Return what the shape of the flags means where it is not that of the variable; empty where it is."""
        if self.shape == shape:
            return ""
        return f"its companion {self.path} has shape {self.shape}, not {shape}: values beyond it are read as stored"

    def restore(self, values: NDArray[Any], flags: NDArray[np.uint8]) -> NDArray[Any]:
        """Put missing values back, in place; see `Flags.restore`.

        Raises
        ------
        FileError
            If there is a flag that stands for nothing.
        """
        try:
            self.flags.restore(values, flags)
        except DataError as error:
            raise FileError(f"{self.label}: {error}") from error
        return values


class RestoredReader:
    """Values of a variable with its missing values put back. Threads may share it.

    Parameters
    ----------
    values
        As they are stored.
    companion
        Of the variable.
    flags
        Its flags, as they are stored.
    """

    def __init__(self, values: ArrayReader, companion: CompanionFlags, flags: ArrayReader) -> None:
        self.shape, self.dtype, self.chunk_shape = values.shape, values.dtype, values.chunk_shape
        self._values, self._companion, self._flags = values, companion, flags

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part of the array."""
        values, flags = self._values.read(part), self._companion.read(part, self._flags.read)
        return put(self._companion.restore(np.array(values), flags) if flags.any() else values, out)

    def close(self) -> None:
        """Close both."""
        self._values.close()
        self._flags.close()
