"""U100: packed integers, and integers named exactly, have lossy candidates, and what plan chooses keeps the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis import ParameterError

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def waves(least: float, most: float) -> Any:
    """Return smooth values with a little noise, in whole numbers."""
    rows, columns = np.mgrid[0:200, 0:240] / 40
    field = np.sin(rows) * np.cos(columns) + np.random.default_rng(0).uniform(-0.02, 0.02, rows.shape)
    return np.rint(least + (field + 1.1) / 2.2 * (most - least))


def make_packed(path: Path, dtype: str, unsigned: bool = False, **attributes: Any) -> Path:
    """Write values around 280 K, packed by 0.0015 K."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 200)
        file.createDimension("x", 240)
        variable = file.createVariable("t", dtype, ("y", "x"), zlib=True, chunksizes=(100, 120), fill_value=1023)
        variable.set_auto_maskandscale(False)
        if unsigned:
            variable.setncattr("_Unsigned", "true")
        variable.setncatts({"scale_factor": np.float32(0.0015), "add_offset": np.float32(280), "units": "K"})
        variable.setncatts(attributes)
        values = waves(30_000 if unsigned or dtype == "u2" else 0, 60_000 if unsigned or dtype == "u2" else 30_000)
        values[:5, :7] = 1023
        variable[:] = values.astype(f"u{dtype[1:]}").astype(dtype) if unsigned else values.astype(dtype)
    return path


def check(source: Path, target: Path, name: str, bound: float) -> None:
    """Compare what xarray reads without tamis."""
    with xr.open_dataset(source, engine="netcdf4") as before, xr.open_dataset(target, engine="netcdf4") as after:
        one, other = before[name].values.astype("f8"), after[name].values.astype("f8")
    assert np.array_equal(np.isnan(one), np.isnan(other))
    assert 0 < np.nanmax(np.abs(one - other)) <= bound * (1 + 1e-6)  # both are float32 in xarray


@pytest.mark.parametrize(
    ("dtype", "unsigned"),
    [("i2", False), ("u2", False), ("i4", False), ("i2", True)],
    ids=["i2", "u2", "i4", "_Unsigned"],
)
def test_u100_packed_integers_are_packed_to_fewer_bits(dtype: str, unsigned: bool, tmp_path: Path) -> None:
    path = make_packed(tmp_path / "a.nc", dtype, unsigned)
    plan = tamis.plan(path, {"*": "abs=0.1"})
    planned = plan["t"]
    assert planned.filters is not None
    assert planned.filters.startswith("pack(bound=0.1)")
    assert planned.chosen is not None
    assert planned.chosen.ratio > 2 * planned.source_ratio  # type: ignore[operator]
    result = tamis.repack(path, tmp_path / "b.nc", plan.recipe)
    assert result["t"].ratio == pytest.approx(planned.chosen.ratio, rel=0.1)
    assert 0 < result["t"].largest_error <= 0.1  # type: ignore[operator]
    assert tamis.verify(path, tmp_path / "b.nc", bounds={"t": 0.1}).ok
    check(path, tmp_path / "b.nc", "t", 0.1)


def test_u100_unsigned_limits_become_those_of_the_new_codes(tmp_path: Path) -> None:
    limits = np.array([30_100, 62_000], "u2").view("i2")
    path = make_packed(tmp_path / "a.nc", "i2", True, valid_range=limits)
    tamis.repack(path, tmp_path / "b.nc", {"t": "pack(bound=0.1)|shuffle|deflate(4)"})
    with netCDF4.Dataset(path) as before, netCDF4.Dataset(tmp_path / "b.nc") as after:
        assert "_Unsigned" not in after["t"].ncattrs()
        assert after["t"].valid_range.dtype == after["t"].dtype
        assert np.array_equal(np.ma.getmaskarray(after["t"][:]), np.ma.getmaskarray(before["t"][:]))
    check(path, tmp_path / "b.nc", "t", 0.1)


def test_u100_limit_between_values_refuses_packing_and_no_other_filter(tmp_path: Path) -> None:
    limits = np.array([45_001, 62_000], "u2").view("i2")  # no step ends here
    path = make_packed(tmp_path / "a.nc", "i2", True, valid_range=limits)
    planned = tamis.plan(path, {"t": "abs=0.1"})["t"]
    assert planned.chosen is not None
    assert planned.chosen.largest_error == 0
    refused = dict(planned.refused)
    assert any("on its side of the valid range" in reason for reason in refused.values())


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", INTEGERS)
def test_u100_integers_named_exactly_keep_a_bound_in_their_units(dtype: str, tmp_path: Path) -> None:
    info = np.iinfo(dtype)
    values = waves(max(info.min, -(10**6)) * 0.9, min(info.max, 10**6) * 0.9).astype(dtype)
    bound = max(1.0, float(np.ptp(values.astype("f8"))) / 500)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("y", 200)
        file.createDimension("x", 240)
        file.createVariable("n", dtype, ("y", "x"), chunksizes=(100, 120), fill_value=False)[:] = values
    plan = tamis.plan(tmp_path / "a.nc", {"n": f"abs={bound}"}, readers="all")
    tried = {each.pipeline.rounding is not None or each.pipeline.error_bound != 0 for each in plan["n"].candidates}
    assert True in tried
    for readers in ("netcdf", "all"):
        plan = tamis.plan(tmp_path / "a.nc", {"n": f"abs={bound}"}, readers=readers, allow="unstable")
        result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", plan.recipe, overwrite=True)
        assert 0 < result["n"].largest_error <= bound  # type: ignore[operator]
        assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds={"n": bound}).ok
        with tamis.open(tmp_path / "b.nc", unpack=True) as file:
            assert np.abs(file["n"][:].astype("f8") - values.astype("f8")).max() <= bound
    assert not tamis.plan(tmp_path / "a.nc", {"*": f"abs={bound}"}).require


def test_u100_plan_says_what_readers_of_packed_counts_get(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("n", data=waves(0, 20_000).astype("i2"), chunks=(100, 120))
    reason = tamis.plan(tmp_path / "a.h5", {"n": "abs=20"})["n"].reason
    assert "and get float32 instead of int16" in reason


def test_u100_bound_below_one_is_refused_for_counts(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("n", data=waves(0, 20_000).astype("i2"), chunks=(100, 120))
    with pytest.raises(ParameterError, match="expected a bound of 1 or more for int16, whose values are whole"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"n": "pack(bound=0.5)|deflate(4)"})
    plan = tamis.plan(tmp_path / "a.h5", {"n": "abs=0.5"})
    assert plan["n"].chosen is not None
    assert plan["n"].chosen.largest_error == 0


def test_u100_integers_beyond_doubles_are_refused_for_packing(tmp_path: Path) -> None:
    values = waves(0, 20_000).astype("i8") + (1 << 60)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("n", data=values, chunks=(100, 120))
    with pytest.raises(ParameterError, match=r"expected integers up to 2\^53 for packing, which are exact in float64"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"n": "pack(bound=100)|deflate(4)"})


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_u100_fill_value_of_codes_is_no_valid_one_where_all_is_written(dtype: str, tmp_path: Path) -> None:
    """It was the code of a valid value, which netCDF then reads as missing."""
    values = waves(-300, 700).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("n", data=values, chunks=(100, 120))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"n": "pack(bound=1)|shuffle|deflate(4)"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert not (file["n"][:] == file["n"].fillvalue).any()
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"n": 1}).ok
