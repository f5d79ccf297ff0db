"""A filter in a pipeline, with its flag: optional or required."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tamis.filters.base import Filter, Request
from tamis.filters.registry import from_values, requested_filter
from tamis.filters.unknown import UnknownFilter
from tamis.kinds import explained, instance

NONE = "none"
"""The text of a pipeline without filters."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A filter in a pipeline, with its flag.

    Parameters
    ----------
    filter
        The filter.
    optional
        Whether a chunk is stored without the filter if the filter fails.
    stored
        Its parameters as a file has them; None if they follow from the type and shape of a chunk.
    """

    filter: Filter
    optional: bool
    stored: tuple[int, ...] | None = None

    @classmethod
    @explained(requested=instance("a filter such as tamis.Deflate(4), or a Request", Filter, Request))
    def of(cls, requested: Filter | Request) -> Self:
        """Return a stage of a filter or of a request by id, with the flag that HDF5's own calls give it.

        Raises
        ------
        ParameterError
            If tamis knows the filter and refuses such parameters.
        """
        stage_filter = requested if isinstance(requested, Filter) else requested_filter(requested)
        return cls(stage_filter, stage_filter.optional)

    @classmethod
    def listed(cls, request: Request, label: str, *, optional: bool, total: int) -> Self:
        """Return a stage of a filter that HDF5 lists for an object in a file.

        Parameters
        ----------
        request
            Id and stored parameters, as far as HDF5 returns them.
        label
            The filter's name in the file.
        optional
            Its flag.
        total
            Number of all parameters.
        """
        stage_filter = from_values(request, label, stored=True)
        if total > len(request.values):
            reason = f"it has {total} parameters, of which HDF5 returns {len(request.values)}"
            stage_filter = UnknownFilter(request.id, request.values, label or stage_filter.name, reason)
        return cls(stage_filter, optional, request.values)

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
        """A description of the filter, with the version that wrote its parameters if that is known."""
        return self.filter.in_words(self.stored or ())

    def __str__(self) -> str:
        if self.optional == self.filter.optional:
            return str(self.filter)
        return f"{self.filter}{'?' if self.optional else '!'}"
