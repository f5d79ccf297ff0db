"""Parameters as several filters read them: none at all, one number, or a name for a number."""

from __future__ import annotations

from typing import ClassVar, Self

from tamis.errors import ParameterError
from tamis.filters.base import Filter


class Wordless(Filter):
    """A filter without requested parameters; those in a file were filled in on writing and are ignored."""

    __slots__ = ()

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Return the filter, whatever the values."""
        return cls()

    @property
    def requested(self) -> tuple[int, ...]:
        """None."""
        return ()


class OneNumber(Filter):
    """A filter whose one parameter, the first word, is not needed for decoding; the default if there is no word.

    Attributes
    ----------
    signed
        Whether the word is a number with a sign, in two's complement.
    """

    __slots__ = ()

    signed: ClassVar[bool] = False

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the first word and ignore others, which PyTables, for example, adds."""
        (parameter,) = cls.parameters().values()
        return cls(*(parameter.nearest(cls._number(word)) for word in values[:1]))

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


def named(name: str, subject: str, names: tuple[str, ...], word: int) -> str:
    """Return the name that a number stands for.

    Raises
    ------
    ParameterError
        If no name has this number.
    """
    if word >= len(names) or not names[word]:
        allowed = ", ".join(f"{i} ({text})" for i, text in enumerate(names) if text)
        raise ParameterError(f"expected the {subject} of {name} to be one of {allowed}, got {word}")
    return names[word]
