"""An error beyond a tenth of the standard deviation, or one that makes values zero, is named."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.accuracy import Effects
from tamis.meaning import Missing

RAIN = (np.random.default_rng(0).gamma(0.3, 1e-4, 10_000)).astype("f4")


def test_effects_of_a_small_bound_have_no_warnings() -> None:
    values = np.random.default_rng(1).normal(280, 10, 1000).astype("f4")
    assert Effects.of(values, np.round(values, 1)).warnings(0.05) == ()


def test_effects_of_a_bound_beyond_the_spread_name_both() -> None:
    effects = Effects.of(RAIN, np.zeros_like(RAIN))
    large, zeroed = effects.warnings(0.1)
    deviation = float(RAIN.astype("f8").std())
    assert large == f"the bound 0.1 is {0.1 / deviation:.0f} times the standard deviation, {deviation:.3g}"
    assert zeroed == "100 % of the values that are not zero become zero"


def test_bound_between_a_tenth_and_one_deviation_is_given_as_a_share() -> None:
    values = np.array([-1.0, 1.0] * 50)
    assert Effects.of(values, values).warnings(0.1) == ()
    assert Effects.of(values, values).warnings(0.25) == ("the bound 0.25 is 0.25 of the standard deviation, 1",)


def test_effects_of_parts_add_up_to_those_of_all() -> None:
    after = np.where(RAIN < 1e-6, 0, RAIN).astype("f4")
    whole = Effects.of(RAIN, after)
    parts = Effects.of(RAIN[:3000], after[:3000]).plus(Effects.of(RAIN[3000:], after[3000:]))
    assert parts.zeroed_share == whole.zeroed_share > 0.01
    assert parts.deviation == pytest.approx(whole.deviation, rel=1e-12)


def test_expected_effects_count_values_up_to_the_bound() -> None:
    effects = Effects.expected(RAIN, 1e-6)
    assert effects.zeroed_count == np.count_nonzero(RAIN.astype("f8") <= 1e-6)
    assert effects.warnings(None, may=True)[0].endswith("of the values that are not zero may become zero")


def test_missing_and_packed_values_count_by_their_meaning() -> None:
    values = np.array([5, 6, 7, -999], "i2")
    effects = Effects.of(values, np.array([5, 5, 5, -999], "i2"), Missing((np.int16(-999),)), zero=5.0)
    assert (effects.nonzero_count, effects.zeroed_count) == (2, 2)
    assert effects.warnings(1.0, scale=0.1)[0].startswith("the bound 1 is 12.2 times the standard deviation")


def test_equal_values_and_none_have_no_spread_to_compare_with() -> None:
    for values in (np.full(9, 3.0), np.array([]), np.full(4, np.nan)):
        assert Effects.of(values, values).warnings(0.1) == ()
