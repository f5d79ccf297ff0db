"""One repack of each kind: each source, each target, each way to treat values. `make quick` runs these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

BOUND = 0.01
STEPS = np.linspace(0, 6, 24)[:, None, None] + np.linspace(0, 3, 32)[:, None] + np.linspace(0, 2, 40)
VALUES: NDArray[np.float32] = (280 + 10 * np.sin(STEPS)).astype("f4")
MISSING = np.float32(-999)
GAPS = np.zeros(VALUES.shape, bool)
GAPS[:, 5:9, 7:20] = True
WITH_GAPS = np.where(GAPS, MISSING, VALUES)


def hdf5(folder: Path, values: NDArray[np.float32] = VALUES) -> Path:
    with h5py.File(folder / "source.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(6, 16, 20), compression="gzip")
        file["v"].attrs["_FillValue"] = MISSING
        file["v"].attrs["units"] = "K"
    return folder / "source.h5"


def netcdf(folder: Path, kind: Any = "NETCDF4") -> Path:
    netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806 - the name of the module
    with netCDF4.Dataset(folder / "source.nc", "w", format=kind) as file:
        for name, length in zip("tyx", VALUES.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("v", "f4", ("t", "y", "x"))[:] = VALUES
    return folder / "source.nc"


def classic(folder: Path) -> Path:
    return netcdf(folder, "NETCDF3_64BIT_OFFSET")


def zarr_of(folder: Path, version: Any) -> Path:
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(folder / "source.zarr", zarr_format=version)
    group.create_array("v", shape=VALUES.shape, chunks=(6, 16, 20), dtype="f4")[...] = VALUES
    return folder / "source.zarr"


def zarr_2(folder: Path) -> Path:
    return zarr_of(folder, 2)


def zarr_3(folder: Path) -> Path:
    return zarr_of(folder, 3)


def references(folder: Path) -> Path:
    pytest.importorskip("zarr")
    tamis.export(hdf5(folder), folder / "references.json")
    return folder / "references.json"


def values_of(path: Path) -> NDArray[np.float32]:
    with tamis.open(path) as file:
        values: NDArray[np.float32] = file["v"][...]
    return values


def error_of(path: Path) -> float:
    return float(np.abs(values_of(path).astype("f8") - VALUES).max())


@pytest.mark.parametrize("target", ["out.h5", "out.nc", "out.zarr"])
@pytest.mark.parametrize("make", [hdf5, netcdf, classic, zarr_2, zarr_3, references])
def test_each_source_becomes_each_target(make: Callable[[Path], Path], target: str, tmp_path: Path) -> None:
    if target == "out.zarr":
        pytest.importorskip("zarr")
    source = make(tmp_path)
    tamis.repack(source, tmp_path / target, {"v": f"zfp(accuracy={BOUND})|shuffle|deflate(4)"})
    assert 0 < error_of(tmp_path / target) <= BOUND
    assert tamis.verify(source, tmp_path / target, bounds={"v": BOUND}).ok


@pytest.mark.parametrize("filters", ["shuffle|deflate(4)", "zfp(reversible=true)", "bzip2(9)"])
def test_lossless_filters_keep_each_bit(filters: str, tmp_path: Path) -> None:
    tamis.repack(hdf5(tmp_path), tmp_path / "out.h5", {"v": filters})
    assert np.array_equal(values_of(tmp_path / "out.h5"), VALUES)


@pytest.mark.parametrize(
    "filters", ["zfp(bound=0.01)", "absolute(0.01)|shuffle|deflate(4)", "pack(bound=0.01)|shuffle|deflate(4)"]
)
def test_each_way_to_lose_keeps_its_bound(filters: str, tmp_path: Path) -> None:
    tamis.repack(hdf5(tmp_path), tmp_path / "out.h5", {"v": filters})
    with tamis.open(tmp_path / "out.h5", unpack=True) as file:
        error = np.abs(file["v"][...].astype("f8") - VALUES).max()
    assert 0 < error <= BOUND * (1 + 1e-6)


@pytest.mark.parametrize("missing", ["exact", "mask"])
def test_missing_values_survive(missing: Any, tmp_path: Path) -> None:
    tamis.repack(hdf5(tmp_path, WITH_GAPS), tmp_path / "out.h5", {"v": f"zfp(accuracy={BOUND})"}, missing=missing)
    values = values_of(tmp_path / "out.h5")
    assert np.array_equal(values == MISSING, GAPS)
    assert np.abs(values - VALUES)[~GAPS].max() <= BOUND


def test_a_folder_and_one_file_of_all(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")  # noqa: N806 - the name of the module
    (tmp_path / "in").mkdir()
    for number in range(3):
        with netCDF4.Dataset(tmp_path / "in" / f"{number}.nc", "w") as file:
            for name, length in zip("tyx", (None, *VALUES.shape[1:]), strict=True):
                file.createDimension(name, length)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(8.0) + 8 * number
            file.createVariable("v", "f4", ("t", "y", "x"))[:] = VALUES[8 * number : 8 * number + 8]
    recipe = {"v": f"zfp(accuracy={BOUND})"}
    assert tamis.repack_many(tmp_path / "in", tmp_path / "out", recipe, workers=2).ok
    assert sorted(path.name for path in (tmp_path / "out").glob("*.nc")) == ["0.nc", "1.nc", "2.nc"]
    tamis.combine(tmp_path / "in", tmp_path / "all.nc", recipe, "t")
    assert error_of(tmp_path / "all.nc") <= BOUND
