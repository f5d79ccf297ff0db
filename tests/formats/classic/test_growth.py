"""Known defect U42: netCDF classic files of many small variables grow ten times and more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from inprocess import said_by_tamis

Run = Callable[..., str]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as data:
        data.createDimension("time", None)
        data.createDimension("x", 12)
        for index in range(100):
            axes = [("time",), ("x",), ("time", "x"), ()][index % 4]
            variable = data.createVariable(f"v{index}", "f8", axes, fill_value=-999.0)
            variable.setncatts({f"attribute{number}": number for number in range(12 if index % 5 == 0 else 3)})
            shape = [{"time": 10, "x": 12}[axis] for axis in axes]
            variable[...] = np.arange(np.prod(shape, dtype=int), dtype="f8").reshape(shape)
    return path


def test_u42_small_files_grow_less_than_by_nccopy(source: Path, tmp_path: Path, tool: Run) -> None:
    said = said_by_tamis("repack", source, tmp_path / "b.nc", "-f", "*:shuffle|deflate(4)")
    tool("nccopy", "-k", "nc4", source, tmp_path / "c.nc")
    assert (tmp_path / "b.nc").stat().st_size < (tmp_path / "c.nc").stat().st_size / 2.5
    assert "50 variables such as /v0 in chunks as long as the present data: give longer ones (-c)" in said
    assert "--keep-classic copies such a file unchanged" in said
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["v0"].chunks == (10,)
        assert file["v2"].chunks == (10, 12)
        assert file["v1"].chunks is None
    first, second = (tool("ncdump", tmp_path / name).partition("\n")[2] for name in ("a.nc", "b.nc"))
    assert first == second
    said_by_tamis("verify", source, tmp_path / "b.nc")


def test_u42_such_files_still_grow(source: Path, tmp_path: Path) -> None:
    said_by_tamis("repack", source, tmp_path / "b.nc", "-f", "*:shuffle|deflate(4)")
    with netCDF4.Dataset(tmp_path / "b.nc", "a") as data:
        for step in range(10, 500):
            data["v0"][step] = step
        data.createVariable("new", "i4", ("time", "x"))[:5] = 1
    with netCDF4.Dataset(tmp_path / "b.nc") as data:
        assert data["v0"][:].tolist() == [*range(10), *range(10, 500)]
        assert data["v2"].shape == (500, 12)


def test_u42_keep_classic_copies_what_would_grow(source: Path, tmp_path: Path) -> None:
    said = said_by_tamis("repack", source, tmp_path / "b.nc", "-f", "*:shuffle|deflate(4)", "--keep-classic")
    assert "kept as a netCDF classic file: netCDF-4 would take" in said
    assert (tmp_path / "b.nc").read_bytes() == source.read_bytes()
    with netCDF4.Dataset(tmp_path / "large.nc", "w", format="NETCDF3_CLASSIC") as data:
        data.createDimension("x", 100_000)
        data.createVariable("v", "f8", ("x",))[:] = 1.0
    said = said_by_tamis("repack", tmp_path / "large.nc", tmp_path / "d.nc", "-f", "*:deflate(4)", "--keep-classic")
    assert "kept as a netCDF classic file" not in said
    assert h5py.is_hdf5(tmp_path / "d.nc")


def test_u42_dimension_lists_are_those_of_the_netcdf_library(source: Path, tmp_path: Path) -> None:
    said_by_tamis("repack", source, tmp_path / "b.nc", "-f", "*:shuffle|deflate(4)")
    with h5py.File(tmp_path / "b.nc") as file:
        assert [file["v2"].dims[axis][0].name for axis in range(2)] == ["/time", "/x"]
        assert len(file["time"].attrs["REFERENCE_LIST"]) == 50
    with h5py.File(tmp_path / "b.nc", "r+") as file:
        file["v2"].dims[0].detach_scale(file["time"])
        assert len(file["time"].attrs["REFERENCE_LIST"]) == 49
        file["v2"].dims[0].attach_scale(file["time"])
        assert file["v2"].dims[0][0].name == "/time"
