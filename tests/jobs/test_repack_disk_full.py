"""A disk that is full at any point of a run: a message that names the target, the old target, nothing left over."""

from __future__ import annotations

import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import h5py
import pytest
from inprocess import run_tamis

OLD = b"what was there before"
LOSSY = ["zfp(accuracy=0.1)", "pack(bound=0.1)|shuffle|deflate(4)"]
OPTIONS = [
    "-f",
    "l*:deflate(4)",
    "-f",
    "time*:deflate",
    "-c",
    "TS:30x16x16",
    "--overwrite",
]

# The room is looked at first, which has its own tests; here it seems to be there. Python 3.13.0 keeps compiled modules
# that the limit cut off.
RUN = """
import resource, shutil, signal, sys
sys.dont_write_bytecode = True
limit = int(sys.argv.pop(1))
if limit >= 0:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
found = shutil.disk_usage(".")
shutil.disk_usage = lambda path: found._replace(free=1 << 60)
from tamis.cli import main
main(prog_name="tamis")
"""


@pytest.fixture
def source(sample: Path, tmp_path: Path) -> Path:
    """A file with more than filters touch: objects are copied when the disk is full too."""
    path = tmp_path / "source.nc"
    shutil.copy(sample, path)
    with h5py.File(path, "r+") as file:
        file["attributes"] = 1
        for number in range(40):
            file["attributes"].attrs[f"a{number}"] = bytes([65 + number % 26]) * 1000
        for number in range(20):
            file[f"group{number}/kept"] = [float(number)] * 5000
    return path


def words(source: Path, target: Path, lossy: str) -> list[str | Path]:
    return ["repack", source, target, "--quiet", "-f", f"TS:{lossy}", *OPTIONS]


def repack(source: Path, target: Path, lossy: str, limit: int = -1) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that is not told how much room there is; no file may be larger than a limit."""
    command = [sys.executable, "-c", RUN, str(limit), *words(source, target, lossy)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def repack_here(source: Path, target: Path, lossy: str, limit: int = -1) -> subprocess.CompletedProcess[str]:
    """Do the same in this process, which costs half a second less."""
    before, found = resource.getrlimit(resource.RLIMIT_FSIZE), shutil.disk_usage(".")
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with mock.patch("shutil.disk_usage", return_value=found._replace(free=1 << 60)):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]) if limit >= 0 else before)
            return run_tamis(*words(source, target, lossy))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
        sys.dont_write_bytecode = compiles


def assert_refused(done: subprocess.CompletedProcess[str], target: Path, reason: str) -> None:
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    needed = re.escape(f"tamis repack: {target}: cannot be written: {reason}") + r"(: it takes up to .* are left)?\n"
    assert re.fullmatch(needed, done.stderr), done.stderr
    assert target.read_bytes() == OLD
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.check
@pytest.mark.parametrize("lossy", LOSSY)
def test_repack_file_size_limit_at_many_points_is_refused_by_its_name(lossy: str, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "target.nc"
    target.parent.mkdir()
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    assert repack(source, target, lossy).returncode == 0
    size = target.stat().st_size
    reason = "the file system, or ulimit -f, takes no file of that size: File too large"
    chance = random.Random(0)
    for run, limits in (
        (repack, (5_000, size - 1)),
        (repack_here, (0, 1, 96, 5_000, size - 1, *(chance.randrange(size) for _ in range(4)))),
    ):
        for limit in limits:
            target.write_bytes(OLD)
            assert_refused(run(source, target, lossy, limit), target, reason)
    # HDF5 takes metadata in blocks of 2 KiB, and gives back what it did not need of the last one.
    assert repack(source, target, lossy, size + 2048).returncode == 0
    assert target.stat().st_size == size
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.check
@pytest.mark.parametrize("lossy", LOSSY)
def test_repack_disk_full_at_many_points_says_so_and_leaves_nothing(lossy: str, source: Path, small_disk: Path) -> None:
    target, filling = small_disk / "target.nc", small_disk / "filling"
    assert repack(source, target, lossy).returncode == 0
    size = target.stat().st_size
    target.write_bytes(OLD)
    free = shutil.disk_usage(small_disk).free
    chance = random.Random(1)
    edges = (0, 4096, 8192, 12288, 16384, 65536, size // 4096 * 4096)
    for run, rooms in (
        (repack, (65536, chance.randrange(size))),
        (repack_here, (*edges, *(chance.randrange(size) for _ in range(4)))),
    ):
        for room in rooms:
            filling.write_bytes(bytes(free - room // 4096 * 4096))
            done = run(source, target, lossy)
            filling.unlink()
            assert_refused(done, target, "the disk is full: No space left on device")
    assert repack(source, target, lossy).returncode == 0


@pytest.mark.check
def test_repack_disk_full_when_a_run_is_resumed_keeps_what_was_left(source: Path, small_disk: Path) -> None:
    """Killed, then no room, then room: nothing of the first run is lost."""
    target, filling = small_disk / "target.nc", small_disk / "filling"
    code = """
import os, signal, sys, tamis
def progress(what, done, total):
    if what.startswith("verifying"):
        os.kill(os.getpid(), signal.SIGKILL)
tamis.repack(sys.argv[1], sys.argv[2], {"TS": "zfp(accuracy=0.1)"}, progress=progress)
"""
    subprocess.run([sys.executable, "-c", code, source, target], check=False)
    left = sorted(os.listdir(small_disk))
    assert len(left) == 2
    filling.write_bytes(bytes(shutil.disk_usage(small_disk).free - 500_000))
    command = [sys.executable, "-c", RUN, "-1", "repack", source, target, "-f", "TS:zfp(accuracy=0.1)", "--resume"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()[1:]
    full = f"tamis repack: {target}: cannot be written: the disk is full: No space left on device: it takes up to "
    assert line.startswith(full)
    assert done.stderr.startswith(f"tamis repack: an interrupted run left {small_disk / left[0]} (30 chunks, ")
    filling.unlink()
    assert sorted(os.listdir(small_disk)) == left
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    steps = "writing /TS (1 of 1)", "decoding 26 datasets copied as stored", "verifying 1 dataset"
    progress = [f"tamis repack: {step}: done" for step in steps]
    assert (done.returncode, re.sub(r" in [\d.]+ s", "", done.stderr).splitlines()) == (0, progress)
    assert "30 of 30 chunks were reused from an interrupted run\n" in done.stdout
    assert os.listdir(small_disk) == ["target.nc"]


def test_files_that_could_not_be_closed_leave_nothing_in_hdf5(
    source: Path, tmp_path: Path, run_script: Callable[..., str]
) -> None:
    """An identifier that an error keeps, as in notebooks, crashes calls of HDF5 that go over all files."""
    script = tmp_path / "script.py"
    script.write_text(
        "import resource, signal, sys, h5py, tamis\n"
        "from h5py import h5f\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True\n"
        "source, target, other = sys.argv[1:]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    tamis.repack(source, target, {'TS': 'zfp(accuracy=0.1)'})\n"
        "except tamis.TamisError as error:\n"
        "    kept = error\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "assert not h5f.get_obj_ids(types=h5f.OBJ_FILE)\n"
        "with h5py.File(other, 'w') as file:\n"
        "    file['x'] = [1.0, 2.0]\n"
        "    tamis.copy(other, other + '2')\n"
        "    with tamis.open(other) as opened:\n"
        "        print(opened['x'][...], kept)\n"
    )
    said = run_script(script, str(source), str(tmp_path / "target.nc"), str(tmp_path / "other.h5"))
    assert "[1. 2.]" in said
    assert "File too large" in said
