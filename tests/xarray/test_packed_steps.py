"""More steps for packed variables: limits of valid values and ranges, as netCDF4-python reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import tamis
from tamis import DataError, ParameterError

STEPS = 6
PACK = "pack(bound=0.01)|shuffle|deflate(4)"
RANGE = "pack(bound=0.01,range=-20:20)|shuffle|deflate(4)"


def month(number: int, scale: float = 1, limits: tuple[float, float] | None = (-10, 10)) -> xr.Dataset:
    """Return some steps of wind whose values lie within 4 times a scale."""
    values = np.clip(np.random.default_rng(number).normal(size=(STEPS, 200)), -4, 4) * scale
    values[0, :2] = -4 * scale, 4 * scale
    attributes = {"units": "m s-1"} | ({"valid_range": np.array(limits, "f4")} if limits else {})
    time = xr.date_range("2000-01-01", periods=STEPS) + np.timedelta64(30 * number, "D")
    return xr.Dataset({"u": (("time", "x"), values.astype("f4"), attributes)}, {"time": time})


def grow(path: Path, months: list[xr.Dataset], recipe: str = PACK) -> list[Any]:
    """Append months to a file or store, and return the results."""
    if path.suffix == ".zarr":
        return [ds.tamis.to_zarr(path, {"u": recipe}, append_dim="time") for ds in months]
    return [ds.tamis.to_netcdf(path, {"u": recipe}, append_dim="time") for ds in months]


def check_valid(path: Path, months: list[xr.Dataset]) -> None:
    """Check that netCDF4-python, which masks invalid values, reads all values within the bound."""
    with netCDF4.Dataset(path) as file:
        found, limits = file["u"][:], np.asarray(file["u"].valid_range)
        assert limits.dtype == np.int16
        units = limits * file["u"].scale_factor + file["u"].add_offset
    assert not np.ma.is_masked(found)
    assert np.abs(found - np.concatenate([ds["u"].values for ds in months])).max() <= 0.01
    assert units == pytest.approx((-10, 10), abs=0.01)


def test_limits_of_a_packed_variable_stay_codes(tmp_path: Path) -> None:
    months = [month(0), month(1), month(2, 2), month(3, 2, None), month(4)]
    results = grow(tmp_path / "a.nc", months)
    check_valid(tmp_path / "a.nc", months)
    assert not any("valid" in note for result in results for note in result.notes)


def test_limits_of_a_zarr_store_stay_codes(tmp_path: Path) -> None:
    months = [month(0), month(1, 2), month(2)]
    grow(tmp_path / "a.zarr", months)
    own = zarr.open_array(tmp_path / "a.zarr/u", mode="r").attrs
    limits = np.array(own["valid_range"])
    assert limits.dtype.kind == "i"
    assert limits * own["scale_factor"] + own["add_offset"] == pytest.approx((-10, 10), abs=0.01)


@pytest.mark.parametrize("again", [month(0), month(1)])
def test_limits_stay_codes_where_values_are_replaced(tmp_path: Path, again: xr.Dataset) -> None:
    first = month(0)
    first.tamis.to_netcdf(tmp_path / "a.nc", {"u": PACK})
    first.assign(u=again["u"].variable).tamis.to_netcdf(tmp_path / "a.nc", mode="a")
    check_valid(tmp_path / "a.nc", [again])


def test_limits_of_another_packed_file_are_its_codes(tmp_path: Path) -> None:
    months = [month(0), month(1, 2)]
    months[1].tamis.to_netcdf(tmp_path / "b.nc", {"u": "pack(bound=0.002)|shuffle|deflate(4)"})
    grow(tmp_path / "a.nc", months[:1])
    with xr.open_dataset(tmp_path / "b.nc") as other:
        result = other.load().tamis.to_netcdf(tmp_path / "a.nc", append_dim="time")
    assert not any("valid values" in note for note in result.notes)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["u"].valid_range.dtype == np.int16
        assert not np.ma.is_masked(file["u"][:])


def test_other_limits_leave_those_of_the_file(tmp_path: Path) -> None:
    months = [month(0), month(1, 1, (-50, 50))]
    _, result = grow(tmp_path / "a.nc", months)
    (note,) = (note for note in result.notes if "valid values" in note)
    assert note.startswith("/u: keeps the valid values of the file, from -10.0")
    assert note.endswith("the dataset has from -50 to 50")
    check_valid(tmp_path / "a.nc", months)


def test_values_that_would_become_invalid_are_refused(tmp_path: Path) -> None:
    grow(tmp_path / "a.nc", [month(0)])
    before = (tmp_path / "a.nc").read_bytes()
    with pytest.raises(DataError, match=r"/u: -?40.0 is valid in the dataset, but not valid in the file, whose valid"):
        grow(tmp_path / "a.nc", [month(1, 10, (-50, 50))])
    assert (tmp_path / "a.nc").read_bytes() == before


def test_flags_are_no_attribute_of_codes(tmp_path: Path) -> None:
    second = month(1)
    second["u"].attrs["flag_values"] = np.array([1.0, 2.0])
    grow(tmp_path / "a.nc", [month(0)])
    with pytest.raises(ParameterError, match="/u: expected the attribute flag_values to be as in the file, none"):
        grow(tmp_path / "a.nc", [second])
    check_valid(tmp_path / "a.nc", [month(0)])
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert "flag_values" not in file["u"].ncattrs()


def test_values_outside_a_range_are_refused(tmp_path: Path) -> None:
    strict = RANGE.replace("20:20", "20:20,outside=error")
    grow(tmp_path / "a.nc", [month(0, limits=None), month(1, limits=None)], strict)
    outside = month(2, limits=None)
    outside["u"][3, 7] = 21
    with pytest.raises(DataError, match=r"/u: expected values from -20 to 20, by .*, found 21.0 at \[3, 7\]"):
        grow(tmp_path / "a.nc", [outside], strict)
    grow(tmp_path / "a.nc", [outside], RANGE)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["u"][2 * STEPS + 3, 7] == pytest.approx(21, abs=0.01)


@pytest.mark.parametrize("other", ["-30:20", "-10:10", "-20:3000"])
@pytest.mark.parametrize("limits", [None, (-15, 15)])
def test_another_range_is_refused(tmp_path: Path, other: str, limits: tuple[float, float] | None) -> None:
    grow(tmp_path / "a.nc", [month(0, limits=limits), month(1, limits=limits)], RANGE)
    with pytest.raises(ParameterError, match="/u: expected the range by which the file is packed"):
        grow(tmp_path / "a.nc", [month(2, limits=limits)], RANGE.replace("-20:20", other))


def test_a_range_that_the_first_values_made_wider_is_the_same(tmp_path: Path) -> None:
    months = [month(0, 8, None), month(1, limits=None), month(2, limits=None)]
    grow(tmp_path / "a.nc", months, RANGE)
    with pytest.raises(ParameterError, match="leave out the recipe"):
        grow(tmp_path / "a.nc", months[:1], RANGE.replace("range", "outside=error,range"))


def test_filters_behind_zfp_stay_for_later_steps(tmp_path: Path) -> None:
    months = [month(number, limits=None) for number in range(2)]
    months[1]["u"][:, ::2] = np.nan
    recipe = "zfp(bound=0.01)|shuffle|deflate(4)"
    first, _ = grow(tmp_path / "a.nc", months, recipe)
    assert not first["u"].left_out
    with h5py.File(tmp_path / "a.nc") as file:
        names = [file["u"].id.get_create_plist().get_filter(number)[0] for number in range(3)]
        assert names == [32013, 2, 1]
        sizes = [file["u"].id.get_chunk_info(number) for number in range(2)]
        assert [item.filter_mask & 7 for item in sizes] == [6, 1]
        assert sizes[1].size < STEPS * 200 * 4 * 0.75  # half of the values are missing
    with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as found:
        expected = np.concatenate([ds["u"].values for ds in months])
        np.testing.assert_allclose(found["u"].values, expected, rtol=0, atol=0.01)
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "a.nc").ok
