"""Bounds of each value: errors, signs and zeros, of packed values, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as extra

from tamis.accuracy.value_bounds import ValueBounds

SIGN, ZEROS = ValueBounds(sign=True), ValueBounds(zeros=True)


def broken(bounds: ValueBounds, before: list[Any], after: list[Any], kind: str = "f4") -> str:
    arrays = np.array(before, kind), np.array(after, kind)
    return bounds.broken(*arrays, float(np.nanmax(np.abs(arrays[0].astype("f8") - arrays[1].astype("f8")))))


@pytest.mark.parametrize(
    ("bounds", "before", "after", "kept"),
    [
        (SIGN, [1, -1, 0, -0.0], [0, 0, 1, 0], True),
        (SIGN, [0], [-1], False),
        (SIGN, [-1], [1], False),
        (SIGN, [np.nan, 1], [np.nan, 2], True),
        (ValueBounds(sign=True, zero=2.5), [2, 3, 4], [1, 2.5, 5], True),
        (ValueBounds(sign=True, zero=2.5), [3], [2], False),
        (ValueBounds(sign=True, falling=True), [0, -1], [-1, 0], True),
        (ValueBounds(sign=True, falling=True), [0], [1], False),
        (ZEROS, [0, 1], [0, 2], True),
        (ZEROS, [0.0, 1], [-0.0, 2], True),
        (ZEROS, [0], [1], False),
        (ZEROS, [1], [0], False),
        (ValueBounds(zeros=True, zero=3.0), [3, 0], [3, 1], True),
        (ValueBounds(relative=0.5), [2, 0, np.nan], [3, 0, np.nan], True),
        (ValueBounds(relative=0.5), [2], [3.5], False),
        (ValueBounds(relative=0.5), [0], [1e-3], False),
        (ValueBounds(relative=0.5, zero=1.0), [3, 1, np.nan], [4, 1, np.nan], True),
        (ValueBounds(relative=0.5, zero=1.0), [2], [3], False),
        (ValueBounds(absolute=1.0), [2], [3], True),
        (ValueBounds(absolute=1.0), [2], [3.5], False),
    ],
)
def test_bounds_are_kept_or_broken(bounds: ValueBounds, before: list[Any], after: list[Any], kept: bool) -> None:
    assert (broken(bounds, before, after) == "") is kept
    assert (broken(bounds, before, after, "f8") == "") is kept


def test_bounds_of_integers() -> None:
    assert not broken(ValueBounds(sign=True, zeros=True, relative=0.5), [0, -4, 8], [0, -2, 12], "i2")
    assert "the sign" in broken(SIGN, [-1], [1], "i2")
    assert "of each value" in broken(ValueBounds(relative=0.1), [10], [12], "i2")


VALUES = extra.arrays("f4", 6, elements=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]))


@given(before=VALUES, after=VALUES)
def test_no_value_that_keeps_its_sign_crosses_zero(before: Any, after: Any) -> None:
    error = float(np.abs(before - after).max())
    if not SIGN.broken(before, after, error):
        assert (before * after >= 0).all()
        assert not (before >= 0).all() or (after >= 0).all()
