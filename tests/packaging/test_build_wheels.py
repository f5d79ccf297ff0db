"""A wheel does not say where and when it was built: two builds in different folders are the same, byte by byte."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import needs
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "packaging" / "build_wheels.py"
SOURCES = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "native",
    "packaging",
    "pyproject.toml",
    "src",
    "docs/man",
    "examples/data",
)

sys.path.insert(0, str(SCRIPT.parent))
SPEC = importlib.util.spec_from_file_location("build_wheels", SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
build_wheels = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build_wheels)
sys.path.remove(str(SCRIPT.parent))


def build(folder: Path) -> Path:
    """Build a wheel in a folder, of the portable kernels and as fast as the compiler can, which takes a minute."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    settings = {
        "CXXFLAGS": f"-O0 {build_wheels.without_paths(folder)}",
        "CMAKE_ARGS": "-DTAMIS_KERNELS= -DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG",
        "SOURCE_DATE_EPOCH": "1764000000",
        # A cache would give the second build what the first one made.
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder / "made",
    ]
    done = subprocess.run([*command, folder], env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "made").glob("*.whl")
    return wheel


@pytest.mark.check
def test_wheels_of_two_folders_are_the_same(tmp_path: Path) -> None:
    needs.need("c++")
    (tmp_path / "one").mkdir()
    (tmp_path / "another" / "place").mkdir(parents=True)
    first, second = build(tmp_path / "one"), build(tmp_path / "another" / "place")
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        assert one.namelist() == other.namelist()
        assert [name for name in one.namelist() if one.read(name) != other.read(name)] == []
    assert first.read_bytes() == second.read_bytes()
