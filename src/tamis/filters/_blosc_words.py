"""Parameters that Blosc and Blosc2 share, and the arrays that imagecodecs takes for them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.filters._words import named
from tamis.filters.base import Data, Filter, number

COMPRESSOR = "compressor of the blocks"
"""Meaning of the parameter ``compressor``."""

LARGEST_TYPE = 255
"""Bytes of an element; larger elements are treated as single bytes."""
_FILLED_IN = 4  # words that the filter fills in, in front of the requested ones
_DEFAULTS = (5, 1, 0)  # level, shuffle and compressor


def level_number() -> Any:
    """Return the dataclass field of the level."""
    return number("0 stores, 9 is smallest", 0, 9, _DEFAULTS[0])


class BloscFilter(Filter):
    """The base class of Blosc and Blosc2: ``compressor``, ``level`` and ``shuffle``.

    Attributes
    ----------
    compressors, shuffles
        Names by their numbers; empty for an unused number.
    """

    __slots__ = ()

    compressors: ClassVar[tuple[str, ...]]
    shuffles: ClassVar[tuple[str, ...]]
    compressor: str
    level: int
    shuffle: str

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters, with the defaults of the HDF5 filter for absent ones.

        The compressor must be a known one: the HDF5 filter does not decode otherwise, either.
        """
        level, shuffle, compressor = _requested(values)
        return cls._of(cls.parameters()["level"].nearest(level), min(shuffle, len(cls.shuffles) - 1), compressor)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, or stored ones."""
        return cls._of(*_requested(values))

    @classmethod
    def _of(cls, level: int, shuffle: int, compressor: int) -> Self:
        return cls(
            named(cls.name, "compressor", cls.compressors, compressor),  # type: ignore[call-arg]
            level,
            named(cls.name, "shuffle", cls.shuffles, shuffle),
        )

    @property
    def requested(self) -> tuple[int, ...]:
        """Four words that the filter fills in, level, shuffle and compressor."""
        numbers = (self.level, self.shuffles.index(self.shuffle), self.compressors.index(self.compressor))
        return (0,) * _FILLED_IN + numbers

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return compressor, level and shuffle in words."""
        shuffle = "no shuffle" if self.shuffle == "none" else f"{self.shuffle} shuffle"
        return f"{self.name} {self.compressor}, level {self.level}, {shuffle}"


def _requested(values: tuple[int, ...]) -> tuple[int, int, int]:
    present = values[_FILLED_IN:]
    level, shuffle, compressor = (*present, *_DEFAULTS[len(present) :])[: len(_DEFAULTS)]
    return level, shuffle, compressor


def elements(data: Data, itemsize: int) -> NDArray[Any]:
    """Return bytes as an array, because imagecodecs takes the element size from the type, not from ``typesize``."""
    whole = 0 < itemsize <= LARGEST_TYPE and len(data) % itemsize == 0
    return np.frombuffer(data, f"V{itemsize if whole else 1}")
