"""Errors of values: right in double precision, exact for integers, the same however chunks are cut."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tamis.accuracy import Place, Squares, Tally, compare
from tamis.meaning import Missing

FILL = np.float32(9.96921e36)


def tally(source: Any, target: Any, dtype: str = "f4", *fills: float) -> Tally:
    before, after = np.array(source, dtype), np.array(target, dtype)
    return compare(before, after, (0,) * before.ndim, Missing(tuple(np.array(each, dtype) for each in fills)))


def noisy(shape: tuple[int, ...], dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(5)
    source = (100 * random.standard_normal(shape)).astype(dtype)
    return source, (source + random.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f8", "i1", "i2", ">i4", "i8"])
def test_compare_noise_agrees_with_plain_numpy(dtype: str) -> None:
    source, target = noisy((7, 61, 300), dtype)
    found = compare(source, target, (10, 20, 30))
    before, after = source.astype("f8"), target.astype("f8")
    errors = np.abs(before - after)
    at = np.unravel_index(errors.argmax(), errors.shape)
    assert found.error == errors.max()
    assert found.worst == Place((at[0] + 10, at[1] + 20, at[2] + 30), source[at].item(), target[at].item())
    nonzero = before != 0
    assert found.relative == pytest.approx((errors[nonzero] / np.abs(before[nonzero])).max(), rel=1e-15)
    assert found.zeros_changed == np.count_nonzero((before == 0) & (after != 0))
    rmse = math.sqrt(math.fsum((errors**2).ravel()) / errors.size)
    assert found.rmse == pytest.approx(rmse, rel=1e-13)
    assert found.psnr == pytest.approx(20 * math.log10((before.max() - before.min()) / rmse), rel=1e-13)
    assert (found.low, found.high) == (before.min(), before.max())
    assert (found.count, found.compared, found.missing) == (errors.size, errors.size, 0)
    assert found.different == np.count_nonzero(before != after)


def test_compare_float32_difference_not_rounded_to_float32() -> None:
    found = tally([16777216.0], [0.1])
    assert found.error == 16777216.0 - float(np.float32(0.1))


@pytest.mark.parametrize(
    ("dtype", "source", "target", "error"),
    [
        ("i8", -(2**63), 2**63 - 1, 2**64 - 1),
        ("i8", 2**62 + 1, 2**62, 1),
        ("u8", 2**64 - 1, 0, 2**64 - 1),
        ("u8", 2**63 + 1, 2**63, 1),
        ("i4", -(2**31), 2**31 - 1, 2**32 - 1),
        ("i1", -128, 127, 255),
    ],
)
def test_compare_integers_differences_exact(dtype: str, source: int, target: int, error: int) -> None:
    found = tally([5, source], [5, target], dtype)
    assert found.error == error
    assert isinstance(found.error, int)
    assert found.worst == Place((1,), source, target)
    assert found.rmse == pytest.approx(error / math.sqrt(2))


def test_compare_signed_with_unsigned_64_bits_exact() -> None:
    found = compare(np.array([-1, 2**62 + 1], "i8"), np.array([2**64 - 1, 2**62], "u8"), (0,))
    assert found.error == 2**64
    assert found.different == 2


def test_compare_different_widths_by_value() -> None:
    found = compare(np.array([1.5, 0.1], "f8"), np.array([1.5, 0.1], "f4"), (0,))
    assert found.error == abs(0.1 - float(np.float32(0.1)))
    assert (found.different, found.worst and found.worst.index) == (1, (1,))
    assert compare(np.array([1, -7], "i4"), np.array([1, -7], "i8"), (0,)).different == 0


def test_compare_missing_values_where_types_differ_are_kept_if_rounded() -> None:
    source = np.array([1.0, 1e20 / 3, np.nan], "f8")
    assert compare(source, source.astype("f4"), (0,), Missing((source[1],))).lost == 0
    assert compare(source, np.array([1, 2, 3], "f4"), (0,), Missing((source[1],))).lost == 2


def test_compare_missing_values_same_bits_are_kept_and_left_out_of_errors() -> None:
    found = tally([1.0, np.nan, np.inf, -np.inf, FILL, 3.0], [1.5, np.nan, np.inf, -np.inf, FILL, 3.0], "f4", FILL)
    assert (found.missing, found.lost, found.gained, found.compared) == (4, 0, 0, 2)
    assert (found.error, found.low, found.high) == (0.5, 1.0, 3.0)
    assert found.rmse == math.sqrt(0.125)


@pytest.mark.parametrize("changed", [0.0, np.inf, FILL, np.float32(np.nan)])
def test_compare_missing_value_of_other_bits_is_lost(changed: float) -> None:
    for first in (-np.inf, np.nan, FILL):
        found = tally([1.0, first], [1.0, changed], "f4", FILL)
        kept = np.float32(first).tobytes() == np.float32(changed).tobytes()
        assert found.lost == (not kept)
        assert found.error == 0
        if not kept:
            assert found.first_lost is not None
            assert found.first_lost.index == (1,)


def test_compare_nan_of_another_payload_is_lost() -> None:
    source, target = (np.array([bits], "u4").view("f4") for bits in (0x7FC00000, 0x7FC00001))
    found = compare(source, target, (0,))
    assert (found.different, found.lost) == (1, 1)


@pytest.mark.parametrize("made", [np.nan, np.inf, -np.inf, FILL])
def test_compare_valid_value_that_went_missing_is_gained(made: float) -> None:
    found = tally([1.0, 2.0, 3.0], [1.0, made, 3.25], "f4", FILL)
    assert (found.gained, found.lost, found.compared, found.error) == (1, 0, 2, 0.25)
    assert found.first_gained is not None
    assert (found.first_gained.index, found.first_gained.source) == ((1,), 2.0)
    assert found.worst == Place((2,), 3.0, 3.25)


def test_compare_integer_fill_value_is_missing() -> None:
    found = tally([-999, 5, 6], [-999, 5, -999], "i2", -999)
    assert (found.missing, found.lost, found.gained, found.low, found.high) == (1, 0, 1, 5, 6)


def test_compare_negative_zero_differs_without_error() -> None:
    found = tally([0.0, 1.0], [-0.0, 1.0])
    assert (found.different, found.error, found.worst, found.zeros_changed) == (1, 0, None, 0)
    assert found.first_different is not None
    assert found.first_different.index == (0,)


def test_compare_zeros_that_changed_are_counted_apart_from_relative_errors() -> None:
    found = tally([0.0, 0.0, 2.0], [0.5, 0.0, 2.5])
    assert (found.zeros_changed, found.relative, found.error) == (1, 0.25, 0.5)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e300])
def test_compare_extreme_magnitudes_neither_overflow_nor_vanish(scale: float) -> None:
    found = tally([3 * scale, 4 * scale, 5 * scale], [0.0, 0.0, 5 * scale], "f8")
    assert found.rmse == pytest.approx(scale * 5 / math.sqrt(3))
    assert found.psnr == pytest.approx(20 * math.log10(2 / (5 / math.sqrt(3))))


def test_compare_range_beyond_floats_has_a_psnr() -> None:
    most = float(np.finfo("f8").max)
    found = tally([-most, most, 0.0], [-most, most, 1.0], "f8")
    assert found.psnr == pytest.approx(20 * (math.log10(most) + math.log10(2) - math.log10(1 / math.sqrt(3))))
    assert tally([-most], [most], "f8").error == math.inf


def test_compare_nothing_and_scalars() -> None:
    empty = compare(np.zeros((0, 3), "f4"), np.zeros((0, 3), "f4"), (0, 0))
    assert empty == Tally()
    assert (empty.rmse, empty.psnr) == (None, None)
    found = compare(np.array(2.0), np.array(2.5), ())
    assert found.worst == Place((), 2.0, 2.5)
    assert found.psnr is None, "one value has no range"
    assert tally([1.0, 2.0], [1.0, 2.0]).psnr == math.inf
    assert tally([np.nan], [np.nan]).rmse is None


def test_compare_first_of_equal_errors_is_the_worst() -> None:
    found = tally([1.0, 2.0, 3.0], [1.0, 2.5, 3.5])
    assert found.worst is not None
    assert found.worst.index == (1,)
    other = compare(np.array([7.0]), np.array([7.5]), (5,))
    assert found.plus(other).worst == other.plus(found).worst == found.worst


@settings(max_examples=100, deadline=None)
@given(
    st.tuples(*[hnp.arrays("f8", 40, elements=st.floats(width=64, allow_subnormal=True)) for _ in range(2)]),
    st.integers(0, 40),
)
def test_compare_any_floats_as_exact_arithmetic(pair: tuple[NDArray[Any], NDArray[Any]], cut: int) -> None:
    source, target = pair
    parts = [
        compare(a, b, (at,))
        for a, b, at in zip(np.split(source, [cut]), np.split(target, [cut]), (0, cut), strict=True)
    ]
    found = parts[0].plus(parts[1])
    valid = np.isfinite(source) & np.isfinite(target)
    exact = [abs(Fraction(a) - Fraction(b)) for a, b in zip(source[valid], target[valid], strict=True)]
    most = Fraction(float(np.finfo("f8").max))
    assert found.compared == len(exact)
    if not exact or max(exact) > most:
        return
    assert found.error == float(max(exact))
    mean = sum(each**2 for each in exact) / len(exact)
    if mean and math.isfinite(found.squares.mantissa):
        assert abs(Fraction(found.rmse or 0) ** 2 / mean - 1) < Fraction(1, 10**12) or mean < Fraction(1, 10**630)


def test_squares_of_far_magnitudes_add_up() -> None:
    small, large = (Squares.of(np.array([each]), each) for each in (1e-250, 1e250))
    assert small.plus(large).root_of_mean(1) == large.plus(small).root_of_mean(1) == 1e250
    assert small.plus(Squares()).root_of_mean(1) == 1e-250


def test_compare_first_places_of_a_long_array_are_the_first() -> None:
    source = np.zeros((3, 40_000), "f4")
    source[1, 5], source[2, 39_999] = np.nan, np.inf
    target = source + 1
    target[1, 5], target[2, 39_999], target[0, 7], target[2, 0] = 1, 2, np.nan, np.nan
    found = compare(source, target, (10, 0))
    assert (found.lost, found.gained) == (2, 2)
    places = (found.first_lost, found.first_gained, found.first_different)
    assert [each and each.index for each in places] == [(11, 5), (10, 7), (10, 0)]


def test_compare_fill_value_that_the_other_type_lacks() -> None:
    found = compare(
        np.array([-99999, 31073], "i4"), np.array([5, 31073], "i2"), (0,), Missing((np.array(-99999, "i4"),))
    )
    assert (found.missing, found.lost, found.gained, found.compared) == (1, 1, 0, 1)  # -99999 wraps to 31073
    found = compare(np.array([1.5, 2.0]), np.array([1, 2]), (0,), Missing((np.array(1e300),)))
    assert (found.missing, found.gained, found.error) == (0, 0, 0.5)
