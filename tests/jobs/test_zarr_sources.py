"""Zarr hierarchies as sources of inspect, verify and repack."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray
import zarr

import tamis

ZFP = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
SHAPE = (12, 20, 30)


def dataset() -> Any:
    ts = (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE).astype("f4")
    ts[3, :4, :4] = np.nan
    coords = {
        "time": ("time", np.arange(12.0), {"units": "days since 2000-01-01"}),
        "lat": ("lat", np.linspace(-90, 90, 20)),
    }
    variables = {
        "TS": (("time", "lat", "lon"), ts, {"units": "K", "n": 3}),
        "flags": ("lat", np.arange(20, dtype="i2")),
    }
    return xarray.Dataset(variables, coords=coords, attrs={"title": "a"})


@pytest.fixture(params=["v2", "v3", "v3 shards", "v2 gzip"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version, _, kind = str(request.param).partition(" ")
    encoding = {"TS": {"chunks": (4, 20, 30)}}
    if kind == "shards":
        encoding["TS"]["shards"] = (12, 20, 30)
    if kind == "gzip":
        import numcodecs

        encoding["TS"]["compressors"] = (numcodecs.GZip(5),)
    path = tmp_path / "a.zarr"
    dataset().to_zarr(path, zarr_format=int(version[1]), encoding=encoding)
    return path


def test_repack_to_netcdf4_proven_and_read_by_others(store: Path, tmp_path: Path) -> None:
    result = tamis.repack(store, tmp_path / "a.nc", ZFP)
    assert result["TS"].largest_error <= 0.1
    assert result.source_nbytes == sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    assert tamis.verify(store, tmp_path / "a.nc", bounds={"TS": 0.1}).ok
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["TS"].dimensions == ("time", "lat", "lon")
        assert (file["TS"].units, file["TS"].n, file.title) == ("K", 3, "a")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf", decode_times=False) as opened:
        expected = dataset()
        np.testing.assert_array_equal(np.isnan(opened.TS), np.isnan(expected.TS))
        assert float(np.abs(opened.TS - expected.TS).max()) <= 0.1
        xarray.testing.assert_equal(opened.flags, expected.flags)


def test_verify_finds_a_changed_value(store: Path, tmp_path: Path) -> None:
    tamis.repack(store, tmp_path / "a.nc", ZFP)
    with netCDF4.Dataset(tmp_path / "a.nc", "a") as file:
        file["flags"][3] = 99
    verification = tamis.verify(store, tmp_path / "a.nc", bounds={"TS": 0.1})
    assert not verification.ok
    assert not verification["flags"].equal


def test_resume_notices_a_chunk_that_changed(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nc"
    tamis.repack(store, target, ZFP, resume=True)
    assert tamis.repack(store, target, ZFP, resume=True).done_already
    array = zarr.open_array(str(store / "TS"), mode="a")
    array[0, 0, 0] = 300
    again = tamis.repack(store, target, ZFP, resume=True)
    assert not again.done_already
    assert "has changed since it was made" in " ".join(again.notes)


def test_preview_and_json(store: Path) -> None:
    preview = tamis.preview_repack(store, store.with_suffix(".nc"), ZFP)
    assert preview["TS"].action == "store"
    run = subprocess.run(
        [sys.executable, "-m", "tamis", "inspect", str(store), "--json"], capture_output=True, text=True, check=True
    )
    datasets = {item["path"]: item for item in json.loads(run.stdout)["files"][0]["datasets"]}
    assert datasets["/TS"]["chunks"] == [4, 20, 30]
    assert datasets["/TS"]["filters"]
    assert not store.with_suffix(".nc").exists()


def test_text_of_variable_length_refused_by_name(tmp_path: Path) -> None:
    names = xarray.Dataset({"names": ("x", np.array(["a", "bc"], object))})
    names.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    with pytest.raises(tamis.FileError, match="/names: cannot be stored in another format: text of variable length"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {"*": "deflate(4)"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr"]


def test_damaged_chunk_named_and_nothing_written(store: Path, tmp_path: Path) -> None:
    chunk = max((path for path in (store / "TS").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-20])
    with pytest.raises(tamis.FileError, match="/TS"):
        tamis.repack(store, tmp_path / "a.nc", ZFP)
    assert not (tmp_path / "a.nc").exists()


def test_name_of_a_zarr_store_as_target_refused(store: Path, tmp_path: Path) -> None:
    for function in (tamis.repack, tamis.preview_repack):
        with pytest.raises(tamis.FileError, match=r"out\.zarr: expected the name of an HDF5 or netCDF-4 file"):
            function(store, tmp_path / "out.zarr", ZFP)
    assert not (tmp_path / "out.zarr").exists()


def test_folder_without_metadata_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(tamis.FileError, match="found a folder"):
        tamis.inspect(tmp_path / "plain")


@pytest.mark.peer
def test_cdl_of_a_classic_file_as_ncdump_prints_it(tmp_path: Path) -> None:
    assert shutil.which("ncdump"), "expected ncdump (netcdf-bin) in PATH"
    with netCDF4.Dataset(tmp_path / "c.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("lat", 4)
        variable = file.createVariable("TS", "f4", ("time", "lat"), fill_value=-9)
        variable.units, variable.a = "K", np.array([1, 2], "i2")
        variable[:] = np.ones((3, 4))
        file.createVariable("c", "S1", ("lat",))
        file.title = "x"
    from tamis.jobs.inspection.cdl_text import cdl_header

    expected = subprocess.run(
        ["ncdump", "-hs", str(tmp_path / "c.nc")], capture_output=True, text=True, check=True
    ).stdout
    assert cdl_header(tmp_path / "c.nc") == expected


def test_cdl_of_zarr_has_codecs(store: Path) -> None:
    from tamis.jobs.inspection.cdl_text import cdl_header

    text = cdl_header(store)
    assert "float TS(time, lat, lon) ;" in text
    assert 'TS:_Codecs = "[{' in text
    assert "_Filter" not in text
