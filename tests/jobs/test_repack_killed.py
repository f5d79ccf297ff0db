"""Runs that are killed or interrupted at random moments; `kill.py` beside this does it a thousand times."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

OLD = b"what was there before"
TAMIS = Path(sys.executable).with_name("tamis")
KILL = Path(__file__).with_name("kill.py")


@pytest.mark.check
def test_repack_killed_at_random_moments_keeps_its_promises(run_script: Callable[..., str], tmp_path: Path) -> None:
    """16 runs, some of them killed again while they resume."""
    lines = run_script(KILL, "16", "3").splitlines()
    seen = {what: int(count) for what, count in (line.rsplit(maxsplit=1) for line in lines)}
    assert sum(count for what, count in seen.items() if what.startswith("resumed: ")) == 16
    assert seen["resumed: chunks taken over"] > 0
    assert sum(count for what, count in seen.items() if what.startswith("killed in: ")) == 16
    # Otherwise the moments would show little.
    assert len([what for what in seen if what.startswith("killed in: ")]) >= 2
    assert os.listdir(tmp_path) == []


def interrupted(
    folder: Path, source: Path, number: signal.Signals, seconds: float, *options: str
) -> tuple[int, str, str]:
    """Send a signal to the command some time after its temporary file is there."""
    target = folder / "target.nc"
    target.write_bytes(OLD)
    command = [
        TAMIS,
        "repack",
        source,
        target,
        "-f",
        "TS:zfp(accuracy=0.1)|shuffle|deflate(4)",
        "--overwrite",
        "--quiet",
        *options,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None and not any(name.endswith(".tamis") for name in os.listdir(folder)):
            time.sleep(0.001)
        time.sleep(seconds)
        run.send_signal(number)
        said, complained = run.communicate()
        return run.returncode, said, complained


@pytest.mark.matrix
@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "\ntamis: interrupted\n"), (signal.SIGTERM, "")])
def test_repack_interrupted_at_random_moments_leaves_nothing(
    number: signal.Signals, said: str, sample: Path, tmp_path: Path
) -> None:
    chance = random.Random(int(number))
    ended = 0
    for _ in range(5):
        code, told, complained = interrupted(tmp_path, sample, number, chance.uniform(0, 0.25), "-c", "TS:30x16x16")
        assert os.listdir(tmp_path) == ["target.nc"]
        if (tmp_path / "target.nc").read_bytes() == OLD:
            assert (code, told, complained) == (128 + number, "", said)
            ended += 1
        else:  # it was done, and ended in some other place or on its own
            assert code in (0, 128 + number, -number)
            assert "Traceback" not in complained
    assert ended > 0


def test_repack_killed_source_on_a_folder_that_is_read_only_stays(sample: Path, tmp_path: Path) -> None:
    """Nothing is ever made beside the source."""
    folder = tmp_path / "source"
    folder.mkdir()
    shutil.copy(sample, folder / "source.nc")
    folder.chmod(0o555)
    before = folder.stat().st_mtime_ns
    interrupted(tmp_path, folder / "source.nc", signal.SIGKILL, 0)
    assert folder.stat().st_mtime_ns == before
    assert os.listdir(folder) == ["source.nc"]
    folder.chmod(0o755)


RECIPES = {"x": "zfp(accuracy=0.01)|shuffle|deflate(4)"}

KILLED = f"""
import os, signal, sys, tamis
def progress(what, done, total):
    if what == sys.argv[3] and done == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
tamis.repack(sys.argv[1], sys.argv[2], {RECIPES}, overwrite=True, progress=progress)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(("what", "done"), [("writing /x", 0), ("writing /x", 20), ("verifying /x", 30)])
def test_d27_killed_repack_leaves_the_old_target_and_is_resumed_to_the_same_bytes(
    what: str, done: int, tmp_path: Path
) -> None:
    source, target, whole = (tmp_path / name for name in ("source.h5", "target.h5", "whole.h5"))
    values = np.random.default_rng(0).standard_normal((32, 64, 64)).cumsum(axis=1).astype("f4")
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(4, 16, 16))
    before = hashlib.sha256(source.read_bytes()).digest()
    target.write_bytes(b"the old file")
    command = [sys.executable, "-c", KILLED, source, target, what, str(done)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert hashlib.sha256(source.read_bytes()).digest() == before
    assert target.read_bytes() == b"the old file"
    resumed = tamis.repack(source, target, RECIPES, overwrite=True, resume=True)
    tamis.repack(source, whole, RECIPES)
    assert target.read_bytes() == whole.read_bytes()
    assert (resumed.datasets[0].reused_chunks > 0) == (done > 0)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["source.h5", "target.h5", "whole.h5"]
