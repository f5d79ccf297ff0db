"""A chain of filters with their flags, which every notation reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tamis.errors import ParameterError
from tamis.filters import Stage

Chain: TypeAlias = Sequence[Stage]
"""Filters in the order in which they run on writing."""


def refuse_other_flags(chain: Chain, notation: str) -> None:
    """Raise ParameterError if a filter has another flag than HDF5's own calls give it."""
    for stage in chain:
        if stage.optional != stage.filter.optional:
            usual = Stage.of(stage.filter).flag
            raise ParameterError(
                f"expected {stage.filter} to be {usual}, got {stage.flag}: {notation} cannot express flags"
            )
