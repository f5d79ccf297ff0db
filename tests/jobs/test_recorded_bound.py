"""The bound that was asked for is in the file, whatever tolerance keeps it, and verify and report test that one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis.rounding import ERROR_BOUND

SMOOTH = np.cumsum(np.random.default_rng(0).normal(size=(8, 32, 32)), axis=2).astype("f4")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    ds = xr.Dataset({"t": (("z", "y", "x"), SMOOTH, {"units": "K"})})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": {"chunksizes": (4, 32, 32), "zlib": True}})
    return tmp_path / "a.nc"


def recorded(path: Path) -> Any:
    with tamis.open(path) as file:
        value = file["t"].attrs.get(ERROR_BOUND)
        return None if value is None else float(np.ravel(value)[0])


@pytest.mark.parametrize("target", ["b.nc", "b.zarr"])
@pytest.mark.parametrize("recipe", ["zfp(bound=0.1)|shuffle|deflate(4)", "zfp(accuracy=0.2)|shuffle|deflate(4)"])
def test_u91_repack_records_the_asked_bound(source: Path, tmp_path: Path, target: str, recipe: str) -> None:
    asked = {"t": "abs=0.1"} if "accuracy" in recipe else None
    tamis.repack(source, tmp_path / target, {"t": recipe}, require=asked)
    assert recorded(tmp_path / target) == 0.1
    result = tamis.verify(source, tmp_path / target, bounds="recorded")
    assert result.ok
    assert [item.bound for item in result.datasets if item.path == "/t"] == [0.1]
    report = tamis.report(source, tmp_path / target)
    assert "0.125" not in str(report)


def test_u91_verify_tests_the_asked_bound_not_the_tolerance(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    with h5py.File(source, "r+") as file:
        with tamis.open(tmp_path / "b.nc") as other:
            values = other["t"][...]
        values[0, 0, 0] += 0.11  # beyond what was asked, within the tolerance
        file["t"][...] = values
    assert not tamis.verify(source, tmp_path / "b.nc", bounds="recorded").ok


def test_u91_other_filters_replace_or_remove_the_record(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    steps = [("zfp(bound=0.5)", 0.5), ("zfp(accuracy=0.5)", None), ("zfp(bound=1)", 1.0), ("shuffle|deflate(4)", 1.0)]
    before = tmp_path / "b.nc"
    for number, (recipe, bound) in enumerate(steps):
        for ending in ("nc", "zarr"):
            tamis.repack(before, tmp_path / f"{number}.{ending}", {"t": recipe})
            assert recorded(tmp_path / f"{number}.{ending}") == bound, (recipe, ending)
        before = tmp_path / f"{number}.nc"
    assert tamis.verify(tmp_path / "2.nc", tmp_path / "3.nc", bounds="recorded").ok


@pytest.mark.check
def test_u91_written_dataset_and_saved_one_record_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.write(file, "t", SMOOTH, filters="zfp(bound=0.1)", chunks=(4, 32, 32))
    assert recorded(tmp_path / "a.h5") == 0.1
    ds = xr.Dataset({"t": (("z", "y", "x"), SMOOTH)})
    ds.tamis.to_netcdf(tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    ds.tamis.to_zarr(tmp_path / "b.zarr", {"t": "zfp(bound=0.1)"})
    assert recorded(tmp_path / "b.nc") == recorded(tmp_path / "b.zarr") == 0.1
