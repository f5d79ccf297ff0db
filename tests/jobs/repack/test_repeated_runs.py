"""Known defects U15 and U28: runs that are killed, interrupted and repeated, as scripts of batch systems do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis import FileError
from tamis.safety import Identity, find_leftovers
from tamis.safety.journal import Journal, RunKey

RECIPES = {"x": "zfp(accuracy=0.01)|shuffle|deflate(4)", "y": "shuffle|deflate(4)"}
OPTIONS = [word for name, text in RECIPES.items() for word in ("-f", f"{name}:{text}")]

# Sends a signal to itself where a run has come so far, on the command line or from Python.
STOPPED = """
import os, signal, sys
what, count, number, *words = sys.argv[1:]
if int(number) != signal.SIGKILL:  # ignored by a test run in the background, or under nohup
    signal.signal(int(number), signal.default_int_handler if int(number) == signal.SIGINT else signal.SIG_DFL)
import tamis, tamis.cli
repack = tamis.repack
def stopped(*args, progress, **more):
    def told(now, done, total):
        progress(now, done, total)
        if (str(now), done) == (what, int(count)):
            os.kill(os.getpid(), int(number))
    return repack(*args, progress=told, **more)
tamis.repack = stopped
tamis.cli.main(words, prog_name="tamis")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "source.h5"
    path.parent.mkdir()
    values = np.random.default_rng(0).standard_normal((32, 64, 64)).cumsum(axis=1).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(4, 32, 32))
        file.create_dataset("y", data=np.arange(40_000, dtype="i4"), chunks=(4000,))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "out" / "target.h5"
    path.parent.mkdir()
    return path


def command(source: Path, target: Path, *more: str, code: int = 0, options: list[str] = OPTIONS) -> str:
    done = run_tamis("repack", source, target, *options, *more)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr * ("--json" not in more)


def stop(source: Path, target: Path, what: str, done: int, number: int = signal.SIGKILL, *more: str) -> tuple[int, str]:
    words = [what, str(done), str(int(number)), "repack", source, target, *OPTIONS, *more]
    run = subprocess.run([sys.executable, "-c", STOPPED, *words], capture_output=True, text=True, check=False)
    return run.returncode, run.stderr


def partial_files(target: Path) -> list[str]:
    return sorted(name for name in os.listdir(target.parent) if name.endswith(".tamis"))


def whole(source: Path, target: Path) -> bytes:
    path = target.with_name("whole.h5")
    tamis.repack(source, path, RECIPES)
    data = path.read_bytes()
    path.unlink()
    return data


@pytest.mark.check
def test_u15_killed_again_and_again_leaves_one_partial_file_and_loses_nothing(source: Path, target: Path) -> None:
    expected = whole(source, target)
    for done in (12, 20, 28):
        stop(source, target, "writing /x", done, signal.SIGKILL, "--resume")
        assert len(partial_files(target)) == 1
    found = tamis.repack(source, target, RECIPES, resume=True)
    assert found.datasets[0].reused_chunks >= 24  # small chunks are noted four at a time
    assert target.read_bytes() == expected
    assert os.listdir(target.parent) == ["target.h5"]


@pytest.mark.check
def test_u15_killed_while_chunks_are_taken_over_keeps_the_run_that_has_more(source: Path, target: Path) -> None:
    stop(source, target, "verifying /x", 0)
    for _ in range(3):
        stop(source, target, "writing /x", 8, signal.SIGKILL, "--resume")
        assert len(partial_files(target)) <= 2
    assert tamis.repack(source, target, RECIPES, resume=True).datasets[0].reused_chunks == 32
    assert os.listdir(target.parent) == ["target.h5"]


@pytest.mark.check
def test_u15_killed_again_and_again_without_resume_leaves_one_partial_file(source: Path, target: Path) -> None:
    for done in (28, 12, 20):
        stop(source, target, "writing /x", done)
        assert len(partial_files(target)) == 1
    assert "removed, since --resume is not given" in command(source, target)
    assert os.listdir(target.parent) == ["target.h5"]


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_u15_signals_clear_up_without_resume_and_keep_chunks_with_it(name: str, source: Path, target: Path) -> None:
    number = signal.Signals[name]
    code, said = stop(source, target, "writing /x", 20, number, "--quiet")
    assert (code, said) == (128 + number, "\ntamis: interrupted\n" * (number == signal.SIGINT))
    assert os.listdir(target.parent) == []
    code, said = stop(source, target, "writing /x", 20, number, "--resume")
    assert code == 128 + number
    (left,) = partial_files(target)
    assert f"tamis repack: an interrupted run left {target.with_name(left)} (20 chunks, " in said
    assert "Traceback" not in said
    assert tamis.repack(source, target, RECIPES, resume=True).datasets[0].reused_chunks == 20
    assert os.listdir(target.parent) == ["target.h5"]


def test_u15_signal_before_anything_was_encoded_leaves_nothing_with_resume_either(source: Path, target: Path) -> None:
    code, said = stop(source, target, "writing /x", 0, signal.SIGTERM, "--resume", "--quiet")
    assert (code, said) == (143, "")
    assert os.listdir(target.parent) == []


def test_u15_python_interrupted_with_resume_keeps_what_was_encoded(source: Path, target: Path) -> None:
    def progress(what: str, done: int, total: int) -> None:
        if (what, done) == ("writing /x", 20):
            raise KeyboardInterrupt

    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            tamis.repack(source, target, RECIPES, resume=resume, progress=progress)
        assert len(partial_files(target)) == resume
    assert tamis.repack(source, target, RECIPES, resume=True).datasets[0].reused_chunks == 20


def without_record(target: Path) -> None:
    if hasattr(os, "removexattr") and os.listxattr(target):
        os.removexattr(target, "user.tamis.made")


def changed_time(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


@pytest.mark.parametrize("recorded", [True, False])
def test_u15_finished_run_repeated_is_done_already(recorded: bool, source: Path, target: Path) -> None:
    assert not tamis.repack(source, target, RECIPES).done_already
    if not recorded:  # as on file systems without extended attributes
        without_record(target)
    before = changed_time(target)
    found = tamis.repack(source, target, RECIPES, resume=True)
    assert found.done_already
    assert found.datasets == ()
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"{target}: already done: ")
    assert json.loads(command(source, target, "--resume", "--json"))["done_already"]
    assert f"{target}: already done: " in command(source, target, "--resume", "--overwrite")
    assert tamis.preview_repack(source, target, RECIPES, resume=True).notes == found.notes
    assert changed_time(target) == before
    assert "File exists: choose another name" in command(source, target, code=1)


def test_u15_target_that_is_done_is_made_anew_by_overwrite_alone(source: Path, target: Path) -> None:
    tamis.repack(source, target, RECIPES)
    before = changed_time(target)
    found = tamis.repack(source, target, RECIPES, overwrite=True)
    assert (found.done_already, found.notes) == (False, ())
    assert changed_time(target) != before


def needs_record(target: Path) -> None:
    if not hasattr(os, "listxattr") or "user.tamis.made" not in os.listxattr(target):
        pytest.skip("no extended attributes here")


def rewrite(source: Path) -> None:
    with h5py.File(source, "r+") as file:
        file["x"][0] += 1


def restore_times(source: Path) -> None:
    before = source.stat()
    rewrite(source)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = source.stat()
    assert (after.st_size, after.st_ino, after.st_mtime_ns) == (before.st_size, before.st_ino, before.st_mtime_ns)


def exchange(source: Path) -> None:
    other = source.with_name("other.h5")
    shutil.copy(source, other)
    rewrite(other)
    os.replace(other, source)


@pytest.mark.parametrize("change", [rewrite, restore_times, exchange])
def test_u15_changed_source_is_made_anew_with_the_reason(
    change: Callable[[Path], None], source: Path, target: Path
) -> None:
    tamis.repack(source, target, RECIPES)
    needs_record(target)
    change(source)
    assert f"{target}: made again: {source} has changed since it was made" in command(source, target, "--resume")
    assert tamis.verify(source, target, bounds={"x": 0.01, "y": 0}).ok
    assert "already done" in command(source, target, "--resume")


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "x:zfp(accuracy=0.02)|shuffle|deflate(4)", "-f", "y:shuffle|deflate(4)"],
        [*OPTIONS, "-c", "x:8x32x32"],
        [*OPTIONS, "--no-checksum"],
        [*OPTIONS, "--missing", "mask"],
        OPTIONS[:2],
    ],
)
def test_u15_changed_recipe_is_made_anew_with_the_reason(options: list[str], source: Path, target: Path) -> None:
    tamis.repack(source, target, RECIPES)
    needs_record(target)
    said = command(source, target, "--resume", options=options)
    assert f"{target}: made again: other filters, chunks or options were requested since it was made" in said
    assert "already done" in command(source, target, "--resume", options=options)


def test_u15_killed_while_it_is_made_anew_leaves_the_old_target_and_continues(source: Path, target: Path) -> None:
    tamis.repack(source, target, RECIPES)
    needs_record(target)
    old = target.read_bytes()
    rewrite(source)
    stop(source, target, "writing /x", 20, signal.SIGKILL, "--resume")
    assert target.read_bytes() == old
    found = tamis.repack(source, target, RECIPES, resume=True)
    assert found.datasets[0].reused_chunks == 20
    assert found.notes == (f"{target}: made again: {source} has changed since it was made",)


def flip(target: Path) -> None:
    data = bytearray(target.read_bytes())
    data[len(data) // 2] ^= 1
    before = target.stat()
    target.write_bytes(data)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))


def grow(target: Path) -> None:
    with target.open("ab") as file:
        file.write(b"\0")


def attribute(target: Path) -> None:
    with h5py.File(target, "r+") as file:
        file.attrs["history"] = "somebody worked on this"


def replace(target: Path) -> None:
    target.unlink()
    target.write_bytes(b"not of tamis")


@pytest.mark.parametrize("change", [flip, grow, attribute, replace])
def test_u15_target_that_was_changed_is_never_done_nor_replaced(
    change: Callable[[Path], None], source: Path, target: Path
) -> None:
    tamis.repack(source, target, RECIPES)
    change(target)
    changed = target.read_bytes()
    with pytest.raises(FileError, match=r"File exists, and .*: choose another name, or replace it"):
        tamis.repack(source, target, RECIPES, resume=True)
    assert target.read_bytes() == changed
    assert not tamis.repack(source, target, RECIPES, resume=True, overwrite=True).done_already
    assert tamis.repack(source, target, RECIPES, resume=True).done_already


def test_u15_target_of_another_source_is_refused(source: Path, target: Path) -> None:
    other = source.with_name("other.h5")
    shutil.copy(source, other)
    rewrite(other)
    tamis.repack(other, target, RECIPES)
    needs_record(target)
    before = target.read_bytes()
    with pytest.raises(FileError, match="File exists, and tamis made it from another file: choose another name"):
        tamis.repack(source, target, RECIPES, resume=True)
    assert target.read_bytes() == before


@pytest.mark.parametrize("recipe", ["zfp(rate=8)", "zfp(accuracy=0.02)|shuffle|deflate(4)"])
def test_u15_target_without_a_record_that_may_be_another_is_refused(recipe: str, source: Path, target: Path) -> None:
    """Of a fixed rate no comparison tells whether the values are of this source."""
    tamis.repack(source, target, {"x": recipe})
    without_record(target)
    wanted = recipe if "rate" in recipe else RECIPES["x"]
    with pytest.raises(FileError, match="File exists, and nothing says that tamis made it from this source"):
        tamis.repack(source, target, {"x": wanted}, resume=True)


def test_u15_record_is_no_part_of_the_bytes_and_anything_in_it_is_survived(source: Path, target: Path) -> None:
    tamis.repack(source, target, RECIPES)
    needs_record(target)
    copy = target.with_name("copy.h5")
    tamis.repack(shutil.copy(source, source.with_name("copy.h5")), copy, RECIPES)
    assert copy.read_bytes() == target.read_bytes()
    whole_record = os.getxattr(target, "user.tamis.made")
    for text in (b"", b"{", b"[]", b"null", b'{"version": 1}', b'{"version": 2}', whole_record[:-5], b"\xff" * 100):
        os.setxattr(target, "user.tamis.made", text)
        assert tamis.repack(source, target, RECIPES, resume=True).done_already  # by comparing all values


def test_u15_temporary_that_was_left_after_the_target_had_its_name_is_removed(source: Path, target: Path) -> None:
    stop(source, target, "verifying /x", 0)
    (left,) = (target.with_name(name) for name in partial_files(target))
    journal = left.with_name(left.name + "-journal")
    kept = left.read_bytes(), journal.read_bytes()
    tamis.repack(source, target, RECIPES, resume=True)
    left.write_bytes(kept[0])
    journal.write_bytes(kept[1])
    assert tamis.repack(source, target, RECIPES, resume=True).done_already
    assert os.listdir(target.parent) == ["target.h5"]


def make_stale(source: Path, target: Path) -> None:
    """Leave chunks of other values, in a journal that says that they are of the source as it is now."""
    stop(source, target, "verifying /x", 0)
    rewrite(source)
    (left,) = find_leftovers(target).dead
    assert left.run is not None
    datasets = left.run.datasets
    records = [(record, left.read(record.place)) for path in datasets for record in left.records(path)]
    left.close()
    path = left.path.with_name(left.path.name + "-journal")
    path.unlink()
    journal = Journal(path, RunKey(Identity.of(source, with_ctime=True)._asdict(), datasets))
    for record, data in records:
        assert data is not None
        journal.add(record, 1 << 20)
    journal.flush()
    journal.close()


def test_u28_what_an_interrupted_run_encoded_of_other_values_is_encoded_anew(source: Path, target: Path) -> None:
    make_stale(source, target)
    found = tamis.repack(source, target, RECIPES, resume=True)
    assert not any(each.reused_chunks for each in found.datasets)
    (note,) = (note for note in found.notes if "everything is encoded again" in note)
    assert note.startswith(
        f"chunks left by the interrupted run do not match {source}; everything is encoded again: /x: "
    )
    assert tamis.verify(source, target, bounds={"x": 0.01, "y": 0}).ok
    assert target.read_bytes() == whole(source, target)
    assert os.listdir(target.parent) == ["target.h5"]


def test_u28_command_says_so_once_and_is_done_afterwards(source: Path, target: Path) -> None:
    make_stale(source, target)
    assert "everything is encoded again" in command(source, target, "--resume")
    assert "already done" in command(source, target, "--resume")


def test_u28_source_changed_with_its_times_restored_is_told_by_its_inode(source: Path, target: Path) -> None:
    stop(source, target, "verifying /x", 0)
    restore_times(source)
    found: Any = tamis.repack(source, target, RECIPES, resume=True)
    assert found.notes[0] == f"nothing to resume: {source} has changed since a run was interrupted; started over"
    assert tamis.verify(source, target, bounds={"x": 0.01, "y": 0}).ok
