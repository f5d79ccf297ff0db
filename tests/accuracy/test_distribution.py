"""The test of Kolmogorov and Smirnov against its definition, and its limit against known values."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.accuracy.distribution import ks_probability, ks_statistic


def test_statistic_as_defined() -> None:
    random = np.random.default_rng(0)
    first, second = random.integers(0, 20, 50).astype("f4"), random.normal(10, 5, 70).round().astype("f4")
    shares = [abs((first <= at).mean() - (second <= at).mean()) for at in (*first, *second)]
    assert ks_statistic(first, second) == pytest.approx(max(shares), abs=1e-12)
    assert ks_statistic(first, first) == 0
    assert ks_statistic(first, first + 100) == 1
    assert ks_statistic(first[:0], second) == 0


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
    random = np.random.default_rng(1)
    distances = [ks_statistic(*random.random((2, 500))) for _ in range(400)]
    share = np.mean([ks_probability(distance, 500) < 0.1 for distance in distances])
    assert 0.04 < share < 0.16
