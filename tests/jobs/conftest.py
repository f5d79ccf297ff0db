"""What the tests of the jobs need besides pytest: real files, programs, other interpreters."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import needs
import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., str]


def environment(plugin: bool) -> dict[str, str]:
    """Give an environment in which libhdf5 finds our plugin, or none but what Python registers."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    # A folder that is not there, in place of the system's.
    return clean | {"HDF5_PLUGIN_PATH": str(tamis.plugin_path() if plugin else "/nonexistent")}


def run(command: list[str], env: dict[str, str], code: int) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == code, f"{command[:3]} gave {done.returncode}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def sample() -> Path:
    """The field that the repository ships."""
    return ROOT / "examples" / "data" / "cam_ts.nc"


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """Find a file of shared/data."""

    return needs.real


@pytest.fixture(scope="session")
def tool() -> Run:
    """Run a program of HDF5 or netCDF with our plugin, check its exit code, give its output."""

    def call(*command: str | Path, plugin: bool = True, code: int = 0) -> str:
        needs.need(command[0])
        return run([str(part) for part in command], environment(plugin), code)

    return call


@pytest.fixture(scope="session")
def python() -> Run:
    """Run Python code in an interpreter of its own, with our plugin only where asked, and give its output."""

    def call(code: str, *arguments: str | Path, plugin: bool = False, exit_code: int = 0) -> str:
        return run([sys.executable, "-c", code, *map(str, arguments)], environment(plugin), exit_code)

    return call


@pytest.fixture(scope="session")
def sha256() -> Callable[[Path], str]:
    return lambda path: hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def make() -> Callable[..., Path]:
    """Write datasets; a dict gives their options, and attributes after a dot."""

    def call(path: Path, **data: Any) -> Path:
        with h5py.File(path, "w") as file:
            for name, value in data.items():
                options = dict(value) if isinstance(value, dict) else {"data": value}
                attributes = {key[1:]: options.pop(key) for key in [*options] if key.startswith(".")}
                file.create_dataset(name, **options).attrs.update(attributes)
        return path

    return call


@pytest.fixture
def pair(tmp_path: Path, make: Callable[..., Path]) -> Callable[..., tuple[Path, Path]]:
    """Make two files of one dataset x each."""

    def call(before: Any, after: Any) -> tuple[Path, Path]:
        return make(tmp_path / "a.h5", x=before), make(tmp_path / "b.h5", x=after)

    return call
