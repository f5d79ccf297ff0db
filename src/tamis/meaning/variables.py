"""A variable in terms of the conventions, and its attributes as text or numbers, whatever their types."""

from __future__ import annotations

import math
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
    """Return whether the attribute ``_Unsigned`` makes signed integers unsigned."""
    return text(attributes, "_Unsigned").strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class Packing:
    """The relation of stored values to values in the units of a variable."""

    # The attributes ``scale_factor``, which is not 0, and ``add_offset``
    scale: float = 1.0
    offset: float = 0.0

    def stored_bound(self, bound: float) -> float:
        """Return the largest bound of stored values, to 15 digits, that keeps a bound of unpacked values."""
        size = abs(self.scale)
        stored = _in_15_digits(bound / size)
        if not math.isfinite(stored) or (stored == 0) != (bound == 0):
            raise OverflowError(f"{bound:g} / {size:g}")
        while self.unpacked_error(stored) > bound:
            stored = math.nextafter(stored, 0)
        return stored

    def unpacked_error(self, error: float) -> float:
        """Return an error or bound of stored values in units of the unpacked ones, to 15 digits."""
        return _in_15_digits(error * abs(self.scale))

    def unpacked(self, value: float) -> float:
        """Return a stored value unpacked."""
        return value * self.scale + self.offset

    @property
    def stored_zero(self) -> float:
        """The stored value, a whole number or not, that means 0."""
        return -self.offset / self.scale

    def to_dict(self) -> dict[str, float]:
        """Return the content of the JSON object."""
        return {"scale_factor": self.scale, "add_offset": self.offset}

    def __str__(self) -> str:
        scale = f"scale_factor {self.scale:.9g}" if self.scale != 1 else ""
        offset = f"add_offset {self.offset:.9g}" if self.offset else ""
        return " and ".join(filter(None, (scale, offset)))


def _in_15_digits(value: float) -> float:
    """Round off the last bits, where products and quotients of decimal fractions are inexact: 3 * 0.1 is 0.3."""
    return float(f"{value:.15g}")


@explained(attributes=ATTRIBUTES)
def packing_of(attributes: Attributes) -> Packing | None:
    """Return how values are packed; None if they are not, or if the attributes are not single finite numbers."""
    factors: list[float] = []
    for name, default in (("scale_factor", 1.0), ("add_offset", 0.0)):
        values = numbers(attributes, name)
        if name in attributes and (values.size != 1 or not math.isfinite(float(values[0]))):
            return None
        factors.append(float(values[0]) if values.size else default)
    scale, offset = factors
    # With a scale whose inverse is infinite, no value can be packed.
    if (scale, offset) == (1.0, 0.0) or not scale or not math.isfinite(offset / scale) or not math.isfinite(1 / scale):
        return None
    return Packing(scale, offset)


HISTORY = "history"

_OWN = "tamis "
_MOST = 60000  # characters; HDF5 stores no larger attributes in the oldest of its file formats


def with_line(attributes: Attributes, line: str) -> str:
    """Return the history of a file with an additional line, from the attributes of its root group."""
    before = text(attributes, HISTORY)
    if not line or not (before if HISTORY in attributes else "Conventions" in attributes):
        return ""
    after = f"{line}\n{before}" if before else line
    return after if len(after.encode("utf-8", "surrogateescape")) <= _MOST else ""


def added_line(before: str, after: str) -> str:
    """Return the lines that tamis added before a history; empty if it changed in any other way."""
    line = after.removesuffix(f"\n{before}")
    is_own = before and line != after and all(part.startswith(_OWN) for part in line.split("\n"))
    return line if is_own else ""
