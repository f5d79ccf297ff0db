"""Known defect U78: --replace took a file from a program that still wrote it, and what it wrote later was lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis.jobs.many import task as many_task
from tamis.jobs.many.other_writers import can_tell, lease_on

TAMIS = [sys.executable, "-m", "tamis"]
RECIPE = {"T": "shuffle|deflate(4)"}


def run(*words: str | Path, code: int) -> str:
    """Run a command as a process; return what it said."""
    done = subprocess.run([*TAMIS, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def replace(folder: Path, *words: str, code: int) -> str:
    return run(
        "repack", folder, "--replace", "--yes", "--workers", "1", "-f", "T:shuffle|deflate(4)", *words, code=code
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that was written long ago."""
    (tmp_path / "in").mkdir()
    with h5py.File(tmp_path / "in" / "a.h5", "w") as file:
        file["T"] = np.arange(4096.0).reshape(64, 64)
    os.utime(tmp_path / "in" / "a.h5", (1e9, 1e9))
    return tmp_path / "in" / "a.h5"


@pytest.mark.check
@pytest.mark.skipif(not can_tell(Path()), reason="this file system does not tell who has a file open")
def test_u78_a_classic_file_that_a_model_has_open_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "run.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as model:
        model.createDimension("t", None)
        model.createDimension("x", 5000)
        steps = model.createVariable("T", "f4", ("t", "x"))
        for step in range(5):
            steps[step] = np.full(5000, 280 + step, "f4")
        model.sync()
        os.utime(path, (1e9, 1e9))
        said = replace(path.parent, "--dry-run", code=1)
        assert "refuse" in said
        assert "another program has it open for writing" in replace(path.parent, "--retries", "0", code=1)
        for step in range(5, 10):
            steps[step] = np.full(5000, 280 + step, "f4")
    with netCDF4.Dataset(path) as file:
        assert file["T"].shape == (10, 5000)
        assert file.data_model == "NETCDF3_64BIT_OFFSET"


def test_u78_a_file_that_was_changed_lately_is_left_and_listed(path: Path) -> None:
    os.utime(path)
    before = path.read_bytes()
    assert "refuse" in replace(path.parent, "--settle", "600", "--dry-run", code=1)
    said = replace(path.parent, "--settle", "600", "--retries", "0", code=1)
    assert re.search(r"was changed \d+ s ago, and stays: it can be replaced 600 s after its last change", said)
    assert "0 of 1 file done" in said
    assert path.read_bytes() == before
    replace(path.parent, "--settle", "0", code=0)
    assert path.read_bytes() != before


def test_u78_a_file_with_a_time_to_come_is_left(path: Path) -> None:
    os.utime(path, (4e9, 4e9))
    assert "changed in the future, by its time" in replace(path.parent, "--retries", "0", code=1)
    replace(path.parent, "--settle", "0", code=0)


def test_u78_settle_is_about_replace(path: Path, tmp_path: Path) -> None:
    said = run("repack", path.parent, tmp_path / "out", "-f", "T:deflate", "--settle", "5", code=2)
    assert "settle (--settle) needs replace" in said
    with pytest.raises(tamis.ParameterError, match="seconds"):
        tamis.repack_many(path.parent, None, RECIPE, replace=True, settle=-1)


def _written_through(writer: Any, call: Any) -> Any:
    """Return a function that a writer comes in after."""

    def both(*arguments: Any) -> Any:
        result = call(*arguments)
        writer()
        return result

    return both


@pytest.mark.parametrize("moment", ["link", "replace"])
def test_u78_a_write_during_the_exchange_gives_the_old_file_its_name_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A handle that was opened before, of a kind that no lease sees, writes in the last moment."""
    monkeypatch.setattr("tamis.jobs.many.other_writers.can_tell", lambda _: False)
    handle, times = os.open(path, os.O_RDWR), []

    def write() -> None:
        if not times:
            times.append(os.pwrite(handle, b"a step more", os.fstat(handle).st_size))

    monkeypatch.setattr(many_task.os, moment, _written_through(write, getattr(os, moment)))
    options: dict[str, Any] = {"replace": True, "workers": 1, "settle": 0, "retries": 0}
    files = many_task.FolderOptions(str(path.parent), many_task_options(), replace=True, settle=0)
    record = made(path, files)
    os.close(handle)
    assert (record.action, times) == ("failed", [11])
    assert "changed while it was read, and stays" in record.error["message"]
    assert path.read_bytes().endswith(b"a step more")
    assert sorted(each.name for each in path.parent.iterdir()) == [".tamis", "a.h5"]
    monkeypatch.undo()
    with open(path, "r+b") as stream:
        stream.truncate(path.stat().st_size - 11)
    assert tamis.repack_many(path.parent, None, RECIPE, **options).ok


def many_task_options() -> Any:
    from tamis.jobs.repack.options import RepackOptions

    return RepackOptions.asked(RECIPE, resume=True)


def made(path: Path, options: Any) -> Any:
    from tamis.jobs.many.listing import Choice, list_files
    from tamis.jobs.many.state import begin_run

    with begin_run(path.parent, {"key": options.key}):
        return many_task.FileTask(list_files([path.parent], Choice()).files["a.h5"], options).run(lambda *_: None)


@pytest.mark.skipif(not can_tell(Path()), reason="this file system does not tell who has a file open")
def test_u78_a_program_that_waits_to_write_gets_the_old_file_with_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program opens the file by its name just before the names are exchanged."""
    code = f"""
        with open({str(path)!r}, "r+b") as file:
            file.seek(0, 2)
            file.write(b"a step more")
    """
    writers: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        if not writers:
            writers.append(subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)]))
            with pytest.raises(subprocess.TimeoutExpired):
                writers[0].wait(2)  # it waits for the lease

    monkeypatch.setattr(many_task.os, "link", _written_through(begin, os.link))
    record = made(path, many_task.FolderOptions(str(path.parent), many_task_options(), replace=True))
    assert writers[0].wait(60) == 0
    assert record.action == "failed"
    assert path.read_bytes().endswith(b"a step more")


def test_u78_the_old_name_of_a_killed_run_is_removed_or_given_back(path: Path) -> None:
    old, before = path.with_name(".tamis-old-a.h5"), path.read_bytes()
    os.link(path, old)  # killed before the exchange
    assert tamis.preview_repack_many(path.parent, None, RECIPE, replace=True).files[0].action == "repack"
    assert tamis.repack_many(path.parent, None, RECIPE, replace=True, workers=1).ok
    assert not old.exists()
    for state in (path.parent / ".tamis").glob("state-*.jsonl"):  # killed after it
        lines = state.read_bytes().splitlines(keepends=True)
        state.write_bytes(b"".join(line for line in lines if b'"replacing"' in line))
    old.write_bytes(before + b"a step more")
    tamis.repack_many(path.parent, None, RECIPE, replace=True, workers=1, settle=0)
    assert not old.exists()
    with h5py.File(path) as file:
        assert file["T"].compression == "gzip"


@pytest.mark.skipif(not can_tell(Path()), reason="this file system does not tell who has a file open")
def test_u78_leases_see_writers_and_let_readers_pass(path: Path) -> None:
    with open(path, "rb"), lease_on(path) as lease:
        assert lease is not None
        assert not lease.is_awaited
    with open(path, "r+b"), lease_on(path) as lease:
        assert lease is None


def test_dry_run_says_of_every_file_what_the_run_does(path: Path) -> None:
    names = [f"{number}.h5" for number in range(7)]
    for name in names:
        (path.parent / name).write_bytes(path.read_bytes())
        os.utime(path.parent / name, (1e9, 1e9))
    with h5py.File(path.parent / "1.h5", "w") as file:
        file["T"] = np.arange(4096)
    (path.parent / "2.h5").write_bytes(path.read_bytes()[:20000])
    os.utime(path.parent / "1.h5", (1e9, 1e9))
    os.utime(path.parent / "2.h5", (1e9, 1e9))
    os.utime(path.parent / "4.h5", (time.time() + 3600, time.time() + 3600))
    os.utime(path.parent / "5.h5")
    wanted: dict[str, str] = {"T": "zfp(accuracy=0.1)"}
    options: dict[str, Any] = {"replace": True}
    found = {file.path: file for file in tamis.preview_repack_many(path.parent, None, wanted, **options).files}
    assert {name for name, file in found.items() if file.action == "refuse"} == {"1.h5", "2.h5", "4.h5"}
    assert "the run waits until 2 s after its last change (--settle)" in found["5.h5"].reason
    failures = tamis.repack_many(path.parent, None, wanted, workers=1, **options).failures
    assert {failure.path: failure.message for failure in failures} == {
        name: found[name].reason for name in ("1.h5", "2.h5", "4.h5")
    }
