"""Zarr hierarchies as sources of inspect, verify and repack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import netCDF4
import numcodecs
import numpy as np
import pytest
import xarray
import zarr
from inprocess import run_tamis

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
    run = run_tamis("inspect", store, "--json")
    assert run.returncode == 0, run.stderr
    datasets = {item["path"]: item for item in json.loads(run.stdout)["files"][0]["datasets"]}
    assert datasets["/TS"]["chunks"] == [4, 20, 30]
    assert datasets["/TS"]["filters"]
    assert not store.with_suffix(".nc").exists()


def test_complex_numbers_and_records_become_named_types(tmp_path: Path) -> None:
    records = np.zeros(20, [("a", "<i4"), ("b", "<f8")])
    records["b"] = np.arange(20)
    values = {"z": np.arange(20) + 1j, "rec": records}
    group = zarr.open_group(tmp_path / "in.zarr", mode="w", zarr_format=2)
    for name, data in values.items():
        group.create_array(name, shape=20, chunks=7, dtype=data.dtype)[:] = data
    tamis.repack(tmp_path / "in.zarr", tmp_path / "out.nc", {"z": "shuffle|deflate(4)"})
    with netCDF4.Dataset(tmp_path / "out.nc", auto_complex=True) as file:
        assert {*file.cmptypes} == {"_PFNC_DOUBLE_COMPLEX_TYPE", "rec_t"}
        for name, data in values.items():
            np.testing.assert_array_equal(file[name][:], data)
    assert tamis.verify(tmp_path / "in.zarr", tmp_path / "out.nc").ok


def test_text_of_variable_length_becomes_a_netcdf_variable(tmp_path: Path) -> None:
    names = xarray.Dataset({"names": ("x", np.array(["a", "bä"], object))})
    names.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "a.nc").ok
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["names"][:].tolist() == ["a", "bä"]


def test_objects_that_are_no_text_refused_by_name(tmp_path: Path) -> None:
    rows = zarr.create_array(
        str(tmp_path / "a.zarr" / "rows"), shape=2, dtype=zarr.dtype.VariableLengthBytes(), zarr_format=2
    )
    rows[:] = np.array([b"a", b"bc"], object)
    zarr.open_group(str(tmp_path / "a.zarr"), mode="a", zarr_format=2)
    with pytest.raises(tamis.FileError, match="/rows: expected numbers, characters or text, got objects"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {"*": "deflate(4)"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr"]


def test_damaged_chunk_named_and_nothing_written(store: Path, tmp_path: Path) -> None:
    chunk = max((path for path in (store / "TS").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    chunk.write_bytes(chunk.read_bytes()[:-20])
    for recipe, options in ((ZFP, {}), ({}, {}), ({"*": "pack(bound=0.1)"}, {}), (ZFP, {"keep_damaged": True})):
        with pytest.raises(tamis.FileError, match=r"/TS.*drop \(--drop\) leaves it out"):
            tamis.repack(store, tmp_path / "a.nc", recipe, **options)
        assert not (tmp_path / "a.nc").exists()
    tamis.repack(store, tmp_path / "a.nc", {}, drop=["TS"])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_types_that_tamis_does_not_write_are_copied_as_stored(zarr_format: int, tmp_path: Path) -> None:
    arrays = {
        "times": np.array(["2020-01-01", "NaT"], "M8[ns]"),
        "steps": np.array([1, 2], "m8[h]"),
        "names": np.array([("é", 1.5), ("b", 2.5)], [("n", "U4"), ("v", "f4")]),
        "x": np.arange(4.0),
    }
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    for name, values in arrays.items():
        group.create_array(name, data=values)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, zarr_format=zarr_format)
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "b.zarr").ok
    copied = zarr.open_group(tmp_path / "b.zarr", mode="r")
    for name, values in arrays.items():
        assert copied[name].dtype == values.dtype
        np.testing.assert_array_equal(copied[name][...], values)
    with pytest.raises(tamis.FileError, match="/times: tamis does not write the type datetime64"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "c.zarr", {}, zarr_format=5 - zarr_format)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_that_blosc_does_not_make_smaller_get_new_shapes(zarr_format: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 63, 64, "u8")
    values[32:] = 0
    codec = numcodecs.Blosc("lz4") if zarr_format == 2 else zarr.codecs.BloscCodec(cname="lz4")
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    group.create_array("v", data=values, chunks=(64,), compressors=codec)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, chunks={"v": (16,)}, zarr_format=zarr_format)
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "b.zarr").ok
    copied = zarr.open_group(tmp_path / "b.zarr", mode="r")["v"]
    assert copied.chunks == (16,)
    assert len(copied.compressors) == 1
    np.testing.assert_array_equal(copied[...], values)
