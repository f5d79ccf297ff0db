"""What a folder has besides files: links, pipes, unreadable names; a run, its dry run and its status say all of it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.safety.library_errors import causes_of, error_number

RECIPE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
FILTER = ["-f", "TS:zfp(accuracy=0.1)|shuffle|deflate(4)"]


def write(path: Path) -> Path:
    """Write a file with a smooth field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["TS"] = np.add.outer(np.sin(np.arange(64) / 9), np.cos(np.arange(64) / 7)).astype("f4")
    os.utime(path, (1e9, 1e9))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with one file, a link to nothing, one in a circle, one to a folder, a pipe and a text."""
    tree = write(tmp_path / "in" / "a.nc").parent
    (tree / "gone.nc").symlink_to("nowhere")
    (tree / "loop.nc").symlink_to("loop.nc")
    write(tmp_path / "elsewhere" / "b.nc")
    (tree / "linked").symlink_to("../elsewhere")
    os.mkfifo(tree / "pipe.nc")
    (tree / "notes.txt").write_text("of the author\n")
    return tree


def test_status_counts_what_could_not_be_read(tree: Path, tmp_path: Path) -> None:
    run = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    found = tamis.status(tmp_path / "out")
    assert (run.files, run.done, len(run.failures)) == (3, 1, 2)
    assert (found.files, found.done, found.failures) == (run.files, run.done, run.failures)
    assert not run.ok
    assert not found.ok
    (tree / "gone.nc").unlink()
    (tree / "loop.nc").unlink()
    assert tamis.status(tmp_path / "out").ok  # there is nothing left to read


def test_all_that_is_left_out_is_named(tree: Path, tmp_path: Path) -> None:
    preview = tamis.preview_repack_many(tree, tmp_path / "out", RECIPE)
    run = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    status = tamis.status(tmp_path / "out")
    names = {Path(item.path).name: item.reason for item in run.left_out}
    assert names.keys() == {"linked", "pipe.nc", "notes.txt"}
    assert names["linked"].startswith("links to folders are not followed")
    assert run.left_out == preview.left_out == status.left_out
    assert any("linked" in note for note in preview.notes)
    assert [note for note in run.notes if "left out" in note] == [note for note in status.notes if "left out" in note]
    assert {item["path"] for item in status.to_dict()["left_out"]} == {item.path for item in run.left_out}
    verified = tamis.verify_many(tree, tmp_path / "out")
    assert any("linked" in note for note in verified.notes)


def test_pipe_is_not_opened_when_other_files_are_copied(tree: Path, tmp_path: Path) -> None:
    run = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, other="copy")
    assert (tmp_path / "out" / "notes.txt").read_text() == "of the author\n"
    assert not (tmp_path / "out" / "pipe.nc").exists()
    assert "pipe.nc" in {Path(item.path).name for item in run.left_out}
    with pytest.raises(tamis.FileError, match="a device or pipe"):
        tamis.repack_many(tree / "pipe.nc", tmp_path / "out2", RECIPE, other="copy")


def test_folder_of_targets_that_is_the_source_or_has_sources(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match="is the source itself: choose another folder"):
        tamis.repack_many(tree, tree, RECIPE)
    write(tree / "run1" / "c.nc")
    run = tamis.repack_many(tree, tree / "run1", RECIPE, workers=1)
    assert "c.nc" in {Path(item.path).name for item in run.left_out}
    assert "run1/c.nc" not in {failure.path for failure in run.failures}


def test_patterns_that_take_no_file_are_said_to_be_the_reason(tree: Path, tmp_path: Path) -> None:
    (tree / "linked").unlink()
    with pytest.raises(tamis.FileError, match=r"none of 5 files matches the patterns \(--include, --exclude\)"):
        tamis.repack_many(tree, tmp_path / "out", RECIPE, include="*.hdf5")


def test_names_of_one_file_are_replaced_one_after_the_other(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a.nc")
    for name in "bcd":
        os.link(path, path.with_name(f"{name}.nc"))
    run = tamis.repack_many(tmp_path / "in", None, RECIPE, replace=True, break_hard_links=True, workers=2)
    assert (run.done, run.failures) == (4, ())
    assert len({entry.stat().st_ino for entry in (tmp_path / "in").glob("*.nc")}) == 1
    with pytest.raises(tamis.ParameterError, match=r"break_hard_links .* needs replace"):
        tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, break_hard_links=True)


def test_all_notes_are_in_the_json_and_the_kept_come_last(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a.h5")
    with h5py.File(path, "a") as file:
        for name in "abcdef":
            file[name] = 1.0
        file["gone"] = np.arange(3)
        file["TS"].attrs["roi"] = file["gone"].ref
        del file["gone"]
    run = tamis.repack_many(tmp_path / "in", tmp_path / "out", {"*": "shuffle|deflate(4)"}, workers=1)
    assert "1 reference to no object became null" in run.notes[0]
    assert sum("kept as it is" in note for note in run.notes) == 6
    assert run.to_dict()["notes"] == list(run.notes)


def test_name_of_a_store_is_no_folder_of_targets(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.nc"), write(tmp_path / "b.nc")
    (tmp_path / "there.zarr").mkdir()
    done = run_tamis("repack", str(first), str(tmp_path / "there.zarr"), *FILTER)
    assert (done.returncode, [*(tmp_path / "there.zarr").iterdir()]) == (1, [])
    assert "File exists" in done.stderr
    done = run_tamis("repack", str(first), str(second), str(tmp_path / "new.zarr"), *FILTER)
    assert done.returncode == 2
    assert "--combine time" in done.stderr
    assert not (tmp_path / "new.zarr").exists()


def test_error_that_hdf5_tells_in_words_has_a_number() -> None:
    error = RuntimeError("a chunk cannot be written (errno = 28, error message = 'No space left on device')")
    outer = tamis.FileError("a.nc: cannot be written")
    outer.__cause__ = error
    assert [error_number(cause) for cause in causes_of(outer)] == [None, errno.ENOSPC]


def test_first_file_of_a_family_is_said_to_be_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "fam_%03d.h5", "w", driver="family", memb_size=10_000) as file:
        file["x"] = np.random.default_rng(0).random(4_000)
    with pytest.raises(tamis.FileError, match="family driver: join them with h5repart"):
        tamis.inspect(tmp_path / "fam_000.h5")


def test_filters_in_the_form_of_other_programs_are_translated_by_spec(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc")
    for text in ("UD=32013,0,4,3,0,1,2", "32013,3,0,0.001d"):
        done = run_tamis("repack", str(source), str(tmp_path / "b.nc"), "-f", f"TS:{text}")
        assert done.returncode == 2
        assert f"tamis spec {text} translates" in done.stderr
    with pytest.raises(tamis.ParameterError, match="expected a filter"):
        tamis.repack(source, tmp_path / "b.nc", {"TS": "zpf(accuracy=1)"})


def test_result_of_a_folder_is_json(tree: Path, tmp_path: Path) -> None:
    done = run_tamis("repack", str(tree), str(tmp_path / "out"), *FILTER, "--json", "--workers", "1")
    assert done.returncode == 1
    assert {Path(item["path"]).name for item in json.loads(done.stdout)["left_out"]} == {
        "linked",
        "pipe.nc",
        "notes.txt",
    }
