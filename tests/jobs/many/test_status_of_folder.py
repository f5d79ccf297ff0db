"""`tamis status` describes the folder: what all runs made of its files, not only what the last one wanted."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import said_by_tamis

import tamis

GOOD, WRONG = ("-f", "TS:shuffle|deflate(4)"), ("-f", "TS:zfp(accuracy=0.5)", "--require", "TS:psnr=500")


pytestmark = pytest.mark.usefixtures("workers_are_threads")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder of three files."""
    folder = tmp_path / "archive"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for name in "abc":
        with h5py.File(folder / f"{name}.nc", "w") as file:
            file["TS"] = rng.standard_normal((64, 64)).cumsum(axis=0).astype("f4")
        os.utime(folder / f"{name}.nc", (1e9, 1e9))
    return folder


def replace(archive: Path, *options: str, code: int = 0) -> str:
    return said_by_tamis("repack", archive, "--replace", "--yes", "--workers", "1", *options, code=code)


def test_run_of_one_file_leaves_the_count_of_all(archive: Path) -> None:
    os.utime(archive / "b.nc")
    os.utime(archive / "c.nc")
    replace(archive, *GOOD, "--settle", "600", "--retries", "0", code=1)
    assert "1 of 3 files done" in said_by_tamis("status", archive, code=1)
    said = replace(archive, *GOOD, "--include", "a.nc", "--settle", "600")
    assert "1 of 1 file done" in said
    found = tamis.status(archive)
    assert (found.files, found.done, len(found.failures)) == (3, 1, 2)


def test_files_that_no_run_began_are_left(archive: Path) -> None:
    os.utime(archive / "a.nc")
    replace(archive, *GOOD, "--settle", "600", "--retries", "0", "--stop", code=1)
    replace(archive, *GOOD, "--include", "c.nc")
    found = tamis.status(archive)
    assert found.files == 3
    assert not found.ok
    (archive / "a.nc").unlink()
    assert tamis.status(archive).files == 2


def test_wrong_recipe_leaves_files_done_and_the_right_one_makes_nothing_again(archive: Path) -> None:
    replace(archive, *GOOD)
    before = {path.name: path.stat().st_ino for path in archive.glob("*.nc")}
    assert "3 failed" in replace(archive, *WRONG, code=3)
    said = said_by_tamis("status", archive, code=3)
    assert "3 of 3 files done" in said
    assert "3 failed, 3 of them as an earlier run made them" in said
    found = tamis.status(archive)
    assert all(failure.kept for failure in found.failures)
    said = replace(archive, *GOOD)
    assert "3 of 3 files done" in said
    assert "made again" not in said
    assert {path.name: path.stat().st_ino for path in archive.glob("*.nc")} == before
    assert "3 of 3 files done" in said_by_tamis("status", archive)


def test_failed_file_that_was_changed_is_not_done(archive: Path) -> None:
    replace(archive, *GOOD)
    replace(archive, *WRONG, code=3)
    with (archive / "a.nc").open("ab") as file:
        file.write(b"more")
    found = tamis.status(archive)
    assert (found.done, len(found.failures)) == (2, 3)


def test_unread_file_and_left_out_ones_stay_in_the_status_of_the_folder(archive: Path) -> None:
    (archive / "notes.txt").write_text("by the author\n")
    replace(archive, *GOOD)
    replace(archive, *GOOD, "--include", "a.nc")
    assert [item.path for item in tamis.status(archive).left_out] == [str(archive / "notes.txt")]


def test_check_names_files_without_a_record(archive: Path) -> None:
    (archive / "c.nc").write_bytes((archive / "c.nc").read_bytes()[:3000])
    os.utime(archive / "c.nc", (1e9, 1e9))
    tamis.repack(archive / "a.nc", archive / "deep.zarr", {})
    assert len([*(archive / "deep.zarr").rglob("*")]) > 2
    replace(archive, *GOOD, code=1)
    said = said_by_tamis("manifest", archive, "--check", code=1)
    assert "c.nc: no run could make it: " in said
    assert "deep.zarr: not in the manifest" in said
    assert "deep.zarr/" not in said
    assert "2 files unchanged, 1 failed, 1 without record" in said
    found = tamis.check_manifest(archive)
    assert ([item.path for item in found.failed], found.unknown) == (["c.nc"], ("deep.zarr",))
    (archive / "a.nc").unlink()
    assert "a.nc: missing" in said_by_tamis("manifest", archive, "--check", "-q", code=3)


def test_largest_error_is_told_from_the_one_nearest_to_its_bound(archive: Path) -> None:
    replace(archive, "-f", "TS:absolute(bound=0.1)|deflate(4)", "--include", "a.nc")
    said = replace(archive, "-f", "TS:zfp(accuracy=8)", "--exclude", "a.nc")
    assert "nearest to its bound: " in said
    found = tamis.status(archive)
    assert found.worst is not None
    assert found.worst.path == "a.nc"
    (largest,) = found.largest_errors
    assert (largest.dataset, largest.bound) == ("/TS", 8)
    assert largest.path in ("b.nc", "c.nc")
    assert largest.largest_error > found.worst.largest_error
    assert largest.largest_error / 8 < found.worst.share
    said = said_by_tamis("status", archive)
    share = f"{100 * found.worst.share:.3g} % of {found.worst.bound:g}"
    assert f"nearest to its bound: {found.worst.largest_error:.3g}, {share}, in /TS of a.nc" in said
    assert f"largest error of /TS: {largest.largest_error:.3g} (bound 8), in {largest.path}" in said
    assert found.to_dict()["largest_errors"] == [largest._asdict()]


def test_errors_of_many_variables_are_in_the_json(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    (tmp_path / "in").mkdir()
    with h5py.File(tmp_path / "in" / "a.nc", "w") as file:
        for name in "PQRS":
            file[name] = rng.standard_normal((64, 64)).astype("f4")
    found = tamis.repack_many(tmp_path / "in", tmp_path / "out", {"**": "bitround(7)|deflate(1)"}, workers=1)
    assert [(item.dataset, item.bound) for item in found.largest_errors] == [(f"/{name}", None) for name in "PQRS"]
    assert "largest error" not in str(found)


def test_files_that_are_gone_or_changed_are_not_done(archive: Path) -> None:
    first = (archive / "b.nc").read_bytes()
    replace(archive, *GOOD)
    (archive / "a.nc").unlink()
    (archive / "b.nc").write_bytes(first)
    with h5py.File(archive / "c.nc", "r+") as file:  # its size stays
        file["TS"][0, 0] = 7
    said = said_by_tamis("status", archive, code=3)
    assert "a.nc: missing" in said
    assert "b.nc: changed since it was made" in said
    assert "c.nc: changed since it was made" in said
    assert "0 of 3 files done, 1 missing, 2 changed since" in said
    assert "left" not in said
    found = tamis.status(archive)
    assert (found.done, found.missing, found.changed) == (0, ("a.nc",), ("b.nc", "c.nc"))


def test_target_of_another_size_is_not_done(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said_by_tamis("repack", archive, out, *GOOD, "--workers", "1")
    assert tamis.status(out).ok
    (out / "a.nc").unlink()
    with (out / "b.nc").open("ab") as file:
        file.write(b"more")
    os.utime(out / "c.nc")  # when targets elsewhere were written is not recorded
    found = tamis.status(out)
    assert (found.done, found.missing, found.changed) == (1, ("a.nc",), ("b.nc",))
    assert not found.ok


def test_recipe_of_the_last_run_is_told_from_earlier_ones(archive: Path) -> None:
    replace(archive, *GOOD)
    assert "earlier recipe" not in said_by_tamis("status", archive)
    replace(archive, "-f", "TS:shuffle|deflate(5)", "--include", "a.nc")
    said = said_by_tamis("status", archive)
    assert "3 of 3 files done" in said
    assert "1 by the recipe of the last run, 2 as an earlier recipe made them" in said
    assert tamis.status(archive).earlier == 2
