"""Flags of missing values: found and put back bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis import DataError, ParameterError
from tamis.meaning.missing import Flags


def special(dtype: str) -> Any:
    """Missing values of many kinds among others, and NaN of other bits."""
    values = np.linspace(-3, 3, 40).astype(dtype)
    bits = f"u{values.itemsize}"
    values[3:7], values[8], values[9], values[11], values[12] = -99, np.inf, -np.inf, np.nan, -np.abs(values[11])
    values[12] = -np.array(np.nan, dtype)
    values[14:15].view(bits)[...] = values[11:12].view(bits) + 5
    values[20], values[21] = 0.0, -0.0
    return values


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_flags_of_floats_restore_every_bit(dtype: str) -> None:
    data = special(dtype.lstrip(">")).astype(dtype)
    table = Flags.of([-99, 0], data.dtype.newbyteorder("="))
    native = data.astype(data.dtype.newbyteorder("="))
    flags = table.find(native)
    assert flags is not None
    assert [int(flags[i]) for i in (0, 3, 14)] == [0, 1, table.stored_flag]
    assert flags[20] != flags[21]
    assert flags[11] != flags[12]
    other = data.copy()
    other[(flags != 0) & (flags != table.stored_flag)] = 7
    table.restore(other, flags)
    assert other.tobytes() == data.tobytes()


def test_flags_of_nan_with_other_bits_by_an_attribute_have_their_own() -> None:
    fill = np.array([0x7FC00123], "u4").view("f4")
    table = Flags.of(fill, np.dtype("f4"))
    flags = table.find(np.array([1, 0x7FC00123, 0x7FC00124], "u4").view("f4"))
    assert flags is not None
    assert flags.tolist() == [0, 1, table.stored_flag]
    assert table.words()[:2] == ["valid", "nan_0x7fc00123"]


def test_flags_of_integers_name_fill_values_only() -> None:
    table = Flags.of([-9, 7], np.dtype("i4"))
    assert (table.stored_flag, table.words()) == (0, ["valid", "missing_-9", "missing_7"])
    assert table.find(np.arange(6, dtype="i4")) is None
    data = np.array([-9, 1, 7], "i4")
    flags = table.find(data)
    assert flags is not None
    assert flags.tolist() == [1, 0, 2]
    values = np.ones((1, 3), "i8")
    table.restore(values, flags[None])
    assert values.tolist() == [[-9, 1, 7]]


def test_flags_beyond_the_table_refused() -> None:
    table = Flags.of([1e20], np.dtype("f4"))
    with pytest.raises(DataError, match="expected flags up to 6, got 7: damaged"):
        table.restore(np.zeros(3, "f4"), np.array([0, 7, 1], np.uint8))


def test_flags_that_cannot_be_refused() -> None:
    with pytest.raises(ParameterError, match="at most 250 missing values, of 1, 2, 4 or 8 bytes, got 251 of int32"):
        Flags.of(range(251), np.dtype("i4"))
    with pytest.raises(ParameterError, match="got 5 of complex64"):
        Flags(np.zeros(5, "c8"))


def test_flags_restored_into_strided_and_wider_arrays() -> None:
    data = np.array([1, -99, np.nan, 4], "f4")
    table = Flags.of([-99], data.dtype)
    flags = table.find(data)
    assert flags is not None
    room = np.zeros((4, 3), "f8")
    table.restore(room[:, 1], flags)
    assert room[1, 1] == -99
    assert np.isnan(room[2, 1])
    assert not room[:, [0, 2]].any()
