"""What filters make of their words, HDF5's name for parameters of 32 bits, where several do the same."""

from __future__ import annotations

from typing import ClassVar, Self

from tamis.errors import ParameterError
from tamis.filters.base import Filter


class Wordless(Filter):
    """A filter that nothing is asked of: what a file has was filled in on writing, and says nothing of the filter."""

    __slots__ = ()

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Take any."""
        return cls()

    @property
    def requested(self) -> tuple[int, ...]:
        """None."""
        return ()


class OneNumber(Filter):
    """A filter of one number, its first word, that decoding does not need; its default where there is none.

    Attributes
    ----------
    signed
        Whether the word is a number with a sign, in two's complement.
    """

    __slots__ = ()

    signed: ClassVar[bool] = False

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the first word; others, such as PyTables adds, say nothing of the filter."""
        (each,) = cls.parameters().values()
        return cls(*(each.nearest(cls._number(word)) for word in values[:1]))

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read the number, within its bounds, or none."""
        if len(values) > 1:
            raise ParameterError(f"expected one parameter of {cls.name}, got {values}")
        return cls(*map(cls._number, values))

    @property
    def requested(self) -> tuple[int, ...]:
        """The number."""
        (name,) = self.parameters()
        return (getattr(self, name) & 0xFFFFFFFF,)

    @classmethod
    def _number(cls, word: int) -> int:
        return word - (word >> 31 << 32) if cls.signed else word


def named(name: str, what: str, names: tuple[str, ...], word: int) -> str:
    """Return what a number stands for.

    Raises
    ------
    ParameterError
        If it stands for nothing.
    """
    if word >= len(names) or not names[word]:
        known = ", ".join(f"{i} ({each})" for i, each in enumerate(names) if each)
        raise ParameterError(f"expected the {what} of {name} to be one of {known}, got {word}")
    return names[word]
