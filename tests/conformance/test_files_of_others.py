"""The sweep finds faults that are planted, and calls sound files sound."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import needs
import netCDF4
import numpy as np
import pytest
import sweep
import zarr

SCRIPT = Path(sweep.__file__)

pytestmark = needs.needs("h5repack", "nccopy")  # they say which files may be refused


def swept(folder: Path, *options: str, code: int) -> list[dict[str, Any]]:
    output = folder.parent / "problems.jsonl"
    command = [sys.executable, SCRIPT, folder, "-o", output, "--limit", "100", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (folder := tmp_path / "files").mkdir()
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(64.0).reshape(8, 8), chunks=(4, 4))
        file.create_dataset("big-endian", data=np.arange(64.0), dtype=">f8", chunks=(16,))
    with netCDF4.Dataset(folder / "b.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", 3)
        file.createVariable("t", "f4", ("time",))[:] = [1, 2, 3]
    zarr.create_array(folder / "c.zarr", data=np.arange(6))
    (folder / "notes.txt").write_text("no array")
    return folder


@pytest.mark.check
@pytest.mark.peer
def test_sweep_of_sound_files_is_clean(folder: Path) -> None:
    lines = swept(folder, "--fast", "--steps", "look,opened,lossless,lossy", code=0)
    assert {line["file"] for line in lines} == {"a.h5", "b.nc", "c.zarr"}
    assert {line["verdict"] for line in lines} <= {"ok", "note"}


@pytest.mark.check
def test_sweep_of_a_damaged_file_is_clean(folder: Path) -> None:
    (folder / "a.h5").write_bytes((folder / "a.h5").read_bytes()[:700])
    lines = swept(folder, "--fast", "--steps", "look", code=0)
    assert all(line["verdict"] == "ok" for line in lines)


@pytest.mark.check
def test_sweep_continues_after_files_that_are_done(folder: Path) -> None:
    swept(folder, "--fast", "--steps", "look", "--sample", "1", code=0)
    lines = swept(folder, "--fast", "--steps", "look", "--skip-done", code=0)
    assert sorted(line["file"] for line in lines) == ["a.h5", "b.nc", "c.zarr"]


FAULTS = {
    "traceback": "print('Traceback (most recent call last):', file=sys.stderr); sys.exit(1)",
    "signal": "os.kill(os.getpid(), 11)",
    "noise": "print('HDF5: infinite loop closing library', file=sys.stderr)",
    "silent": "sys.exit(1)",
    "leftovers": "open('.a.h5.part', 'w')",
    "timeout": "import time; time.sleep(60)",
    "refused": "print('expected another file', file=sys.stderr); sys.exit(1)",
}


@pytest.mark.peer
@pytest.mark.parametrize("verdict", FAULTS)
def test_sweep_finds_a_planted_fault(folder: Path, tmp_path: Path, monkeypatch: Any, verdict: str) -> None:
    command = tmp_path / "tamis"
    command.write_text(f"#!{sys.executable}\nimport os, sys\n{FAULTS[verdict]}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sweep, "TAMIS", command)
    monkeypatch.setattr(sweep.Sweep, "read", lambda *_, **__: [])
    (target := tmp_path / "targets").mkdir()
    problems = sweep.Sweep(folder / "a.h5", "a.h5", target, 2, frozenset(["plan"]), fast=False).run()
    assert verdict in {problem.verdict for problem in problems}


def copies(source: Path, copy: Path, tolerance: float | None) -> list[str]:
    answer = sweep.in_process("copies", (source, copy, tolerance), 100)
    assert isinstance(answer, list)
    return answer


@pytest.mark.check
def test_sweep_finds_other_values_in_a_copy(folder: Path) -> None:
    copy = folder.parent / "copy.h5"
    shutil.copy(folder / "a.h5", copy)
    assert copies(folder / "a.h5", copy, None) == []
    with h5py.File(copy, "a") as file:
        file["x"][2, 3] += 0.01
        file.create_dataset("y", data=[1])
    assert copies(folder / "a.h5", copy, None) == ["x: values in the copy differ"]
    assert copies(folder / "a.h5", copy, 0.02) == []
    assert "more than 0.001" in copies(folder / "a.h5", copy, 0.001)[0]


def test_sweep_finds_other_attributes_and_types_in_a_copy(folder: Path) -> None:
    copy = folder.parent / "copy.h5"
    with h5py.File(folder / "a.h5", "a") as file:
        file["x"].attrs["units"] = "K"
        file["z"] = 1
    with h5py.File(copy, "w") as file:
        file["x"] = np.arange(64, dtype="f4").reshape(8, 8)
    problems = copies(folder / "a.h5", copy, None)
    assert any("type is float64, in the copy float32" in text for text in problems)
    assert any("attribute 'units' is not in the copy" in text for text in problems)
    assert "z: is not in the copy" in problems
