"""Known defect U59: verify reads what was never stored, value by value."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

import tamis
from tamis.accuracy import compared
from tamis.arrays import Grid, Parts, Region
from tamis.meaning import NONE_MISSING

TAMIS = Path(sys.executable).with_name("tamis")
SHAPE, CHUNK = (40_000, 50_000), (500, 500)


def verified(source: Path, target: Path, **options: object) -> tuple[tamis.Verification, int]:
    """Return the result, and how many parts were compared."""
    calls: list[int] = []
    result = tamis.verify(source, target, progress=lambda step, done, total: calls.append(done), **options)
    assert calls[-1] == max(calls)
    return result, len(calls)


@pytest.mark.parametrize("size", [4_500_000_000, 100_000_000_000])
def test_u59_dimensions_without_a_variable_are_not_walked_through(size: int, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("lat", size)
    shutil.copy(tmp_path / "a.nc", tmp_path / "b.nc")
    result, parts = verified(tmp_path / "a.nc", tmp_path / "b.nc")
    assert result.ok
    assert result["lat"].tally is not None
    assert result["lat"].tally.count == size
    assert parts < 10
    done = subprocess.run([TAMIS, "verify", tmp_path / "a.nc", tmp_path / "b.nc", "-q"], check=False)
    assert done.returncode == 0


def sparse(path: Path, fill: float, *, chunk: tuple[int, int] = CHUNK) -> Path:
    """Write three chunks of an array of 16 GB."""
    if path.suffix == ".zarr":
        array = zarr.create_array(
            str(path / "x"),
            shape=SHAPE,
            chunks=chunk,
            dtype="f8",
            fill_value=fill,
            dimension_names=("phony_0", "phony_1"),
        )
        zarr.open_group(str(path), mode="a")
    else:
        with h5py.File(path, "w") as file:
            array = file.create_dataset("x", SHAPE, "f8", chunks=chunk, fillvalue=fill)
            for row, column in ((0, 0), (20_000, 30_000), (39_500, 49_500)):
                array[row : row + 500, column : column + 500] = 1.5
        return path
    for row, column in ((0, 0), (20_000, 30_000), (39_500, 49_500)):
        array[row : row + 500, column : column + 500] = 1.5
    return path


@pytest.mark.parametrize("chunk", [CHUNK, (1000, 250)])
@pytest.mark.parametrize("target", ["b.h5", "b.zarr"])
def test_u59_chunks_that_are_not_stored_are_compared_by_their_fill_value(
    target: str, chunk: tuple[int, int], tmp_path: Path
) -> None:
    source, other = sparse(tmp_path / "a.h5", 0.0), sparse(tmp_path / target, 0.0, chunk=chunk)
    result, parts = verified(source, other, variables=["x"])
    tally = result["x"].tally
    assert tally is not None
    assert (tally.different, tally.count, tally.low, tally.high) == (0, SHAPE[0] * SHAPE[1], 0.0, 1.5)
    assert tally.compared == tally.count
    assert parts < 100


def test_u59_a_stored_chunk_that_differs_from_the_fill_value_is_seen(tmp_path: Path) -> None:
    source, target = sparse(tmp_path / "a.h5", 0.0), sparse(tmp_path / "b.h5", 0.0)
    with h5py.File(target, "a") as file:
        file["x"][12_345, 6_789] = 7.0
    result, parts = verified(source, target)
    assert result["x"].tally is not None
    assert result["x"].tally.different == 1
    assert result["x"].tally.worst is not None
    assert result["x"].tally.worst.index == (12_345, 6_789)
    assert parts < 100


class InMemory:
    """The reader of an array in memory."""

    chunk_shape = (10, 10)

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        return self.values[part]

    def close(self) -> None:
        pass


def test_u59_other_fill_values_are_counted_one_by_one() -> None:
    shape, missing = (40, 60), NONE_MISSING
    before, after = np.zeros(shape), np.zeros(shape)
    after[...] = 2.0
    before[:10, :10] = after[:10, :10] = 3.0

    def stored(grid: Grid) -> Parts:
        return Parts(grid, np.array([0]))

    readers = [InMemory(values) for values in (before, after)]
    assert compared(*readers, missing, 1, lambda *_: None, 0.0, stored) == compared(
        *readers, missing, 1, lambda *_: None
    )


@pytest.mark.parametrize("fill", [np.nan, -9999.0, 0.25])
def test_u59_tally_is_that_of_all_values(fill: float, tmp_path: Path) -> None:
    values = np.full((400, 300), fill)
    values[100:200, 200:300] = np.arange(10_000.0).reshape(100, 100)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = values
    with h5py.File(tmp_path / "b.h5", "w") as file:
        array = file.create_dataset("x", values.shape, chunks=(100, 100), fillvalue=fill, dtype="f8")
        array[100:200, 200:300] = values[100:200, 200:300] + 0.5
    with h5py.File(tmp_path / "c.h5", "w") as file:
        array = file.create_dataset("x", values.shape, chunks=(100, 100), fillvalue=fill, dtype="f8")
        array[100:200, 200:300] = values[100:200, 200:300]
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("x", data=values + np.where(values == fill, 0, 0.5 * np.isfinite(values)), fillvalue=fill)
        file["x"][100:200, 200:300] = values[100:200, 200:300] + 0.5
    tallies = [tamis.verify(tmp_path / "c.h5", tmp_path / name)["x"].tally for name in ("b.h5", "d.h5")]
    assert tallies[0] == tallies[1]


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["i4,f8", "S12", "text"])
@pytest.mark.parametrize("change", [False, True])
def test_u59_elements_that_are_no_numbers_are_compared_where_they_are_stored(
    kind: str, change: bool, tmp_path: Path
) -> None:
    dtype = h5py.string_dtype() if kind == "text" else np.dtype(kind)
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            array = file.create_dataset("x", (1 << 20, 1 << 20), dtype, chunks=(500, 20))
            array[1000:1010, 40:45] = np.full(
                (10, 5), b"land" if dtype.kind in "OS" else np.array((3, 0.5), dtype), dtype
            )
    if change:
        with h5py.File(tmp_path / "b.h5", "a") as file:
            file["x"][123_456, 7_890] = b"sea" if dtype.kind in "OS" else (0, 1.0)
    result, parts = verified(tmp_path / "a.h5", tmp_path / "b.h5")
    assert result.ok is not change
    assert parts < 10
    if change:
        assert "1 of 1099511627776 differ: at [123456, 7890]" in str(result)


def test_u59_records_with_other_fill_values_differ_where_nothing_is_stored(tmp_path: Path) -> None:
    for name, fill in (("a.h5", 1.0), ("b.h5", 2.0)):
        with h5py.File(tmp_path / name, "w") as file:
            dtype = np.dtype("i4,f8")
            array = file.create_dataset("x", (40, 60), dtype, chunks=(10, 10), fillvalue=np.array((7, fill), dtype))
            array[:10, :10] = np.full((10, 10), np.array((3, 0.5), dtype), dtype)
    result, _ = verified(tmp_path / "a.h5", tmp_path / "b.h5")
    assert "2300 of 2400 differ: at [0, 10]" in str(result)
