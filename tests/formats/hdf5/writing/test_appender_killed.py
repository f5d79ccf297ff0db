"""A process that is killed while it appends loses no step that was in the file at its last flush."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

KILLED = """
import os, signal, sys
import h5py
from test_appender_killed import TARGETS, step
from tamis.hdf5 import Appender, create_appender

path, filters, libver, before, later, is_new_run = *sys.argv[1:4], *map(int, sys.argv[4:])

def append(appenders, begin, end):
    for number in range(begin, end):
        for appender in appenders:
            appender.append(step(number))

file = h5py.File(path, "w", libver=libver)
appenders = [create_appender(file, name, step(0)[None], filters=filters, chunks=(4, 32, 64)) for name in TARGETS]
append(appenders, 1, before)
for appender in appenders:
    appender.flush()
if is_new_run:
    for appender in appenders:
        appender.close()
    file.close()
    file = h5py.File(path, "r+", libver=libver)
    appenders = [Appender(file[name]) for name in TARGETS]
append(appenders, before, before + later)
os.kill(os.getpid(), signal.SIGKILL)
"""

TARGETS = ("first", "second")
"""Two datasets, each of which may get the places that chunks of the other left."""

BOUND = 1e-3


def step(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return a smooth field, whose full chunks take fewer bytes than partial ones, which lose nothing."""
    place = np.linspace(0, 6, 64)
    return (300 + np.sin(place[:, None] + number * 0.1) * np.cos(place - number * 0.05)).astype("f4")


@pytest.mark.parametrize("is_new_run", [False, True])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("filters", [f"zfp(accuracy={BOUND})", "shuffle|deflate(4)"])
def test_killed_after_a_flush_loses_no_earlier_step(
    tmp_path: Path, tool: Callable[..., str], filters: str, libver: str, is_new_run: bool
) -> None:
    path, before = tmp_path / "x.h5", 9
    words = [path, filters, libver, before, 11, int(is_new_run)]
    done = subprocess.run([sys.executable, "-c", KILLED, *map(str, words)], cwd=Path(__file__).parent, check=False)
    assert done.returncode == -signal.SIGKILL
    if libver == "latest":
        tool("h5clear", "-s", path)  # the mark of the writer, which every killed program leaves in this format
    expected = np.stack([step(number) for number in range(before)])
    with h5py.File(path) as file:
        for name in TARGETS:
            assert np.abs(file[name][:before] - expected).max() <= BOUND
