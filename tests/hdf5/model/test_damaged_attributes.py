"""Damaged files whose attributes of varying length make libhdf5 crash or loop: refused before these are read."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(("name", "dataset"), [("damaged_list.h5", "/s"), ("damaged_scale.nc", "/by")])
def test_cdl_of_a_damaged_file_refused_with_the_dataset(name: str, dataset: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.decompress((DATA / f"{name}.gz").read_bytes()))
    command = [sys.executable, "-m", "tamis", "inspect", "--cdl", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert f"{dataset}: damaged or incomplete" in run.stderr
