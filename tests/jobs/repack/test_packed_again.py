"""Known defect U88: packing values again that did not change made their recorded bound grow."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from inprocess import threads_as_workers

import tamis

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


def bound_of(path: Path) -> float:
    with netCDF4.Dataset(path) as file:
        return float(file["TS"].quantization_bound)


def test_u88_files_that_were_touched_keep_their_bound(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = Path(shutil.copy(SAMPLE, tmp_path / "in" / "a.nc"))
    made = []
    with threads_as_workers():
        for number in range(3):
            os.utime(path, (1e9 + number, 1e9 + number))
            found = tamis.repack_many(path.parent, None, {"TS": "pack(bound=0.1)|deflate(4)"}, replace=True, workers=1)
            made.append((found.made, bound_of(path), found.worst is not None and found.worst.largest_error > 0))
    assert made == [(1, 0.1, True), (1, 0.1, False), (1, 0.1, False)]
    with netCDF4.Dataset(SAMPLE) as before, netCDF4.Dataset(path) as after:
        assert abs(after["TS"][:].astype("f8") - before["TS"][:]).max() <= 0.1


@pytest.mark.parametrize("second", ["pack(bound=0.1)|deflate(9)", "pack(bound=0.1,range=100:400)|shuffle|deflate(4)"])
def test_u88_the_same_steps_from_another_offset_change_nothing(tmp_path: Path, second: str) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": "pack(bound=0.1)|deflate(4)"})
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"TS": second})
    assert bound_of(tmp_path / "b.nc") == 0.1
    assert result["TS"].largest_error == 0
    assert any("its values do not change" in note for note in result["TS"].notes)
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(tmp_path / "b.nc") as after:
        np.testing.assert_array_equal(before["TS"][:], after["TS"][:])


def test_u88_other_steps_add_their_error(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": "pack(bound=0.1)|deflate(4)"})
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"TS": "pack(bound=0.15)|deflate(4)"})
    assert bound_of(tmp_path / "b.nc") == pytest.approx(0.25)
