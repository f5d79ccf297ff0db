"""What a run over a folder says: which file a note is about, what was left out, and what to do next."""

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


def write(path: Path, number: int = 0) -> None:
    with h5py.File(path, "w") as file:
        file["TS"] = np.random.default_rng(number).standard_normal((64, 64)).cumsum(axis=0).astype("f4")
    os.utime(path, (1e9, 1e9 + number))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder of two files."""
    (tmp_path / "archive").mkdir()
    for number, name in enumerate("ab"):
        write(tmp_path / "archive" / f"{name}.nc", number)
    return tmp_path / "archive"


def test_kept_original_is_that_before_the_first_run(archive: Path, tmp_path: Path) -> None:
    old, kept = (archive / "a.nc").read_bytes(), tmp_path / "kept"
    options: dict[str, Any] = {"replace": True, "workers": 1, "keep_originals": kept}
    assert tamis.repack_many(archive, None, RECIPE, **options).ok
    assert tamis.repack_many(archive, None, {"TS": "deflate(1)"}, **options).ok
    assert (kept / "a.nc").read_bytes() == old


def test_changed_file_says_what_to_do_with_the_original_and_is_not_made_again(archive: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = ("repack", archive, "--replace", "--yes", "--workers", "1", "--keep-originals", kept, "-f", "TS:deflate(1)")
    said_by_tamis(*words)
    write(archive / "a.nc", 7)
    changed = (archive / "a.nc").read_bytes()
    said = " ".join(said_by_tamis(*words, code=1).split())
    assert f"{kept / 'a.nc'}: is the original of another version of {archive / 'a.nc'}, which stays" in said
    assert "rename that original, and repeat the run" in said
    assert "made again" not in said
    assert (archive / "a.nc").read_bytes() == changed
    (kept / "a.nc").rename(kept / "a-first.nc")
    assert "1 file made again: the target was changed" in " ".join(said_by_tamis(*words).split()).replace(
        "the file was changed", "the target was changed"
    )
    assert (kept / "a.nc").read_bytes() == changed


def test_file_that_is_not_what_its_name_says_is_named_and_counted(archive: Path) -> None:
    (archive / "empty.nc").touch()
    (archive / "notes.txt").write_text("by the author\n")
    words = ("repack", archive, "--replace", "--workers", "1", "-f", "TS:deflate(1)")
    for options in (("--dry-run",), ("--yes",)):
        said = said_by_tamis(*words, *options)
        assert "1 left out, neither HDF5, netCDF nor Zarr, although named so" in said
        assert f"{archive / 'empty.nc'}" in said
        assert "1 left out that cannot be what the name says" in said
    assert "1 left out that cannot be what the name says" in said_by_tamis("status", archive)


def test_notes_name_a_file(archive: Path, tmp_path: Path) -> None:
    said = said_by_tamis("repack", archive, tmp_path / "out", "-f", "TS:zfp(accuracy=2)", "--workers", "1")
    assert "times the standard deviation" in said
    assert "in a.nc" in said
    for note in tamis.status(tmp_path / "out").notes:
        assert note.endswith((".nc)", "in all files"))
    found = tamis.status(tmp_path / "out").warnings
    assert {item.path for item in found} <= {"a.nc", "b.nc"}


def test_files_that_only_the_second_folder_has_are_all_listed(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for number, name in enumerate("abcdef"):
        write(tmp_path / "more" / f"{name}.nc", number)
    found = tamis.verify_many(archive, tmp_path / "more")
    assert found.extra == ("c.nc", "d.nc", "e.nc", "f.nc")
    assert f"4 files only in {tmp_path / 'more'}: c.nc, d.nc, e.nc, … (--json has all)" in found.notes


def test_dry_run_with_a_refusal_tells_by_its_exit_code(archive: Path) -> None:
    os.link(archive / "a.nc", archive.parent / "other.nc")
    words = ("repack", archive, "--replace", "-f", "TS:deflate(1)", "--dry-run")
    assert "1 refused" in said_by_tamis(*words, code=1)
    assert "has 1 other hard link" in said_by_tamis(*words, "-q", code=1)
    assert "0 refused" not in said_by_tamis(*words, "--break-hard-links")


def test_zarr_store_in_place_names_the_other_way(archive: Path) -> None:
    tamis.repack(archive / "a.nc", archive / "c.zarr", {})
    (archive / "link.nc").symlink_to(archive / "b.nc")
    said = said_by_tamis("repack", archive, "--replace", "--yes", "--workers", "1", "-f", "TS:deflate(1)")
    assert "tamis repack OLD.zarr NEW.zarr" in said
    assert "links are not replaced: name the files that they lead to" in said


def test_packing_without_a_checksum_is_said_in_place(archive: Path) -> None:
    words = ("repack", archive, "--replace", "--yes", "--workers", "1", "-f")
    assert "with |fletcher32 at the end" in said_by_tamis(*words, "TS:pack(bound=0.1)|deflate(1)")
    assert "with |fletcher32 at the end" not in said_by_tamis(*words, "TS:pack(bound=0.1)|deflate(1)|fletcher32")
