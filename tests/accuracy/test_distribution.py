"""The probability of the test of Kolmogorov and Smirnov against known values, and how often it is small."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.accuracy import ks_probability


@pytest.mark.parametrize(
    ("reach", "probability"), [(0.5, 0.9639452436648751), (1.0, 0.26999967167735456), (1.35809864, 0.05)]
)
def test_probability_is_that_of_the_limit(reach: float, probability: float) -> None:
    """Values of scipy.special.kolmogorov."""
    count = 20_000
    assert ks_probability(reach / (count / 2) ** 0.5, count) == pytest.approx(probability, rel=1e-4)


def test_probability_of_extremes() -> None:
    assert ks_probability(0.0, 10**9) == 1
    assert ks_probability(1.0, 10**6) == 0


def test_probability_is_how_often_larger_distances_occur() -> None:
    random, steps = np.random.default_rng(1), np.arange(1000)
    distances = []
    for _ in range(400):
        shares = np.where(np.argsort(random.random(1000)) < 500, 1, -1)
        distances.append(np.abs(shares.cumsum())[steps].max() / 500)
    share = np.mean([ks_probability(distance, 500) < 0.1 for distance in distances])
    assert 0.04 < share < 0.16
