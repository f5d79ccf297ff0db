"""U68: threads that read, callbacks of h5py and forks end, whatever comes together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import needs
import pytest

SCRIPT = Path(__file__).with_name("threads_and_forks.py")
NAMES = re.findall(r"^def (\w+)\(\) -> None:$", SCRIPT.read_text().split("# Scenarios")[1], re.MULTILINE)

ROUNDS = {
    "callbacks": 8,
    "shared_file": 12,
    "collector": 12,
    "jobs": 6,
    "forks_at_first_use": 4,
    "forks": 3,
    "forks_of_forks": 2,
    "forks_in_callbacks": 3,
    "forks_of_jobs": 2,
    "forks_of_datasets": 2,
    "forks_beside_new_files": 2,
}
"""Enough for each to hang before it was mended, and few seconds."""


def run(scenario: str, rounds: int, folder: Path, seconds: int) -> None:
    """Run a scenario in a process that ends itself if it hangs, and then prints the stacks of its threads."""
    command = [sys.executable, str(SCRIPT), scenario, str(rounds)]
    environment = os.environ | {"SECONDS": str(seconds), "PYTHONWARNINGS": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-10_000:]
    assert done.stdout == "done\n"


@pytest.mark.matrix
@pytest.mark.parametrize("scenario", ROUNDS)
def test_u68_threads_callbacks_and_forks_end(scenario: str, tmp_path: Path) -> None:
    run(scenario, ROUNDS[scenario], tmp_path, 120)


@pytest.mark.check
@pytest.mark.parametrize("scenario", NAMES)
def test_u68_threads_callbacks_and_forks_end_a_hundred_times(scenario: str, tmp_path: Path) -> None:
    if scenario == "pools":
        needs.need_shared_memory()
    run(scenario, 100, tmp_path, 1500)


_EXIT = """
import ctypes, os, sys
import h5py, numpy as np
from tamis.formats.hdf5.tree.create import create_target

with h5py.File("source.h5", "w") as source:
    with create_target(source, "target.h5") as target:
        values = target.create_dataset("x", data=np.zeros((100, 100)), chunks=(1, 100), compression="gzip")
        before = os.path.getsize("target.h5")
        if not os.fork():
            ctypes.CDLL(None).exit(0)  # at which HDF5 writes what it has in memory
        os.wait()
        assert os.path.getsize("target.h5") == before, "a forked process wrote the file"
        values[...] = 1
with h5py.File("target.h5") as target:
    assert (target["x"][:] == 1).all()
"""


def test_u68_target_while_a_forked_process_exits_is_written_by_its_parent_alone(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _EXIT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_SHARED = """
import os
import h5py, numpy as np
from tamis.formats.hdf5.lib.files import open_source

values = np.arange(1_000_000.0).reshape(100, 10_000)
with h5py.File("a.h5", "w") as file:
    file["x"] = values
with h5py.File("a.h5") as file, open_source("a.h5", keeps_chunks=False) as second:
    assert (second["x"][0] == values[0]).all()
    if not os.fork():
        os._exit(not (second["x"][50] == values[50]).all())
    assert os.wait()[1] == 0
    for step in range(1, 100):
        assert (second["x"][step] == values[step]).all(), step
"""


def test_u68_file_opened_twice_read_by_a_forked_process_too_has_its_values(tmp_path: Path) -> None:
    """HDF5's driver "stdio" has one position in the file, which both processes move."""
    done = subprocess.run([sys.executable, "-c", _SHARED], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_SPY = """
import os, sys
import tamis
names = []

class Spy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        names.append(name)

def read(path, **options):
    with tamis.open(path, **options) as file:
        for name in file:
            array = file[name]
            array[:], array.attrs, repr(array)
            if array.ndim > 1:
                array[0], array[:, 1:3], array[[0, 2]], array[..., ::2]
        file.data_model()

path, *packages = sys.argv[1:]
sys.meta_path.insert(0, Spy)
read(path)
read(path, unpack=True)
read(path, restore=False, threads=1)
print(sorted({name for name in names if name.partition(".")[0] not in packages}))
"""


def test_u68_reading_imports_nothing(tmp_path: Path) -> None:
    """A thread would wait for another one that imports, and a forked process for one that does not exist."""
    run("make_files", 0, tmp_path, 120)
    command = [sys.executable, "-c", _SPY, str(tmp_path / "a.h5"), "imagecodecs", "zstandard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
