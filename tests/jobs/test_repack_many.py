"""Many files in one run: what is made, what is left alone, what is continued, and what is recorded."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dask
import h5py
import kill_many
import needs
import numpy as np
import pytest
from inprocess import said_by_tamis, threads_as_workers

import tamis
from tamis.jobs.many import Choice, FileRecord, list_files
from tamis.jobs.many.state import State, begin_run, claim
from tamis.jobs.many.task import FileTask, FolderOptions
from tamis.jobs.repack import RepackOptions
from tamis.jobs.workers import Died, LocalWorkers

COMMAND = str(Path(sys.executable).parent / "tamis")
RECIPE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}


def write(path: Path, value: float = 0.0, name: str = "TS") -> Path:
    """Write a file with a smooth field."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file[name] = np.add.outer(np.sin(np.arange(64) / 9), np.cos(np.arange(64) / 7)).astype("f4") + value
    os.utime(path, (1e9, 1e9 + value))  # long ago: --replace leaves new files alone at first
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with two files, one below the other, and a file of another kind."""
    write(tmp_path / "in" / "a.nc")
    write(tmp_path / "in" / "deep" / "b.nc", 1.0)
    (tmp_path / "in" / "notes.txt").write_text("of the author\n")
    return tmp_path / "in"


@pytest.fixture
def processes() -> None:
    """Workers are processes, which a test ends, or looks at."""


@pytest.fixture(autouse=True)
def workers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Other tests save the start of processes."""
    with nullcontext() if "processes" in request.fixturenames else threads_as_workers():
        yield


def files_of(folder: Path) -> set[str]:
    """Return the paths of all files that are not state."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if path.parts[0] != ".tamis"}


@pytest.mark.usefixtures("processes")
def test_folder_keeps_its_tree_and_the_bytes_of_single_runs(tree: Path, tmp_path: Path) -> None:
    found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    assert found.ok
    assert (found.files, found.done, found.made) == (2, 2, 2)
    assert files_of(tmp_path / "out") == {"a.nc", "deep/b.nc"}
    tamis.repack(tree / "deep" / "b.nc", tmp_path / "single.nc", RECIPE)
    assert (tmp_path / "out" / "deep" / "b.nc").read_bytes() == (tmp_path / "single.nc").read_bytes()
    assert found.worst is not None
    assert 0 < found.worst.largest_error <= found.worst.bound == 0.1
    assert any("notes.txt" in note for note in found.notes)


def test_same_call_makes_nothing_twice_and_says_why_it_makes_anew(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1)
    assert tamis.repack_many(tree, out, RECIPE, workers=1).made == 0
    write(tree / "a.nc", 5.0)
    (out / "deep" / "b.nc").unlink()
    found = tamis.repack_many(tree, out, RECIPE, workers=1)
    assert found.made == 2
    assert found.again == {"the source was changed": 1, "the target is gone": 1}
    other = tamis.repack_many(tree, out, {"TS": "zfp(accuracy=0.2)"}, workers=1)
    assert other.again == {"other filters, chunks or options were requested": 2}


def test_target_that_tamis_did_not_make_is_kept(tree: Path, tmp_path: Path) -> None:
    old = write(tmp_path / "out" / "a.nc", 3.0).read_bytes()
    found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    assert [failure.path for failure in found.failures] == ["a.nc"]
    assert "File exists" in found.failures[0].message
    assert (tmp_path / "out" / "a.nc").read_bytes() == old
    assert tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, overwrite=True).ok


def test_damaged_file_fails_once_and_the_others_are_made(tree: Path, tmp_path: Path) -> None:
    os.truncate(tree / "a.nc", 3000)
    found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    assert not found.ok
    assert [(failure.path, failure.attempts) for failure in found.failures] == [("a.nc", 1)]
    assert "truncated" in found.failures[0].message
    assert found.done == 1
    write(tree / "a.nc")
    assert tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1).ok


def test_failed_file_stops_the_run_if_it_shall(tmp_path: Path) -> None:
    for number in range(6):
        path = write(tmp_path / "in" / f"{number}.nc")
        with path.open("r+b") as file:
            file.truncate(5000 - number)
    found = tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1, keep_going=False)
    assert (found.files, len(found.failures)) == (6, 1)


@pytest.mark.parametrize(
    ("other", "expected"), [("skip", {"a.nc", "deep/b.nc"}), ("copy", {"a.nc", "deep/b.nc", "notes.txt"})]
)
def test_files_of_other_kinds_are_skipped_or_copied(tree: Path, tmp_path: Path, other: Any, expected: set[str]) -> None:
    assert tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, other=other).ok
    assert files_of(tmp_path / "out") == expected


def test_copy_never_replaces_a_file_that_tamis_did_not_make(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("of somebody else\n")
    for _ in range(2):
        found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, other="copy")
        assert [failure.path for failure in found.failures] == ["notes.txt"]
        assert (tmp_path / "out" / "notes.txt").read_text() == "of somebody else\n"


def test_copy_follows_a_source_that_changed(tree: Path, tmp_path: Path) -> None:
    tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, other="copy")
    (tree / "notes.txt").write_text("of the author, again\n")
    assert tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1, other="copy").ok
    assert (tmp_path / "out" / "notes.txt").read_text() == "of the author, again\n"


def test_files_of_other_kinds_can_be_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match=r"notes\.txt: expected an HDF5, netCDF or Zarr file, found text"):
        tamis.repack_many(tree, tmp_path / "out", RECIPE, other="fail")
    assert not (tmp_path / "out").exists()


def test_include_and_exclude_choose_files_of_folders(tree: Path, tmp_path: Path) -> None:
    write(tree / "a.h5")
    listed = [
        set(list_files([tree], Choice(*choice)).files)
        for choice in ((("*.h5",), ()), ((), ("deep/*", "*.txt")), (("a.*",), ("*.h5",)))
    ]
    assert listed == [{"a.h5"}, {"a.nc", "a.h5"}, {"a.nc"}]


def test_two_sources_never_have_one_target(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "more" / "a.nc")
    with pytest.raises(tamis.ParameterError, match=r"in/a\.nc and .* would both become a\.nc"):
        tamis.repack_many([tree, tmp_path / "more"], tmp_path / "out", RECIPE)
    write(tree / "a.h5")
    with pytest.raises(tamis.ParameterError, match=r"would both become a\.zarr"):
        tamis.repack_many(tree, tmp_path / "out", RECIPE, to="zarr")


def test_overlapping_patterns_name_a_file_once(tree: Path, tmp_path: Path) -> None:
    found = list_files([tree, str(tree / "*.nc"), tree / "a.nc"], Choice())
    assert sorted(found.files) == ["a.nc", "deep/b.nc"]


def test_folder_of_targets_inside_the_sources_is_not_listed(tree: Path) -> None:
    tamis.repack_many(tree, tree / "small", RECIPE, workers=1)
    assert tamis.repack_many(tree, tree / "small", RECIPE, workers=1).files == 2


@pytest.mark.check
@pytest.mark.usefixtures("processes")
def test_zarr_stores_are_files_and_targets(tree: Path, tmp_path: Path) -> None:
    assert tamis.repack_many(tree, tmp_path / "stores", RECIPE, workers=1, to="zarr").ok
    assert {path.name for path in (tmp_path / "stores").rglob("*.zarr")} == {"a.zarr", "b.zarr"}
    assert tamis.repack_many(tmp_path / "stores", tmp_path / "back", {"*": "deflate"}, workers=1, to="nc").ok
    assert files_of(tmp_path / "back") == {"a.nc", "deep/b.nc"}
    again = tamis.repack_many(tree, tmp_path / "stores", RECIPE, workers=1, to="zarr")
    assert again.made == 0


def test_name_may_be_absent_in_some_files(tree: Path, tmp_path: Path) -> None:
    write(tree / "c.nc", name="T2")
    found = tamis.repack_many(tree, tmp_path / "out", {"T2": "deflate"}, workers=1)
    assert found.ok
    assert "T2: matches no dataset, in 2 of 3 files" in found.notes
    assert tamis.repack(tree / "a.nc", tmp_path / "a.nc", {"T2*": "deflate"}).unmatched == ("T2*",)


def test_parts_are_disjoint_and_complete(tmp_path: Path) -> None:
    for number in range(7):
        write(tmp_path / "in" / f"{number}.nc")
    counts = [
        tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, workers=1, shard=(part, 3)).made
        for part in (1, 2, 3)
    ]
    assert counts == [3, 2, 2]
    assert tamis.status(tmp_path / "out").ok
    with pytest.raises(tamis.ParameterError, match="expected a part such as 1/8"):
        tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE, shard=(4, 3))


@pytest.mark.check
def test_two_runs_at_once_share_the_work(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / "in" / f"{number}.nc", number)
    words = [COMMAND, "repack", tmp_path / "in", f"{tmp_path / 'out'}/", "-f", f"TS:{RECIPE['TS']}", "--json", "-q"]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
    results = [json.loads(process.communicate()[0]) for process in runs]
    assert [process.returncode for process in runs] == [0, 0]
    assert [result["done"] for result in results] == [30, 30]
    assert sum(result["made"] for result in results) == 30
    assert set(kill_many.lines_of(tmp_path / "out").values()) == {1}


def test_file_that_is_being_made_elsewhere_is_waited_for(tree: Path, tmp_path: Path) -> None:
    seen: list[tamis.FolderStatus] = []
    tamis.repack_many(tree, tmp_path / "out", {}, workers=1)
    with claim(tmp_path / "out", "a.nc") as is_ours:
        assert is_ours
        with claim(tmp_path / "out", "a.nc") as again:
            assert not again
        assert tamis.status(tmp_path / "out").running == 1
    seen.append(tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1))
    assert seen[0].made == 2


class Deadly(str):
    """A path that ends the process that it is sent to."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return eval, (f"(os := __import__('os')).getpid() != {os.getpid()} and os._exit(9) or 'here'",)


@pytest.mark.usefixtures("processes")
def test_process_that_a_file_ends_is_replaced(tree: Path, tmp_path: Path) -> None:
    listing = list_files([tree], Choice())
    file = listing.files["a.nc"]
    options = FolderOptions(str(tmp_path), RepackOptions.asked(RECIPE))
    workers = LocalWorkers(1)
    try:
        workers.submit(FileTask(file._replace(source=Deadly(file.source)), options))
        events = []
        while not events:
            events += workers.events(1.0)
        assert isinstance(events[0], Died)
        assert events[0].how == "ended with exit code 9"
        assert workers.idle == 1
    finally:
        workers.stop()


@pytest.mark.usefixtures("processes")
def test_file_that_ends_three_processes_is_set_aside(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = list_files([tree], Choice())
    listing.files["a.nc"] = listing.files["a.nc"]._replace(source=Deadly(listing.files["a.nc"].source))
    monkeypatch.setattr("tamis.jobs.many.prepared.list_files", lambda *_: listing)
    found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    (failure,) = found.failures
    assert (failure.path, failure.attempts, failure.kind) == ("a.nc", 3, "ProcessError")
    assert "ended with exit code 9: it is set aside" in failure.message
    assert found.done == 1


@pytest.mark.usefixtures("processes")  # each has a file of state
def test_torn_and_damaged_lines_cost_only_their_files(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1)
    (state,) = (out / ".tamis").glob("state-*.jsonl")
    lines = state.read_bytes().splitlines(keepends=True)
    state.write_bytes(lines[0] + b'{"schema": 1, "path"\n' + lines[1][:-20])
    known = State(out)
    known.refresh()
    assert (len(known.known), known.damaged) == (1, 1)
    found = tamis.repack_many(tree, out, RECIPE, workers=1)
    assert found.ok
    assert found.made == 1


def test_record_is_read_as_it_was_written() -> None:
    record = FileRecord(
        "a\udcff.nc", "failed", "/x", recipe="k", error={"kind": "FileError", "message": "m"}, notes=("n",)
    )
    assert FileRecord.from_line(record.to_line()) == record
    assert FileRecord.from_line(b'{"schema": 9}') is None


def test_dry_run_writes_nothing(tree: Path, tmp_path: Path) -> None:
    text = said_by_tamis("repack", tree, f"{tmp_path / 'out'}/", "-f", "TS:deflate", "--dry-run")
    assert "2 of 2 files to be made" in text
    assert not (tmp_path / "out").exists()
    preview = tamis.preview_repack_many(tree, tmp_path / "out", RECIPE, include="*.nc")
    assert [(file.path, file.action, file.reason) for file in preview.files] == [
        ("a.nc", "repack", ""),
        ("deep/b.nc", "repack", ""),
    ]
    assert {file.format for file in preview.files} == {"HDF5"}


def test_dry_run_says_what_would_be_refused(tree: Path, tmp_path: Path) -> None:
    os.link(tree / "a.nc", tmp_path / "other.nc")
    first, second = tamis.preview_repack_many(tree, None, RECIPE, replace=True).files
    assert (first.action, second.action) == ("refuse", "repack")
    assert "has 1 other hard link" in first.reason
    write(tmp_path / "out" / "a.nc")
    first, second = tamis.preview_repack_many(tree, tmp_path / "out", RECIPE).files
    assert (first.reason, second.reason) == (
        "the target exists: it is refused unless tamis made it from this source",
        "",
    )


def test_run_is_confirmed_before_it_writes(tree: Path) -> None:
    seen: list[tamis.FolderPreview] = []

    def confirm(preview: tamis.FolderPreview) -> None:
        seen.append(preview)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tamis.repack_many(tree, None, RECIPE, replace=True, confirm=confirm)
    assert [len(preview.files) for preview in seen] == [2]
    assert not (tree / ".tamis").exists()


def test_run_of_the_same_recipe_takes_the_place_of_earlier_ones(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for recipe in ({}, RECIPE, {}, RECIPE):
        tamis.repack_many(tree, out, recipe, workers=1)
    kept = State(out).runs()
    assert len(kept) == len({run["key"] for run in kept}) == 2
    with begin_run(out, kept[1]), begin_run(out, kept[1]):  # both at work: each keeps the lock of its own
        assert len(State(out).runs()) == 3


def test_segments_of_an_interrupted_run_are_not_listed(tree: Path, tmp_path: Path) -> None:
    write(tree / ".a.nc.0123abcd.tamis-chunks" / "c.nc")
    assert [file.path for file in tamis.preview_repack_many(tree, tmp_path / "out", {}).files] == ["a.nc", "deep/b.nc"]


def test_replaced_files_keep_mode_times_and_attributes(tree: Path) -> None:
    path = tree / "a.nc"
    path.chmod(0o640)
    os.utime(path, ns=(10**18, 10**18))
    os.setxattr(path, "user.mine", b"kept")
    before = path.stat()
    found = tamis.repack_many(tree, None, RECIPE, workers=1, replace=True)
    after = path.stat()
    assert found.ok
    assert (after.st_mode, after.st_mtime_ns, after.st_uid) == (before.st_mode, before.st_mtime_ns, before.st_uid)
    assert after.st_size < before.st_size
    assert os.getxattr(path, "user.mine") == b"kept"
    assert str(tamis.inspect(path)["TS"].pipeline).startswith("zfp")
    assert files_of(tree) == {"a.nc", "deep/b.nc", "notes.txt"}
    assert tamis.repack_many(tree, None, RECIPE, workers=1, replace=True).made == 0


def test_replaced_files_keep_access_lists_and_get_none_of_their_folder(tree: Path) -> None:
    try:
        os.setxattr(tree / "a.nc", kill_many.ACCESS, kill_many.ACCESS_LIST)
        os.setxattr(tree / "deep", "system.posix_acl_default", kill_many.ACCESS_LIST)
    except OSError:
        pytest.skip("no access lists here")
    (tree / "deep" / "b.nc").chmod(0o640)
    assert tamis.repack_many(tree, None, RECIPE, workers=1, replace=True).made == 2
    assert os.getxattr(tree / "a.nc", kill_many.ACCESS) == kill_many.ACCESS_LIST
    assert kill_many.ACCESS not in os.listxattr(tree / "deep" / "b.nc")  # user 1234 could read it
    assert (tree / "deep" / "b.nc").stat().st_mode & 0o777 == 0o640


def test_replaced_originals_can_be_kept(tree: Path, tmp_path: Path) -> None:
    old = (tree / "deep" / "b.nc").read_bytes()
    tamis.repack_many(tree, None, RECIPE, workers=1, replace=True, keep_originals=tmp_path / "old")
    assert files_of(tmp_path / "old") == {".tamis-originals", "a.nc", "deep/b.nc"}
    assert (tmp_path / "old" / "deep" / "b.nc").read_bytes() == old


def test_links_are_not_replaced_and_hard_links_only_if_told(tree: Path, tmp_path: Path) -> None:
    (tree / "link.nc").symlink_to("a.nc")
    os.link(tree / "deep" / "b.nc", tmp_path / "other.nc")
    old = (tmp_path / "other.nc").read_bytes()
    found = tamis.repack_many(tree, None, RECIPE, workers=1, replace=True)
    assert [failure.path for failure in found.failures] == ["deep/b.nc"]
    assert "has 1 other hard link" in found.failures[0].message
    assert any("link.nc" in note for note in found.notes)
    assert tamis.repack_many(tree, None, RECIPE, workers=1, replace=True, break_hard_links=True).ok
    assert (tmp_path / "other.nc").read_bytes() == old != (tree / "deep" / "b.nc").read_bytes()


def test_pattern_names_files_to_replace(tree: Path) -> None:
    found = tamis.repack_many(str(tree / "*" / "*.nc"), None, RECIPE, workers=1, replace=True)
    assert found.ok
    assert found.folder == str(tree / "deep")
    assert sorted(path.name for path in tree.iterdir()) == ["a.nc", "deep", "notes.txt"]


def test_zarr_stores_are_not_replaced(tree: Path, tmp_path: Path) -> None:
    tamis.repack_many(tree / "a.nc", tree, {}, workers=1, to="zarr")
    (tree / "a.zarr" / "README.txt").write_text("kept")
    found = tamis.repack_many(tree, None, RECIPE, workers=1, replace=True)
    assert found.ok
    assert any("a.zarr" in note for note in found.notes)
    assert (tree / "a.zarr" / "README.txt").read_text() == "kept"


def test_kept_originals_are_never_replaced(tree: Path) -> None:
    old = (tree / "a.nc").read_bytes()
    for folder in (tree / "old", tree / "old", None):
        tamis.repack_many(tree, None, RECIPE, workers=1, replace=True, keep_originals=folder)
        assert (tree / "old" / "a.nc").read_bytes() == old
    assert not (tree / "old" / "old").exists()


def test_file_that_cannot_be_read_fails_alone(tree: Path, tmp_path: Path) -> None:
    (tree / "gone.nc").symlink_to("nowhere.nc")
    found = tamis.repack_many(tree, tmp_path / "out", RECIPE, workers=1)
    assert [failure.path for failure in found.failures] == ["gone.nc"]
    assert found.done == 2
    compared = tamis.verify_many(tree, tmp_path / "out", bounds="recorded")
    assert [file.path for file in compared.files if file.verdict == "failed"] == ["gone.nc"]


def test_name_that_no_file_has_is_a_failure(tree: Path, tmp_path: Path) -> None:
    text = said_by_tamis("repack", tree, f"{tmp_path / 'out'}/", "-f", "TT:deflate", code=1)
    assert "expected a dataset named 'TT' in one of the files, found only /TS" in text


def test_runs_with_different_recipes_refuse_each_other(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        begin_run(out, {"key": "another"}),
        pytest.raises(tamis.FileError, match="a run with other filters, chunks or options is at work"),
    ):
        tamis.repack_many(tree, out, RECIPE, workers=1)
    assert tamis.repack_many(tree, out, RECIPE, workers=1).ok


def test_record_that_was_lost_is_made_again(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1)
    expected = (out / "a.nc").read_bytes()
    for path in (out / ".tamis").glob("state-*"):
        path.unlink()
    os.utime(tree / "a.nc")
    os.removexattr(out / "a.nc", "user.tamis.made")
    assert tamis.repack_many(tree, out, RECIPE, workers=1).ok
    assert (out / "a.nc").read_bytes() == expected
    assert all(record.datasets for record in tamis.manifest(out).files)


def test_failure_of_another_recipe_leaves_the_record_of_a_target(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1)
    tamis.repack_many(tree, out, {"TS": "zfp(accuracy=0.1)"}, require={"TS": "psnr=500"}, workers=1)
    assert tamis.check_manifest(out).unchanged == 2


def test_later_record_counts_whatever_the_clock_says(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1)
    future = FileRecord("a.nc", "failed", serial=0, time=4e9, error={"kind": "FileError", "message": "old"})
    (out / ".tamis" / "state-other.jsonl").write_bytes(future.to_line())
    assert tamis.repack_many(tree, out, RECIPE, workers=1).ok
    assert tamis.repack_many(tree, out, RECIPE, workers=1).made == 0


def test_error_after_the_rename_is_no_failure(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = FolderOptions(str(tree), RepackOptions.asked(RECIPE, resume=True), replace=True)
    with begin_run(tree, {"key": options.key}):
        monkeypatch.setattr("tamis.jobs.many.task.sync_folder", fail)
        record = FileTask(list_files([tree], Choice()).files["a.nc"], options).run(lambda *_: None)
    assert record.action == "repacked"
    assert any("may undo it" in note for note in record.notes)


def fail(_: Path) -> None:
    raise OSError(5, "Input/output error")


def test_wrong_arguments_are_parameter_errors(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wrong in ({"client": 5}, {"shard": 5}, {"include": 5}, {"files_from": 5}, {"workers": 0}):
        with pytest.raises(tamis.ParameterError):
            tamis.repack_many(tree, out, RECIPE, **wrong)  # type: ignore[arg-type]
    for wrong in ({"shard": 5}, {"include": 5}, {"exclude": None}, {"files_from": 5}):
        with pytest.raises(tamis.ParameterError):
            tamis.preview_repack_many(tree, out, RECIPE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(tamis.ParameterError):
        tamis.verify_many(tree, tree, bounds=5)  # type: ignore[arg-type]
    with pytest.raises(tamis.FileError, match="no such folder"):
        tamis.verify_many(tree, tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(tamis.FileError, match="got an empty folder"):
        tamis.repack_many(tmp_path / "empty", out, RECIPE)


def test_replacement_that_was_made_before_a_kill_is_recognized(tree: Path) -> None:
    tamis.repack_many(tree, None, RECIPE, workers=1, replace=True)
    (state,) = (tree / ".tamis").glob("state-*.jsonl")
    lines = [line for line in state.read_bytes().splitlines(keepends=True) if b'"replacing"' in line]
    state.write_bytes(b"".join(lines))
    before = {path: path.stat().st_ino for path in tree.rglob("*.nc")}
    assert tamis.repack_many(tree, None, RECIPE, workers=1, replace=True).ok
    assert {path: path.stat().st_ino for path in tree.rglob("*.nc")} == before


def test_later_replacement_before_a_kill_is_recognized_too(tree: Path) -> None:
    tamis.repack_many(tree, None, {"TS": "deflate"}, workers=1, replace=True)
    tamis.repack_many(tree, None, RECIPE, workers=1, replace=True)
    for state in (tree / ".tamis").glob("state-*.jsonl"):
        lines = state.read_bytes().splitlines(keepends=True)
        state.write_bytes(b"".join(line for line in lines if b'"serial": 1' not in line or b'"replacing"' in line))
    known = State(tree)
    known.refresh()
    assert {item.action for item in known.known.values()} == {"replacing"}
    before = {path: path.stat().st_ino for path in tree.rglob("*.nc")}
    assert tamis.repack_many(tree, None, RECIPE, workers=1, replace=True).ok
    assert {path: path.stat().st_ino for path in tree.rglob("*.nc")} == before


def test_manifest_lists_and_checks_every_file(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tamis.repack_many(tree, out, RECIPE, workers=1, checksums=True)
    record = tamis.manifest(out)
    rows = [*csv.DictReader(io.StringIO(record.to_csv()))]
    assert [(row["path"], row["dataset"], float(row["bound"])) for row in rows] == [
        ("a.nc", "/TS", 0.1),
        ("deep/b.nc", "/TS", 0.1),
    ]
    assert all(len(row["target_sha256"]) == len(row["source_sha256"]) == 64 for row in rows)
    assert record.to_markdown().count("\n") == 4
    for path in (out / ".tamis").glob("state-*"):
        path.unlink()  # the manifest alone travels with a copy
    assert tamis.manifest(out) == record
    assert tamis.check_manifest(out).ok
    with (out / "a.nc").open("r+b") as file:
        file.write(b"x")
    (out / "deep" / "b.nc").rename(out / "c.nc")
    found = tamis.check_manifest(out)
    assert (found.unchanged, found.changed, found.missing, found.unknown) == (0, ("a.nc",), ("deep/b.nc",), ("c.nc",))
    assert "a.nc: changed since it was made" in said_by_tamis("manifest", out, "--check", code=3)


def test_command_ends_with_its_exit_code(tree: Path, tmp_path: Path) -> None:
    out = f"{tmp_path / 'out'}/"
    assert "2 of 2 files done" in said_by_tamis("repack", tree, out, "-f", "TS:deflate")
    assert "2 of 2 files done" in said_by_tamis("status", out)
    assert json.loads(said_by_tamis("status", out, "--json"))["done"] == 2
    assert said_by_tamis("manifest", out, "--format", "markdown").startswith("| file | dataset |")
    os.truncate(tree / "a.nc", 3000)
    assert "truncated" in said_by_tamis("repack", tree, out, "-f", "TS:deflate", code=1)
    assert "1 failed" in said_by_tamis("status", out, code=1)
    assert "tamis repack has made nothing here" in said_by_tamis("status", tree, code=1)
    assert "add --yes to replace them" in said_by_tamis("repack", tree, "--replace", "-f", "TS:deflate", code=2)
    assert "is for several files or a folder" in said_by_tamis(
        "repack", tree / "a.nc", tmp_path / "x.nc", "--other", "copy", code=2
    )
    assert "expected a part" in said_by_tamis("repack", tree, out, "--shard", "3/2", code=2)
    assert "Missing argument" in said_by_tamis("repack", tree, code=2)
    pytest.importorskip("distributed")  # its settings would go with those below if they came only then
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert "no scheduler" in said_by_tamis("repack", tree, out, "--scheduler", "tcp://127.0.0.1:1", code=1)


def test_missed_bound_is_told_by_the_exit_code(tree: Path, tmp_path: Path) -> None:
    text = said_by_tamis(
        "repack", tree, f"{tmp_path / 'out'}/", "-f", "TS:zfp(accuracy=0.5)", "--require", "TS:psnr=500", code=3
    )
    assert "2 failed" in text


def test_names_of_files_come_from_a_list(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    said_by_tamis(
        "repack", "--files-from", "-", f"{tmp_path / 'out'}/", "-f", "TS:deflate", given="deep/b.nc\n\na.nc\n"
    )
    assert files_of(tmp_path / "out") == {"a.nc", "deep/b.nc"}
    with pytest.raises(tamis.ParameterError, match="expected a path below the working folder"):
        list_files([], Choice(), (), ["../x.nc"])


@pytest.mark.check
def test_dask_workers_make_the_same_bytes(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    needs.need_shared_memory()
    tamis.repack_many(tree, tmp_path / "here", RECIPE, workers=1)
    os.truncate(write(tree / "bad.nc"), 3000)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = tamis.repack_many(tree, tmp_path / "there", RECIPE, client=client)
        monkeypatch.setattr("tamis.jobs.repack.spread.SLAB_NBYTES", 4096)  # one file, in four tasks
        tamis.repack(tree / "a.nc", tmp_path / "a.nc", RECIPE, chunks={"TS": (16, 64)}, client=client)
    tamis.repack(tree / "a.nc", tmp_path / "b.nc", RECIPE, chunks={"TS": (16, 64)})
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()
    assert (found.done, [failure.path for failure in found.failures]) == (2, ["bad.nc"])
    for name in ("a.nc", "deep/b.nc"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.check
@pytest.mark.parametrize("replace", [False, True])
def test_kills_of_processes_and_runs_lose_nothing(replace: bool) -> None:
    assert not kill_many.check(10, 2, 1, 1, replace=replace)


@pytest.mark.matrix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_all_processes_and_the_run_continues(tmp_path: Path, number: int, code: int) -> None:
    for index in range(40):
        write(tmp_path / "in" / f"{index}.nc", index)
    words = [COMMAND, "repack", tmp_path / "in", f"{tmp_path / 'out'}/", "-f", f"TS:{RECIPE['TS']}"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not [*(tmp_path / "out").glob("*.nc")] and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    assert "give the same command again to continue" in process.communicate()[1]
    assert process.returncode == code
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert tamis.status(tmp_path / "out").running == 0
    assert tamis.repack_many(tmp_path / "in", tmp_path / "out", RECIPE).ok
    assert files_of(tmp_path / "out") == {f"{index}.nc" for index in range(40)}


@pytest.mark.check
@pytest.mark.usefixtures("processes")
def test_full_disk_fails_files_that_are_made_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        for index in range(12):
            write(tmp_path / "in" / f"{index:02}.nc", index)
        tamis.repack_many(tmp_path / "in", disk / "out", RECIPE, workers=1, include="0[0-3].nc")
        filling = disk / "filling"
        filling.write_bytes(bytes(shutil.disk_usage(disk).free - (40 << 10)))
        full = tamis.repack_many(tmp_path / "in", disk / "out", RECIPE, workers=1, retries=0)
        assert full.failures
        assert all("space" in failure.message for failure in full.failures)
        filling.unlink()
        assert tamis.repack_many(tmp_path / "in", disk / "out", RECIPE, workers=1).ok
        assert files_of(disk / "out") == {f"{index:02}.nc" for index in range(12)}
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.check
@pytest.mark.parametrize("replace", [False, True])
def test_kills_of_25_processes_and_10_runs_lose_nothing(replace: bool) -> None:
    assert not kill_many.check(200, 25, 10, 2, replace=replace)


def test_manifest_for_people_has_relative_bounds(tree: Path, tmp_path: Path) -> None:
    tamis.repack_many(tree, tmp_path / "out", {"TS": "bitround(keepbits=6)|shuffle|deflate(4)"}, workers=1)
    header, _, row, *_ = tamis.manifest(tmp_path / "out").to_markdown().splitlines()
    cells = dict(zip(header.split(" | "), row.split(" | "), strict=True))
    assert cells["bound"] == "0.781 %"
