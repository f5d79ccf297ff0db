"""U4: no integer changes in another type, and rounding to it is part of the bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tamis
from tamis import BoundError, DataError
from tamis.hdf5 import Appender, create_dataset, write

FILTERS = "zfp(accuracy=0.1)|shuffle|deflate(4)"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


@pytest.mark.parametrize(
    ("values", "dtype", "first"),
    [
        (np.arange(2**25, 2**25 + 64), "f4", "int64 33554433 at index (1,), which would become 33554432.0"),
        (np.arange(2**60, 2**60 + 64), "f8", "int64 1152921504606846977 at index (1,)"),
        (np.array([2**63 - 1]), "f8", "int64 9223372036854775807 at index (0,), which would become 9.22"),
        (np.array([0, 2**64 - 1], "u8"), "f8", "uint64 18446744073709551615 at index (1,)"),
        (np.array([2**64 - 1], "u8"), "f4", "uint64 18446744073709551615 at index (0,)"),
        (np.array([[1, 2], [3, 2049]], "i2"), "f2", "int16 2049 at index (1, 1), which would become 2048.0"),
        (np.array([70000]), "f2", "int64 70000 at index (0,), which would become inf"),
        (np.array([2**24 + 1], "i4"), "c8", "expected values of complex64, got int32"),
        (np.array([2**53 + 1]), "c16", "int64 9007199254740993 at index (0,)"),
        (np.array([2**40]), "i4", "int64 1099511627776 at index (0,), which would become 0"),
        (np.array([-1]), "u8", "int64 -1 at index (0,), which would become 18446744073709551615"),
        (np.array([2**63], "u8"), "i8", "uint64 9223372036854775808 at index (0,)"),
    ],
)
def test_u04_no_integer_changes(values: NDArray[Any], dtype: str, first: str, file: h5py.File) -> None:
    with pytest.raises(DataError) as refused:
        write(file, "x", values, dtype=dtype, filters="deflate(4)")
    assert first in str(refused.value)
    assert "x" not in file
    made = create_dataset(file, "y", values.shape, dtype, filters="deflate(4)")
    with pytest.raises(DataError):
        write(made, values)
    grown = create_dataset(file, "z", (0, *values.shape[1:]), dtype, maxshape=(None, *values.shape[1:]))
    with Appender(grown) as appender, pytest.raises(DataError):
        appender.append(values)
    assert grown.shape[0] == 0


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from(["f2", "f4", "f8", "c16"]))
def test_u04_integers_that_are_taken_are_the_same(numbers: list[int], dtype: str) -> None:
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        try:
            made = write(file, "x", np.array(numbers, "i8"), dtype=dtype)
        except DataError:
            with np.errstate(over="ignore"):
                back = np.array(numbers).astype(dtype).real.tolist()
            assert any(
                each in (np.inf, -np.inf) or int(each) != number for each, number in zip(back, numbers, strict=True)
            )
            return
        assert [int(each) for each in made[()].real.tolist()] == numbers


def test_u04_index_of_a_later_chunk_is_that_in_the_data(file: h5py.File) -> None:
    data = np.zeros((20, 20), "i8")
    data[17, 13] = 2**24 + 1
    with pytest.raises(DataError, match=r"chunk at \(16, 8\): .* 16777217 at index \(17, 13\)"):
        write(file, "x", data, dtype="f4", chunks=(8, 8))


@pytest.mark.parametrize("flag", ["", "!"])
def test_u04_rounding_that_breaks_the_bound_is_refused(flag: str, file: h5py.File) -> None:
    data = 1e8 + np.linspace(0, 1000, 64 * 64).reshape(64, 64)
    with pytest.raises(BoundError, match=r"float32 holds with an error of at most 0\.1, got float64 1000000"):
        write(file, "x", data, dtype="f4", filters=f"zfp(accuracy=0.1){flag}", chunks=(16, 64))
    assert "x" not in file
    made = create_dataset(
        file, "y", (0, 64), "f4", maxshape=(None, 64), chunks=(4, 64), filters=f"zfp(accuracy=0.1){flag}"
    )
    with Appender(made) as appender, pytest.raises(BoundError, match=r"step 0: .* at index \(0, 1\)"):
        appender.append(data[0])
    write(file, "x", data, dtype="f4", filters=f"zfp(accuracy=8){flag}", chunks=(16, 64))
    assert np.abs(file["x"][()].astype("f8") - data).max() <= 8


@pytest.mark.parametrize("bound", [0.0625, 0.05, 0.04, 0.0313])
@pytest.mark.parametrize("way", ["write", "fill", "append", "restart"])
def test_u04_rounding_and_codec_together_keep_the_bound(way: str, bound: float, file: h5py.File) -> None:
    """At 2^19 float32 are 1/16 apart: rounding alone takes half of that."""
    data = 2.0**19 + np.random.default_rng(1).random((10, 8, 8)) * 1000
    options: dict[str, Any] = {"chunks": (4, 8, 8), "filters": f"zfp(accuracy={bound})|shuffle|deflate(4)"}
    if way == "write":
        made = write(file, "x", data, dtype="f4", **options)
    elif way == "fill":
        made = create_dataset(file, "x", data.shape, "f4", **options)
        write(made, data)
    else:
        made = create_dataset(file, "x", (0, 8, 8), "f4", maxshape=(None, 8, 8), **options)
        portions = (data,) if way == "append" else (data[:3], data[3:6], data[6:])
        for each in portions:
            with Appender(made) as appender:
                appender.append(each)
    assert np.abs(made[()].astype("f8") - data).max() <= bound


def test_u04_rounding_of_floats_without_a_bound_is_what_was_asked(file: h5py.File) -> None:
    data = np.array([0.1, 1e-300, -0.0, np.nan, np.inf, 16777217.0])
    for filters in ("deflate(4)", "zfp(reversible=true)", "none"):
        made = write(file, filters, data, dtype="f4", filters=filters)
        np.testing.assert_array_equal(made[()], data.astype("f4"))
    with pytest.raises(DataError, match=r"float64 1e\+39 at index \(1,\), which would become inf"):
        write(file, "x", np.array([0, 1e39]), dtype="f4")


def test_u04_missing_values_are_no_part_of_the_bound(file: h5py.File) -> None:
    data = np.full((8, 8), 280.5)
    data[0] = 1e20  # which float32 has not, nor has it any value within 0.1
    data[1, 1] = np.nan
    made = write(file, "x", data, dtype="f4", filters=FILTERS, attrs={"_FillValue": np.float32(1e20)})
    np.testing.assert_array_equal(made[()], data.astype("f4"))


def test_u04_masked_integers_become_a_fill_value_of_floats(file: h5py.File) -> None:
    """The fill value of the file need not be one that the type of the data has."""
    data = np.ma.masked_equal(np.arange(16).reshape(4, 4), 5)
    made = write(file, "x", data, dtype="f4", fillvalue=-999.5, filters=FILTERS)
    assert made[1, 1] == np.float32(-999.5)
    assert np.abs(made[()][~data.mask] - data.data[~data.mask]).max() <= 0.1


@pytest.mark.parametrize(
    ("values", "dtype", "kept"),
    [
        (1e8 + np.linspace(0, 1000, 256), "f4", False),
        (np.linspace(0, 1000, 256), "f4", True),
        (np.full(256, np.nan), "f4", True),
        (np.arange(2**30, 2**30 + 256), "f4", False),
        (np.linspace(0, 1000, 256), "f8", True),
    ],
)
def test_u04_encoding_counts_the_type_that_xarray_converts_to(
    values: NDArray[Any], dtype: str, kept: bool, tmp_path: Path
) -> None:
    data = xarray.Dataset({"x": (("a", "b"), values.reshape(16, 16))})
    data["x"].encoding["dtype"] = dtype
    if not kept:
        with pytest.raises(DataError, match=r"rounding and zfp together may break the bound; store (float64|int64)"):
            tamis.encoding(data, {"x": "zfp(accuracy=0.1)"})
        tamis.encoding(data, {"x": "zfp(accuracy=1e5)"})
        return
    data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(data, {"x": "zfp(accuracy=0.1)"}))
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as again:
        np.testing.assert_allclose(again["x"].values, data["x"].values, rtol=0, atol=0.1)


def test_u04_encoding_refuses_floats_as_whole_numbers_where_the_bound_has_no_room() -> None:
    data = xarray.Dataset({"x": (("a", "b"), np.linspace(0, 99, 256).reshape(16, 16))})
    data["x"].encoding["dtype"] = "i4"
    with pytest.raises(DataError, match=r"whole numbers, which differ by up to 0\.5"):
        tamis.encoding(data, {"x": "zfp(accuracy=2)"})
    tamis.encoding(data, {"x": "zfp(accuracy=3)"})
