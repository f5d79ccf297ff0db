"""Rounding to a step: to the nearest multiple of a power of two, ties to even, within the bound, value by value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import tamis
from tamis import Absolute, BitRound, ParameterError
from tamis.rounding import recorded_rounding, still_needed

Array = NDArray[Any]


def nearest(value: float, step: float) -> float:
    """Round in exact numbers: Python rounds fractions to the nearest, a tie to even."""
    return float(round(Fraction(value) / Fraction(step)) * Fraction(step))


@given(st.floats(1e-300, 1e291))
def test_the_step_is_the_largest_power_of_two_that_keeps_the_bound(bound: float) -> None:
    rounding = Absolute(bound)
    assert math.frexp(rounding.step)[0] == 0.5
    assert rounding.absolute_bound == rounding.step / 2 <= bound < rounding.step


@given(
    hnp.arrays(
        st.sampled_from(["f4", "f8"]), st.integers(1, 40), elements=st.floats(-1e9, 1e9, width=32, allow_subnormal=True)
    ),
    st.sampled_from([1e-9, 0.1, 0.125, 3.0, 5e7]),
)
def test_round_gives_the_nearest_multiple(values: Array, bound: float) -> None:
    rounding = Absolute(bound)
    values = np.concatenate([values, (np.arange(-9, 9) / 2 * rounding.step).astype(values.dtype)])  # ties
    after = rounding.round(values)
    finest = np.spacing(np.abs(values)) >= rounding.step
    expected = [v if stays else nearest(v, rounding.step) for v, stays in zip(values.tolist(), finest, strict=True)]
    assert after.tolist() == expected
    errors = [abs(Fraction(a) - Fraction(b)) for a, b in zip(values.tolist(), after.tolist(), strict=True)]
    assert max(errors) <= Fraction(rounding.absolute_bound) <= Fraction(bound)
    assert np.array_equal(rounding.round(after), after)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_round_keeps_missing_values_zeros_and_validity(dtype: str) -> None:
    tiny = np.finfo(dtype).tiny
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 9.9, 10.06, 1e20, tiny, 99.96, 0.51, -0.06], dtype)
    found = Absolute(0.1).rounded(values, [10.0, 1e20], (None, 99.97), None, values.shape)
    assert np.signbit(found.values[3])
    assert found.values.tobytes()[: 5 * values.itemsize] == values.tobytes()[: 5 * values.itemsize]
    assert found.values[5:].tolist() == [9.875, values[6], np.array(1e20, dtype), 0, values[9], 0.5, 0]
    assert found.unrounded == 2  # 10.06 would become a missing value, and 99.96 cross the limit
    assert not np.signbit(found.values[-1])


def test_values_without_a_finer_step_stay() -> None:
    most = np.finfo("f4").max
    values = np.array([2.0**24 + 2, 1e30, most, -most, 1.5 * 2.0**-149], "f4")
    for bound in (1e-46, 1e-60):
        assert Absolute(bound).round(values).tobytes() == values.tobytes()
    assert Absolute(0.5).round(values)[:4].tobytes() == values[:4].tobytes()


@pytest.mark.parametrize(
    ("bound", "dtype", "message"),
    [
        (0.1, "i2", "expected float32 or float64 for absolute.*got int16"),
        (0.1, "f2", "expected float32 or float64"),
        (2e31, "f4", "expected a bound below 1.01412e.31 for float32"),
    ],
)
def test_types_and_bounds_that_cannot_be_are_refused(bound: float, dtype: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Absolute(bound).round(np.ones(3, dtype))


@pytest.mark.parametrize("bound", [0, -1.0, math.nan, math.inf, True, "1"])
def test_a_bound_that_is_no_number_above_0_is_refused(bound: Any) -> None:
    with pytest.raises(ParameterError, match="expected bound above 0"):
        Absolute(bound)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("absolute(0.125)|shuffle", "absolute(bound=0.125)|shuffle"),
        ("absolute:0.1|shuffle", "absolute(bound=0.1)|shuffle"),
        ("bits(9)|shuffle", "bitround(keepbits=9)|shuffle"),
        ("digits(3)|shuffle", "granular(digits=3)|shuffle"),
        ("digits(digits=3)|shuffle", "granular(digits=3)|shuffle"),
    ],
)
def test_notation(text: str, normal: str) -> None:
    assert str(tamis.Pipeline.parse(text)) == normal
    assert tamis.Pipeline.parse(normal) == tamis.Pipeline.parse(text)
    assert str(tamis.spec(text)["tamis"]) == normal


def test_notations_of_others_cannot_express_it() -> None:
    spec = tamis.spec("absolute(0.1)|shuffle|deflate(4)")
    assert {name for name, result in spec.notations.items() if not result.problem} == {"tamis"}
    assert spec.to_dict()["rounding"]["absolute_bound"] == 0.0625
    assert "error at most 0.0625\n  recorded as the attribute quantization_step = 0.125" in str(spec)


def test_recorded_step() -> None:
    name, dtype = Absolute.attribute, np.dtype("f4")
    for step in (0.125, np.array([0.125]), np.array([0.125], "f4")):
        assert recorded_rounding({name: step}, dtype) == Absolute(0.0625)
    for damaged in (0.1, 0.0, -0.5, "0.125", np.nan, np.inf, np.array([1.0, 2.0])):
        assert recorded_rounding({name: damaged}, dtype) is None


def test_values_of_a_coarser_step_are_not_rounded_again() -> None:
    attributes = {Absolute.attribute: np.array([0.125])}
    assert still_needed(Absolute(0.1), attributes) is None
    assert still_needed(Absolute(0.01), attributes) is None
    for other in (Absolute(0.2), BitRound(7)):
        with pytest.raises(ParameterError, match="expected values that are not rounded yet"):
            still_needed(other, attributes)
