"""Maps are as fine as the page allows, and show the largest error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tamis.formats import open_store
from tamis.jobs.report import maps
from tamis.jobs.report.pair import Pair


def reduced(folder: Path, before: Any, after: Any, side: int) -> maps.Reduced:
    for name, values in (("a.nc", before), ("b.nc", after)):
        with h5py.File(folder / name, "w") as file:
            file["T"] = values
    with (
        open_store(folder / "a.nc") as one,
        open_store(folder / "b.nc") as other,
        Pair.open(one.array("/T"), other.array("/T")) as pair,
    ):
        return maps.reduced(pair, [], side)


@pytest.mark.parametrize(
    ("shape", "size"),
    [((30, 33), (30, 33)), ((40, 65), (39, 64)), ((90, 180), (32, 64)), ((300, 7), (64, 4)), ((5, 1000), (4, 64))],
)
def test_size_is_the_largest_that_is_allowed(shape: tuple[int, int], size: tuple[int, int], tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    before = rng.normal(size=shape)
    before[: shape[0] // 3, : shape[1] // 2] = np.nan
    after = before + rng.uniform(-0.1, 0.1, shape)
    after[shape[0] - 2, shape[1] // 2] -= 7
    found = reduced(tmp_path, before, after, side=64)
    assert {table.shape for table in found[:3]} == {size}
    rows, columns = (
        [at * extent // count for at in range(count + 1)] for extent, count in zip(shape, size, strict=True)
    )
    for row in range(size[0]):
        for column in range(size[1]):
            block = np.s_[rows[row] : rows[row + 1], columns[column] : columns[column + 1]]
            valid = np.isfinite(before[block])
            if not valid.any():
                assert np.isnan([table[row, column] for table in found[:3]]).all()
                continue
            errors = (after - before)[block][valid]
            assert found.before[row, column] == pytest.approx(before[block][valid].mean())
            assert found.after[row, column] == pytest.approx(after[block][valid].mean())
            assert found.error[row, column] == errors[np.abs(errors).argmax()]
    assert found.worst == (shape[0] - 2, shape[1] // 2)
    assert np.nanmin(found.error) < -6.8


def test_bands_of_rows_make_the_same_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    before = rng.normal(size=(211, 90))
    after = before + rng.normal(size=before.shape)
    whole = reduced(tmp_path, before, after, side=64)
    monkeypatch.setattr(maps, "_BAND_COUNT", 1000)
    parts = reduced(tmp_path, before, after, side=64)
    for one, other in zip(whole[:3], parts[:3], strict=True):
        assert one == pytest.approx(other)
    assert whole.worst == parts.worst


def test_pictures_use_the_bytes_that_they_may(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    before = rng.normal(size=(300, 500))
    found = reduced(tmp_path, before, before + rng.uniform(-1, 1, before.shape), side=512)
    for most in (300_000, 100_000, 48_000, 30_000):
        drawn = maps.field_map(found, "noise", most, box=None, flip=False, axes=("y", "x"))
        assert 0.75 * most < drawn.nbytes <= most
        assert drawn.width / drawn.height == pytest.approx(5 / 3, rel=0.02)
    least = maps.field_map(found, "noise", 10, box=None, flip=True, axes=("y", "x"))
    assert (least.width, least.height) == (96, 58)
