"""What the tests of the plugin run besides pytest: other interpreters, programs, and other people's plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

import tamis

Run = Callable[..., str]
HERE = Path(__file__).resolve().parent


def environment(plugins: Path | None) -> dict[str, str]:
    """Give an environment in which libhdf5 finds the plugins of one folder, or none at all."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    return clean | ({"HDF5_PLUGIN_PRELOAD": "::"} if plugins is None else {"HDF5_PLUGIN_PATH": str(plugins)})


def run(command: list[str], env: dict[str, str], code: int) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{command[:3]} gave {done.returncode}: {said[-3000:]}"
    return said


@pytest.fixture(scope="session")
def tool() -> Run:
    """Run a program of HDF5 or netCDF with the plugins of a folder, check its exit code, give what it said."""

    def call(*command: str | Path, plugins: Path | None = None, code: int = 0) -> str:
        needs.need(command[0])
        return run([str(part) for part in command], environment(plugins), code)

    return call


@pytest.fixture(scope="session")
def python() -> Run:
    """Run Python code, or a script of this folder, in an interpreter of its own; no plugin path unless given."""

    def call(code: str, *arguments: str | Path, plugins: Path | None = None, exit_code: int = 0) -> str:
        env = environment(plugins)
        env.pop("HDF5_PLUGIN_PRELOAD", None)
        start = [str(HERE / code)] if code.endswith(".py") else ["-c", code]
        return run([sys.executable, *start, *map(str, arguments)], env, exit_code)

    return call


@pytest.fixture(scope="session")
def plugins() -> Path:
    """The folder of our plugin."""
    return tamis.plugin_path()


@pytest.fixture(scope="session")
def debian_plugins() -> Path:
    """The folder of Debian's H5Z-ZFP."""
    return needs.debian_plugins() or needs.absent(needs.PLUGIN)


@pytest.fixture(scope="session")
def h5zzfp() -> Callable[[str], Path]:
    """Find one of H5Z-ZFP's own test files."""

    return lambda name: needs.real(f"h5zzfp/{name}")
