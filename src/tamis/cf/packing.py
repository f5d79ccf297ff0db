"""Packed values: ``unpacked = stored * scale_factor + add_offset``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tamis.cf.variables import Attributes, numbers
from tamis.kinds import ATTRIBUTES, explained


@dataclass(frozen=True, slots=True)
class Packing:
    """The relation of stored values to values in the units of a variable.

    Parameters
    ----------
    scale, offset
        The attributes ``scale_factor``, which is not 0, and ``add_offset``.
    """

    scale: float = 1.0
    offset: float = 0.0

    def stored_bound(self, bound: float) -> float:
        """Return the largest bound of stored values, to 15 digits, that keeps a bound of unpacked values.

        Raises
        ------
        OverflowError
            If the result overflows or underflows a float.
        """
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
