"""U90: what a command writes appears whole, or what was there before stays."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

TAMIS = Path(sys.executable).with_name("tamis")
FAILING_CALLS = Path(__file__).parents[1] / "faults" / "failing_calls.c"
OLD = "what was there before"

SOURCE = "source.h5"
COMMANDS = {
    "report.html": ("report", SOURCE, SOURCE, "-o"),
    "inspect.html": ("inspect", SOURCE, "--html"),
    "plan.svg": ("plan", SOURCE, "-r", "T:abs=0.5", "--plot"),
    "recipe.toml": ("plan", SOURCE, "-r", "T:abs=0.5", "-o"),
    "references.json": ("export", SOURCE, "--to", "kerchunk", "-o"),
}

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"), needs.needs("cc")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = tmp_path_factory.mktemp("library") / "failing_calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", compiled, FAILING_CALLS, "-ldl"], check=True)
    return compiled


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small file."""
    folder = tmp_path_factory.mktemp("sources")
    with h5py.File(folder / SOURCE, "w") as file:
        field = 280 + np.random.default_rng(0).standard_normal((8, 32, 32)).cumsum(axis=2)
        file.create_dataset("T", data=field.astype("f4"), chunks=(4, 32, 32))
    return folder


def run(name: str, sources: Path, out: Path, **variables: str) -> tuple[int, str]:
    words = [TAMIS, *COMMANDS[name], out / name, "--overwrite"]
    environment = os.environ | variables
    done = subprocess.run(words, cwd=sources, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["write", "sync", "rename", "close"])
@pytest.mark.parametrize("name", COMMANDS)
def test_u90_output_that_cannot_be_written_leaves_the_old_one(
    name: str, kind: str, library: Path, sources: Path, tmp_path: Path
) -> None:
    if name == "plan.svg":
        pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(OLD)
    code, said = run(
        name,
        sources,
        out,
        LD_PRELOAD=str(library),
        FAULT_FOLDER=str(out),
        FAULT_KIND=kind,
        FAULT_NUMBER="1" if kind == "write" else "0",  # the first one is of the journal, which a run can do without
        FAULT_ERROR=str(errno.EIO),
    )
    assert os.listdir(out) == [name]
    if code:
        assert code == 1
        assert str(out / name) in said
        assert os.strerror(errno.EIO) in said
        assert (out / name).read_text() == OLD
    else:
        assert kind == "close", "no other failure is harmless"


@pytest.mark.matrix
@pytest.mark.parametrize("name", COMMANDS)
def test_u90_output_replaces_the_old_one_once_it_is_complete(name: str, sources: Path, tmp_path: Path) -> None:
    if name == "plan.svg":
        pytest.importorskip("matplotlib")
    (tmp_path / name).write_text(OLD)
    (tmp_path / name).chmod(0o640)
    code, said = run(name, sources, tmp_path)
    assert code == 0, said
    assert OLD not in (tmp_path / name).read_text()
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == [name]


def test_u90_output_goes_into_a_pipe(sources: Path) -> None:
    words = [TAMIS, "inspect", SOURCE, "--html", "/dev/stdout"]
    done = subprocess.run(words, cwd=sources, capture_output=True, text=True, check=True)
    assert "<!DOCTYPE html>" in done.stdout


_ENDED_WHILE_WRITING = """
import os, signal, sys
from tamis.access import create_empty as made
from tamis.safety import whole_file
from tamis.cli import main

number = signal.Signals[sys.argv.pop(1)]

def create_empty(*args):
    made(*args)
    os.kill(os.getpid(), number)

whole_file.create_empty = create_empty
main()
"""


@pytest.mark.matrix
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
@pytest.mark.parametrize("name", COMMANDS)
def test_u90_signal_while_an_output_is_written_leaves_the_old_one(
    name: str, number: str, code: int, sources: Path, tmp_path: Path
) -> None:
    if name == "plan.svg":
        pytest.importorskip("matplotlib")
    (tmp_path / name).write_text(OLD)
    words = [sys.executable, "-c", _ENDED_WHILE_WRITING, number, *COMMANDS[name], tmp_path / name, "--overwrite"]
    done = subprocess.run(words, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == OLD
