"""Damaged files whose attributes of varying length make libhdf5 crash or loop: refused before these are read."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


def damaged(name: str, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(gzip.decompress((DATA / f"{name}.gz").read_bytes()))
    return path


NAMES = ["damaged_list.h5", "damaged_scale.nc"]


@pytest.mark.parametrize("name", NAMES)
def test_cdl_of_a_damaged_file_refused_with_the_dataset(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tamis", "inspect", "--cdl", str(damaged(name, tmp_path))]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert re.search(rf"{name}: /\w+: damaged or incomplete", run.stderr)


@pytest.mark.matrix
@pytest.mark.parametrize("name", NAMES)
def test_engine_refuses_a_damaged_file(name: str, tmp_path: Path) -> None:
    code = f"import xarray; xarray.open_dataset({str(damaged(name, tmp_path))!r}, engine='tamis')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert "FileError" in run.stderr.splitlines()[-1]
