"""Statistics of the report have the values that NumPy, scipy, xarray and ldcpy's definition give."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tamis.accuracy import ErrorProfile, FieldProfile, period_of
from tamis.accuracy.error_profile import ERROR_BINS, QUANTILES
from tamis.accuracy.field_profile import Lags

SHAPE = (6, 40, 64)


def pair() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    before = np.cumsum(rng.normal(size=SHAPE), axis=2)
    return before, before + np.cumsum(rng.normal(0.01, 0.1, size=SHAPE), axis=1)


def profile(valid: Any = None) -> tuple[Any, Any, ErrorProfile]:
    before, after = pair()
    blocks = [slice(0, 4), slice(4, 6)]
    parts = [
        ErrorProfile.of(before[b], after[b], None if valid is None else valid[b], b.start, SHAPE[0]) for b in blocks
    ]
    return before, after, parts[0].plus(parts[1])


@pytest.mark.parametrize("holes", [False, True])
def test_errors_as_numpy_and_xarray_have_them(holes: bool) -> None:
    xarray = pytest.importorskip("xarray")
    valid = np.random.default_rng(4).random(SHAPE) < 0.9 if holes else None
    before, after, found = profile(valid)
    kept = np.ones(SHAPE, bool) if valid is None else valid
    errors = (after - before)[kept]
    array = xarray.DataArray(np.where(kept, after - before, np.nan), dims=("time", "lat", "lon"))
    assert found.count == errors.size
    assert found.bias == pytest.approx(float(array.mean()))
    assert found.rmse == pytest.approx(float(np.sqrt((array**2).mean())))
    counts, totals, squares, largest = found.steps
    assert counts == pytest.approx(kept.sum(axis=(1, 2)))
    assert totals / counts == pytest.approx(array.mean(("lat", "lon")).values)
    assert np.sqrt(squares / counts) == pytest.approx(np.sqrt((array**2).mean(("lat", "lon"))).values)
    assert largest == pytest.approx(np.abs(array).max(("lat", "lon")).values)
    reach = float(np.abs(errors).max())
    centres, numbers = found.histogram(reach)
    expected = np.histogram(errors, ERROR_BINS, (-reach, reach))[0]
    assert numbers.sum() == errors.size
    assert np.abs(np.cumsum(numbers) - np.cumsum(expected)).max() <= 0.001 * errors.size  # fine bins over edges
    assert centres[ERROR_BINS // 2] == 0
    assert found.values is not None
    width = found.values.window.width
    assert width < (before.max() - before.min()) / 10_000
    _, *rows = zip(*found.quantiles(), strict=True)
    for row, values in zip(rows, (before, after), strict=True):
        quantiles = np.quantile(values[kept], QUANTILES, method="inverted_cdf")
        assert list(row) == pytest.approx(quantiles.tolist(), abs=width)
    assert found.levels is not None
    low, high = (found.levels.window.centres[0] - found.levels.window.width / 2, found.levels.window.width)
    level = np.floor((before[kept] - low) / high).astype(int)
    assert found.levels.table[0].tolist() == np.bincount(level).tolist()
    assert found.levels.table[1] == pytest.approx(np.bincount(level, errors))
    assert found.highs == ((before[kept].max(), 1), (after[kept].max(), 1))


@pytest.mark.parametrize("factor", [1e-300, 1.0, 1e300])
def test_profile_does_not_depend_on_the_blocks(factor: float) -> None:
    rng = np.random.default_rng(7)
    before = np.concatenate([np.zeros(500), rng.normal(size=500), 1e4 + rng.normal(size=500)]) * factor
    after = before + rng.normal(size=1500) * 1e-3 * factor
    for cuts in ([500, 1000], [1, 700], [1499]):
        ends = pairwise([0, *cuts, 1500])
        parts = [ErrorProfile.of(before[one:end], after[one:end], None, one, 1500) for one, end in ends]
        found = functools.reduce(ErrorProfile.plus, parts)
        whole = ErrorProfile.of(before, after, None, 0, 1500)
        for one, other in ((found.errors, whole.errors), (found.values, whole.values), (found.levels, whole.levels)):
            assert one is not None
            assert other is not None
            assert one.window == other.window
            assert one.table[0].tolist() == other.table[0].tolist()
        assert found.steps[[0, 3]].tolist() == whole.steps[[0, 3]].tolist()  # others are sums, which round


def test_signs_and_zeros_are_counted() -> None:
    before = np.array([0.0, 0.0, 1.0, -1.0, 2.0, -3.0])
    after = np.array([0.0, 0.5, 0.0, 1.0, -2.0, -3.0])
    found = ErrorProfile.of(before, after, None, 0, 6)
    assert (found.sign_changes, found.zeros_lost, found.zeros_new) == (2, 1, 1)


@pytest.mark.check
def test_spectra_as_scipy_s_periodogram() -> None:
    signal = pytest.importorskip("scipy.signal")
    before, after = pair()
    found = FieldProfile.of(before, after, None, whole=True)
    for row, values in zip(found.mean_power, (before, after, after - before), strict=True):
        power = signal.periodogram(values, scaling="spectrum")[1].mean(axis=(0, 1))[1:]
        assert row == pytest.approx(power, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("axis", [1, 2])
def test_autocorrelation_as_scipy_and_numpy(axis: int) -> None:
    signal = pytest.importorskip("scipy.signal")
    before, after = pair()
    errors = after - before
    lags = Lags.of(errors, None, axis)
    rows = np.moveaxis(errors, axis, 2).reshape(-1, errors.shape[axis])
    products = sum(signal.correlate(row, row, method="direct")[len(row) - 1 :] for row in rows)[: len(lags.products)]
    assert lags.products == pytest.approx(products)
    mean = float(errors.mean())
    centred = rows - mean
    expected = [
        float((rows[:, : rows.shape[1] - lag] * rows[:, lag:]).mean() - mean**2) / float((centred**2).mean())
        for lag in range(len(lags.products))
    ]
    assert lags.correlation(mean) == pytest.approx(expected)


def test_autocorrelation_leaves_out_pairs_with_holes() -> None:
    errors = np.array([[[1.0, 0.0, 2.0, 4.0]]])
    valid = np.array([[[True, False, True, True]]])
    lags = Lags.of(errors, valid, 2)
    assert lags.counts[:4].tolist() == [3, 1, 1, 1]
    assert lags.products[:4].tolist() == [21, 8, 2, 4]


def test_gradients_as_numpy_has_them() -> None:
    before, after = pair()
    found = FieldProfile.of(before, after, None, whole=False).gradients
    for gradients, axis in zip(found, (2, 1), strict=True):
        one, two = np.diff(before, axis=axis), np.diff(after, axis=axis)
        expected = [float(np.sqrt((values**2).mean())) for values in (one, two, two - one)]
        assert gradients.roots == pytest.approx(expected)
        assert gradients.largest == pytest.approx(float(np.abs(two - one).max()))
        middles, counts = gradients.octaves()
        exponents = np.floor(np.log2(np.abs(np.stack([one, two]))))
        last = exponents.max()
        assert middles[-1] == pytest.approx(2 ** (last + 0.5))
        assert middles[1:] / middles[:-1] == pytest.approx(2)
        assert counts.sum(axis=1).tolist() == [one.size, two.size]
        assert counts[:, -1].tolist() == (exponents == last).reshape(2, -1).sum(axis=1).tolist()


def test_similarity_as_ldcpy_defines_it() -> None:
    """As `tests/accuracy` has it for `tamis.accuracy.fields.dssim`: Gaussian windows of 11 values, 256 levels."""
    ndimage = pytest.importorskip("scipy.ndimage")
    before, after = pair()
    found = FieldProfile.of(before, after, None, whole=True).similarities
    for one, two, value in zip(before, after, found, strict=True):
        low, high = min(one.min(), two.min()), max(one.max(), two.max())
        first, second = (np.round((values - low) / (high - low) * 255) / 255 for values in (one, two))
        weights = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
        weights /= weights.sum()

        def smooth(values: Any, weights: Any = weights) -> Any:
            rows = ndimage.correlate1d(values, weights, axis=0)
            return ndimage.correlate1d(rows, weights, axis=1)[5:-5, 5:-5]

        mean_1, mean_2 = smooth(first), smooth(second)
        variance_1, variance_2 = smooth(first**2) - mean_1**2, smooth(second**2) - mean_2**2
        covariance = smooth(first * second) - mean_1 * mean_2
        brightness = (2 * mean_1 * mean_2 + 1e-8) / (mean_1**2 + mean_2**2 + 1e-8)
        structure = (2 * covariance + 1e-8) / (variance_1 + variance_2 + 1e-8)
        assert value == pytest.approx(float((brightness * structure).mean()), abs=1e-6)


@pytest.mark.parametrize("period", [3, 4, 8])
def test_period_is_found(period: int) -> None:
    errors = np.tile(np.arange(float(period)), 64)[None, None] + np.random.default_rng(2).normal(
        size=(4, 6, 64 * period)
    )
    found = period_of(Lags.of(errors, None, 2).correlation(float(errors.mean())))
    assert found is not None
    assert found[0] == period


def test_noise_and_long_waves_have_no_period() -> None:
    rng = np.random.default_rng(2)
    for errors in (rng.normal(size=(2, 9, 400)), np.cumsum(rng.normal(size=(2, 9, 400)), axis=2)):
        assert period_of(Lags.of(errors, None, 2).correlation(float(errors.mean()))) is None
