"""Files that several runs replace: the record keeps what all of them did, against the first original."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import said_by_tamis

import tamis
from tamis.jobs.many import FileRecord

COARSE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
FINE = {"TS": "zfp(accuracy=0.003)|shuffle|deflate(4)"}
LOSSLESS = {"TS": "shuffle|deflate(4)"}


pytestmark = pytest.mark.usefixtures("workers_are_threads")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder with a file in a folder below, whose originals are in the folder `first` beside it."""
    folder = tmp_path / "archive"
    (folder / "deep").mkdir(parents=True)
    rng = np.random.default_rng(3)
    for name in ("a.nc", "deep/b.nc"):
        with h5py.File(folder / name, "w") as file:
            file["TS"] = rng.standard_normal((64, 64)).cumsum(axis=0).astype("f4")
            file["PS"] = rng.standard_normal((64, 64)).cumsum(axis=0).astype("f4")
        os.utime(folder / name, (1e9, 1e9))
    shutil.copytree(folder, tmp_path / "first")
    return folder


def replaced(*sources: Path, recipe: dict[str, str], **options: Any) -> tamis.FolderStatus:
    """Replace files, and look at the result."""
    status = tamis.repack_many([*sources], None, recipe, replace=True, workers=1, **options)
    assert status.ok, status
    return status


def record_of(folder: Path, path: str) -> FileRecord:
    return next(record for record in tamis.manifest(folder).files if record.path == path)


def loss_of(folder: Path, path: str, name: str = "/TS") -> tuple[Any, Any]:
    """Return bound and largest error in the record."""
    found = next(dataset for dataset in record_of(folder, path).datasets if dataset["path"] == name)
    return found["bound"], found["largest_error"]


def true_error(folder: Path, path: str, name: str = "TS") -> float:
    with h5py.File(folder.parent / "first" / path) as before, h5py.File(folder / path) as after:
        return float(np.abs(before[name][:].astype("f8") - after[name][:]).max())


def test_lossless_run_keeps_the_loss_of_an_earlier_one(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    before = loss_of(archive, "a.nc")
    assert before[0] == 0.1
    assert before[1] > 0
    status = replaced(archive, recipe=LOSSLESS)
    assert loss_of(archive, "a.nc") == before
    assert status.worst is not None
    assert status.worst.bound == 0.1
    originals = archive.parent / "first"
    assert status.source_nbytes == sum(path.stat().st_size for path in originals.rglob("*.nc"))
    assert {item.bound for item in tamis.report_many(archive).files} == {0.1}
    assert "| 0.1 |" in tamis.manifest(archive).to_markdown()


def test_losses_of_two_runs_add_up_and_are_verified(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    replaced(archive, recipe=FINE)
    for path in ("a.nc", "deep/b.nc"):
        bound, error = loss_of(archive, path)
        assert bound == pytest.approx(0.103)
        assert 0.003 < true_error(archive, path) <= error
        record = record_of(archive, path)
        assert [run["datasets"][0]["bound"] for run in record.runs] == [0.1, 0.003]
        original = (archive.parent / "first" / path).read_bytes()
        assert record.original_sha256 == hashlib.sha256(original).hexdigest()
        assert record.original_nbytes == len(original)
    first = archive.parent / "first"
    assert "2 within bound" in said_by_tamis("verify", first, archive, "--bound", "recorded")
    said = said_by_tamis("verify", first / "a.nc", archive / "a.nc", "--bound", "recorded")
    assert "0.103 recorded" in said
    assert "the bound is the sum of theirs" in said
    with h5py.File(archive / "a.nc", "r+") as file:  # what another program writes has no record
        file["TS"][0, 0] = 1000
    said_by_tamis("verify", first / "a.nc", archive / "a.nc", "--bound", "recorded", code=3)


def test_run_for_other_variables_keeps_the_row_of_the_first(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    replaced(archive, recipe={"PS": "zfp(accuracy=0.01)"})
    assert loss_of(archive, "a.nc")[0] == 0.1
    assert loss_of(archive, "a.nc", "/PS")[0] == 0.01


def test_variable_that_is_left_out_later_has_no_row(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    replaced(archive, recipe={"PS": "zfp(accuracy=0.01)"}, drop=["TS"])
    assert [dataset["path"] for dataset in record_of(archive, "a.nc").datasets] == ["/PS"]


@pytest.mark.parametrize("below", ["deep", "deep/b.nc"])
def test_run_below_writes_into_the_record_of_the_folder(archive: Path, below: str) -> None:
    replaced(archive, recipe=COARSE)
    replaced(archive / below, recipe=FINE)
    assert not (archive / "deep" / ".tamis").exists()
    assert loss_of(archive, "deep/b.nc")[0] == pytest.approx(0.103)
    assert tamis.check_manifest(archive).ok
    assert f"the record of {archive} may have it" in said_by_tamis("status", archive / "deep", code=1)


def test_run_above_knows_the_records_below(archive: Path) -> None:
    replaced(archive / "deep", recipe=COARSE)
    replaced(archive, recipe=FINE)
    assert loss_of(archive, "deep/b.nc")[0] == pytest.approx(0.103)
    assert loss_of(archive, "a.nc")[0] == 0.003


def test_each_record_of_a_file_has_what_any_run_does(archive: Path) -> None:
    replaced(archive / "deep", recipe=COARSE)
    replaced(archive, recipe=FINE)
    for folder, path in ((archive, "deep/b.nc"), (archive / "deep", "b.nc")):
        assert loss_of(folder, path)[0] == pytest.approx(0.103)
    replaced(archive / "deep", recipe=LOSSLESS)  # into its own record
    for folder in (archive, archive / "deep"):
        said_by_tamis("manifest", folder, "--check", code=0)
        assert tamis.status(folder).ok
        known = tamis.manifest(folder)
        assert {record.recipe for record in known.files} <= known.recipes.keys()
    copied = shutil.copytree(archive / "deep", archive.parent / "copied")
    for path in (copied / ".tamis").glob("*.jsonl"):
        path.unlink()
    assert tamis.check_manifest(copied).ok
    assert replaced(archive, recipe=LOSSLESS).made == 1  # a.nc alone


def test_targets_in_a_folder_below_are_those_of_both_records(archive: Path) -> None:
    out = archive.parent / "out"
    options: dict[str, Any] = {"workers": 1}
    assert tamis.repack_many(archive, out, COARSE, **options).ok
    assert tamis.repack_many(archive / "deep", out / "deep", FINE, overwrite=True, **options).ok
    for folder in (out, out / "deep"):
        assert tamis.check_manifest(folder).ok
        assert tamis.status(folder).ok
    assert tamis.repack_many(archive, out, COARSE, **options).made == 1
    for folder in (out, out / "deep"):
        assert tamis.check_manifest(folder).ok


def test_failure_leaves_the_other_record(archive: Path) -> None:
    replaced(archive / "deep", recipe=COARSE)
    failed = tamis.repack_many(archive, None, {"TS": "pack(bound=1e-30)"}, replace=True, workers=1)
    assert failed.done == 0
    assert tamis.status(archive / "deep").ok
    assert tamis.check_manifest(archive / "deep").ok


def test_file_that_somebody_went_back_to_has_no_earlier_loss(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    shutil.copy2(archive.parent / "first" / "a.nc", archive / "a.nc")
    replaced(archive, recipe=FINE)
    assert loss_of(archive, "a.nc")[0] == 0.003
    assert record_of(archive, "a.nc").runs == ()


def test_changed_file_keeps_its_loss_and_says_so(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    with h5py.File(archive / "a.nc", "r+") as file:
        file.attrs["title"] = "edited"
    os.utime(archive / "a.nc", (1.1e9, 1.1e9))
    status = replaced(archive, recipe=LOSSLESS)
    assert loss_of(archive, "a.nc")[0] == 0.1
    assert [run["changed"] for run in record_of(archive, "a.nc").runs] == [True, False]
    assert any("another program changed it" in note for note in status.notes)


def test_relative_and_absolute_bounds_leave_what_was_measured(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    replaced(archive, recipe={"TS": "bitround(10)|deflate"})
    bound, error = loss_of(archive, "a.nc")
    assert bound is None
    assert true_error(archive, "a.nc") <= error
    first = archive.parent / "first"
    said_by_tamis("verify", first / "a.nc", archive / "a.nc", "--bound", "recorded")


_KILLED = """
import os, sys
import tamis
from tamis.jobs.many import task
from inprocess import threads_as_workers

where, folder = sys.argv[1:]
setattr(task, where, lambda *_: os._exit(9))
with threads_as_workers():
    tamis.repack_many(folder, None, {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}, replace=True, workers=1)
"""


@pytest.mark.parametrize("where", ["write_record", "_take_place", "sync_folder"])
def test_killed_run_leaves_as_full_a_record_as_any_other(archive: Path, where: str) -> None:
    (archive / "deep" / "b.nc").unlink()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _KILLED, where, archive], env=environment, check=False)
    assert done.returncode == 9
    replaced(archive, recipe=COARSE)
    bound, error = loss_of(archive, "a.nc")
    assert (bound, error) == (0.1, true_error(archive, "a.nc"))
    record = record_of(archive, "a.nc")
    assert record.datasets[0]["source_nbytes"] > record.datasets[0]["target_nbytes"] > 0
    assert len(record.source_sha256) == len(record.target_sha256) == 64
    assert record.runs == ()


def test_failure_after_a_kill_loses_no_record(archive: Path) -> None:
    (archive / "deep" / "b.nc").unlink()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", _KILLED, "sync_folder", archive], env=environment, check=False)
    made = (archive / "a.nc").stat().st_ino
    assert tamis.repack_many(archive, None, FINE, replace=True, workers=1, retries=0, settle=1e10).failures
    replaced(archive, recipe=COARSE)
    assert (archive / "a.nc").stat().st_ino == made
    assert loss_of(archive, "a.nc") == (0.1, true_error(archive, "a.nc"))


def test_requirement_counts_the_loss_of_earlier_runs(archive: Path) -> None:
    originals = archive.parent / "originals"
    replaced(archive, recipe={"TS": "absolute(bound=5)|deflate"}, keep_originals=originals)
    before = (archive / "a.nc").read_bytes()
    words = "repack", archive, "--replace", "--yes", "--workers", "1", "-f", "TS:zfp(accuracy=0.01)", "--require"
    said = " ".join(said_by_tamis(*words, "TS:abs=0.1", code=1).split())
    assert "/TS: expected an error of at most 0.1 (require), but earlier runs have one of" in said
    assert f"repack the first original, in {originals}" in said
    assert (archive / "a.nc").read_bytes() == before
    assert not [*archive.rglob(".tamis-new-*")]
    said_by_tamis(*words, "TS:abs=100")


def test_verify_compares_with_the_record(archive: Path) -> None:
    replaced(archive, recipe=COARSE)
    first = archive.parent / "first"
    said = said_by_tamis("verify", first, archive, "--bound", "recorded")
    worst = tamis.status(archive).worst
    assert worst is not None
    assert f"nearest to its bound: {worst.largest_error:.3g}, " in said
    assert "changed since" not in said
    with h5py.File(archive / "a.nc", "r+") as file:  # by less than the bound
        file["TS"].attrs["units"] = "K"
    with h5py.File(first / "a.nc", "r+") as file:
        file["TS"].attrs["units"] = "K"
    found = tamis.verify_many(first, archive, bounds="recorded")
    assert found.changed == ("a.nc",)
    assert "1 file changed since tamis made them, by the record: a.nc" in str(found)
    assert found.to_dict()["worst"]["path"] == worst.path
    assert tamis.verify_many(first, archive, bounds={"TS": 0.1}).changed == ()


def test_bytes_of_packed_values_are_those_before_the_first_run(archive: Path) -> None:
    replaced(archive, recipe={"TS": "pack(bound=0.1)|shuffle|deflate(4)"})
    replaced(archive, recipe={"TS": "shuffle|deflate(9)"})
    record = record_of(archive, "a.nc")
    dataset = next(dataset for dataset in record.datasets if dataset["path"] == "/TS")
    assert record.runs[1]["datasets"][0]["nbytes"] < 64 * 64 * 4  # stored as whole numbers
    assert dataset["nbytes"] == 64 * 64 * 4
    row = next(line for line in tamis.manifest(archive).to_markdown().splitlines() if "| a.nc | /TS |" in line)
    assert f"| {dataset['nbytes'] / dataset['target_nbytes']:.3g} |" in row
