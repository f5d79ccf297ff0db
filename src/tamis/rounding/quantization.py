"""What the CF conventions ask for about rounded values: attributes, and a container variable that names the algorithm.

Section 8.4 of CF 1.12, "Lossy Compression via Quantization". It has no word for `Absolute`, which gets no container.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tamis import _native
from tamis.rounding.rounding_base import Rounding

CONTAINER = "quantization"
"""The attribute of a rounded variable that names its container."""

CONTAINER_ATTRIBUTES = ("algorithm", "implementation")

COUNTS = ("quantization_nsb", "quantization_nsd")
"""Attributes of a rounded variable: number of significant bits, or of significant digits."""


def container_attributes(rounding: Rounding) -> dict[str, str]:
    """Return the attributes of the container of a rounding; empty if it has none."""
    if not rounding.algorithm:
        return {}
    return dict(zip(CONTAINER_ATTRIBUTES, (rounding.algorithm, f"tamis version {_native.version}"), strict=True))


def container_names(rounding: Rounding) -> Iterator[str]:
    """Yield names for the container of a rounding, of which the first is taken that is free or has its attributes."""
    first = f"{CONTAINER}_{rounding.algorithm}"
    return itertools.chain([first], (f"{first}_{number}" for number in itertools.count(2)))


def is_container(shape: tuple[int, ...] | None, attributes: Mapping[str, Any]) -> bool:
    """Return whether a variable is the container of a rounding."""
    return shape == () and all(name in attributes for name in CONTAINER_ATTRIBUTES)
