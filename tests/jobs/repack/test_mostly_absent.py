"""Known defect U109: of an array of 10^12 values with four stored chunks, only those are read and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

import tamis

SHAPE = (10**12,)
STARTS = (0, 5 * 10**8, 7 * 10**11, 10**12 - 1000)
VALUES = np.arange(1, 1001, dtype="f4")


def fill(array: Any) -> None:
    for start in STARTS:
        array[start : start + 1000] = VALUES


@pytest.fixture(params=["a.h5", "2.zarr", "3.zarr"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Make a file or store with an array that is mostly absent."""
    path = tmp_path / request.param
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            fill(file.create_dataset("v", SHAPE, "f4", chunks=(1000,)))
        return path
    group = zarr.open_group(path, mode="w", zarr_format=int(path.stem))
    fill(group.create_array("v", shape=SHAPE, chunks=(1000,), dtype="f4", fill_value=0))
    return path


JOBS: dict[str, Callable[[Path], Any]] = {
    "inspect": tamis.inspect,
    "plan": tamis.plan,
    "verify": lambda path: tamis.verify(path, path),
    "report": lambda path: tamis.report(path, path),
}


@pytest.mark.parametrize("job", JOBS)
def test_u109_jobs_on_an_array_that_is_mostly_absent_end(source: Path, job: str) -> None:
    JOBS[job](source)


@pytest.mark.matrix
@pytest.mark.parametrize("target", ["b.h5", "b.zarr"])
@pytest.mark.parametrize("recipe", ["", "deflate(1)", "zfp(accuracy=0.1)", "pack(bound=0.1)|deflate"])
def test_u109_repack_of_an_array_that_is_mostly_absent_stores_its_chunks(
    source: Path, target: str, recipe: str
) -> None:
    path = source.with_name(target)
    tamis.repack(source, path, {"v": recipe} if recipe else {})
    with tamis.open(path, unpack=True) as file:
        for start in STARTS:
            np.testing.assert_allclose(file["v"][start : start + 1000], VALUES, atol=0.1)
        assert np.nan_to_num(file["v"][10**9 : 10**9 + 10]).tolist() == [0] * 10
    assert sum(item.stat().st_blocks * 512 for item in [path, *path.rglob("*")]) < 1 << 20


def test_u109_export_of_an_array_that_is_mostly_absent_has_four_references(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(file.create_dataset("v", SHAPE, "f4", chunks=(1000,)))
    tamis.export(tmp_path / "a.h5", tmp_path / "r.json")
    with tamis.open(tmp_path / "r.json") as file:
        assert file["v"][STARTS[2] : STARTS[2] + 1000].tolist() == VALUES.tolist()
    tamis.repack(tmp_path / "r.json", tmp_path / "b.h5", {})
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").ok


def test_u109_repack_of_two_long_axes_stores_its_chunks(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    array = group.create_array("v", shape=(10**6, 10**6), chunks=(10, 100), dtype="f4", fill_value=-1)
    array[999_990:, 500_000:500_100] = 7
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"][999_995, 499_999:500_001].tolist() == [-1, 7]
