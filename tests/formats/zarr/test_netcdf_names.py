"""Known defects U47 and U53: variables that have the name of a dimension, which HDF5 stores under another name."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from inprocess import said_by_tamis

import tamis
from tamis.hdf5 import write

TAMIS = Path(sys.executable).with_name("tamis")
LEVEL = np.arange(5000, dtype="f4")
T = np.arange(15000, dtype="f4").reshape(5000, 3)


def inspected(path: Path, *names: str) -> dict[str, Any]:
    chosen = (f"-v{name}" for name in names)
    done = subprocess.run([TAMIS, "inspect", path, "--json", *chosen], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return {dataset["path"]: dataset for dataset in json.loads(done.stdout)["files"][0]["datasets"]}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a file whose variable `level` does not have the dimension `level`, in the root and in a group."""
    path = tmp_path / "source.nc"
    with netCDF4.Dataset(path, "w") as file:
        for group in (file, file.createGroup("inner")):
            group.createDimension("level", 3)
            group.createDimension("time", 5000)
            group.createVariable("level", "f4", ("time",))[:] = LEVEL
            group.createVariable("T", "f4", ("time", "level"))[:] = T
    assert "_nc4_non_coord_level" in h5py.File(path)
    return path


def filters(path: Path) -> dict[str, bool]:
    with netCDF4.Dataset(path) as file:
        groups = {"": file, "inner/": file["inner"]}
        return {
            f"{place}{name}": group[name].filters()["zlib"]
            for place, group in groups.items()
            for name in ("level", "T")
        }


@pytest.mark.parametrize(
    ("name", "stored_anew"),
    [
        ("level", {"level"}),
        ("/level", {"level"}),
        ("/_nc4_non_coord_level", {"level"}),
        ("inner/level", {"inner/level"}),
        ("lev*", {"level"}),
        ("inner/lev*", {"inner/level"}),
        ("*", {"level", "inner/level", "T", "inner/T"}),
    ],
)
def test_u53_repack_stores_the_variable_of_this_name_anew(source: Path, name: str, stored_anew: set[str]) -> None:
    target = source.with_name("target.nc")
    said_by_tamis("repack", source, target, "-f", f"{name}:shuffle|deflate(4)")
    assert filters(target) == {key: key in stored_anew for key in ("level", "T", "inner/level", "inner/T")}
    with h5py.File(target) as file:
        assert file["level"].compression is None
    assert "equal: 8 datasets compared" in said_by_tamis("verify", source, target)


def test_u53_every_command_names_the_variable_as_netcdf_does(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.nc"
    assert list(inspected(source)) == [
        *("/T", "/inner/T", "/inner/level", "/inner/level (dimension)", "/inner/time"),
        *("/level", "/level (dimension)", "/time"),
    ]
    assert inspected(source, "level")["/level"]["shape"] == [5000]
    assert "/level:" in said_by_tamis("plan", source, "-r", "level:abs=0.1", "-o", tmp_path / "recipe.toml")
    result = said_by_tamis("repack", source, target, "--recipe", tmp_path / "recipe.toml")
    assert "/level" in result
    assert "_nc4_non_coord_" not in result
    assert "/level" in said_by_tamis("verify", source, target, "--bound", "level:0.1")
    said_by_tamis("copy", source, tmp_path / "copy.nc", "-F", "level,1,5", "-c", "level:1000")
    assert filters(tmp_path / "copy.nc") == {"level": True, "T": False, "inner/level": False, "inner/T": False}
    said_by_tamis("export", source, "--to", "kerchunk", "-o", tmp_path / "refs.json")
    keys = json.loads((tmp_path / "refs.json").read_text())["refs"]
    assert "level/0" in keys
    assert not any("_nc4_non_coord_" in key for key in keys)


def test_u53_a_bound_that_is_broken_is_that_of_the_variable(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.nc"
    target.write_bytes(source.read_bytes())
    with netCDF4.Dataset(target, "a") as file:
        file["level"][7] += 1
    assert "/level" in said_by_tamis("verify", source, target, "--bound", "level:0.1", code=3)


def test_u53_open_gives_the_variable(source: Path) -> None:
    with tamis.open(source) as file:
        for name in ("level", "/level", "inner/level", "/_nc4_non_coord_level"):
            np.testing.assert_array_equal(file[name][:], LEVEL)
        np.testing.assert_array_equal(file["inner"]["level"][:], LEVEL)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(file["level"]))[:], LEVEL)
        assert file["level (dimension)"].shape == file["inner/level (dimension)"].shape == (3,)
        assert list(file["inner"]) == ["T", "level", "level (dimension)", "time"]
        assert all(file[name].name.strip("/") == name for name in file)


def test_u53_dimension_alone_is_named_so(source: Path, tmp_path: Path) -> None:
    said = said_by_tamis("repack", source, tmp_path / "target.nc", "-f", "*:deflate(4)")
    assert "/level (dimension)" in said
    assert "a netCDF-4 dimension without a variable" in said


def test_u53_encoding_takes_the_filters_of_the_variable(source: Path, tmp_path: Path) -> None:
    filtered = tmp_path / "filtered.nc"
    said_by_tamis("repack", source, filtered, "-f", "level:zfp(accuracy=0.1)", "-c", "level:500")
    for engine in ("h5netcdf", "tamis"):
        with xr.open_dataset(filtered, engine=engine) as ds:
            encoding = tamis.encoding(ds, engine="h5netcdf")["level"]
            assert (encoding["compression"], encoding["chunksizes"]) == (32013, (500,))


@pytest.mark.check
def test_u53_companion_has_the_name_of_the_variable(source: Path, tmp_path: Path) -> None:
    with netCDF4.Dataset(source, "a") as file:
        file["level"].missing_value = np.float32(7)
    target = tmp_path / "target.nc"
    said_by_tamis("repack", source, target, "-f", "level:zfp(accuracy=0.1)", "--missing", "mask")
    new = inspected(target).keys() - inspected(source).keys()
    assert len(new) == 1
    assert new.pop().startswith("/level_")
    with tamis.open(target) as file:
        np.testing.assert_allclose(file["level"][:], LEVEL, atol=0.1)
        assert file["level"][7] == 7
    said_by_tamis("verify", source, target, "--bound", "level:0.1")


def test_u53_two_datasets_of_plain_hdf5_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        write(file, "x", np.arange(2))
        write(file, "_nc4_non_coord_x", np.arange(3))
    assert list(inspected(path)) == ["/_nc4_non_coord_x", "/x"]
    with tamis.open(path) as opened:
        assert (opened["x"].shape, opened["_nc4_non_coord_x"].shape) == ((2,), (3,))


def test_u53_a_variable_that_is_called_so_keeps_its_name(source: Path) -> None:
    with netCDF4.Dataset(source, "a") as file:
        file.createVariable("level (dimension)", "i2", ("level",))[:] = [4, 5, 6]
    with tamis.open(source) as opened:
        assert opened["level (dimension)"][:].tolist() == [4, 5, 6]
        assert opened["level (dimension) (dimension)"].shape == (3,)
        assert [name for name in opened if name.startswith("level")] == [
            *("level", "level (dimension)", "level (dimension) (dimension)"),
        ]
    assert inspected(source)["/level (dimension)"]["dtype"] == "int16"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u47_zarr_has_the_names_of_netcdf_and_gives_them_back(source: Path, tmp_path: Path, zarr_format: int) -> None:
    there, back = tmp_path / "there.zarr", tmp_path / "back.nc"
    said_by_tamis("repack", source, there, *(["--zarr-format", "2"] if zarr_format == 2 else []))
    said_by_tamis("repack", there, back)
    said_by_tamis("verify", source, there)
    said_by_tamis("verify", there, back)
    assert not [path for path in there.rglob("*") if "_nc4_non_coord_" in path.name]
    for group in (None, "inner"):
        with (
            xr.open_dataset(source, group=group, engine="netcdf4") as first,
            xr.open_dataset(there, group=group, engine="zarr", consolidated=False) as second,
            xr.open_dataset(back, group=group, engine="netcdf4") as third,
            xr.open_dataset(back, group=group, engine="tamis") as fourth,
        ):
            for other in (second, third, fourth):
                xr.testing.assert_identical(first, other)
    with netCDF4.Dataset(back) as file:
        for group in (file, file["inner"]):
            assert group["level"].dimensions == ("time",)
            assert len(group.dimensions["level"]) == 3
            np.testing.assert_array_equal(group["level"][:], LEVEL)
