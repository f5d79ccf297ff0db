"""What notations are about: a chain of filters with their flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tamis.errors import ParameterError
from tamis.filters import Stage

Chain: TypeAlias = Sequence[Stage]
"""Filters in the order in which they run on writing."""


def refuse_other_flags(chain: Chain, notation: str) -> None:
    """Raise ParameterError where a filter has another flag than HDF5's own calls give it."""
    for each in chain:
        if each.optional != each.filter.optional:
            usual = Stage.of(each.filter).flag
            raise ParameterError(
                f"expected {each.filter} to be {usual}, got {each.flag}: {notation} cannot express flags"
            )
