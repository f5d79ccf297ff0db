"""Types that netCDF's library fails with: widened, refused or named where the name of a file promises netCDF."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dask.array as da
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import tamis
from tamis.errors import ParameterError, TamisError

HALVES = np.array([[0.5, np.nan, 65504.0], [-2.0, 6e-8, 1.0]], "f2")


def read_by_netcdf4(path: Path, name: str) -> str:
    """Return the values that netCDF4 reads in a process of its own, which float16 would end."""
    code = f"import netCDF4; v = netCDF4.Dataset({str(path)!r})[{name!r}]; print(v.dtype, v[:].filled(-1).tolist())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("recipe", ["shuffle|deflate(4)", "absolute(bound=1e-9)|deflate(4)"])
def test_u86_saved_dataset_has_float32_and_a_note(tmp_path: Path, lazy: bool, recipe: str) -> None:
    values = da.from_array(HALVES, chunks=(1, 3)) if lazy else HALVES
    ds = xr.Dataset({"t": (("x", "y"), values), "ok": ("x", [1.0, 2.0])})
    ds["t"].encoding["_FillValue"] = np.float16(-1)
    result = ds.tamis.to_netcdf(tmp_path / "a.nc", {"t": recipe})
    assert "/t: float16, which netCDF lacks, is stored as float32" in result.notes
    expected = np.where(np.isnan(HALVES), -1, HALVES).astype("f4").tolist()
    assert read_by_netcdf4(tmp_path / "a.nc", "t") == f"float32 {expected}"
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        np.testing.assert_array_equal(found["t"], HALVES)


def test_u86_saved_zarr_store_keeps_float16(tmp_path: Path) -> None:
    ds = xr.Dataset({"t": (("x", "y"), HALVES)})
    result = ds.tamis.to_zarr(tmp_path / "a.zarr")
    assert result.notes == ()
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["t"].dtype == np.float16


def test_u86_long_doubles_are_refused_by_name(tmp_path: Path) -> None:
    ds = xr.Dataset({"t": ("x", np.arange(3, dtype=np.longdouble))})
    with pytest.raises(ParameterError, match=r"t: expected numbers that netCDF-4 has, got float128: convert it"):
        ds.tamis.to_netcdf(tmp_path / "a.nc")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u86_zarr_source_is_refused_for_a_netcdf_name_alone(tmp_path: Path, zarr_format: int) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    group.create_array("t", shape=(2, 3), chunks=(2, 3), dtype="f2")[:] = HALVES
    group.create_array("ok", shape=(2,), chunks=(2,), dtype="f4")[:] = 1
    for target in ("a.nc", "a.nc4"):
        with pytest.raises(TamisError, match=r"/t: netCDF's library fails with float16.*file named \.h5"):
            tamis.repack(tmp_path / "a.zarr", tmp_path / target, {})
        assert not (tmp_path / target).exists()
    tamis.repack(tmp_path / "a.zarr", tmp_path / "without.nc", {}, drop=["t"])
    assert read_by_netcdf4(tmp_path / "without.nc", "ok") == "float32 [1.0, 1.0]"
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.h5", {})
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["t"], HALVES)


def test_u86_hdf5_source_is_copied_with_a_note(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"], file["ok"] = HALVES, np.ones(2)
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.nc", {})
    assert "/t: netCDF lacks the type float16: its library and programs fail with it" in result.notes
    assert not any("netCDF lacks" in note for note in tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {}).notes)
