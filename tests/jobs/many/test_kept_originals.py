"""Originals that `--keep-originals` kept: no later run in place replaces them, wherever it begins."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import said_by_tamis

import tamis

RECIPE = ("-f", "TS:zfp(accuracy=0.1)|shuffle|deflate(4)")


pytestmark = pytest.mark.usefixtures("workers_are_threads")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder of two files, in a folder that has nothing else."""
    folder = tmp_path / "up" / "top"
    rng = np.random.default_rng(5)
    for name in ("a.nc", "deep/b.nc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(folder / name, "w") as file:
            file["TS"] = rng.standard_normal((64, 64)).cumsum(axis=0).astype("f4")
        os.utime(folder / name, (1e9, 1e9))
    return folder


def replace(place: Path, *options: str | Path, code: int = 0) -> str:
    recipe = () if "-f" in options else RECIPE
    return said_by_tamis("repack", place, "--replace", "--yes", "--workers", "1", *recipe, *options, code=code)


def contents(folder: Path) -> dict[str, bytes]:
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.nc")}


@pytest.mark.parametrize("beside", [False, True])
def test_run_that_begins_above_leaves_originals(top: Path, beside: bool) -> None:
    before = contents(top)
    originals = (top.parent if beside else top) / "originals"
    replace(top, "--keep-originals", originals)
    shutil.rmtree(top / ".tamis")
    said = replace(top.parent)
    assert "1 left out, originals that a run kept, which are not replaced (their folder has the file" in said
    assert str(originals) in said
    assert contents(originals) == before
    assert replace(top.parent, "--dry-run").count("originals that a run kept") == 1


def test_originals_are_not_replaced_by_name(top: Path) -> None:
    originals = top.parent / "originals"
    replace(top, "--keep-originals", originals)
    before = contents(originals)
    for place in (originals, originals / "deep", originals / "a.nc", originals / "*.nc"):
        assert "originals that a run kept" in replace(place, code=1)
    assert "2 of 2 files done" in replace(top, originals)
    assert (top / ".tamis").is_dir()
    assert not (top.parent / ".tamis").exists()
    assert contents(originals) == before
    assert tamis.repack_many(originals, top.parent / "new", {"TS": "deflate(1)"}, workers=1).made == 2
    (originals / ".tamis-originals").unlink()
    assert tamis.repack_many(originals, None, {"TS": "deflate(1)"}, replace=True, workers=1).made == 2


def test_folder_of_the_files_is_no_folder_of_originals(top: Path) -> None:
    for folder in (top, top.parent):
        said = replace(top, "--keep-originals", folder, code=2)
        assert "keep the originals in a folder of their own, such as" in said
    assert not [*top.parent.rglob(".tamis*")]


def test_second_folder_gets_no_originals_and_a_note_says_so(top: Path) -> None:
    first, second = top.parent / "first", top.parent / "second"
    before = contents(top)
    replace(top, "--keep-originals", first)
    said = replace(top, "-f", "TS:zfp(accuracy=0.3)", "--keep-originals", second)
    assert f"2 files: {second} gets no original, but what an earlier run with a loss made of it" in said
    assert f"the first originals are in {first}" in said
    assert contents(first) == before
    assert "gets no original" not in replace(top, "-f", "TS:zfp(accuracy=0.4)", "--keep-originals", first)


def test_note_about_originals_that_nobody_kept(top: Path) -> None:
    replace(top)
    said = replace(top, "-f", "TS:zfp(accuracy=0.3)", "--keep-originals", top.parent / "second")
    assert "no run is known to have kept the first" in said


def test_lossless_run_leaves_originals_to_keep(top: Path) -> None:
    replace(top, "-f", "TS:deflate(1)")
    assert "gets no original" not in replace(top, "--keep-originals", top.parent / "second")
