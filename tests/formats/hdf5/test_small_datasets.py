"""What a small dataset costs repack and verify, in calls: times would depend on the machine."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from calls import Job, calls_by_count

import tamis

# About 10% more than they take, so that no regression goes unseen; each call takes 0.3 µs or more.
JOBS: dict[str, Job] = {
    "repack": lambda path, out: tamis.repack(path, out, {"*": "shuffle|deflate(4)"}, overwrite=True, threads=1),
    "verify": lambda path, out: tamis.verify(path, out, threads=1),
}


def write(path: Path, count: int) -> None:
    values = np.arange(64.0, dtype="f4").reshape(8, 8)
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(count):
            file.create_dataset(f"g{number % 5}/v{number}", data=values, chunks=(4, 8)).attrs["units"] = "K"


@pytest.mark.parametrize("name", JOBS)
def test_u13_calls_for_a_small_dataset_grow_with_no_other(name: str, tmp_path: Path) -> None:
    def written(datasets: int) -> tuple[Path, Path]:
        path = tmp_path / f"{datasets}.h5"
        write(path, datasets)
        return path, tmp_path / f"{datasets}.out"

    counts = calls_by_count((20, 40, 120), written, JOBS["repack"], JOBS[name])
    few, many = (counts[40] - counts[20]) / 20, (counts[120] - counts[40]) / 80
    assert many <= 1.1 * few
