"""Known defect U113: each file of a folder had its own packing, which programs that join the files then spoilt."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from inprocess import said_by_workers, threads_as_workers

import tamis

TAMIS = [sys.executable, "-m", "tamis"]
RECIPE = {"T": "pack(bound=0.1)|deflate(4)"}
PACK = ("-f", "T:pack(bound=0.1)|deflate(4)")


def write(path: Path, low: float, number: int, missing: bool = False) -> None:
    values = np.random.default_rng(number).uniform(low, low + 10, (4, 32, 32)).astype("f4")
    if missing:
        values[1, :3] = np.nan
    ds = xr.Dataset({"T": (("time", "y", "x"), values, {"units": "K"})}, {"time": np.arange(4) + 4 * number})
    encoding = {"T": {"chunksizes": (1, 32, 32), "zlib": True, "_FillValue": None}}
    ds.to_netcdf(path, encoding=encoding)
    os.utime(path, (1e9, 1e9 + number))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files that continue each other, each with values of its own."""
    (tmp_path / "in").mkdir()
    for number in range(4):
        write(tmp_path / "in" / f"{number}.nc", 250 + 10 * number, number, missing=number == 2)
    return tmp_path / "in"


def packings(folder: Path) -> set[tuple[Any, ...]]:
    found = set()
    for path in sorted(folder.glob("*.nc")):
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            names = ("scale_factor", "add_offset", "_FillValue")
            found.add((str(file["T"].dtype), *(float(getattr(file["T"], name, -1)) for name in names)))
    return found


def test_u113_joined_files_keep_the_bound(folder: Path, tmp_path: Path) -> None:
    said = said_by_workers("repack", folder, tmp_path / "out", *PACK)
    assert "/T: one packing in all files, for values from 250" in said
    assert len(packings(tmp_path / "out")) == 1
    with xr.open_mfdataset(folder.glob("*.nc")) as ds:
        before = ds["T"].values
    with xr.open_mfdataset(tmp_path.glob("out/*.nc"), engine="netcdf4") as ds:
        ds.to_netcdf(tmp_path / "xarray.nc", engine="netcdf4")
    joined = [tmp_path / "xarray.nc"]
    if shutil.which("cdo"):
        joined.append(tmp_path / "cdo.nc")
        files = sorted(tmp_path.glob("out/*.nc"))
        subprocess.run(["cdo", "-s", "mergetime", *files, joined[-1]], check=True)
    for path in joined:
        with xr.open_dataset(path, engine="netcdf4") as ds:
            after = ds["T"].values
        assert (np.isnan(after) == np.isnan(before)).all()
        assert np.nanmax(abs(after.astype("f8") - before)) <= 0.1


def test_u113_each_file_its_own_if_asked(folder: Path, tmp_path: Path) -> None:
    said = said_by_workers("repack", folder, tmp_path / "out", *PACK, "--packing", "each")
    assert "packed variables have a packing of their own in each file" in said
    assert len(packings(tmp_path / "out")) == 4
    assert "4 files made again: other filters, chunks or options" in said_by_workers(
        "repack", folder, tmp_path / "out", *PACK
    )
    assert len(packings(tmp_path / "out")) == 1


def test_run_that_makes_nothing_says_nothing_of_earlier_ones(folder: Path, tmp_path: Path) -> None:
    line = ("repack", folder, tmp_path / "out")
    said_by_workers(*line, *PACK)
    asked = ("-f", "T:pack(bound=0.1,range=-50:900)|shuffle")
    said = said_by_workers(*line, *asked)
    assert "4 files made again: other filters, chunks or options" in said
    assert "/T: one packing in all files, for values from -50 to 900 (" in said
    said = said_by_workers(*line, *asked)
    assert "made again" not in said
    assert "for values from -50 to 900 (" in said
    assert not [note for note in tamis.status(tmp_path / "out").notes if "made again" in note]


def test_u113_later_files_make_the_earlier_ones_again(folder: Path, tmp_path: Path) -> None:
    with threads_as_workers():
        assert tamis.repack_many(folder, tmp_path / "out", RECIPE, workers=2).made == 4
        write(folder / "5.nc", 262, 5)  # within the range
        assert tamis.repack_many(folder, tmp_path / "out", RECIPE, workers=2).made == 1
        assert len(packings(tmp_path / "out")) == 1
        write(folder / "6.nc", 340, 6)
        preview = tamis.preview_repack_many(folder, tmp_path / "out", RECIPE)
        assert sorted(file.action for file in preview.files) == ["done"] * 5 + ["repack"]
        found = tamis.repack_many(folder, tmp_path / "out", RECIPE, workers=2)
        assert found.made == 6
        assert found.again == {"the ranges of packed variables are larger now": 5}
        assert len(packings(tmp_path / "out")) == 1
        assert tamis.repack_many(folder, tmp_path / "out", RECIPE, workers=2).made == 0
        assert tamis.verify_many(folder, tmp_path / "out", bounds={"T": 0.1}).ok


@pytest.mark.check
def test_u113_parts_of_an_array_of_jobs_agree(folder: Path, tmp_path: Path) -> None:
    words = ["repack", str(folder), str(tmp_path / "out"), *PACK, "--workers", "1", "-q"]
    jobs = [subprocess.Popen([*TAMIS, *words, "--shard", f"{part}/3"]) for part in (1, 2, 3)]
    assert [job.wait(120) for job in jobs] == [0, 0, 0]
    assert len(packings(tmp_path / "out")) == 1
    lines = [line for path in tmp_path.glob("out/.tamis/ranges-*") for line in path.read_bytes().splitlines()]
    assert {json.loads(line)["path"] for line in lines} == {"0.nc", "1.nc", "2.nc", "3.nc"}
    assert len(lines) < 12  # the jobs share the pass
    with threads_as_workers():
        tamis.repack_many(folder, tmp_path / "one", RECIPE, workers=1, shard=(2, 4))
        tamis.repack_many(folder, tmp_path / "one", RECIPE, workers=1, shard=(3, 4))
    assert packings(tmp_path / "one") == packings(tmp_path / "out")


def test_u113_files_in_place_get_one_packing_also_in_several_runs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    (folder / "3.nc").rename(tmp_path / "aside" / "3.nc")
    with threads_as_workers():
        assert tamis.repack_many(folder, None, RECIPE, replace=True, workers=1).made == 3
        found = tamis.repack_many(folder, None, RECIPE, replace=True, workers=1)
        assert found.ok
        assert found.made == 0
        assert len(packings(folder)) == 1
        (tmp_path / "aside" / "3.nc").rename(folder / "3.nc")
        found = tamis.repack_many(folder, None, RECIPE, replace=True, workers=1)
    assert found.made == 1
    assert any("and may have another packing" in note for note in found.notes)


def test_u113_a_file_that_cannot_be_read_fails_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "1.nc").write_bytes(b"\x89HDF\r\n\x1a\n damaged")
    with threads_as_workers():
        found = tamis.repack_many(folder, tmp_path / "out", RECIPE, workers=2, retries=0)
    assert [item.path for item in found.failures] == ["1.nc"]
    assert len(packings(tmp_path / "out")) == 1


def test_u113_ranges_of_a_recipe_and_patterns_are_joined_too(folder: Path, tmp_path: Path) -> None:
    recipe = {"*": "pack(bound=0.1,range=250:270)|deflate(4)"}
    with threads_as_workers():
        assert tamis.repack_many(folder, tmp_path / "out", recipe, workers=2).ok
        with pytest.raises(tamis.ParameterError, match="packing to be one of one, each"):
            tamis.repack_many(folder, tmp_path / "out", recipe, packing="two")  # type: ignore[arg-type]
    assert len(packings(tmp_path / "out")) == 1


def write_marked(path: Path, number: int, mark: float, *, both: bool = False) -> None:
    """Write a file whose missing values have a mark; with `both`, some are NaN besides."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 32)
        file.createDimension("x", 32)
        made = file.createVariable("T", "f4", ("y", "x"), fill_value=mark)
        values = np.random.default_rng(number).uniform(250 + 10 * number, 280, (32, 32)).astype("f4")
        values[1, :3] = mark
        if both:
            values[2, :3] = np.nan
        made[:] = values
    os.utime(path, (1e9, 1e9 + number))


def masks(folder: Path) -> list[Any]:
    found = []
    for path in sorted(folder.glob("*.nc")):
        with xr.open_dataset(path, engine="netcdf4") as ds:
            found.append(np.isnan(ds["T"].values))
    return found


@pytest.mark.parametrize("wrong", ["pack(bound=1)", "pack(bound=0.5,range=0:500)"])
def test_codes_of_an_earlier_packing_are_no_missing_values_of_the_source(tmp_path: Path, wrong: str) -> None:
    for number, mark in enumerate((1e20, np.nan, -9999.0)):
        write_marked(tmp_path / f"{number}.nc", number, mark)
    before = masks(tmp_path)
    options: dict[str, Any] = {"replace": True, "workers": 1}
    with threads_as_workers():
        assert tamis.repack_many(tmp_path, None, {"T": wrong}, packing="each", **options).ok
        assert len(packings(tmp_path)) > 1 or "range" in wrong
        status = tamis.repack_many(tmp_path, None, RECIPE, **options)
    assert status.ok, status
    assert len(packings(tmp_path)) == 1
    np.testing.assert_array_equal(masks(tmp_path), before)


@pytest.mark.filterwarnings("error::xarray.SerializationWarning")
def test_marks_that_differ_between_files_get_one_code(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, mark in enumerate((1e20, np.nan, -9999.0, 1e30)):
        write_marked(tmp_path / "in" / f"{number}.nc", number, mark)
    with threads_as_workers():
        status = tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1)
    assert status.ok, status
    assert len(packings(tmp_path / "out")) == 1
    for path in (tmp_path / "out").glob("*.nc"):
        with netCDF4.Dataset(path) as file:
            assert "missing_value" not in file["T"].ncattrs()
    np.testing.assert_array_equal(masks(tmp_path / "out"), masks(tmp_path / "in"))


def test_marks_of_one_file_stay_apart_in_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        write_marked(tmp_path / "in" / f"{number}.nc", number, 1e20, both=number == 1)
    with threads_as_workers():
        assert tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1).ok
    assert len(packings(tmp_path / "out")) == 1
    with netCDF4.Dataset(tmp_path / "out" / "1.nc") as file:
        file.set_auto_maskandscale(False)
        codes = file["T"][:]
        assert set(codes[1, :3]) == {file["T"].getncattr("_FillValue")}
        assert set(codes[2, :3]) == {file["T"].missing_value}
    np.testing.assert_array_equal(masks(tmp_path / "out"), masks(tmp_path / "in"))


def write_values(path: Path, values: Any, **attributes: Any) -> None:
    with h5py.File(path, "w") as file:
        made = file.create_dataset("T", data=np.asarray(values, "f4"))
        made.attrs.update({name: np.float32(value) for name, value in attributes.items()})


def codes_and_fills(path: Path) -> tuple[Any, set[Any]]:
    with h5py.File(path) as file:
        return file["T"][:], {file["T"].attrs[name].item() for name in ("_FillValue", "missing_value")}


@pytest.mark.parametrize("to", [None, "zarr"])
def test_a_mark_of_one_file_is_a_value_in_another(tmp_path: Path, to: Any) -> None:
    (tmp_path / "in").mkdir()
    write_values(tmp_path / "in" / "a.nc", [0, np.nan, 5, -3], _FillValue=0)
    write_values(tmp_path / "in" / "b.nc", [0, 2, 3, 4])
    options = {} if to is None else {"to": to, "packed_as": "codecs"}
    recipe = {"T": "pack(bound=0.1)|shuffle|zstd(3)"} if to else RECIPE
    with threads_as_workers():
        assert tamis.repack_many(tmp_path / "in", tmp_path / "out", recipe, workers=1, **options).ok
    if to is None:
        (codes, fills), (_, others) = (codes_and_fills(tmp_path / "out" / name) for name in ("b.nc", "a.nc"))
        assert fills == others
        assert not fills & {*codes.tolist()}
    else:
        found = json.loads((tmp_path / "out" / "b.zarr" / "T" / "zarr.json").read_text())["attributes"]
        assert np.frombuffer(base64.b64decode(found["_FillValue"])) == -np.inf  # zarr-python writes it like this


def test_files_with_three_marks_between_them_share_two_codes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_marked(tmp_path / "in" / "0.nc", 0, 1e20)
    write_marked(tmp_path / "in" / "1.nc", 1, -999.0, both=True)
    write_marked(tmp_path / "in" / "2.nc", 2, np.nan)
    with threads_as_workers():
        assert tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1).ok
    assert len({(*packing[:3],) for packing in packings(tmp_path / "out")}) == 1
    codes, fills = codes_and_fills(tmp_path / "out" / "1.nc")
    assert {codes[1, 0], codes[2, 0]} == fills
    np.testing.assert_array_equal(masks(tmp_path / "out"), masks(tmp_path / "in"))


@pytest.mark.parametrize("others", [(1e20, np.nan), (1e20, -999.0, np.nan)])
def test_only_the_file_with_three_marks_fails_and_is_named(tmp_path: Path, others: tuple[float, ...]) -> None:
    (tmp_path / "in").mkdir()
    for number, mark in enumerate(others):
        write_marked(tmp_path / "in" / f"{number}.nc", number, mark)
    three = [1e20, -999.0, np.nan, 250]
    write_values(tmp_path / "in" / "x.nc", three, _FillValue=1e20, missing_value=-999)
    with threads_as_workers():
        status = tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1)
    assert [failure.path for failure in status.failures] == ["x.nc"]
    assert "x.nc: /T: expected at most 2 different missing values" in status.failures[0].message
    assert status.done == len(others)
    assert len({(*packing[:3],) for packing in packings(tmp_path / "out")}) == 1
    np.testing.assert_array_equal(masks(tmp_path / "out"), masks(tmp_path / "in")[: len(others)])


def test_a_file_that_names_two_marks_and_has_one_is_packed_beside_others(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_values(tmp_path / "in" / "a.nc", [-999, np.nan, 250], _FillValue=-999)
    write_values(tmp_path / "in" / "b.nc", [1e20, 251, 252], _FillValue=1e20, missing_value=-999)
    with threads_as_workers():
        assert tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1).ok
    codes, fills = codes_and_fills(tmp_path / "out" / "b.nc")
    assert codes_and_fills(tmp_path / "out" / "a.nc")[1] == fills
    assert [code in fills for code in codes] == [True, False, False]


def test_two_marks_of_packed_files_stay_apart_when_they_are_packed_again(tmp_path: Path) -> None:
    write_marked(tmp_path / "0.nc", 0, 1e20, both=True)
    tamis.repack(tmp_path / "0.nc", tmp_path / "1.nc", {"T": "pack(bound=1)"})
    tamis.repack(tmp_path / "1.nc", tmp_path / "2.nc", {"T": "pack(bound=0.1)"})
    with netCDF4.Dataset(tmp_path / "2.nc") as file:
        file.set_auto_maskandscale(False)
        codes = file["T"][:]
        assert {codes[1, 0], codes[2, 0]} == {file["T"].getncattr("_FillValue"), file["T"].missing_value}
        assert codes[1, 0] == file["T"].getncattr("_FillValue")


def test_dry_run_finds_filters_that_packed_values_cannot_have(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    with h5py.File(folder / "a.nc", "w") as file:
        file["TS"] = np.random.default_rng(1).standard_normal((64, 64)).astype("f4")
    options: dict[str, Any] = {"replace": True, "settle": 0}
    assert tamis.repack_many(folder, None, {"TS": "pack(bound=0.1)|deflate(1)"}, workers=1, **options).ok
    found = tamis.preview_repack_many(folder, None, {"TS": "zfp(accuracy=2)"}, **options)
    assert [file.action for file in found.files] == ["refuse"]
    assert not found.ok
    reason = found.files[0].reason
    assert reason.startswith(f"{folder / 'a.nc'}: /TS: expected int32, int64, float32 or float64 values, got int8")
    assert "Its values are packed: they are stored as int8 with scale_factor" in reason
    failed = tamis.repack_many(folder, None, {"TS": "zfp(accuracy=2)"}, workers=1, **options).failures
    assert [failure.message for failure in failed] == [reason]
