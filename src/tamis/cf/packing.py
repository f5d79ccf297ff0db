"""Packed values: ``unpacked = stored * scale_factor + add_offset``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tamis.cf.variables import Attributes, numbers


@dataclass(frozen=True, slots=True)
class Packing:
    """How stored values become those in the units of a variable.

    Parameters
    ----------
    scale, offset
        The attributes ``scale_factor``, which is not 0, and ``add_offset``.
    """

    scale: float = 1.0
    offset: float = 0.0

    def stored_bound(self, bound: float) -> float:
        """Return the largest bound of stored values, of 15 digits, that keeps one of unpacked values.

        Raises
        ------
        OverflowError
            If no float is as large, or as small.
        """
        size = abs(self.scale)
        found = _in_15_digits(bound / size)
        if not math.isfinite(found) or (found == 0) != (bound == 0):
            raise OverflowError(f"{bound:g} / {size:g}")
        while self.unpacked_error(found) > bound:
            found = math.nextafter(found, 0)
        return found

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
        """Return what JSON holds."""
        return {"scale_factor": self.scale, "add_offset": self.offset}

    def __str__(self) -> str:
        scale = f"scale_factor {self.scale:.9g}" if self.scale != 1 else ""
        offset = f"add_offset {self.offset:.9g}" if self.offset else ""
        return " and ".join(filter(None, (scale, offset)))


def _in_15_digits(value: float) -> float:
    """Round away what a product or quotient of decimal fractions has in its last bits: 3 * 0.1 is 0.3."""
    return float(f"{value:.15g}")


def packing_of(attributes: Attributes) -> Packing | None:
    """Return how values are packed; None where they are not, or the attributes are no single finite numbers."""
    found: list[float] = []
    for name, default in (("scale_factor", 1.0), ("add_offset", 0.0)):
        given = numbers(attributes, name)
        if name in attributes and (given.size != 1 or not math.isfinite(float(given[0]))):
            return None
        found.append(float(given[0]) if given.size else default)
    scale, offset = found
    # A scale so small that its inverse is infinite unpacks nothing.
    if (scale, offset) == (1.0, 0.0) or not scale or not math.isfinite(offset / scale) or not math.isfinite(1 / scale):
        return None
    return Packing(scale, offset)
