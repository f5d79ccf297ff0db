"""The workflow that builds wheels: what can be known of it without running it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = ("cp311", "cp312", "cp313", "cp314")
WHEELS = {
    ("linux", "x86_64"): ("manylinux_x86_64", "musllinux_x86_64"),
    ("linux", "aarch64"): ("manylinux_aarch64", "musllinux_aarch64"),
    ("macos", "arm64"): ("macosx_arm64",),
    ("macos", "x86_64"): ("macosx_x86_64",),
    ("windows", "AMD64"): ("win_amd64",),
}


def test_wheels_are_tested_by_the_list_of_make_quick() -> None:
    first = re.search(r"^FIRST := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert first is not None
    commands = SETTINGS["tool"]["cibuildwheel"]["test-command"]
    assert commands[-1] == f"python -m pytest -q -n 4 {first[1]}"


def test_wheels_are_for_the_pythons_that_the_package_names() -> None:
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(SETTINGS["project"]["classifiers"]))
    assert SETTINGS["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in named]
    assert tuple(f"cp3{minor}" for minor in named) == PYTHONS


@pytest.mark.parametrize(("platform", "processor"), WHEELS)
def test_cibuildwheel_builds_a_wheel_for_each_python(platform: str, processor: str) -> None:
    pytest.importorskip(
        "cibuildwheel", reason="cibuildwheel is not installed: pip install -c constraints.txt cibuildwheel"
    )
    command = [sys.executable, "-m", "cibuildwheel", "--platform", platform, "--archs", processor]
    done = subprocess.run(
        [*command, "--print-build-identifiers", str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {f"{python}-{kind}" for python in PYTHONS for kind in WHEELS[platform, processor]}
    assert set(done.stdout.split()) == expected
