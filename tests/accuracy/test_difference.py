"""How far values are from others, and whether missing ones stayed what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.accuracy import statistics
from tamis.accuracy.difference import ValueComparison, compare, largest_error, same_bits
from tamis.meaning import Missing

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("at", [(0, 0, 0), (63, 63, 63), (31, 7, 5), (62, 0, 0)])
@pytest.mark.parametrize("sign", [1, -1])
def test_largest_error_found_in_any_row(at: tuple[int, ...], sign: int) -> None:
    old = np.sin(np.arange(64.0**3)).reshape(64, 64, 64).astype("f4")
    new = old.copy()
    new[at] += np.float32(sign * 0.5)
    assert largest_error(old, new) == abs(float(new[at]) - float(old[at]))
    assert largest_error(old[::2, 1:, ::-1], old[::2, 1:, ::-1]) == 0


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (1,), (1, 1, 100_000), (100_000, 1), (7, 11, 13)], ids=str)
def test_largest_error_of_any_shape_is_that_of_numpy(shape: tuple[int, ...]) -> None:
    old, new = (np.random.default_rng(seed).standard_normal(shape).astype("f4") for seed in (1, 2))
    assert largest_error(old, new) == np.abs(old.astype("f8") - new).max(initial=0)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ([1.0, NAN], [1.0, NAN], True),
        ([0.0], [-0.0], False),
        ([1, 2], [1, 3], False),
        (np.array([NAN, -0.0], "g"), np.array([NAN, 0.0], "g"), True),  # its bits have gaps
        (np.array([1], "g"), np.array([2], "g"), False),
    ],
)
def test_same_bits(old: Any, new: Any, same: bool) -> None:
    assert same_bits(np.asarray(old), np.asarray(new)) == same


@pytest.mark.parametrize(
    ("values", "old", "new", "expected"),
    [
        ((), [1, 2], [1, 2.5], (0.5, True, 0)),
        ((2,), [1, 2], [1, 2.5], (0.5, False, 1)),
        ((2.5,), [1, 2], [1, 2.5], (0.5, False, 0)),
        ((2,), [1, 2], [1.5, 2], (0.5, True, 1)),
        ((0,), [0.0, 1], [-0.0, 1], (0.0, False, 1)),
        ((), [NAN, 1], [NAN, 1.5], (0.5, True, 1)),
        ((1,), [NAN, 1], [NAN, 1], (0.0, True, 2)),
        ((), [NAN, 1], [3, 1], (INF, False, 1)),
        ((), [INF, 1], [INF, NAN], (INF, False, 1)),
        ((), [-1.7e308], [1.7e308], (INF, True, 0)),
        ((7, 8), [7, 8, 9], [8, 7, 9], (1.0, False, 2)),
    ],
)
def test_compare_of_known_values(
    values: tuple[float, ...], old: list[float], new: list[float], expected: tuple[float, bool, int]
) -> None:
    assert compare(np.array(old, "f8"), np.array(new, "f8"), Missing(values)) == ValueComparison(*expected)


def test_compare_of_integers() -> None:
    found = compare(np.array([-9, 5, 1], "i4"), np.array([-9, 6, -9], "i4"), Missing((-9,)))
    assert found == ValueComparison(10.0, False, 1)


def test_find_none_where_nothing_is_missing() -> None:
    assert Missing((1,)).find(np.zeros(3)) is None
    found = Missing((1, 2)).find(np.array([0, 1, 2, NAN, INF]))
    assert found is not None
    assert found.tolist() == [False, True, True, True, True]


@given(
    st.sampled_from(["f4", "f8"]),
    st.integers(0, 3000),
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([0.0, 1.0, 1e20]), unique=True),
)
@settings(max_examples=200, deadline=None)
def test_survey_and_compare_of_floats_are_what_numpy_finds(
    dtype: str, size: int, seed: int, marks: list[float]
) -> None:
    random = np.random.default_rng(seed)
    odd = np.array([0, -0.0, 1, NAN, INF, -INF, 1e20, 3e38], dtype)
    old = random.standard_normal(size).astype(dtype)
    if seed % 2:  # also blocks of values without any that are odd
        old[: size // 2] = random.choice(odd, size // 2)
    new = old.copy()
    if seed % 3:
        new += random.uniform(-0.1, 0.1, size).astype(dtype)
    for at in random.integers(0, max(size, 1), 5 if size and seed % 5 else 0):
        new[at] = random.choice(odd)
    missing = Missing(tuple(np.array(marks, dtype)))
    was, now = (~np.isfinite(each) | np.isin(each, missing.values) for each in (old, new))
    finite = old[np.isfinite(old)]
    assert missing.survey(old) == (float(np.abs(finite).max(initial=0)), was.sum(), finite.size == size)
    with np.errstate(invalid="ignore"):
        errors = np.abs(old.astype("f8") - new.astype("f8"))
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    errors = np.where(same, 0, np.where(np.isnan(errors), INF, errors))
    kept = np.array_equal(was, now) and same_bits(old[was], new[was])
    assert compare(old, new, missing)[:3] == (errors.max(initial=0), kept, was.sum())
    assert largest_error(old, new) == errors.max(initial=0)


def test_survey_and_compare_of_values_at_odd_addresses(tmp_path: Path) -> None:
    values = np.frombuffer(bytearray(1 + 4 * 9), np.uint8)[1:].view("f4")
    values[4] = -3
    assert Missing().survey(values) == (3, 0, True)
    assert compare(values, values[::-1], Missing()) == (0, True, 0, 0)
    with h5py.File(tmp_path / "a.h5", "w") as file:  # whose types name their byte order
        file["v"] = values
        assert compare(file["v"][...], values + np.float32(1), Missing()) == (1, True, 0, 0)


@pytest.mark.parametrize("dtype", ["f2", "i4", "u8", ">f4", "g"])
def test_survey_of_types_that_the_kernel_has_not_is_the_same(dtype: str) -> None:
    values = np.array([3, 7, 100, 7, 2], dtype)
    assert Missing((values.dtype.type(7),)).survey(values) == (100, 2, True)
    if values.dtype.kind == "f":
        values[1] = NAN
        assert Missing((values.dtype.type(7),)).survey(values) == (100, 2, False)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i2", "i4", "u8"])
def test_comparison_and_tally_agree_on_errors_and_missing_values(dtype: str) -> None:
    random = np.random.default_rng(7)
    source = random.integers(0, 9, 500).astype(dtype)
    target = source.copy()
    target[::7] = random.integers(0, 9, len(target[::7])).astype(dtype)
    missing = Missing((source.dtype.type(3),), source.dtype.type(1), source.dtype.type(7))
    comparison, tally = compare(source, target, missing), statistics.compare(source, target, (0,), missing)
    assert comparison.missing == tally.missing > 0
    assert comparison.kept == (not tally.lost and not tally.gained and not comparison.crossed)
    valid = (source != 3) & (target != 3)
    assert tally.error == largest_error(source[valid], target[valid]) > 0
    assert comparison.crossed >= tally.crossed > 0
