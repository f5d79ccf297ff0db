"""U14: a variable that another program made longer or shorter than its companion can be read, verified and repacked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

FILL = np.float32(9.96921e36)
RECIPE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
CHUNKS = {"TS": (8, 32, 48)}  # 30 steps: the last chunk has room

# One step of valid values and one of missing ones, through the plugin, in a process of its own.
APPEND = """
import sys, netCDF4, numpy
with netCDF4.Dataset(sys.argv[1], "a") as file:
    ts = file["TS"]
    ts.set_auto_mask(False)
    ts[30] = numpy.full(ts.shape[1:], 271.25, "f4")
    ts[31] = numpy.float32(9.96921e36)
"""


@pytest.fixture(scope="module")
def ocean(make_ocean: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[NDArray[Any], Path]:
    folder = tmp_path_factory.mktemp("ocean")
    values = make_ocean(folder / "a.nc")
    tamis.repack(folder / "a.nc", folder / "b.nc", RECIPE, chunks=CHUNKS, missing="mask")
    return values, folder / "b.nc"


@pytest.fixture(params=["netCDF4", "longer", "shorter", "down and up", "narrower companion", "other chunks"])
def changed(request: pytest.FixtureRequest, ocean: tuple[Any, Path], tmp_path: Path, python: Any) -> tuple[Any, Path]:
    """A file whose variable and companion differ in shape, and the values that it has."""
    values, path = ocean[0], Path(shutil.copy(ocean[1], tmp_path / "changed.nc"))
    if request.param == "netCDF4":
        # Each step has its chunk: a fill value beside others is another subject.
        tamis.repack(
            ocean[1].with_name("a.nc"), path, RECIPE, chunks={"TS": (1, 96, 144)}, missing="mask", overwrite=True
        )
        python(APPEND, path, env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())})
        more = np.full((2, *values.shape[1:]), 271.25, "f4")
        more[1] = FILL
        return np.concatenate([values, more]), path
    with h5py.File(path, "r+") as file:
        ts, flags = file["TS"], file["TS_missing"]
        if request.param == "longer":
            ts.resize(40, 0)
            ts[30:] = 280
            values = np.concatenate([values, np.full((10, *values.shape[1:]), 280, "f4")])
        elif request.param == "shorter":
            ts.resize(16, 0)
            values = values[:16]
        elif request.param == "down and up":
            for each in (ts, flags):
                each.resize(8, 0)
                each.resize(40, 0)
            ts[8:] = 280
            values = np.concatenate([values[:8], np.full((32, *values.shape[1:]), 280, "f4")])
        elif request.param == "narrower companion":
            flags.resize(10, 0)
            values = np.concatenate([values[:10], ts[10:]])  # what other readers see
        else:
            stored, attributes = flags[()], dict(flags.attrs)
            for dimension in flags.dims:
                for scale in dimension.values():
                    dimension.detach_scale(scale)
            del file["TS_missing"]
            made = file.create_dataset("TS_missing", data=stored[:30], chunks=(7, 11, 13), maxshape=(None, 192, 288))
            made.attrs.update({name: each for name, each in attributes.items() if name != "DIMENSION_LIST"})
            ts.resize(32, 0)
            ts[30:] = 280
            values = np.concatenate([values, np.full((2, *values.shape[1:]), 280, "f4")])
    return values, path


def check(found: NDArray[Any], values: NDArray[Any], bound: float = 0.2) -> None:
    """Compare with values that may have gone through zfp twice: where HDF5 wrote to a chunk that was lossy."""
    gaps = (values == FILL) | ~np.isfinite(values)
    assert found.shape == values.shape
    np.testing.assert_array_equal(np.asarray(found)[gaps].view("u4"), np.asarray(values)[gaps].view("u4"))
    assert np.abs(np.asarray(found)[~gaps] - values[~gaps]).max(initial=0) <= bound


@pytest.mark.matrix
def test_u14_companion_of_another_shape_reads(changed: tuple[Any, Path]) -> None:
    values, path = changed
    last = len(values) - 1
    with tamis.open(path, threads=2) as file:
        ts = file["TS"]
        check(ts[()], values)
        check(ts.read(np.empty(values.shape, "f4")), values)
        check(ts[last], values[last])
        check(ts[-1:], values[-1:])
        check(ts[5:, ::7, [0, 100, 200]], values[5:, ::7, [0, 100, 200]])
        check(ts[..., -1], values[..., -1])
        check(np.atleast_1d(ts[last, 60, 70]), np.atleast_1d(values[last, 60, 70]))
        some = np.zeros(values.shape, bool)
        some[:, 60, 60:70] = some[-1, :4] = True
        check(ts[some], values[some])
    with h5py.File(path, "r+"), tamis.open(path) as file:  # by way of h5py
        check(file["TS"][3:], values[3:])


@pytest.mark.matrix
def test_u14_companion_of_another_shape_is_verified_inspected_and_repacked(
    changed: tuple[Any, Path], tmp_path: Path
) -> None:
    values, path = changed
    same = tamis.verify(path, path)
    assert same.ok
    with h5py.File(path) as file:
        other = file["TS"].shape != file["TS_missing"].shape
    notes = [each.text for each in tamis.inspect(path, ["TS"]).datasets[0].notes]
    assert any("values beyond it are read as stored" in each for each in notes) == other
    for missing in ("exact", "mask"):
        out = tmp_path / f"{missing}.nc"
        tamis.repack(path, out, {"TS": "zfp(accuracy=0.05)|shuffle|deflate(4)"}, missing=missing)
        result = tamis.verify(path, out, bounds={"TS": 0.05})
        assert result.ok, str(result)
        with tamis.open(out) as file:
            check(file["TS"][()], values, 0.25)
    with h5py.File(tmp_path / "exact.nc") as file:
        assert "TS_missing" not in file
    with h5py.File(tmp_path / "mask.nc") as file:
        assert file["TS_missing"].shape == file["TS"].shape
    tamis.repack(path, tmp_path / "kept.nc", {"lat": "deflate(4)"}, chunks={"lat": (4,)})
    with tamis.open(tmp_path / "kept.nc") as file:
        check(file["TS"][()], values)


def test_u14_companion_with_another_number_of_axes_is_damaged(ocean: tuple[Any, Path], tmp_path: Path) -> None:
    path = shutil.copy(ocean[1], tmp_path / "a.nc")
    with h5py.File(path, "r+") as file:
        attributes = dict(file["TS_missing"].attrs)
        del file["TS_missing"]
        made = file.create_dataset("TS_missing", data=np.zeros((192, 288), "u1"))
        made.attrs["flag_missing_values"] = attributes["flag_missing_values"]
    with tamis.open(path) as file, pytest.raises(tamis.FileError, match="expected uint8 with 3 axes"):
        file["TS"]
