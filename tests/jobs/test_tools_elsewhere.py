"""Tools stand on the faces of rooms alone, so one that is copied into a package of somebody else works there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tamis

TOOLS = Path(tamis.__file__).parent / "jobs"
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"

CODE = """
import sys
import tamis
from somebody.job import {tool}
arguments = {arguments}
theirs, ours = {tool}(*arguments), tamis.{tool}(*arguments)
assert type(theirs).__module__.startswith("somebody."), type(theirs)
assert type(ours).__module__.startswith("tamis.jobs.{tool}."), type(ours)
assert str(theirs) == str(ours)
print(theirs)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("inspect", (str(SAMPLE),), "shuffle | deflate level 2"),
        ("verify", (str(SAMPLE), str(SAMPLE)), "equal"),
        ("report", (str(SAMPLE), str(SAMPLE)), "bit by bit"),
    ],
)
def test_tool_copied_elsewhere_gives_the_same_result(
    tool: str, arguments: tuple[str, ...], shown: str, tmp_path: Path
) -> None:
    own = tmp_path / "somebody"
    shutil.copytree(TOOLS / tool, own, ignore=shutil.ignore_patterns("__pycache__"))
    for path in own.rglob("*.py"):
        path.write_text(path.read_text().replace(f"tamis.jobs.{tool}", "somebody"))
    code = CODE.format(tool=tool, arguments=arguments)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert shown in run.stdout
