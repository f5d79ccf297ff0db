"""The noise level of a variable, judged by its own values: no bound below it loses what they tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.jobs.plan.measure import informative_bits

if TYPE_CHECKING:
    from tamis.arrays import Region
    from tamis.jobs.plan.candidates import VariableToPlan
    from tamis.jobs.plan.sample import Piece, Sample

INFORMATION = 0.99
"""Bits that hold this share of the real information do not count as noise."""
_MOST_TILES = 64
_NEIGHBOURS = 3
"""Values in a row whose second difference is free of a trend."""
_MOST_EXTENT = 64
_DEVIATIONS = 0.6745 * math.sqrt(6)
"""Median magnitude of the second difference of independent normal values, in their standard deviations."""


class Noise(NamedTuple):
    """What a sample tells about the noise of a variable."""

    # Standard deviation of independent errors that would explain the differences between neighbours along the axis
    # where these are smallest, in units of the variable; 0 if there are none
    level: float
    keepbits: int | None  # Bits of the significand that hold `INFORMATION`; None for integers


def noise_of(variable: VariableToPlan, sample: Sample) -> Noise:
    """Return the noise of a variable.

    A second difference removes the mean and the trend of three neighbours in time or space; its median is not moved by
    fronts and coasts. What varies smoothly along any axis is no noise there: hence the axis with the least.
    """
    sizes: dict[int, list[NDArray[Any]]] = {}
    for axis, found in _second_differences(variable, sample):
        sizes.setdefault(axis, []).append(found)
    medians = [float(np.median(np.concatenate(sizes[axis]))) for axis in sorted(sizes)]
    array = variable.arrays[0]
    missing = [array.meaning.missing for array in variable.arrays]
    bits = None if array.meaning.packing is not None else informative_bits(sample, missing, INFORMATION)
    return Noise(min(medians, default=0.0) / _DEVIATIONS, bits)


def _second_differences(variable: VariableToPlan, sample: Sample) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield axes, with the magnitudes of second differences along them that are not 0."""
    for array, pieces in zip(variable.arrays, sample.tiles, strict=True):
        chosen = _some(pieces)
        missing = array.meaning.missing
        with closing(array.open_reader()) as reader:
            for piece in chosen:
                for axis, extent in enumerate(array.shape):
                    if extent < _NEIGHBOURS:
                        continue
                    values = piece.values
                    if values.shape[axis] < _NEIGHBOURS:  # chunks of one time step have no neighbours in time
                        values = np.asarray(reader.read(_around(piece.region, axis, array.shape)))
                    absent = missing.find(values)
                    units = sample.in_units(values).astype(np.float64)
                    if absent is not None:
                        units[absent] = np.nan
                    with np.errstate(invalid="ignore", over="ignore"):
                        found = np.abs(np.diff(units, 2, axis))
                    # Equal neighbours, such as days without rain, say nothing about noise.
                    found = found[np.isfinite(found) & (found > 0)]
                    if found.size:
                        yield axis, found


def _some(pieces: Sequence[Piece]) -> list[Piece]:
    """Return some pieces, evenly spaced: a sample of all values may have thousands."""
    step = -(-len(pieces) // _MOST_TILES)
    return [pieces[at] for at in range(0, len(pieces), step)]


def _around(region: Region, axis: int, shape: tuple[int, ...]) -> Region:
    """Return a part of a region that has neighbours along an axis."""
    part = [slice(span.start, min(span.stop, span.start + _MOST_EXTENT)) for span in region]
    begin = min(region[axis].start, shape[axis] - _NEIGHBOURS)
    part[axis] = slice(begin, begin + _NEIGHBOURS)
    return tuple(part)
