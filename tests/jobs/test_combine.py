"""Several files joined to one: the values of all, in order, and a refusal of what does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tamis

FILTERS = {"t": "zfp(accuracy=0.01)|shuffle|deflate(4)"}


def part(steps: range, **changes: Any) -> xr.Dataset:
    """Return the dataset of some steps."""
    rng = np.random.default_rng(0)
    whole = rng.standard_normal((40, 12, 16)).cumsum(axis=0).astype("f4")
    base: dict[str, Any] = {
        "t": (("time", "lat", "lon"), whole[steps.start : steps.stop], {"units": "K"}),
        "bounds": (("time", "two"), np.arange(80.0).reshape(40, 2)[steps.start : steps.stop]),
        "mask": (("lat", "lon"), np.arange(192, dtype="i2").reshape(12, 16)),
        "name": ((), "station"),
    }
    coords = {
        "time": ("time", np.arange(float(steps.start), steps.stop), {"units": "days since 2000-01-01"}),
        "lat": ("lat", np.linspace(-80, 80, 12)),
    }
    return xr.Dataset({**base, **changes}, coords, {"title": f"from {steps.start} on"})


def write(folder: Path, parts: Mapping[str, xr.Dataset]) -> list[Path]:
    for name, dataset in parts.items():
        if name.endswith(".zarr"):
            dataset.to_zarr(folder / name, zarr_format=2)
        else:
            kind = "NETCDF3_CLASSIC" if name.startswith("classic") else "NETCDF4"
            dataset.to_netcdf(folder / name, format=kind, unlimited_dims=["time"])
    return [folder / name for name in parts]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files that are not named in the order of their times."""
    return write(tmp_path, {"b.nc": part(range(10, 25)), "a.nc": part(range(25, 40)), "c.nc": part(range(10))})


@pytest.mark.parametrize("target", ["all.nc", "all.zarr"])
def test_joined_values_are_those_of_all_files_in_order(files: list[Path], tmp_path: Path, target: str) -> None:
    result = tamis.combine(files, tmp_path / target, {"*": "shuffle|deflate(1)"}, "time")
    assert result.source == "3 files"
    whole = part(range(40)).load()
    with xr.open_dataset(tmp_path / target, engine="tamis", decode_times=False) as found:
        xr.testing.assert_equal(found.drop_vars("lon", errors="ignore"), whole)
        assert found.attrs["title"] == "from 0 on"
        assert found.t.attrs["units"] == "K"


def test_bound_is_proven_across_files(files: list[Path], tmp_path: Path) -> None:
    result = tamis.combine(files, tmp_path / "all.nc", FILTERS, "time", chunks={"t": (7, 12, 16)})
    assert 0 < result["t"].largest_error <= 0.01
    with xr.open_dataset(tmp_path / "all.nc", decode_times=False) as found:
        np.testing.assert_allclose(found.t, part(range(40)).t, rtol=0, atol=0.01)
        assert found.encoding["unlimited_dims"] == {"time"}


def test_filters_and_chunks_stay_without_a_recipe(tmp_path: Path) -> None:
    encoding = {"t": {"zlib": True, "complevel": 3, "chunksizes": (5, 12, 16)}}
    for name, steps in (("a.nc", range(20)), ("b.nc", range(20, 40))):
        part(steps).to_netcdf(tmp_path / name, encoding=encoding)
    tamis.combine(tmp_path / "*.nc", tmp_path / "all.h5", {}, "time")
    found = tamis.inspect(tmp_path / "all.h5")["t"]
    assert (str(found.pipeline), found.chunks) == ("shuffle|deflate(3)", (5, 12, 16))


@pytest.mark.parametrize("target", ["all.nc", "all.zarr"])
def test_bytes_before_are_those_stored_in_all_files(tmp_path: Path, target: str) -> None:
    files = [tmp_path / name for name in ("a.nc", "b.nc")]
    for path, steps in zip(files, (range(20), range(20, 40)), strict=True):
        part(steps).to_netcdf(path, encoding={"t": {"zlib": True, "complevel": 3}})
    alone = [tamis.repack(path, tmp_path / f"alone-{path.name}", FILTERS)["t"] for path in files]
    found = tamis.combine(files, tmp_path / target, FILTERS, "time")["t"]
    assert found.source_nbytes == sum(dataset.source_nbytes for dataset in alone)
    assert found.source_nbytes < found.nbytes == sum(dataset.nbytes for dataset in alone)


def test_formats_may_be_mixed(tmp_path: Path) -> None:
    paths = write(tmp_path, {f"{name}": part(steps).drop_vars("name") for name, steps in MIXED.items()})
    tamis.combine(paths, tmp_path / "all.nc", {}, "time")
    with xr.open_dataset(tmp_path / "all.nc", decode_times=False) as found:
        xr.testing.assert_equal(found.t, part(range(40)).t)


MIXED = {"a.nc": range(15), "b.nc": range(15, 40)}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (part(range(5, 15)), r"expected time to continue .*a\.nc, found 5\.0 after 9\.0"),
        (
            part(range(10, 20)).drop_vars("mask"),
            r"expected variable /mask to be as in .*: in both, found none in .*b",
        ),
        (part(range(10, 20)).isel(lat=slice(6)), r"expected extents of /t to be as in .*: \(12, 16\), found \(6, 16\)"),
        (
            part(range(10, 20), t=(("time", "lat", "lon"), np.zeros((10, 12, 16)), {"units": "K"})),
            r"expected type of /t to be as in .*: float32, found float64",
        ),
        (
            part(range(10, 20), mask=(("lat", "lon"), np.zeros((12, 16), "i2"))),
            r"expected values of /mask, which has no dimension time, to be as in",
        ),
        (
            part(range(10, 20)).assign_coords(time=("time", np.arange(10.0), {"units": "days since 2000-01-11"})),
            r"expected attribute units of /time to be as in .*days since 2000-01-01.*cdo setreftime",
        ),
    ],
)
def test_file_that_does_not_fit_is_named_with_the_difference(tmp_path: Path, other: xr.Dataset, message: str) -> None:
    paths = write(tmp_path, {"a.nc": part(range(10)), "b.nc": other})
    with pytest.raises(tamis.ParameterError, match=message):
        tamis.combine(paths, tmp_path / "all.nc", {}, "time")
    assert not (tmp_path / "all.nc").exists()


def test_dimension_that_no_file_has_is_refused(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match="expected variables with the dimension 'tim', found lat, lon"):
        tamis.combine(files, tmp_path / "all.nc", {}, "tim")


def test_files_without_coordinate_are_joined_as_given(tmp_path: Path) -> None:
    names = ["s2.nc", "s10.nc", "s1.nc"]
    paths = write(tmp_path, {name: part(range(10)).drop_vars("time") for name in names})
    result = tamis.combine(paths, tmp_path / "all.nc", {}, "time")
    assert "time has no coordinate: files are joined in their given order" in result.notes


def test_empty_file_does_not_turn_off_the_check_of_order(tmp_path: Path) -> None:
    paths = write(tmp_path, {"a.nc": part(range(10)), "b.nc": part(range(5, 15)), "e.nc": part(range(3, 3))})
    with pytest.raises(tamis.ParameterError, match="expected time to continue"):
        tamis.combine(paths, tmp_path / "all.nc", {}, "time")


def test_source_that_changes_meanwhile_is_refused(files: list[Path], tmp_path: Path) -> None:
    def touch(step: str, done: int, total: int) -> None:
        os.utime(files[0])

    with pytest.raises(tamis.FileError, match="changed while it was read"):
        tamis.combine(files, tmp_path / "all.nc", FILTERS, "time", progress=touch)
    assert not (tmp_path / "all.nc").exists()


def test_source_is_never_the_target(files: list[Path]) -> None:
    with pytest.raises(tamis.ParameterError, match="is one of the files that are combined"):
        tamis.combine(files, files[1], FILTERS, "time", overwrite=True)


def test_what_a_folder_has_besides_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "README").write_text("of the author")
    with pytest.raises(tamis.ParameterError, match="no files to combine; 1 left out, neither HDF5, netCDF nor Zarr"):
        tamis.combine(tmp_path / "in", tmp_path / "all.nc", {}, "time")
    write(tmp_path / "in", {"a.nc": part(range(10)), "b.nc": part(range(10, 15))})
    result = tamis.combine(tmp_path / "in", tmp_path / "all.nc", {}, "time")
    assert [note for note in result.notes if "README" in note]


@pytest.mark.check
def test_many_files_are_joined_with_few_of_them_open(tmp_path: Path) -> None:
    script = """
import resource, sys, tamis
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(tamis.combine(sys.argv[1], sys.argv[2], {"t": "shuffle|deflate(1)"}, "time", threads=2).source)
"""
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", {f"{step:03}.nc": part(range(step % 40, step % 40 + 1)) for step in range(40)})
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "in", tmp_path / "all.nc"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "40 files\n", done.stderr
    with xr.open_dataset(tmp_path / "all.nc", decode_times=False) as found:
        xr.testing.assert_equal(found.t, part(range(40)).t)


def test_command_joins_and_refuses(files: list[Path], tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "tamis"), "repack", *map(str, files), str(tmp_path / "all.nc")]
    done = subprocess.run([*command, "--combine", "time", "-q"], check=False)
    assert done.returncode == 0
    refused = subprocess.run([*command, "--combine", "time", "--resume"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--combine cannot be combined with --resume" in refused.stderr
