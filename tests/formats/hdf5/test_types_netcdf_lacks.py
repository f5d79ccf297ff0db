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
from needs import need

import tamis
from tamis import ParameterError, TamisError

HALVES = np.array([[0.5, np.nan, 65504.0], [-2.0, 6e-8, 1.0]], "f2")


def read_by_netcdf4(path: Path, name: str) -> str:
    """Return the values that netCDF4 reads in a process of its own, which float16 would end."""
    code = f"import netCDF4; v = netCDF4.Dataset({str(path)!r})[{name!r}]; print(v.dtype, v[:].filled(-1).tolist())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


@pytest.mark.matrix
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


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_text_of_a_fixed_length_becomes_text_of_netcdf_whose_programs_crash_at_it(
    tmp_path: Path, zarr_format: int
) -> None:
    words = np.array([b"a", b"bb", "ü".encode()], "S3")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    group.create_array("t", shape=(3,), chunks=(2,), dtype="S3")[:] = words
    result = tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {"*": "deflate"}, min_size=1, larger=True)
    note = "/t: text of a fixed length, which netCDF lacks: it gets a varying length"
    assert note in result.notes
    assert note in tamis.preview_repack(tmp_path / "a.zarr", tmp_path / "b.nc", {}).notes
    code = (
        f"import netCDF4\nfor _ in range(20):\n d = netCDF4.Dataset({str(tmp_path / 'a.nc')!r})\n"
        " print(d['t'][:].tolist())\n d.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['a', 'bb', 'ü']"] * 20
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "a.nc").ok
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.h5", {})
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["t"].dtype == "S3"
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.zarr", {}, zarr_format=zarr_format)
    assert zarr.open_group(tmp_path / "b.zarr", mode="r")["t"][:].tolist() == ["a", "bb", "ü"]
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        file["t"][1] = "bc"
    assert not tamis.verify(tmp_path / "a.zarr", tmp_path / "a.nc").ok


def test_ncdump_prints_text_of_a_fixed_length(tmp_path: Path) -> None:
    need("ncdump")
    zarr.create_array(tmp_path / "a.zarr", name="t", shape=(2,), dtype="S5", zarr_format=2)[:] = [b"ab", b"cdefg"]
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    done = subprocess.run(["ncdump", tmp_path / "a.nc"], capture_output=True, text=True, check=True)
    assert 't = "ab", "cdefg"' in done.stdout


def test_bytes_with_zeros_inside_and_filters_by_name_are_refused_for_a_netcdf_name_alone(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("t", shape=(2,), chunks=(2,), dtype="S3")[:] = [b"a\0b", b"c"]
    with pytest.raises(TamisError, match=r"/t: expected bytes without zeros inside.*file named \.h5"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    with pytest.raises(TamisError, match=r"/t: expected filters for types that netCDF-4 has, got text of a fixed"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {"t": "deflate"})
    assert not (tmp_path / "a.nc").exists()
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.h5", {"t": "deflate"})
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["t"][0] == b"a\0b"


def test_hdf5_source_with_text_of_a_fixed_length_is_copied_to_a_netcdf_name_with_a_note(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = np.array([b"ab", b"c"])
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.nc", {})
    assert "/t: text of a fixed length, which netCDF lacks: ncdump may fail with it" in result.notes
