"""U103: files that another program has open for writing: SWMR files are read, others are refused in words."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import needs
import numpy as np
import pytest

import tamis

TAMIS = Path(sys.executable).with_name("tamis")
FAILING_CALLS = Path(__file__).parents[2] / "faults" / "failing_calls.c"

WRITER = """
import sys
import h5py

path, mode = sys.argv[1:]
file = h5py.File(path, "w", libver="latest")
steps = file.create_dataset("T", (0, 32, 32), "f4", maxshape=(None, 32, 32), chunks=(1, 32, 32), compression="gzip")
if mode == "swmr":
    file.swmr_mode = True
for step in range(5):
    steps.resize(step + 1, 0)
    steps[step] = step
file.flush()
print("open", flush=True)
sys.stdin.readline()
steps.resize(6, 0)
steps[5] = 5
file.close()
"""


@contextmanager
def writer(path: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has written five steps, and writes the sixth when it ends."""
    command = [sys.executable, "-c", WRITER, str(path), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.communicate("\n")


def run(*words: str | Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run([TAMIS, *words], capture_output=True, text=True, check=False, env=os.environ | (env or {}))
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.check
def test_u103_file_of_a_swmr_writer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer(path, "swmr"):
        with tamis.open(path) as file:
            assert file["T"].shape == (5, 32, 32)
            assert np.array_equal(file["T"][:, 3, 4], np.arange(5))
        assert run("inspect", path)[0] == 0
        assert run("verify", path, path)[0] == 0
        code, text = run("repack", path, tmp_path / "b.h5", "-f", "T:deflate(1)")
        assert code == 1
        assert "another program is writing it" in text
        assert not (tmp_path / "b.h5").exists()
    with tamis.open(path) as file:
        assert file["T"].shape == (6, 32, 32)
    assert run("repack", path, tmp_path / "b.h5", "-f", "T:deflate(1)")[0] == 0


@pytest.mark.matrix
@pytest.mark.parametrize("command", ["inspect", "repack", "verify", "plan"])
def test_u103_file_that_another_program_writes_is_refused_in_words(tmp_path: Path, command: str) -> None:
    path = tmp_path / "a.h5"
    others = {"repack": ["b.h5"], "verify": [path]}.get(command, [])
    with writer(path, "locked"):
        code, text = run(command, path, *others)
    assert code == 1
    assert "another program has it open for writing: wait until it is closed there" in text
    assert "errno" not in text


def test_u103_file_whose_writer_died_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with writer(path, "locked") as process:
        process.kill()
    code, text = run("inspect", path)
    assert code == 1
    assert "`h5clear -s FILE` removes the mark of the writer" in text


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@needs.needs("cc")
def test_u103_file_system_without_locks_is_named(tmp_path: Path) -> None:
    """HDF5 ignores that locks are not implemented (ENOSYS), but not that none are left (ENOLCK), as NFS says."""
    library = tmp_path / "failing_calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, FAILING_CALLS, "-ldl"], check=True)
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "a.h5"
    with writer(path, "locked"):
        pass
    faults = {"FAULT_FOLDER": str(path.parent), "FAULT_KIND": "lock", "FAULT_NUMBER": "0"}
    code, text = run("inspect", path, env=faults | {"FAULT_ERROR": str(errno.ENOLCK), "LD_PRELOAD": str(library)})
    assert code == 1
    assert "set HDF5_USE_FILE_LOCKING=FALSE" in text
