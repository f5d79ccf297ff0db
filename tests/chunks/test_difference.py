"""How far values are from others, and whether missing ones stayed what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.chunks.difference import Comparison, Missing, largest_error, same_bits

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
    assert Missing(values).compare(np.array(old, "f8"), np.array(new, "f8")) == Comparison(*expected)


def test_compare_of_integers() -> None:
    found = Missing((-9,)).compare(np.array([-9, 5, 1], "i4"), np.array([-9, 6, -9], "i4"))
    assert found == Comparison(10.0, False, 1)


def test_find_none_where_nothing_is_missing() -> None:
    assert Missing((1,)).find(np.zeros(3)) is None
    found = Missing((1, 2)).find(np.array([0, 1, 2, NAN, INF]))
    assert found is not None
    assert found.tolist() == [False, True, True, True, True]
