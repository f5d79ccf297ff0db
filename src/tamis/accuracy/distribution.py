"""Whether two sets of values may come from one distribution: the test of Kolmogorov and Smirnov."""

from __future__ import annotations

import math

_TERMS = 100
_CERTAIN = 0.2
"""Below this, the probability differs from 1 by less than rounding, and its series converges slowly."""


def ks_probability(statistic: float, count: int) -> float:
    """Return how probable a distance of that size or more is between two sets of so many values of one distribution.

    This is Kolmogorov's limit for large sets, as scipy's ``ks_2samp`` takes it for more than 10,000 values. The more
    values there are, the smaller the distances that are improbable.
    """
    reach = statistic * math.sqrt(count / 2)
    if reach < _CERTAIN:
        return 1.0
    terms = ((-1.0) ** (k - 1) * math.exp(-2 * (k * reach) ** 2) for k in range(1, _TERMS))
    return min(max(2 * math.fsum(terms), 0.0), 1.0)
