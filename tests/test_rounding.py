"""Rounding: netCDF-C's bits, its bound value by value, and what never changes."""

from __future__ import annotations

import math
import platform
from fractions import Fraction
from typing import Any

import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import tamis
from tamis import BitGroom, BitRound, Granular, ParameterError
from tamis.rounding import KINDS, Rounding, recorded_rounding, relative_error, still_needed

Array = NDArray[Any]

like_netcdf = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"),
    reason="netCDF-C compiled for other processors multiplies and adds in one step, and gives other bits",
)

ALL = {
    "f4": [*map(BitRound, range(1, 24)), *map(Granular, range(1, 7)), *map(BitGroom, range(1, 7))],
    "f8": [*map(BitRound, range(1, 53)), *map(Granular, range(1, 16)), *map(BitGroom, range(1, 16))],
}
FLOAT = np.dtype("f4")
SOME = [BitRound(7), Granular(3), BitGroom(3), Granular(1), BitGroom(6), BitRound(23)]


def by_netcdf(values: Array, rounding: Rounding) -> Array:
    """Let netCDF-C round values in one call."""
    with netCDF4.Dataset("rounded.nc", "w", diskless=True, persist=False) as file:
        file.createDimension("x", values.size)
        variable = file.createVariable(
            "v", values.dtype, ("x",), quantize_mode=rounding.quantize_mode, significant_digits=rounding.number
        )
        variable.set_auto_maskandscale(False)
        variable[:] = values
        return np.asarray(variable[:])


def words(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def hard_values(dtype: str) -> Array:
    """Values around powers of ten and of two, with their neighbours, denormals and any bits, far from overflow."""
    least, most = (-45, 36) if dtype == "f4" else (-323, 307)
    factors = np.array([1, 2, 3, 4.9999999, 5, 9.99999, 9.9999999])
    with np.errstate(under="ignore"):
        tens = (np.array([float(f"1e{power}") for power in range(least, most)])[:, None] * factors).ravel()
        twos = np.ldexp(1.0, np.arange(-149, 124) if dtype == "f4" else np.arange(-1074, 1020))
        centre = np.concatenate([tens, twos]).astype(dtype)
    near = words(centre)[:, None].astype("i8") + np.array([-3, -2, -1, 0, 1, 2, 3, 65, -65, 1000])
    random = np.random.default_rng(1)
    bits = random.integers(0, 1 << 8 * np.dtype(dtype).itemsize, 20000, f"u{np.dtype(dtype).itemsize}").view(dtype)
    ordinary = (random.normal(size=20000) * 10.0 ** random.integers(-30, 30, 20000)).astype(dtype)
    positive = np.abs(near[near > 0].astype(f"u{np.dtype(dtype).itemsize}").view(dtype))
    values = np.concatenate([positive, -positive, bits, ordinary, np.array([0.0, -0.0, np.nan], dtype)])
    # netCDF-C rounds the largest values to infinity, others to its fill value, and infinities to NaN: see below.
    with np.errstate(invalid="ignore"):
        spoiled = (np.abs(values) > np.finfo(dtype).max / 4) | (
            np.abs(values / netCDF4.default_fillvals[dtype] - 1) < 1
        )
    return values[~spoiled]


@like_netcdf
@pytest.mark.parametrize("dtype", ALL)
def test_round_gives_the_bits_of_netcdf(dtype: str) -> None:
    values = hard_values(dtype)
    for rounding in ALL[dtype]:
        ours, theirs = rounding.round(values), by_netcdf(values, rounding)
        different = np.flatnonzero(words(ours) != words(theirs))
        assert not different.size, (rounding, values[different[:3]], ours[different[:3]], theirs[different[:3]])
    assert len(ALL[dtype]) in (35, 82)


@pytest.mark.parametrize("dtype", ALL)
def test_round_keeps_its_relative_bound_for_every_value(dtype: str) -> None:
    values = hard_values(dtype)
    values = values[np.isfinite(values)]
    normal = np.abs(values) >= np.finfo(dtype).tiny
    for rounding in ALL[dtype]:
        after = rounding.round(values)
        error = np.abs(values.astype("g") - after)[normal]
        assert (error <= rounding.relative_bound * np.abs(values[normal].astype("g"))).all(), rounding
        assert (np.abs(after[~normal]) <= np.finfo(dtype).tiny).all()
        assert relative_error(values, after) <= rounding.relative_bound
        assert relative_error(values, after) > rounding.relative_bound / 4 or rounding.number > 20  # it is attained


@pytest.mark.parametrize("dtype", ALL)
def test_relative_error_as_exact_numbers_have_it(dtype: str) -> None:
    random = np.random.default_rng(2)
    for count in (1, 2, 3, 7, 1024, 1025, 1500):
        before = (random.normal(size=count) * 10.0 ** random.integers(-20, 20, count)).astype(dtype)
        after = (before * (1 + random.normal(size=count) / 1000)).astype(dtype)
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        exact = max(abs((Fraction(a) - Fraction(b)) / Fraction(a)) for a, b in pairs)
        assert relative_error(before, after) == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("dtype", ALL)
def test_relative_error_of_zeros_subnormals_and_nan(dtype: str) -> None:
    tiny = float(np.finfo(dtype).tiny)
    for before, after, expected in [
        (0.0, 0.0, 0.0),
        (0.0, tiny / 8, math.inf),
        (tiny / 4, 0.0, 0.0),
        (tiny / 4, tiny, 0.0),
        (tiny / 4, 2 * tiny, math.inf),
        (np.nan, np.nan, 0.0),
        (np.nan, 1.0, math.inf),
        (1.0, np.nan, math.inf),
        (np.inf, np.inf, 0.0),
        (1.0, np.inf, math.inf),
        (4.0, 5.0, 0.25),
    ]:
        for place in (0, 1, 2):
            pair = [np.ones(3, dtype), np.ones(3, dtype)]
            pair[0][place], pair[1][place] = before, after
            found = relative_error(*pair)
            assert found == expected or (before == tiny / 4 and after == 2 * tiny and found > 1), (before, after, found)


@given(
    hnp.arrays(st.sampled_from(["f4", "f8"]), st.integers(0, 40), elements=st.floats(width=32, allow_nan=True)),
    st.sampled_from(SOME[:5]),
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=3),
    st.floats(-1e3, 1e3, width=32),
    st.floats(-1e3, 1e3, width=32),
)
def test_round_keeps_missing_values_zeros_signs_and_validity(
    values: Array, rounding: Rounding, missing: list[float], low: float, high: float
) -> None:
    values = np.concatenate([values, np.array([*missing, low, high, 0.0, -0.0], values.dtype)])
    after = rounding.round(values, missing_values=missing, valid_range=(low, high))
    absent = ~np.isfinite(values) | np.isin(values, np.array(missing, values.dtype))
    assert np.array_equal(absent, ~np.isfinite(after) | np.isin(after, np.array(missing, values.dtype)))
    fixed = absent | (values == 0)
    assert np.array_equal(words(after)[fixed], words(values)[fixed])
    assert np.array_equal(np.signbit(after), np.signbit(values))
    assert np.array_equal(values < values.dtype.type(low), after < values.dtype.type(low))
    assert np.array_equal(values > values.dtype.type(high), after > values.dtype.type(high))
    assert relative_error(values, after) <= rounding.relative_bound


@like_netcdf
@pytest.mark.parametrize("dtype", ALL)
def test_round_leaves_a_value_that_would_become_missing_and_counts_it(dtype: str) -> None:
    """netCDF-C makes the fill value of the second, infinity of the third, and NaN or 0 of the fourth."""
    most, fill = np.finfo(dtype).max, netCDF4.default_fillvals[dtype]
    values = np.array([1.2345678, fill * 1.0001, most, np.inf, 103.0], dtype)
    rounded = BitRound(3).rounded(values, [fill], (None, 103.5), None, values.shape)
    assert (rounded.values.tolist(), rounded.unrounded) == ([1.25, *values[1:].tolist()], 3)
    theirs = by_netcdf(values, BitRound(3))
    assert (theirs[1], theirs[2], theirs[4]) == (dtype_value(fill, dtype), np.inf, 104)
    assert np.isnan(by_netcdf(values, BitGroom(3))[3])
    assert by_netcdf(values, Granular(3))[3] == 0


def dtype_value(value: float, dtype: str) -> float:
    return float(np.array(value, dtype))


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple),
    st.data(),
    st.sampled_from([BitGroom(2), Granular(2)]),
)
def test_round_of_a_part_as_of_the_whole(shape: tuple[int, ...], data: Any, rounding: Rounding) -> None:
    values = np.random.default_rng(3).normal(size=shape).astype("f4")
    start = [data.draw(st.integers(0, extent - 1)) for extent in shape]
    stop = [data.draw(st.integers(first + 1, extent)) for first, extent in zip(start, shape, strict=True)]
    part = tuple(map(slice, start, stop))
    whole = rounding.round(values)
    assert np.array_equal(rounding.round(values[part], origin=start, shape=shape), whole[part])


def test_round_takes_any_layout_and_byte_order() -> None:
    values = np.random.default_rng(4).normal(size=(6, 7)).astype("f4")
    for rounding in SOME:
        expected = rounding.round(values)
        swapped = rounding.round(values.astype(">f4"))
        assert swapped.dtype == np.dtype(">f4")
        assert np.array_equal(swapped, expected)
        assert np.array_equal(rounding.round(np.asfortranarray(values)), expected)
        error = relative_error(values, expected)
        assert relative_error(values.astype(">f4"), swapped) == error == relative_error(values, swapped), rounding
    assert BitRound(3).round(np.float32(1.2345)).tolist() == 1.25
    assert BitGroom(3).round(np.empty((0, 3), "f4")).shape == (0, 3)


def test_bitround_twice_is_once() -> None:
    values = hard_values("f4")
    for keepbits in range(1, 24):
        once = BitRound(keepbits).round(values)
        assert np.array_equal(words(BitRound(keepbits).round(once)), words(once))


@pytest.mark.parametrize(
    ("rounding", "dtype", "message"),
    [
        (BitRound(24), "f4", "expected keepbits of 1 to 23 for float32"),
        (Granular(7), "f4", "expected digits of 1 to 6 for float32"),
        (BitGroom(3), "i2", "expected float32 or float64 for bitgroom.* got int16"),
        (BitRound(3), "f2", "expected float32 or float64"),
        (BitRound(3), "g", "expected float32 or float64"),
    ],
)
def test_round_of_a_type_that_netcdf_does_not_quantize_is_refused(rounding: Rounding, dtype: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        rounding.round(np.ones(3, dtype))


def test_rounding_with_a_number_out_of_range_is_refused() -> None:
    for kind, number in (
        (BitRound, 0),
        (BitRound, 53),
        (Granular, 16),
        (BitGroom, 0),
        (BitRound, True),
        (Granular, 2.5),
    ):
        with pytest.raises(ParameterError, match=r"expected (keepbits|digits) of 1 to"):
            kind(number)
    with pytest.raises(ParameterError, match="masked"):
        BitRound(3).round(np.ma.masked_equal([1.0, 2.0], 2.0))


def test_recorded_rounding_of_attributes() -> None:
    for kind in KINDS:
        assert recorded_rounding({kind.attribute: np.array([3], "i4")}, FLOAT) == kind(3)  # type: ignore[call-arg]
    assert recorded_rounding({"units": "K"}, FLOAT) is None
    for damaged in (np.array([3, 4]), "3", np.array([3.0]), 99, -1, np.array([], int)):
        assert recorded_rounding({BitRound.attribute: damaged}, FLOAT) is None
    for other in (np.dtype("i2"), None):
        assert recorded_rounding({BitRound.attribute: 3}, other) is None
    both = {BitRound.attribute: 7, BitGroom.attribute: 3}
    assert recorded_rounding(both, FLOAT) == BitGroom(3)  # which netCDF-C looks for first


def test_still_needed_refuses_a_second_rounding() -> None:
    assert still_needed(BitRound(7), {}) == BitRound(7)
    assert still_needed(BitRound(7), {BitRound.attribute: np.array([7], "i4")}) is None
    for attributes in ({BitRound.attribute: 9}, {Granular.attribute: 3}, {BitGroom.attribute: "damaged"}):
        with pytest.raises(ParameterError, match="expected values that are not rounded yet"):
            still_needed(BitRound(7), attributes)


def test_public_names_are_the_classes() -> None:
    assert (tamis.BitRound, tamis.Granular, tamis.BitGroom) == (BitRound, Granular, BitGroom)
    assert [kind.quantize_mode for kind in (BitGroom, Granular, BitRound)] == [
        "BitGroom",
        "GranularBitRound",
        "BitRound",
    ]
