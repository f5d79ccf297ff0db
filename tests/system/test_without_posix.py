"""tamis where Python lacks what only POSIX or Linux has: everything is imported, and the usual work is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import without_posix

TAMIS = Path(sys.executable).with_name("tamis")
VALUES = np.sin(np.arange(1 << 16, dtype="f4").reshape(256, 256) / 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two files."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.h5", "b.h5"):
        with h5py.File(folder / name, "w") as file:
            file.create_dataset("x", data=VALUES, chunks=(32, 64), compression="gzip")
            file.create_dataset("plain", data=VALUES)
            file.create_dataset("other", data=VALUES, chunks=(32, 64), compression="lzf")
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    place = tmp_path / "site"
    place.mkdir()
    return without_posix.environment(place)


def run(env: dict[str, str], *words: str | os.PathLike[str]) -> str:
    """Run a program, and return what it prints."""
    done = subprocess.run([*map(os.fspath, words)], env=env, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_all_modules_are_imported_without_calls_of_posix(env: dict[str, str]) -> None:
    code = """
import importlib, os, pkgutil, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    raise AssertionError(name)
assert not hasattr(os, "pread")
import tamis, tamis_command, tamis_xarray
scripts = {"tamis.__main__"}
for package in (tamis, tamis_xarray):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name not in scripts:
            importlib.import_module(found.name)
            print(found.name)
"""
    names = run(env, sys.executable, "-c", code).split()
    assert {"tamis.system.windows", "tamis.jobs.many.state", "tamis.cli.ending"} <= set(names)


def test_file_is_inspected_repacked_and_verified_without_calls_of_posix(
    env: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    source, target = folder / "a.h5", tmp_path / "new.h5"
    assert "deflate" in run(env, TAMIS, "inspect", source)
    run(env, TAMIS, "repack", source, target, "--filter", "*:zfp(accuracy=0.001)")
    run(env, TAMIS, "verify", source, target, "--bound", "*:0.001")
    with h5py.File(target) as file:
        assert 0 < np.abs(file["x"][:] - VALUES).max() <= 0.001


def test_folder_is_repacked_in_processes_without_calls_of_posix(
    env: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    run(env, TAMIS, "repack", folder, target, "--workers", "2")
    assert {"a.h5", "b.h5"} <= set(os.listdir(target))
    run(env, TAMIS, "repack", folder, target, "--workers", "2")
    run(env, TAMIS, "verify", folder / "b.h5", target / "b.h5")


def test_store_is_written_and_replaced_without_calls_of_posix(
    env: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new.zarr"
    for _ in range(2):
        run(env, TAMIS, "repack", folder / "a.h5", target, "--overwrite")
        run(env, TAMIS, "verify", folder / "a.h5", target)
    assert {name for name in os.listdir(tmp_path) if "tamis" in name} == set()


def test_threads_read_arrays_without_calls_of_posix(env: dict[str, str], folder: Path) -> None:
    code = """
import sys, threading, numpy as np, tamis, tamis.system.files
assert tamis.system.files._MOVES
with tamis.open(sys.argv[1]) as file:
    whole = file["x"][:]
    assert np.array_equal(whole, file["plain"][:])
    def read():
        for row in range(256):
            assert np.array_equal(file["x"][row], whole[row])
            assert np.array_equal(file["plain"][row], whole[row])
            assert np.array_equal(file["other"][row], whole[row])
    errors = []
    threading.excepthook = errors.append
    threads = [threading.Thread(target=read) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors, errors
"""
    run(env, sys.executable, "-c", code, folder / "a.h5")
