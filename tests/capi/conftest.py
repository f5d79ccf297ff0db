"""Programs in C and Fortran, built once a session with what `tamis config` says, and run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import needs
import pytest

import tamis

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TAMIS = Path(sys.executable).with_name("tamis")
STRICT = ("-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
Build = Callable[..., Path]
Run = Callable[..., str]


def run_in(folder: Path | None, *command: str | Path, code: int = 0, **variables: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")} | variables
    env.setdefault("HDF5_PLUGIN_PRELOAD", "::")  # no plugin, unless a test names one
    if "HDF5_PLUGIN_PATH" in variables:
        del env["HDF5_PLUGIN_PRELOAD"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == code, f"{command} gave {done.returncode}: {done.stdout[-3000:]}{done.stderr[-5000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a program without any plugin, unless HDF5_PLUGIN_PATH is given, and check its exit code."""

    def call(*command: str | Path, code: int = 0, **variables: str) -> str:
        return run_in(None, *command, code=code, **variables)

    return call


@cache
def config(*options: str) -> list[str]:
    return subprocess.run([TAMIS, "config", *options], capture_output=True, text=True, check=True).stdout.split()


def libraries(compiler: str, *options: str) -> list[str]:
    """Give the options of the filter's library, unless the compiler has no HDF5, and with --codec of the codec's."""
    static = [option for option in options if option == "--static"]
    codec = config("--libs", *options) if "--codec" in options else []
    return [*(config("--libs", *static) if compiler != "cc" else []), *codec]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a program from a source with a compiler wrapper of HDF5 (h5cc, h5fc), once; give its path."""
    folder = tmp_path_factory.mktemp("built")
    built: dict[tuple[object, ...], Path] = {}

    def make(
        compiler: str, *sources: str | Path, libs: tuple[str, ...] = (), options: tuple[str, ...] = STRICT
    ) -> Path:
        key = (compiler, *sources, *libs, *options)
        if key not in built:
            needs.need(compiler)
            program = folder / f"{Path(sources[-1]).stem}_{len(built)}"
            paths = [EXAMPLES / source for source in sources]  # absolute ones stay what they are
            command = (
                compiler,
                *options,
                *paths,
                *config("--cflags"),
                *libraries(compiler, *libs),
                "-o",
                program,
                "-lm",
            )
            run_in(folder, *command)
            built[key] = program
        return built[key]

    return make


@pytest.fixture(scope="session")
def plugins() -> Path:
    return tamis.plugin_path()
