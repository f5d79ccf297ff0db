"""Files with several names (hard links) in a folder that is repacked in place: they stay names of one file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import said_by_tamis

import tamis

RECIPE = {"TS": "shuffle|deflate(4)"}


pytestmark = pytest.mark.usefixtures("workers_are_threads")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder with a file that has two names, and one with a single name."""
    folder = tmp_path / "archive"
    folder.mkdir()
    for number, name in enumerate("ab"):
        with h5py.File(folder / f"{name}.nc", "w") as file:
            file["TS"] = np.random.default_rng(number).standard_normal((64, 64)).cumsum(axis=0).astype("f4")
        os.utime(folder / f"{name}.nc", (1e9, 1e9))
    os.link(folder / "a.nc", folder / "c.nc")
    return folder


def disk_nbytes(folder: Path) -> int:
    """Return the bytes of all files, each once."""
    return sum({path.stat().st_ino: path.stat().st_size for path in folder.glob("*.nc")}.values())


@pytest.mark.parametrize("count", [1, 2])
def test_names_of_a_file_stay_links_of_the_new_one(archive: Path, count: int) -> None:
    before = disk_nbytes(archive)
    status = tamis.repack_many(archive, None, RECIPE, replace=True, break_hard_links=True, workers=count)
    assert status.ok
    assert (archive / "a.nc").samefile(archive / "c.nc")
    assert (status.source_nbytes, status.target_nbytes) == (before, disk_nbytes(archive))
    assert "outside this run" not in " ".join(status.notes)
    assert tamis.status(archive).target_nbytes == disk_nbytes(archive)
    assert "3 files unchanged" in said_by_tamis("manifest", archive, "--check")
    rows = tamis.manifest(archive).files
    assert [row.link_of for row in rows] == ["", "", "a.nc"]
    assert rows[0].datasets == rows[2].datasets


def test_run_that_was_interrupted_between_two_names_links_the_second(archive: Path) -> None:
    options: dict[str, Any] = {"replace": True, "break_hard_links": True, "workers": 1}
    first = tamis.repack_many(archive, None, RECIPE, include="a.nc", **options)
    assert any("1 other hard link of it, outside this run, keeps the old content" in note for note in first.notes)
    assert not (archive / "a.nc").samefile(archive / "c.nc")
    assert tamis.repack_many(archive, None, RECIPE, **options).ok
    assert (archive / "a.nc").samefile(archive / "c.nc")


def test_name_outside_the_run_is_said(archive: Path, tmp_path: Path) -> None:
    os.link(archive / "b.nc", tmp_path / "outside.nc")
    said = said_by_tamis(
        "repack", archive, "--replace", "--yes", "--break-hard-links", "--workers", "1", "-f", "TS:shuffle|deflate(4)"
    )
    assert "1 file: 1 other hard link of it, outside this run, keeps the old content and its bytes" in said
    assert (archive / "a.nc").samefile(archive / "c.nc")


def test_originals_of_both_names_are_kept(archive: Path, tmp_path: Path) -> None:
    old = (archive / "a.nc").read_bytes()
    options: dict[str, Any] = {"replace": True, "break_hard_links": True, "workers": 1}
    status = tamis.repack_many(archive, None, RECIPE, keep_originals=tmp_path / "originals", **options)
    assert status.ok
    assert "outside this run" not in " ".join(status.notes)
    assert [(tmp_path / "originals" / name).read_bytes() == old for name in ("a.nc", "c.nc")] == [True, True]
