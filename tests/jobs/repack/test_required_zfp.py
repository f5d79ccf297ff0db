"""U97: a required zfp filter, a fill value, and chunks that are not full: every step is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

Run = Callable[..., str]

APPEND = """
import sys
import h5py, numpy as np, tamis

path, dtype, fill, mode, *counts = sys.argv[1:]
plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
plist.set_chunk((4, 16))
if fill != "none":
    plist.set_fill_value(np.array(float(fill)).astype(dtype))
plist.set_filter(32013, 0, eval(f"tamis.Zfp({mode})").requested)  # 0: required
with h5py.File(path, "w") as file:
    for count in counts:
        space = h5py.h5s.create_simple((0, 16), (h5py.h5s.UNLIMITED, 16))
        type_id = h5py.h5t.py_create(np.dtype(dtype))
        data = h5py.Dataset(h5py.h5d.create(file.id, count.encode(), type_id, space, plist))
        for step in range(int(count)):
            data.resize(step + 1, 0)
            data[step] = 280 + 10 * np.sin(np.arange(16) / 5 + step)
            file.flush()
"""


def assert_steps(dataset: h5py.Dataset, bound: float) -> Any:
    """Check what APPEND wrote, and that each full chunk went through zfp; return the masks of all chunks."""
    count = len(dataset)
    expected = (280 + 10 * np.sin(np.arange(16) / 5 + np.arange(count)[:, None])).astype(dataset.dtype)
    assert np.abs(dataset[()].astype("f8") - expected).max() <= bound
    masks = [dataset.id.get_chunk_info(i).filter_mask for i in range(dataset.id.get_num_chunks())]
    assert masks[: count // 4] == [0] * (count // 4)
    return masks


@pytest.mark.matrix
@pytest.mark.parametrize("fill", ["0", "-9999", "9.96921e36", "nan", "inf"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_u97_required_filter_stores_chunks_that_hold_the_fill_value(
    tmp_path: Path, python: Run, dtype: str, fill: str
) -> None:
    path = tmp_path / "a.h5"
    python(APPEND, path, dtype, fill, "accuracy=0.01", "1", "3", "4", "6")
    with h5py.File(path, "r+") as file:
        for dataset in file.values():
            assert_steps(dataset, 0.01)
            dataset.resize(len(dataset) + 1, 0)
            assert np.array_equal(dataset[-1], np.full(16, float(fill), dtype), equal_nan=True)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("dtype", "fill", "mode", "bound"),
    [
        ("f4", "nan", "rate=16", 0.1),
        ("f4", "nan", "precision=24", 0.01),
        ("f8", "-inf", "minbits=1, maxbits=16658, maxprec=40, minexp=-1074", 0.01),
        ("f4", "nan", "reversible=True", 0),
        ("i4", "-2147483647", "accuracy=16", 16),
        ("i8", "-9223372036854775807", "accuracy=16", 16),
    ],
)
def test_u97_required_filter_of_any_mode_stores_chunks_that_hold_the_fill_value(
    tmp_path: Path, python: Run, dtype: str, fill: str, mode: str, bound: float
) -> None:
    python(APPEND, tmp_path / "a.h5", dtype, fill, mode, "6")
    with h5py.File(tmp_path / "a.h5") as file:
        masks = assert_steps(file["6"], bound)
    assert masks[1] == (0 if "reversible" in mode else 1)


@pytest.mark.parametrize(("fill", "flag"), [("none", 0), ("-999", 1)])
def test_u97_required_filter_stays_required_without_a_fill_value(
    tmp_path: Path, python: Run, fill: str, flag: int
) -> None:
    python(APPEND, tmp_path / "a.h5", "f4", fill, "accuracy=0.1", "6")
    with h5py.File(tmp_path / "a.h5") as file:
        assert_steps(file["6"], 0.1)
        assert file["6"].id.get_create_plist().get_filter(0)[1] == flag
