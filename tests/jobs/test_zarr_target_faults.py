"""A Zarr target appears complete and proven, or not at all: kills, full disks, damage, what is there already."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
RECIPES = {"x": "zfp(accuracy=0.01)|shuffle|deflate(4)", "y": "shuffle|deflate(6)"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "a.h5"
    values = np.random.default_rng(0).standard_normal((8, 32, 32)).cumsum(axis=1).astype("f4")
    values[2, :4, :4] = np.nan
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 32, 32))
        file.create_dataset("y", data=np.arange(4000, dtype="i4"), chunks=(1000,))
        file["group/kept"] = np.arange(10.0)
    return path


def content(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def in_child(job: Callable[[], object]) -> int:
    """Run a job in a process of its own; return its exit code, negative for a signal."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        job()
        code = 0
    except tamis.TamisError:
        code = 1
    finally:
        os._exit(code)


class Steps:
    """Counts calls of progress, and kills the process at one of them."""

    def __init__(self, last: int = -1) -> None:
        self.last, self.count = last, 0

    def __call__(self, step: str, done: int, total: int) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.matrix
@pytest.mark.parametrize("shards", [None, 3])
def test_killed_at_any_step_then_resumed_to_the_same_bytes(shards: int | None, source: Path, tmp_path: Path) -> None:
    steps, old, target = Steps(), tmp_path / "old.zarr", tmp_path / "out" / "a.zarr"
    tamis.repack(source, tmp_path / "whole.zarr", RECIPES, shards=shards, progress=steps)
    expected = content(tmp_path / "whole.zarr")
    tamis.repack(source, old, {}, zarr_format=2)
    reused = []
    for last in (1, 5, 9, 13, steps.count - 4, steps.count):
        shutil.copytree(old, target)

        def repack(progress: Steps) -> tamis.RepackResult:
            return tamis.repack(
                source, target, RECIPES, resume=True, overwrite=True, shards=shards, threads=1, progress=progress
            )

        assert in_child(partial(repack, Steps(last))) == -signal.SIGKILL
        assert content(target) == content(old)
        assert len(os.listdir(target.parent)) == 3  # and a temporary folder with its journal
        result = repack(Steps())
        assert content(target) == expected
        assert os.listdir(target.parent) == ["a.zarr"]
        assert repack(Steps()).done_already
        reused.append(sum(dataset.reused_chunks for dataset in result.datasets))
        shutil.rmtree(target)
    assert reused[0] == 0
    assert max(reused) == 12


def test_full_disk_leaves_the_old_store_alone_or_what_resume_takes(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "out" / "a.zarr"
    values = np.zeros((40, 32, 32), "f4")
    values[-1] = 1e4 * np.random.default_rng(0).standard_normal((32, 32))  # one file that is too large, behind others
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 32, 32))
    target.parent.mkdir()
    tamis.repack(source, target, {})
    old = content(target)

    def repack(limit: int, *, resume: bool) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(tamis.FileError, match=r"a\.zarr: cannot be written: the file system, or ulimit -f"):
            tamis.repack(source, target, recipe, overwrite=True, resume=resume, threads=1)

    recipe = {"x": RECIPES["x"]}
    for limit, resume in ((0, False), (2500, False), (2500, True)):
        assert in_child(partial(repack, limit, resume=resume)) == 0
        assert content(target) == old
        assert os.listdir(target.parent) == ["a.zarr"] or resume
    result = tamis.repack(source, target, recipe, overwrite=True, resume=True)
    assert result["x"].reused_chunks > 0
    assert os.listdir(target.parent) == ["a.zarr"]


@pytest.mark.parametrize("name", ["a.zip", "a.zarr.zip", "A.ZIP"])
def test_zip_archives_are_refused(source: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(tamis.ParameterError, match=r"write [aA]\.zarr, and zip what is in it, without compression"):
        tamis.repack(source, tmp_path / name, {})
    assert not (tmp_path / name).exists()


def test_letters_of_the_ending_do_not_matter(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "a.ZARR", {})
    assert (tmp_path / "a.ZARR" / "zarr.json").is_file()


def test_what_is_there_already(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    tamis.repack(source, target, RECIPES)
    before = content(target)
    with pytest.raises(tamis.FileError, match=r"a\.zarr: File exists: choose another name"):
        tamis.repack(source, target, {})
    with pytest.raises(tamis.FileError, match="is the source itself"):
        tamis.repack(target, target, {}, overwrite=True)
    for inside in (target / "sub.zarr", target / "x" / "sub.nc", tmp_path / "a.zarr" / ".." / "a.zarr" / "x.nc"):
        with pytest.raises(tamis.FileError, match=r"is inside the source .*a\.zarr: choose a target outside it"):
            tamis.repack(target, inside, {}, overwrite=True)
    assert content(target) == before
    (target / "zarr.json").rename(target / "notes.txt")
    with pytest.raises(tamis.FileError, match="got a folder with other files"):
        tamis.repack(source, target, RECIPES, overwrite=True)
    shutil.rmtree(target)
    target.write_text("a file")
    with pytest.raises(tamis.FileError, match="expected the name of a folder to write, got a file"):
        tamis.repack(source, target, RECIPES, overwrite=True)
    target.unlink()
    target.mkdir()
    tamis.repack(source, target, RECIPES, overwrite=True)
    assert content(target) == before
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_options_that_the_target_does_not_have_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match=r"for shards, choose the name of a Zarr store, such as a\.zarr"):
        tamis.repack(source, tmp_path / "a.nc", RECIPES, shards=3)
    with pytest.raises(tamis.ParameterError, match="Zarr 2 has no shards"):
        tamis.repack(source, tmp_path / "a.zarr", RECIPES, shards=3, zarr_format=2)
    for options in ({"zarr_format": 4}, {"shards": 0}):
        with pytest.raises(tamis.ParameterError, match="expected"):
            tamis.preview_repack(source, tmp_path / "a.zarr", RECIPES, **options)
    assert os.listdir(tmp_path) == []


def test_damage_found_by_verify(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.zarr"
    tamis.repack(source, target, RECIPES)
    assert tamis.verify(source, target, bounds={"x": 0.01}).ok
    chunk = target / "x" / "c" / "5" / "0" / "0"
    data = chunk.read_bytes()
    for damaged in (data[:-1], data[:40] + bytes([data[40] ^ 1]) + data[41:], b""):
        chunk.write_bytes(damaged)
        assert not tamis.verify(source, target, bounds={"x": 0.01}).ok
    chunk.unlink()
    assert not tamis.verify(source, target, bounds={"x": 0.01}).ok
    chunk.write_bytes(data)
    for text in ("{", "[]", '{"zarr_format": 3, "node_type": "array"}'):
        (target / "zarr.json").write_text(text)
        with pytest.raises(tamis.FileError):
            tamis.verify(source, target)


@pytest.mark.matrix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_the_old_store_and_nothing_else(number: signal.Signals, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        values = np.random.default_rng(0).integers(0, 9, (128, 256, 256), "i4")
        file.create_dataset("x", data=values, chunks=(1, 256, 256))
    folder = tmp_path / "out"
    folder.mkdir()
    tamis.repack(SAMPLE, folder / "a.zarr", {})
    old = content(folder / "a.zarr")
    command = [
        Path(sys.executable).with_name("tamis"),
        "repack",
        tmp_path / "a.h5",
        folder / "a.zarr",
        "-f",
        "x:deflate(9)",
    ]
    with subprocess.Popen([*command, "--overwrite", "--quiet"], stderr=subprocess.PIPE) as run:
        while run.poll() is None and not any(folder.glob(".*.tamis/x/c/*/*/*")):
            time.sleep(0.001)
        run.send_signal(number)
        complained = run.communicate()[1]
    assert run.returncode == 128 + number
    assert complained == (b"\ntamis: interrupted\n" if number == signal.SIGINT else b"")
    assert os.listdir(folder) == ["a.zarr"]
    assert content(folder / "a.zarr") == old
