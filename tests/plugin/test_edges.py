"""Known defect D10: HDF5 fills up chunks at the edge with the fill value, and zfp pays for that with their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

FILL = np.float32(9.96921e36)
CHUNKS = (8, 8)


@pytest.fixture
def values() -> NDArray[Any]:
    return (280 + 10 * np.sin(np.arange(13 * 21) / 11)).reshape(13, 21).astype("f4")


def largest_error(path: Path, values: NDArray[Any]) -> float:
    with h5py.File(path) as file:
        return float(np.abs(file["x"][()] - values).max())


def masks(path: Path) -> set[int]:
    found: list[int] = []
    with h5py.File(path) as file:
        file["x"].id.chunk_iter(lambda each: found.append(each.filter_mask))
    assert len(found) == 6
    return set(found)


def test_d10_hdf5_own_write_stores_edge_chunks_without_zfp(values: NDArray[Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=CHUNKS, fillvalue=FILL, **tamis.Zfp(accuracy=0.1))
    assert largest_error(tmp_path / "a.h5", values) <= 0.1
    assert 1 in masks(tmp_path / "a.h5"), "beside the fill value behind the edge zfp does not keep the bound"


def test_d10_write_keeps_the_bound_in_edge_chunks_by_zfp(values: NDArray[Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.write(file, "x", values, chunks=CHUNKS, fillvalue=FILL, filters="zfp(accuracy=0.1)|fletcher32")
    assert largest_error(tmp_path / "a.h5", values) <= 0.1
    assert masks(tmp_path / "a.h5") == {0}, "no chunk went without zfp"


def test_d10_repack_keeps_the_bound_in_edge_chunks_by_zfp(values: NDArray[Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=CHUNKS, fillvalue=FILL)
    tamis.repack(tmp_path / "raw.h5", tmp_path / "a.h5", {"x": "zfp(accuracy=0.1)"})
    assert largest_error(tmp_path / "a.h5", values) <= 0.1
    assert masks(tmp_path / "a.h5") == {0}, "no chunk went without zfp"
