"""A variable as the conventions see it, and its attributes as text or numbers, whatever their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.kinds import ATTRIBUTES, TEXT, explained
from tamis.rounding import CONTAINER_ATTRIBUTES, ROUNDING_ATTRIBUTES

Attributes = Mapping[str, Any]
"""Attributes by name: text, numbers or arrays of them; values of other types are ignored."""

_KNOWN = frozenset(
    (
        *("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "_Unsigned"),
        *("scale_factor", "add_offset", "units", "standard_name", "axis", "cartesian_axis", "_CoordinateAxisType"),
        *("coordinates", "bounds", "climatology", "formula_terms", "cell_measures", "grid_mapping"),
        *("ancillary_variables", "flag_values", "flag_masks", "cf_role", "compress", "geometry"),
        *ROUNDING_ATTRIBUTES,
        *CONTAINER_ATTRIBUTES,
        *("instance_dimension", "sample_dimension", "node_count", "part_node_count", "interior_ring", "nodes"),
    )
)
_KNOWN_ENDINGS = ("_coordinates", "_connectivity")  # attributes of a mesh


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a file.

    Parameters
    ----------
    path
        Absolute path, with ``/`` between groups.
    shape
        Slowest axis first.
    dtype
        Type of the stored values; None if they are not numbers.
    dimensions
        Path of the dimension of each axis; None if it is not known.
    attributes
        At least those for which `is_known` is True.
    is_scale
        Whether the variable is a dimension scale.
    is_enum
        Whether the values are members of an enumeration.
    """

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    dimensions: tuple[str | None, ...] = ()
    attributes: Attributes = field(default_factory=dict)
    is_scale: bool = False
    is_enum: bool = False

    @property
    def name(self) -> str:
        """The path without the slash of the root group, as people write it."""
        return self.path[1:] if self.path.count("/") == 1 else self.path


@explained(name=TEXT)
def is_known(name: str) -> bool:
    """Return whether this package uses an attribute."""
    return name in _KNOWN or name.endswith(_KNOWN_ENDINGS)


@explained(attributes=ATTRIBUTES, name=TEXT)
def text(attributes: Attributes, name: str) -> str:
    """Return an attribute as text; empty if it does not exist or is not text."""
    value = attributes.get(name)
    if isinstance(value, np.ndarray):
        value = value.reshape(-1)[0] if value.size == 1 else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else ""


@explained(attributes=ATTRIBUTES, name=TEXT)
def numbers(attributes: Attributes, name: str) -> NDArray[Any]:
    """Return the numbers of an attribute as a 1-D array; empty if it has no real numbers."""
    value = attributes.get(name)
    if not isinstance(value, (int, float, np.generic, np.ndarray, list, tuple)) or isinstance(value, bool):
        return np.empty(0)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)
    return array.reshape(-1) if array.dtype.kind in "iuf" else np.empty(0)


@explained(attributes=ATTRIBUTES)
def is_unsigned(attributes: Attributes) -> bool:
    """Return whether the attribute ``_Unsigned`` says that signed integers mean unsigned ones."""
    return text(attributes, "_Unsigned").strip().lower() == "true"
