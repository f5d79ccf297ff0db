"""Memory of repack and verify: bytes for each chunk, and for one large chunk (U30)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

RECIPE = {"v": "zfp(accuracy=0.01)"}


def peak_nbytes(work: Callable[[], object]) -> int:
    work()  # imports and what is kept are no part of it
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def many_chunks(path: Path, count: int) -> Path:
    with h5py.File(path, "w") as file:
        values = np.sin(np.arange(count * 256) / 50).reshape(count, 16, 16).astype("f4")
        file.create_dataset("v", data=values, chunks=(1, 16, 16))
    return path


@pytest.mark.check
@pytest.mark.parametrize("job", ["repack", "verify"])
def test_u30_a_chunk_costs_at_most_200_bytes(job: str, tmp_path: Path) -> None:
    peaks = []
    for count in (5_000, 25_000):
        source, target = many_chunks(tmp_path / "a.h5", count), tmp_path / f"{count}.h5"
        if job == "repack":
            peaks.append(peak_nbytes(lambda: tamis.repack(source, target, RECIPE, threads=1, overwrite=True)))  # noqa: B023
        else:
            tamis.repack(source, target, RECIPE, threads=1, overwrite=True)
            peaks.append(peak_nbytes(lambda: tamis.verify(source, target, bounds={"v": 0.01}, threads=1)))  # noqa: B023
    assert peaks[1] - peaks[0] <= 200 * 20_000


@pytest.mark.parametrize("job", ["repack", "verify"])
def test_u30_one_large_chunk_takes_little_more_than_source_and_target(job: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.sin(np.linspace(0, 30, 4 << 20)).reshape(16, 512, 512).astype("f4")
    with h5py.File(source, "w") as file:
        file.create_dataset("v", data=values, chunks=values.shape)
    source_nbytes = values.nbytes
    peak = peak_nbytes(lambda: tamis.repack(source, target, RECIPE, threads=1, overwrite=True))
    if job == "verify":
        peak = peak_nbytes(lambda: tamis.verify(source, target, bounds={"v": 0.01}, threads=1))
    assert peak <= 2.2 * source_nbytes
