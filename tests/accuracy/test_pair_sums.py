"""Sums over pairs in one pass against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis import _native
from tamis.accuracy import Moments
from tamis.accuracy.difference import PairSums
from tamis.meaning import Missing

KINDS = ["f4", ">f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_numpy(kind: str) -> None:
    rng = np.random.default_rng(4)
    before = np.clip(60 + 20 * rng.standard_normal((2, 3000)), 5, 120).astype(kind).T
    after = (before.astype("f8") + rng.integers(-3, 3, before.shape)).astype(kind)
    before[::7], after[::7] = 50, 51
    if np.dtype(kind).kind == "f":
        before[::11] = after[::11] = np.nan
    sums = PairSums.of(before, after, Missing((before.dtype.type(50),)), moments=True)
    kept = np.isfinite(before.astype("f8")) & (before != 50)
    one, two = (values[kept].astype("f8") for values in (before, after))
    assert (sums.pair_count, sums.low, sums.high) == (one.size, one.min(), one.max())
    assert sums.error == np.abs(two - one).max()
    squares = np.sum((two - one) ** 2)
    assert sums.mantissa * 4.0**sums.exponent == pytest.approx(squares, rel=1e-13)
    expected = (one.mean(), two.mean(), *(one.size * np.cov(one, two, bias=True))[[0, 1, 0], [0, 1, 1]])
    assert sums[6:] == pytest.approx(expected, rel=1e-11)
    assert PairSums.of(before, after)[6:] == (0, 0, 0, 0, 0)


def test_integers_are_exact_and_extremes_do_not_overflow() -> None:
    ends: Any = np.iinfo("i8")
    sums = PairSums.of(np.array([ends.min, ends.max]), np.array([ends.max, ends.max]))
    assert (sums.low, sums.high, sums.error) == (ends.min, ends.max, 2**64 - 1)
    large = PairSums.of(np.array([1e300, 2e-300]), np.array([1.5e300, 0.0]))
    assert (large.error, large.mantissa * 4.0 ** (large.exponent - 996)) == (
        5e299,
        pytest.approx((5e299 * 2.0**-996) ** 2),
    )


def test_equal_values_have_no_deviation() -> None:
    for kind in ("f4", "f8"):
        assert Moments.of(np.full(5000, 0.1, kind), np.full(5000, 0.3, kind)).correlation is None


def test_arrays_that_differ_are_refused() -> None:
    values = np.zeros(3, "f4")
    for others in ((values[:2], values), (values.astype("f8"), values), (values, values.astype("f8"))):
        with pytest.raises(ValueError, match="one type, the first two of one size"):
            _native.statistics(values, *others, False)
    with pytest.raises(TypeError, match="native float32 or float64, or of integers"):
        _native.statistics(*(values.astype("f2"),) * 3, False)
