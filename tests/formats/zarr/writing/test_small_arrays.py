"""Known defect U59: what a small array costs on its way to Zarr, in calls: times would depend on the machine."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from calls import Job, calls_by_count

import tamis

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

# About 10% more than they take, so that no regression goes unseen.
JOBS: dict[str, Job] = {
    "repack": lambda path, out: tamis.repack(path, out, {"*": "shuffle|deflate(4)"}, overwrite=True, threads=1),
    "verify": lambda path, out: tamis.verify(path, out, threads=1),
}


def write(path: Path, count: int) -> None:
    """Write small datasets, four in each group."""
    values = np.arange(64.0, dtype="f4").reshape(8, 8)
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(count):
            file.create_dataset(f"g{number // 4}/v{number}", data=values, chunks=(4, 8)).attrs["units"] = "K"


@pytest.mark.check
@pytest.mark.parametrize("name", JOBS)
def test_u59_calls_for_a_small_zarr_array_grow_with_no_other(name: str, tmp_path: Path) -> None:
    def written(datasets: int) -> tuple[Path, Path]:
        path = tmp_path / f"{datasets}.h5"
        write(path, datasets)
        return path, tmp_path / f"{datasets}.zarr"

    counts = calls_by_count((20, 60, 140), written, JOBS["repack"], JOBS[name])
    few, many = (counts[60] - counts[20]) / 40, (counts[140] - counts[60]) / 80
    assert many <= 1.1 * few


def test_u59_zarr_python_reads_the_first_16_of_a_kind_and_each_16th_and_all_larger_arrays(tmp_path: Path) -> None:
    path, out = tmp_path / "in.h5", tmp_path / "out.zarr"
    kinds = {"a": ("f4", (4,), 0), "b": ("f8", (4,), 0), "c": ("f4", (8,), 0), "d": ("f4", (4,), -1)}
    with h5py.File(path, "w") as file:
        for number in range(40):
            for kind, (dtype, chunks, fill) in kinds.items():
                data = np.arange(8, dtype=dtype) + number
                file.create_dataset(f"{kind}{number:02}", data=data, chunks=chunks, fillvalue=fill)
            file.create_dataset(f"large{number:02}", data=np.zeros(20_000, "f4"), chunks=(10_000,))
    result = tamis.repack(path, out, {"*": "shuffle|deflate(4)"}, larger=True)
    read = [dataset.path.strip("/") for dataset in result.datasets if dataset.read_by_hdf5]
    small = [*range(16), 16, 32]
    assert read == [
        *(f"{kind}{number:02}" for kind in kinds for number in small),
        *(f"large{number:02}" for number in range(40)),
    ]
    assert tamis.verify(path, out).ok


def test_u59_metadata_of_all_arrays_in_the_root_are_those_that_zarr_python_writes(tmp_path: Path) -> None:
    path, out = tmp_path / "in.h5", tmp_path / "out.zarr"
    with h5py.File(path, "w") as file:
        file.attrs.update({"title": 'é "quoted" \\ \n 😀', "none": np.array([], "f4")})
        for number, name in enumerate(("b/c/d", "C/ä", "a", "b/Z", "b/empty/z", "é/x")):
            dataset = file.create_dataset(name, data=np.arange(8.0) + number, chunks=(4,), fillvalue=np.nan)
            dataset.attrs.update({"é": "ä", "numbers": [1.5, -np.inf, np.nan], "_FillValue": -1.0})
        file["texts"] = ["one", "two"]
        file["scalar"] = 3
        file.create_group("b/nothing")
    tamis.repack(path, out, {"*": "shuffle|deflate(4)"}, larger=True, min_size=0)
    written = (out / "zarr.json").read_bytes()
    zarr.consolidate_metadata(str(out), zarr_format=3)
    assert written == (out / "zarr.json").read_bytes()
