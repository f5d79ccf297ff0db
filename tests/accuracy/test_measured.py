"""Measures of a whole array, added up part by part, against those of all values at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.accuracy import Measured, is_missed
from tamis.accuracy.measured import reached
from tamis.meaning import Missing

WORDS = ("rmse", "psnr", "corr")


@given(cuts=st.lists(st.integers(0, 500), max_size=4).map(sorted), kind=st.sampled_from(["f4", "f8", "i2"]))
def test_measures_do_not_depend_on_the_parts(cuts: list[int], kind: str) -> None:
    rng = np.random.default_rng(5)
    before = (280 + 20 * rng.standard_normal(500)).astype(kind)
    after = (before + 3 * rng.standard_normal(500)).astype(kind)
    missing = Missing((before.dtype.type(7),))
    before[::9] = after[::9] = 7
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, 500], strict=True)]
    total = Measured()
    for part in parts:
        total = total.plus(Measured.of(before[part], after[part], missing, WORDS))
    one, two = (np.delete(each, slice(None, None, 9)).astype("f8") for each in (before, after))
    rmse = math.sqrt(np.mean((one - two) ** 2))
    expected = {
        "rmse": 2 * rmse,
        "psnr": 20 * math.log10((one.max() - one.min()) / rmse),
        "corr": np.corrcoef(one, two)[0, 1],
    }
    assert reached(total, WORDS, -2.0) == pytest.approx(expected, rel=1e-12)
    assert reached(total, ("corr", "dssim"), 1.0).keys() == {"corr"}
    survey = Measured.unchanged(before, missing)
    assert (survey.span, survey.deviation) == (one.max() - one.min(), pytest.approx(one.std(), rel=1e-12))


def test_values_that_are_not_stored_count() -> None:
    before, after = np.array([1.0, 2.0]), np.array([1.5, 2.5])
    fill: Any = np.array(0.0)
    total = Measured.of(before, after, Missing(), WORDS).plus(Measured.repeated(fill, 2, Missing()))
    assert reached(total, WORDS, 1.0)["rmse"] == pytest.approx(math.sqrt(0.125))
    assert total.span == 2
    assert total.moments.correlation == pytest.approx(np.corrcoef([1, 2, 0, 0], [1.5, 2.5, 0, 0])[0, 1])
    assert Measured.repeated(fill, 2, Missing((np.float64(0),))) == Measured() == Measured.repeated(fill, 0, Missing())


def test_measures_that_are_not_defined() -> None:
    nothing = Measured.of(np.array([np.nan]), np.array([np.nan]), Missing(), WORDS)
    assert (nothing.span, nothing.deviation, reached(nothing, WORDS, 1.0)) == (None, None, dict.fromkeys(WORDS))
    assert is_missed("rmse", 1.0, None)
    assert is_missed("rmse", 1.0, 1.1)
    assert not is_missed("rmse", 1.0, 1.0)
    assert is_missed("corr", 0.9, 0.8)
    assert not is_missed("corr", 0.9, 0.9)
