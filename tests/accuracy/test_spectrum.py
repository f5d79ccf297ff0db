"""Power spectra of rows against sums of waves, and what is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tamis.accuracy import Spectra


def test_spectrum_as_defined() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 16))
    spectra = Spectra.of(rows, rows)
    assert spectra.before.size == 4  # wavelengths of 16, 8, 5.3 and 4 values
    for number in range(1, 5):
        angles = 2 * math.pi * number * np.arange(16) / 16
        power = sum((row @ np.cos(angles)) ** 2 + (row @ np.sin(angles)) ** 2 for row in rows)
        assert spectra.before[number - 1] == pytest.approx(power)
    assert spectra.difference == 0


def test_largest_difference_of_one_wave() -> None:
    at = np.arange(64)
    source = np.sin(2 * math.pi * 2 * at / 64) + np.sin(2 * math.pi * 5 * at / 64)
    target = source + 0.05 * np.sin(2 * math.pi * 5 * at / 64) + 0.5 * np.sin(2 * math.pi * 30 * at / 64)
    noise = np.random.default_rng(0).standard_normal((1, 64)) * 1e-3
    found = Spectra.of(source[None] + noise, target[None] + noise)
    assert found.difference == pytest.approx(1.05**2 - 1, rel=0.1)  # the wave of 2.1 values does not count


def test_parts_add_up_and_rows_with_missing_values_are_left_out() -> None:
    before, after = np.random.default_rng(2).standard_normal((2, 4, 6, 20))
    whole = Spectra.of(before, after)
    parts = Spectra().plus(Spectra.of(before[:1], after[:1])).plus(Spectra.of(before[1:], after[1:])).plus(Spectra())
    np.testing.assert_allclose(parts.before, whole.before)
    np.testing.assert_allclose(parts.after, whole.after)
    absent = np.zeros(before.shape, bool)
    absent[0, 1:, 3] = True
    rest = Spectra.of(before, np.where(absent, np.nan, after), absent)
    expected = Spectra.of(before[0, :1], after[0, :1]).plus(Spectra.of(before[1:], after[1:]))
    np.testing.assert_allclose(rest.after, expected.after)


def test_waves_that_were_not_there_differ_without_limit() -> None:
    at = np.arange(32)
    source = np.cos(2 * math.pi * at / 4)[None]
    wave = 0.5 * np.cos(2 * math.pi * at / 8)
    assert Spectra.of(source, source + wave).difference == math.inf
    assert Spectra.of(source + wave, source).difference == pytest.approx(1)
    assert Spectra.of(np.ones((2, 32)), np.ones((2, 32)) + wave).difference == math.inf


def test_nothing_to_compare() -> None:
    short = np.ones((4, 3))
    assert Spectra.of(short, short).difference is None
    constant = np.ones((4, 32))
    assert Spectra.of(constant, constant).difference is None
    assert Spectra.of(constant, constant, np.ones((4, 32), bool)).difference is None
