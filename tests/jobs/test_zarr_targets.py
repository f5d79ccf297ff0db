"""Zarr hierarchies as targets of repack: what xarray, zarr-python, verify and the way back say."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from click.testing import CliRunner

import tamis
from tamis import FileError
from tamis.cli import main

ZFP = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
SHAPE = (12, 20, 30)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A netCDF-4 file with all that Zarr has another way for."""
    path = tmp_path_factory.mktemp("source") / "a.nc"
    ts = (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE).astype("f4")
    ts[3, :4, :4] = 1e20
    with netCDF4.Dataset(path, "w") as file:
        file.title = "a ä"
        for name, extent in (("time", None), ("lat", 20), ("lon", 30), ("nchar", 5), ("unused", 2)):
            file.createDimension(name, extent)
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": "days since 2000-01-01", "calendar": "standard"})
        time[:] = np.arange(12)
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90, 90, 20)
        options: dict[str, Any] = {"zlib": True, "shuffle": True}
        values = file.createVariable(
            "TS", "f4", ("time", "lat", "lon"), chunksizes=(4, 20, 30), fill_value=1e20, **options
        )
        values.setncatts({"units": "K", "missing_value": np.float32(1e20), "coordinates": "area"})
        values[:] = ts
        packed = file.createVariable("P", "i2", ("time", "lat"), fletcher32=True, **options)
        packed.set_auto_maskandscale(False)
        packed.setncatts({"scale_factor": 0.1, "add_offset": 3.0, "valid_range": np.array([0, 99], "i2")})
        packed[:] = np.arange(240).reshape(12, 20) % 99
        file.createVariable("area", "f8", ("lat", "lon"), fill_value=np.nan)[:] = np.full((20, 30), np.nan)
        file.createVariable("names", "S1", ("lat", "nchar"))[:] = np.array([list(f"n{i:04d}") for i in range(20)], "S1")
        file.createVariable("words", str, ("lat",))[:] = np.array([f"wörd{i}" * (i % 3) for i in range(20)], object)
        file.createVariable("scalar", "i4", ())[...] = 7
        file.createVariable("unwritten", "f4", ("lat", "lon"), chunksizes=(5, 30))
        group = file.createGroup("g")
        group.note = "in"
        group.createDimension("z", 3)
        group.createDimension("never", None)
        group.createVariable("q", ">u2", ("z", "lat"), endian="big")[:] = 1
        group.createVariable("nothing", "f4", ("never",))
    return path


def assert_same_for_xarray(source: Path, target: Path) -> None:
    """Compare all groups; Zarr 3 has texts of varying length in another type of NumPy."""
    with xarray.open_datatree(source, engine="netcdf4") as before, xarray.open_datatree(target, engine="zarr") as after:
        assert before.groups == after.groups
        for path in before.groups:
            expected, opened = before[path].to_dataset().load(), after[path].to_dataset().load()
            for name in expected.variables:
                if opened[name].dtype.kind == "T":
                    opened[name] = opened[name].astype(expected[name].dtype)
                assert opened[name].dtype == expected[name].dtype, name
            xarray.testing.assert_identical(opened, expected)


@pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated", "ignore:Numcodecs codecs")
@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": 2}, {"consolidated": False}], ids=str)
def test_copy_is_identical_for_xarray_and_for_verify(options: dict[str, Any], source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    result = tamis.repack(source, target, {}, **options)
    assert result.datasets == ()
    assert result.target_nbytes == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    assert_same_for_xarray(source, target)
    verification = tamis.verify(source, target)
    assert verification.ok, str(verification)
    assert os.listdir(tmp_path) == ["a.zarr"]
    root = json.loads((target / ("zarr.json" if options.get("zarr_format", 3) == 3 else ".zgroup")).read_text())
    consolidated = (target / ".zmetadata").exists() or "consolidated_metadata" in root
    assert consolidated == options.get("consolidated", True)


def test_chunks_move_as_they_are_and_back(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "a.zarr", {})
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {})
    tamis.repack(tmp_path / "b.zarr", tmp_path / "b.nc", {"TS": "shuffle|deflate(4)"})
    with h5py.File(source) as before, h5py.File(tmp_path / "b.nc") as after:
        for i in range(3):
            chunk = before["TS"].id.read_direct_chunk((4 * i, 0, 0))
            assert chunk == after["TS"].id.read_direct_chunk((4 * i, 0, 0))
            for name in "ab":
                assert (tmp_path / f"{name}.zarr" / "TS" / "c" / str(i) / "0" / "0").read_bytes() == chunk[1]
    assert tamis.verify(source, tmp_path / "b.zarr").ok
    assert_same_for_xarray(source, tmp_path / "b.zarr")


def test_command_needs_no_filters_where_the_format_changes(source: Path, tmp_path: Path) -> None:
    store, back = str(tmp_path / "a.zarr"), str(tmp_path / "back.nc")
    for names in ((str(source), store), (store, back)):
        done = CliRunner().invoke(main, ["repack", *names])
        assert done.exit_code == 0, done.stderr
    with h5py.File(back) as file:
        assert (file["TS"].shuffle, file["TS"].compression) == (True, "gzip")


def test_zfp_with_proof_and_missing_values(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    result = tamis.repack(source, target, ZFP)
    assert (result["TS"].lossless_chunks, result["TS"].missing_values) == (1, 16)
    assert 0 < result["TS"].largest_error <= 0.1
    assert tamis.verify(source, target, bounds={"TS": 0.1}).ok
    array = zarr.open_array(str(target / "TS"), mode="r")
    assert [codec.to_dict()["name"] for codec in array.metadata.codecs] == ["tamis.pipeline"]
    with netCDF4.Dataset(source) as file:
        expected = file["TS"][:]
    np.testing.assert_array_equal(array[:] == np.float32(1e20), expected.mask)
    assert np.abs(np.ma.array(array[:], mask=expected.mask) - expected).max() <= 0.1


def test_zfp_in_all_chunks_has_the_registered_codec(tmp_path: Path) -> None:
    values = (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("TS", data=values, chunks=(1, 20, 30))
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", ZFP)
    array = zarr.open_array(str(tmp_path / "a.zarr" / "TS"), mode="r")
    names = [codec.to_dict()["name"] for codec in array.metadata.codecs]
    assert names == ["reshape", "zfp", "numcodecs.fletcher32"]
    assert np.abs(array[:] - values).max() <= 0.1
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", ZFP)
    tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", ZFP)
    with h5py.File(tmp_path / "b.h5") as after, h5py.File(tmp_path / "c.h5") as direct:
        for i in range(12):
            chunk = after["TS"].id.read_direct_chunk((i, 0, 0))[1]
            assert (tmp_path / "a.zarr" / "TS" / "c" / str(i) / "0" / "0").read_bytes() == chunk
            assert direct["TS"].id.read_direct_chunk((i, 0, 0))[1] == chunk


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_companion_has_the_missing_values_and_travels(zarr_format: int, source: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"missing": "mask", "zarr_format": zarr_format}
    result = tamis.repack(source, tmp_path / "a.zarr", ZFP, **options)
    assert (result["TS"].lossless_chunks, result["TS"].missing_mask) == (0, "/TS_missing")
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, zarr_format=5 - zarr_format)
    tamis.repack(tmp_path / "b.zarr", tmp_path / "b.nc", ZFP, missing="mask")
    tamis.repack(tmp_path / "b.nc", tmp_path / "c.zarr", {})
    for name in ("a.zarr", "b.zarr", "b.nc", "c.zarr"):
        assert tamis.verify(source, tmp_path / name, bounds={"TS": 0.1}, variables="TS").ok, name
        with tamis.open(tmp_path / name) as file:
            assert (file["TS"][3, :4, :4] == np.float32(1e20)).all()
    stored = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
    assert (stored["TS"][3, :4, :4] < 300).all()
    assert stored["TS_missing"][3].sum() == 16 * stored["TS_missing"][3, 0, 0]
    assert stored["TS"].attrs["ancillary_variables"] == "TS_missing"
    shutil.rmtree(tmp_path / "a.zarr" / "TS_missing")
    (tmp_path / "a.zarr" / ("zarr.json" if zarr_format == 3 else ".zmetadata")).unlink()
    if zarr_format == 3:
        zarr.open_group(str(tmp_path / "a.zarr"), mode="a")
    with pytest.raises(tamis.FileError, match="its missing values are in the mask '/TS_missing', which does not"):
        tamis.open(tmp_path / "a.zarr")["TS"][...]


def test_attribute_whose_name_json_does_not_have_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3), compression="gzip")
        file["x"].attrs[b"od\xff"] = 1
    with pytest.raises(FileError, match=r"/x: expected the attribute 'od\\udcff' to be numbers or text") as error:
        tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {})
    assert error.value.dataset == "/x"
    assert os.listdir(tmp_path) == ["a.h5"]
    with pytest.raises(FileError, match=r"the attribute 'od"):
        tamis.export(tmp_path / "a.h5", tmp_path / "a.json", "kerchunk")


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.usefixtures("netcdf4_plugins")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_keep_their_types_on_the_way_back(zarr_format: int, tmp_path: Path) -> None:
    numbers = {
        "a": np.float32(0.1),
        "b": np.array([1, 2], "i1"),
        "u": np.uint16(3),
        "i": np.int32(-1),
        "l": np.int64(7),
    }
    known = {**numbers, "d": np.float64(2), "t": "K", "missing_value": np.float64(3), "n": np.float32(np.nan)}
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.setncatts(numbers)
        file.createDimension("x", 4)
        file.createVariable("x", "f4", ("x",))[:] = range(4)  # a dimension without values would be one of each group
        file.createVariable("v", "i2", ("x",), zlib=True).setncatts(known)
        file.createVariable("words", str, ("x",)).setncatts(numbers)
        file.createGroup("g").createVariable("v", "f4", ("x",)).setncatts(known)
    store, back = tmp_path / "a.zarr", tmp_path / "b.nc"
    tamis.repack(tmp_path / "a.nc", store, {}, zarr_format=zarr_format)
    tamis.repack(store, back, {})
    assert tamis.verify(tmp_path / "a.nc", back).ok
    with netCDF4.Dataset(back) as file:
        for owner in (file, file["v"], file["words"], file["g/v"]):
            for name, value in numbers.items():
                assert np.asarray(owner.getncattr(name)).dtype == value.dtype
    assert_same_for_xarray(tmp_path / "a.nc", store)
    if zarr_format == 2:  # netCDF-C reads the same types, but no store with texts
        shutil.rmtree(store / "words")
        with netCDF4.Dataset(f"{store.as_uri()}#mode=zarr,file") as file:
            assert {name: file["v"].getncattr(name).dtype for name in "aul"} == {
                name: known[name].dtype for name in "aul"
            }


@pytest.mark.parametrize("types", [7, {"types": 7}, {"types": {"a": "x", "b": "<f4", "c": "<i2", "d": 3}}])
def test_unknown_or_wrong_types_of_attributes_change_nothing(types: Any, tmp_path: Path) -> None:
    attributes = {"a": 1, "b": (1 << 24) + 1, "c": 70000, "d": 2.5, "_nczarr_attr": types}
    zarr.create_array(tmp_path / "a.zarr" / "v", data=np.arange(3), attributes=attributes)
    zarr.open_group(tmp_path / "a.zarr", mode="a", attributes={"_nczarr_attr": types, "n": 1})
    with tamis.open(tmp_path / "a.zarr") as file:
        assert file["v"].attrs == {"a": 1, "b": (1 << 24) + 1, "c": 70000, "d": 2.5}
        assert {type(value) for value in file["v"].attrs.values()} == {int, float}  # as in JSON


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_enumerations_become_flags_and_booleans(tmp_path: Path) -> None:
    members = {"dark blue": 2, "red": -1, "green": 1}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plain = h5py.enum_dtype(members, basetype="i2")
        file["color_t"] = plain
        file.create_dataset("named", data=np.array([2, -1, 1], "i2"), dtype=file["color_t"])
        file.create_dataset("plain", data=np.array([2, -1, 1], "i2"), dtype=plain, chunks=(2,))
        file.create_dataset("known", data=np.array([2, -1, 1], "i2"), dtype=plain).attrs["flag_meanings"] = "x"
        file["switch"] = np.array([True, False, True])
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {"plain": "shuffle|deflate(1)"})
    assert [dataset.path for dataset in result.datasets] == ["/plain"]
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    for name in ("named", "plain"):
        assert dict(group[name].attrs) == {"flag_values": [-1, 1, 2], "flag_meanings": "red green dark_blue"}
        np.testing.assert_array_equal(group[name][:], [2, -1, 1])
    assert dict(group["known"].attrs) == {"flag_meanings": "x"}
    np.testing.assert_array_equal(group["switch"][:], [True, False, True])
    assert group["switch"].dtype == bool
    found = str(tamis.verify(tmp_path / "a.h5", tmp_path / "a.zarr"))
    assert "/plain: enum of int16 {dark blue=2, green=1, red=-1} became int16" in found


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("count", [20, 5000])
@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_netcdf_fill_value_without_attribute(zarr_format: int, kind: Any, count: int, tmp_path: Path) -> None:
    """xarray masks the fill value of Zarr 2, so that a new store may have none, if all chunks are there."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=kind) as file:
        file.createDimension("n", count)
        file.createVariable("x", "f4", ("n",))[: count // 2] = np.arange(count // 2)
    options: dict[str, Any] = {"zarr_format": zarr_format, "chunks": {"x": (count // 4,)}}
    tamis.repack(tmp_path / "a.nc", tmp_path / "a.zarr", {"x": "deflate(1)"}, **options)
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "a.zarr").ok
    assert_same_for_xarray(tmp_path / "a.nc", tmp_path / "a.zarr")


def test_values_that_were_never_stored_take_no_time(tmp_path: Path) -> None:
    # Reading these four terabytes, as a survey of the sea floor may claim to have, would take an hour.
    with h5py.File(tmp_path / "a.h5", "w") as file:
        sparse = file.create_dataset(
            "v", (1 << 20, 1 << 20), "f4", chunks=(256, 256), fillvalue=1e6, compression="gzip"
        )
        sparse[5:9, 300:304] = np.arange(16.0).reshape(4, 4)
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {})
    copied = zarr.open_group(tmp_path / "a.zarr", mode="r")["v"]
    assert copied.fill_value == 1e6
    assert np.array_equal(copied[5:9, 300:304], np.arange(16).reshape(4, 4))
    assert np.all(copied[:5, 256:512] == 1e6)
