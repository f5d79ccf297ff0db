"""A filter's place in a pipeline: with the flag that it has there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tamis.filters.base import Filter, Request
from tamis.filters.registry import requested_filter


@dataclass(frozen=True, slots=True)
class Stage:
    """A filter's place in a pipeline.

    Parameters
    ----------
    filter
        What runs there.
    optional
        Whether a chunk may go without it where it cannot be applied.
    stored
        Its parameters as a file has them; None where they follow from type and shape of the chunk.
    """

    filter: Filter
    optional: bool
    stored: tuple[int, ...] | None = None

    @classmethod
    def of(cls, wanted: Filter | Request) -> Self:
        """Take a filter, or what was asked for by number, with the flag that HDF5's own calls give it.

        Raises
        ------
        ParameterError
            If it is one that tamis knows and refuses such parameters.
        """
        found = wanted if isinstance(wanted, Filter) else requested_filter(wanted)
        return cls(found, found.optional)

    @property
    def request(self) -> Request:
        """Id and parameters for H5Pset_filter."""
        return Request(self.filter.id, self.filter.requested)

    @property
    def flag(self) -> str:
        """The flag in words."""
        return "optional" if self.optional else "required"

    @property
    def in_words(self) -> str:
        """What the filter does, and who wrote its parameters where that is known."""
        return self.filter.in_words(self.stored or ())

    def __str__(self) -> str:
        if self.optional == self.filter.optional:
            return str(self.filter)
        return f"{self.filter}{'?' if self.optional else '!'}"
