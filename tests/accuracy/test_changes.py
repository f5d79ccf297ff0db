"""The bound of the statistic of Kolmogorov and Smirnov against its definition, by sorting all values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import _native
from tamis.accuracy import ValueChanges
from tamis.accuracy import distribution as changes

COUNT = 20_000


def statistic(before: Any, after: Any) -> float:
    """Return the largest distance of the shares of values up to any number."""
    one, two = np.sort(before, axis=None), np.sort(after, axis=None)
    steps = np.concatenate([one, two])
    apart = np.searchsorted(one, steps, "right") - np.searchsorted(two, steps, "right")
    return float(np.abs(apart).max() / before.size)


def added(before: Any, after: Any, size: int) -> ValueChanges:
    total = ValueChanges()
    for at in range(0, before.size, size):
        total = total.plus(ValueChanges.of(before[at : at + size], after[at : at + size]))
    return total


def pair(kind: str) -> tuple[Any, Any]:
    """Return values before and after a lossy step."""
    rng = np.random.default_rng(3)
    near = rng.uniform(-0.1, 0.1, COUNT)
    warm = (280 + 20 * rng.standard_normal(COUNT)).astype("f4")
    wind = 10 * rng.standard_normal(COUNT)
    rain = np.where(rng.random(COUNT) < 0.6, 0, np.exp(rng.normal(-18, 4, COUNT))).astype("f4")
    if kind == "continuous":
        return warm, (warm + near).astype("f4")
    if kind == "through zero":
        return wind, wind + near
    if kind == "shifted":
        return wind, wind + 0.05
    if kind == "rounded":
        return warm, (np.round(warm * 8) / 8).astype("f4")
    if kind == "zeros":
        return rain, (rain.view("i4") + (1 << 14) & ~((1 << 15) - 1)).view("f4")
    if kind == "tied":
        tied = np.round(wind, 1).astype("f4")
        return tied, (tied + near).astype("f4")
    if kind == "packed":
        return (100 * wind).astype("i2"), (100 * wind + 30 * near).astype("i2")
    if kind == "unsigned":
        large = (1 << 63) + (1e6 * wind).astype("i8").astype("u8")
        return large, large & ~np.uint64(0xFFFF)
    sizes = np.exp(rng.normal(0, 150, COUNT))
    return sizes, -sizes


KINDS = ["continuous", "through zero", "shifted", "rounded", "zeros", "tied", "packed", "unsigned", "of every size"]


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_statistic_is_never_taken_for_smaller_and_is_close(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = pair(kind)
    exact = statistic(before, after)
    whole = ValueChanges.of(before, after).ks_statistic(COUNT)
    monkeypatch.setattr(changes, "_MOST_WAITING_NBYTES", 20_000)
    parts = added(before, after, 700)
    joined = ValueChanges.of(before[:9000], after[:9000]).plus(ValueChanges.of(before[9000:], after[9000:]))
    assert not joined.waiting
    for found in (whole, parts.ks_statistic(COUNT), joined.ks_statistic(COUNT)):
        assert exact <= found <= exact + 5 / COUNT
        assert found == exact or kind != "packed"
    half, rest = (ValueChanges.of(before[part], after[part]) for part in (slice(9000), slice(9000, None)))
    left = half.without_values()
    assert left == ValueChanges(apart=left.apart)
    together = min(half.ks_statistic(COUNT) + rest.ks_statistic(COUNT), 1)
    assert exact <= left.plus(rest).ks_statistic(COUNT) == pytest.approx(together)
    assert parts.without_values().ks_statistic(COUNT) == parts.ks_statistic(COUNT)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.tuples(*(st.floats(allow_nan=False, allow_infinity=False, width=32),) * 2), min_size=1),
    kind=st.sampled_from(["f4", "f8", "i8"]),
    most=st.sampled_from([2, 3, 5]),
    waiting=st.sampled_from([1, 60, 1 << 21]),
    size=st.integers(1, 9),
)
def test_few_bins_still_bound_the_statistic(values: list[Any], kind: str, most: int, waiting: int, size: int) -> None:
    before, after = np.clip(np.array(values, "f8").T, -1e18, 1e18).astype(kind)
    exact = statistic(before, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_MOST_BINS", most)
        patch.setattr(changes, "_MOST_WAITING_NBYTES", waiting)
        found = added(before, after, size)._counted()
        assert exact <= found.ks_statistic(before.size) <= 1
        assert all(each.window.bin_count <= most for each in found.counts)


def test_values_that_stay_have_no_part() -> None:
    values = np.array([0.0, -0.0, 1.0], "f4")
    assert ValueChanges.of(values, np.abs(values)) == ValueChanges()
    assert ValueChanges.of(values[:0], values[:0]).ks_statistic(0) == 0


def test_values_beside_the_bins_are_refused() -> None:
    counts = np.zeros(4, np.int64)
    for equal, step in ((False, 0), (True, 0)):
        for value in (np.inf, -1e300, np.nan):
            with pytest.raises(ValueError, match="in the bins only"):
                _native.count_in_bins(np.array([value]), equal, step, 0, counts)
    _native.count_in_bins(np.array([-1e-310, 0, 1.5, -0.0]), True, 0, -1, counts)
    assert counts.tolist() == [1, 2, 1, 0]
    _native.count_in_bins(np.array([-1e-310], "f8"), True, 1000, -1, counts)
    assert counts.tolist() == [2, 2, 1, 0]
    for step in (-1, 64):
        with pytest.raises(ValueError, match="another step"):
            _native.count_in_bins(np.zeros(1), False, step, 0, counts)
    with pytest.raises(TypeError, match="float32, float64 or int64"):
        _native.count_in_bins(np.zeros(1, "f2"), False, 0, 0, counts)
    with pytest.raises(TypeError, match="counts of int64"):
        _native.count_in_bins(np.zeros(1), False, 0, 0, np.zeros(4))
