"""Packages that are installed, but fail while they are imported: an error names them, and doctor finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

pytest.importorskip("numcodecs")


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """Return the environment of processes whose zfpy does not fit numcodecs, and whose matplotlib fails."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "zfpy.py").write_text("__version__ = '1.0.1.post0'\n")
    (folder / "matplotlib").mkdir()
    (folder / "matplotlib" / "__init__.py").write_text("raise ValueError('built for another Python')\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python."""
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_command_names_the_package_and_its_error(broken: dict[str, str], tmp_path: Path) -> None:
    zarr.save_array(tmp_path / "a.zarr", np.arange(5.0))
    for command in (["inspect"], ["verify", str(tmp_path / "a.zarr")], ["plan"]):
        done = run(broken, "-m", "tamis", *command, str(tmp_path / "a.zarr"))
        assert done.returncode == 1
        assert "a.zarr: zarr is installed, but cannot be imported: " in done.stderr
        assert "(raised by numcodecs/zfpy.py)" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("tamis.zarr.ZfpCodec", "zarr"),
        ("tamis.plan('examples/data/cam_ts.nc', {'TS': 'abs=0.1'}, readers='any').plot()", "matplotlib"),
    ],
)
def test_call_names_the_package_and_its_error(broken: dict[str, str], call: str, name: str) -> None:
    code = f"import tamis\ntry:\n    {call}\nexcept tamis.MissingFilterError as error:\n    print(error)"
    done = run(broken, "-c", code)
    assert done.stdout.startswith(f"{name}"), done
    assert "is installed, but cannot be imported: " in done.stdout


def test_doctor_finds_it(broken: dict[str, str], tmp_path: Path) -> None:
    done = run(broken, "-m", "tamis", "doctor", str(tmp_path))
    assert done.returncode == 1
    for name in ("numcodecs", "zarr", "matplotlib"):
        assert f"problem: {name}: cannot be imported: " in done.stdout
    assert "ValueError: built for another Python" in done.stdout
