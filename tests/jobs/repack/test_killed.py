"""Known defect D27: a run that is killed destroys its target, or leaves one that opens with chunks missing."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

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
