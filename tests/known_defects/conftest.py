"""What the tests of known defects run besides pytest, and files that no filter of today would write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs
import pytest

import tamis

Run = Callable[..., str]
HERE = Path(__file__).resolve().parent
NO_PLUGINS = {"HDF5_PLUGIN_PRELOAD": "::"}


def run(command: list[str], env: dict[str, str], code: int) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    done = subprocess.run(command, env=clean | env, capture_output=True, text=True, errors="replace", check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{command[:3]} gave {done.returncode}: {said[-3000:]}"
    return said


@pytest.fixture(scope="session")
def tool() -> Run:
    """Run a program of HDF5 or netCDF with our plugin, check its exit code, give what it said."""

    def call(*command: str | Path, code: int = 0) -> str:
        needs.need(command[0])
        return run([str(part) for part in command], {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}, code)

    return call


@pytest.fixture(scope="session")
def python() -> Run:
    """Run Python code, or a script of this folder, in an interpreter of its own; no plugin path unless in `env`."""

    def call(code: str, *arguments: str | Path, env: dict[str, str] | None = None, exit_code: int = 0) -> str:
        start = [str(HERE / code)] if code.endswith(".py") else ["-c", code]
        return run([sys.executable, *start, *map(str, arguments)], env or {}, exit_code)

    return call


@pytest.fixture(scope="session")
def without_plugins(python: Run) -> Run:
    """Run Python code where no filter 32013 is to be had."""
    return lambda *arguments: python(*arguments, env=NO_PLUGINS)


@pytest.fixture(scope="session")
def craft(without_plugins: Run) -> Callable[..., None]:
    """Create a dataset ``v`` of one chunk with any cd_values, type and chunk bytes, past any filter."""

    def call(
        path: Path, dtype: str, shape: tuple[int, ...], values: tuple[int, ...], chunk: bytes, **kind: Any
    ) -> None:
        mask = kind.get("mask", 0)
        words = [value & 0xFFFFFFFF for value in values]
        without_plugins("craft.py", path, json.dumps([dtype, shape, words, chunk.hex(), mask]))

    return call
