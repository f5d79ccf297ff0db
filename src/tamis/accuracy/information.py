"""Real information of bits: what a bit tells about the same bit of the next value (Klöwer et al. 2021).

As in BitInformation.jl and xbitinfo, the exponent of a float counts as a sign and a magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import _native

CONFIDENCE = 0.99
"""Bits whose information could be chance with a probability of more than 1 % count as noise."""

SIGNIFICAND_BITS = {4: 23, 8: 52}
"""Bits of the significand after the implicit first one, by the size of a float."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BitPairs:
    """Counts of the bits of neighbours along an axis, for each bit of a float, the sign first.

    Parameters
    ----------
    pair_count
        Number of pairs of valid neighbours.
    first, second, both
        How many of the first values, of the second values, and of the pairs with both values have the bit set.
    """

    pair_count: int
    first: Counts
    second: Counts
    both: Counts

    def plus(self, other: BitPairs) -> BitPairs:
        """Return the counts of these pairs and of others."""
        return BitPairs(
            self.pair_count + other.pair_count,
            self.first + other.first,
            self.second + other.second,
            self.both + other.both,
        )

    def information(self, confidence: float = CONFIDENCE) -> NDArray[np.float64]:
        """Return the mutual information of neighbours in each bit, in bits; 0 where it may be chance."""
        total = np.zeros(self.first.size)
        if not self.pair_count:
            return total
        ones, next_ones = self.first / self.pair_count, self.second / self.pair_count
        both = self.both / self.pair_count
        cells = (
            (both, ones, next_ones),
            (ones - both, ones, 1 - next_ones),
            (next_ones - both, 1 - ones, next_ones),
            (1 - ones - next_ones + both, 1 - ones, 1 - next_ones),
        )
        for joint, here, there in cells:
            present = joint > 0
            total[present] += joint[present] * np.log2(joint[present] / (here[present] * there[present]))
        total[total <= information_by_chance(self.pair_count, confidence)] = 0
        return total


def information_by_chance(pair_count: int, confidence: float = CONFIDENCE) -> float:
    """Return the information in bits that independent bits of so many pairs stay below, with a probability.

    A bit that is random is 1 in a share of the values that differs from 1/2 by chance; the bound is how much less than
    one bit of entropy such a share has.
    """
    share = min(1.0, 0.5 + NormalDist().inv_cdf((1 + confidence) / 2) / (2 * math.sqrt(pair_count)))
    return 1.0 + sum(part * math.log2(part) for part in (share, 1 - share) if part > 0)


def bit_pairs(values: NDArray[Any], valid: NDArray[np.bool_] | None, axis: int) -> BitPairs:
    """Return the counts of bits of neighbours along an axis; pairs with a missing value are left out.

    Parameters
    ----------
    values
        Floats of 4 or 8 bytes.
    valid
        Which values are valid; None if all are.
    axis
        The axis along which values are neighbours.
    """
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    if not native.size:
        none = np.zeros(8 * native.itemsize, np.int64)
        return BitPairs(0, none, none, none)
    extents = math.prod(values.shape[:axis]), values.shape[axis], math.prod(values.shape[axis + 1 :])
    flags = None if valid is None else np.ascontiguousarray(valid)
    pair_count, *counts = _native.bit_pairs(native, flags, extents)
    first, second, both = (np.array(each[::-1], np.int64) for each in counts)
    return BitPairs(pair_count, first, second, both)


def keepbits(informations: Sequence[NDArray[np.float64]], itemsize: int, share: float) -> int:
    """Return how many bits of the significand keep a share of the information along each axis.

    Parameters
    ----------
    informations
        Information of each bit along one axis or several; the axis that needs most bits decides.
    itemsize
        Bytes of a float.
    share
        The share, more than 0 and at most 1.

    Returns
    -------
    int
        At least 1, which is the least that a file can record; all bits if no axis has information, because then
        nothing shows that bits are noise.
    """
    most = SIGNIFICAND_BITS[itemsize]
    needed = []
    for information in informations:
        sums = np.cumsum(information)
        if sums[-1] > 0:
            # The last sum is the total itself, so that rounding cannot make the share unreachable.
            needed.append(int(np.argmax(sums >= share * sums[-1])) + 1 - (information.size - most))
    return min(max(*needed, 1), most) if needed else most
