"""Files written through tamis.netcdf are read by other programs and packages, and theirs by tamis.netcdf."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis
from tamis import netcdf

netCDF4 = pytest.importorskip("netCDF4")  # noqa: N816 - its name

SHAPE, CHUNKS = (12, 24, 36), (4, 24, 36)
FILTERS = {
    "ZFP": "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32",
    "SUM": "zfp(accuracy=0.01)|fletcher32",
    "RATE": "zfp(rate=16)",
    "EXACT": "fletcher32|shuffle|deflate(6)",
}


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    z, y, x = np.indices(SHAPE)
    return (280 + 10 * np.sin(z / 5 + y / 9) * np.cos(x / 7)).astype("f4")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, values: np.ndarray) -> Path:
    path = tmp_path_factory.mktemp("netcdf") / "a.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        for name, extent in zip(("time", "lat", "lon"), SHAPE, strict=True):
            dataset.createDimension(name, None if name == "time" else extent)
        for name, filters in FILTERS.items():
            variable = netcdf.create_variable(
                dataset, name, "f4", ("time", "lat", "lon"), filters, chunksizes=CHUNKS, fill_value=-999.0
            )
            variable[:] = values
            variable.units = "K"
    return path


def tool(*command: str | Path) -> str:
    needs.need(command[0])
    env = os.environ | {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    return subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.peer
@pytest.mark.parametrize("name", FILTERS)
def test_ncdump_and_h5dump_read_values(name: str, written: Path, values: np.ndarray, tmp_path: Path) -> None:
    text = tool("ncdump", "-p", "9,17", "-v", name, written).partition("data:")[2]
    printed = re.search(rf"{name} =\s*([^;]*);", text)
    assert printed is not None
    assert np.abs(np.array(printed[1].split(","), "f8") - values.ravel()).max() <= 0.02
    tool("h5dump", "-d", f"/{name}", "-b", "LE", "-o", tmp_path / "raw", written)
    assert np.abs(np.fromfile(tmp_path / "raw", "<f4") - values.ravel()).max() <= 0.02


@pytest.mark.peer
def test_nccopy_and_h5repack_copy_values(written: Path, values: np.ndarray, tmp_path: Path) -> None:
    for command in (("nccopy", "-M", "0"), ("h5repack",)):
        tool(*command, written, tmp_path / "copy.nc")
        with h5py.File(tmp_path / "copy.nc") as copied:
            for name in FILTERS:
                assert np.abs(copied[name][...] - values).max() <= 0.02
        (tmp_path / "copy.nc").unlink()


def test_h5py_h5netcdf_xarray_and_tamis_read_values(written: Path, values: np.ndarray) -> None:
    h5netcdf, xarray = pytest.importorskip("h5netcdf"), pytest.importorskip("xarray")
    with h5netcdf.File(written) as file, tamis.open(written) as opened, h5py.File(written) as plain:
        for name, filters in FILTERS.items():
            for read in (file[name][...], opened[name][...], plain[name][...]):
                assert np.abs(read - values).max() <= (0 if name == "EXACT" else 0.02)
            stored = [member.name for member in tamis.hdf5.pipeline_of(plain[name]).filters]
            assert stored == [part.partition("(")[0] for part in filters.split("|")]
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_dataset(written, engine=engine) as dataset:
            assert all(np.abs(dataset[name].values - values).max() <= 0.02 for name in FILTERS)
            assert dataset["ZFP"].attrs["units"] == "K"


def test_files_of_h5netcdf_tamis_and_repack_are_read(values: np.ndarray, tmp_path: Path) -> None:
    h5netcdf = pytest.importorskip("h5netcdf")
    with h5netcdf.File(tmp_path / "a.nc", "w") as file:
        file.dimensions = dict(zip(("time", "lat", "lon"), SHAPE, strict=True))
        zfp = tamis.Zfp(accuracy=0.01)
        file.create_variable("v", ("time", "lat", "lon"), data=values, chunks=CHUNKS, **zfp)
    with h5py.File(tmp_path / "b.nc", "w", track_order=True) as plain:
        tamis.hdf5.write(plain, "v", values, filters=FILTERS["ZFP"], chunks=CHUNKS)
    tamis.repack(tmp_path / "a.nc", tmp_path / "c.nc", {"v": FILTERS["SUM"]})
    for path, expected in (("a.nc", "zfp"), ("b.nc", "zfp|shuffle|deflate|fletcher32"), ("c.nc", "zfp|fletcher32")):
        with netCDF4.Dataset(tmp_path / path) as dataset:
            assert np.abs(dataset["v"][:] - values).max() <= 0.02
            assert "|".join(member.name for member in netcdf.filters(dataset["v"]).filters) == expected
