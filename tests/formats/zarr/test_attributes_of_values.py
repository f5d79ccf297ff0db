"""Attributes about values get the type of the values only where they stay equal."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import tamis

ATTRIBUTES: dict[str, Any] = {
    "flag_masks": [1, 2147483647],
    "flag_values": [0.5, 2],
    "valid_range": [0.5, 1e30],
    "valid_min": -1,
    "valid_max": 2**53 + 1,
    "missing_value": 16777217,
}


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "u1", "i4", "u4", "i8"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u84_numbers_of_json_keep_their_value(tmp_path: Path, dtype: str, zarr_format: int) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    array = group.create_array("x", shape=(4,), chunks=(4,), dtype=dtype)
    array[:] = [1, 2, 3, 4]
    array.attrs.update(ATTRIBUTES)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    for place in ("a.zarr", "a.nc"):
        with tamis.open(tmp_path / place) as file:
            for name, value in ATTRIBUTES.items():
                found = np.ravel(file["x"].attrs[name]).tolist()
                assert found == np.ravel(np.array(value, object)).tolist(), (place, name)
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "a.nc").ok


@pytest.mark.parametrize("dtype", ["f4", "i2", "f8"])
@pytest.mark.parametrize("name", ["missing_value", "_FillValue"])
def test_u84_marks_of_missing_values_get_the_type_of_the_values(tmp_path: Path, dtype: str, name: str) -> None:
    fill = -999 if dtype == "i2" else 1e20
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    array = group.create_array("x", shape=(4,), chunks=(4,), dtype=dtype, fill_value=fill)
    array[:] = [1, 2, fill, 4]
    array.attrs.update({name: fill, "_ARRAY_DIMENSIONS": ["n"]})
    with tamis.open(tmp_path / "a.zarr") as file:
        assert np.ravel(file["x"].attrs[name]).dtype == dtype
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as found:
            np.testing.assert_array_equal(found["x"], [1, 2, np.nan, 4])
