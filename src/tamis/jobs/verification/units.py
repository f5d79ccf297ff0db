"""Convert a tally of stored values to the units of their variable."""

from __future__ import annotations

import math
from dataclasses import replace

from tamis.accuracy.statistics import Place, Squares, Tally
from tamis.cf import Packing


def in_units(tally: Tally, packing: Packing | None) -> Tally:
    """Return a tally with errors, ranges and values unpacked; counts and relative errors do not change."""
    if packing is None:
        return tally

    def convert(place: Place | None) -> Place | None:
        if place is None:
            return None
        return Place(place.index, packing.unpacked(place.source), packing.unpacked(place.target))

    ends = [packing.unpacked(limit) for limit in (tally.low, tally.high) if limit is not None]
    fraction, exponent = math.frexp(packing.scale)
    squares = Squares(tally.squares.mantissa * fraction**2, tally.squares.exponent + exponent)
    return replace(
        tally,
        error=packing.unpacked_error(tally.error),
        squares=squares,
        low=min(ends, default=None),
        high=max(ends, default=None),
        worst=convert(tally.worst),
        first_different=convert(tally.first_different),
        first_lost=convert(tally.first_lost),
        first_gained=convert(tally.first_gained),
        first_crossed=convert(tally.first_crossed),
    )
