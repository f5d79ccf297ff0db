"""Files that libraries wrote, each made once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(script: str, *arguments: object) -> str:
    """Run a script of this folder in a process of its own: hdf5plugin changes the h5py of the one that imports it."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    # netCDF4, once imported, leaves its own folder of plugins in the environment, and its blosc does not load in h5py.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def run_script() -> Callable[..., str]:
    """Call `run`."""
    return run


@pytest.fixture(scope="session")
def library_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One dataset of one chunk for each filter, type and shape: see library_files.py."""
    path = tmp_path_factory.mktemp("filters") / "library.h5"
    run("library_files.py", "write", path)
    return path


@pytest.fixture(scope="session")
def foreign_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets of one chunk with sz3 and sperr: see foreign_files.py."""
    path = tmp_path_factory.mktemp("filters") / "foreign.h5"
    run("foreign_files.py", path)
    return path
