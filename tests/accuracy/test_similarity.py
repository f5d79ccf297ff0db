"""DSSIM and the correlation of two fields: against their definitions, window by window and value by value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.accuracy import Moments, dssim

REACH, STABLE = 5, 1e-8


def fields(shape: tuple[int, int] = (23, 19)) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(8)
    source = 250 + 40 * np.cumsum(random.standard_normal(shape), 1)
    return source, source + 2 * random.standard_normal(shape)


def plain_dssim(source: NDArray[Any], target: NDArray[Any], valid: NDArray[np.bool_]) -> float:
    low = min(source[valid].min(), target[valid].min())
    high = max(source[valid].max(), target[valid].max())
    one, two = (np.round((field - low) / (high - low) * 255) / 255 for field in (source, target))
    windows = []
    for i in range(REACH, source.shape[0] - REACH):
        for j in range(REACH, source.shape[1] - REACH):
            if not valid[i, j]:
                continue
            sums = [0.0] * 6
            for y in range(i - REACH, i + REACH + 1):
                for x in range(j - REACH, j + REACH + 1):
                    if valid[y, x]:
                        weight = math.exp(-((y - i) ** 2 + (x - j) ** 2) / (2 * 1.5**2))
                        a, b = one[y, x], two[y, x]
                        for number, term in enumerate((1.0, a, b, a * a, b * b, a * b)):
                            sums[number] += weight * term
            mean_a, mean_b, square_a, square_b, product = (part / sums[0] for part in sums[1:])
            variance_a, variance_b = square_a - mean_a**2, square_b - mean_b**2
            luminance = (2 * mean_a * mean_b + STABLE) / (mean_a**2 + mean_b**2 + STABLE)
            structure = (2 * (product - mean_a * mean_b) + STABLE) / (variance_a + variance_b + STABLE)
            windows.append(luminance * structure)
    return sum(windows) / len(windows)


def test_dssim_as_defined() -> None:
    source, target = fields()
    everywhere = np.ones(source.shape, bool)
    found = dssim(source, target)
    assert found == pytest.approx(plain_dssim(source, target, everywhere), abs=1e-9)
    assert found == pytest.approx(dssim(source, target, everywhere), abs=1e-12)
    assert found < 0.9999
    assert dssim(source, source.copy()) == 1


def test_dssim_missing_values_have_no_weight() -> None:
    source, target = fields()
    valid = np.random.default_rng(9).random(source.shape) < 0.7
    expected = plain_dssim(source, target, valid)
    source[~valid], target[~valid] = np.nan, 1e36
    assert dssim(source, target, valid) == pytest.approx(expected, abs=1e-9)


def test_dssim_with_scipy_is_the_same() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    source, target = fields((60, 70))
    low, high = min(source.min(), target.min()), max(source.max(), target.max())
    one, two = (np.round((field - low) / (high - low) * 255) / 255 for field in (source, target))

    def mean(values: NDArray[Any]) -> NDArray[Any]:
        blurred = ndimage.gaussian_filter(values, 1.5, radius=REACH, mode="constant")
        return np.asarray(blurred[REACH:-REACH, REACH:-REACH])

    a, b = mean(one), mean(two)
    first = (2 * a * b + STABLE) / (a * a + b * b + STABLE)
    second = (2 * (mean(one * two) - a * b) + STABLE) / (mean(one * one) - a * a + mean(two * two) - b * b + STABLE)
    assert dssim(source, target) == pytest.approx(float((first * second).mean()), abs=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.5, -2.0])
def test_dssim_of_equal_fields_is_1(value: float) -> None:
    constant = np.full((12, 12), value, "f4")
    assert dssim(constant, constant) == pytest.approx(1)
    source, _ = fields()
    assert dssim(source, source) == pytest.approx(1)


def test_dssim_without_a_whole_window_is_none() -> None:
    field = np.ones((10, 40), "f4")
    assert dssim(field, field) is None
    field = np.ones((12, 12), "f4")
    assert dssim(field, field, np.zeros(field.shape, bool)) is None


def plain_correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    mean_1, mean_2 = (math.fsum(part) / len(part) for part in (first, second))
    product = math.fsum((a - mean_1) * (b - mean_2) for a, b in zip(first, second, strict=True))
    squares = (
        math.fsum((a - mean) ** 2 for a in part) for part, mean in zip((first, second), (mean_1, mean_2), strict=True)
    )
    return product / math.sqrt(math.prod(squares))


def test_correlation_as_defined_in_parts_too() -> None:
    source, target = (field.ravel() for field in fields())
    whole = Moments.of(source, target)
    assert whole.correlation == pytest.approx(plain_correlation(source, target), abs=1e-13)
    parts = Moments()
    for begin in range(0, source.size, 100):
        parts = parts.plus(Moments.of(source[begin : begin + 100], target[begin : begin + 100]))
    assert parts.count == source.size
    assert parts.correlation == pytest.approx(whole.correlation, abs=1e-13)
    assert parts.mean_1 == pytest.approx(whole.mean_1)


def test_correlation_of_constants_and_nothing_is_none() -> None:
    assert Moments().correlation is None
    assert Moments.of(np.ones(4), np.arange(4.0)).correlation is None
    assert Moments.of(np.empty(0), np.empty(0)) == Moments()
