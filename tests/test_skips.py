"""A run ends with its skips by reason, and fails for one that tests/tools/skips.py does not allow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import skips

TOOLS = Path(skips.__file__).parent

LISTED = """
import skips
skips.ALLOWED = (
    skips.Allowed("no sea here", lambda match: True, 2),
    skips.Allowed("no (?P<name>moon|sun) here", lambda match: match["name"] == "moon", 1),
)
"""
PASSES = "def test_passes(): pass\n"


def run(folder: Path, *options: str, **modules: str) -> tuple[int, str]:
    """Run modules of tests in a process of its own; give its exit code and what it printed."""
    (folder / "conftest.py").write_text(LISTED)
    for name, tests in modules.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{tests}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "skip_report", "-p", "no:cacheprovider", *options, "."]
    # Other plugins take a second to import.
    environment = os.environ | {"PYTHONPATH": str(TOOLS), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def skip(reason: str) -> str:
    return f"def test_skips(): pytest.skip({reason!r})\n"


WORKERS = pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "two workers"])


@WORKERS
@pytest.mark.matrix
def test_skips_that_may_be_are_counted_by_reason(tmp_path: Path, workers: list[str]) -> None:
    failure = "@pytest.mark.xfail(reason='no air here')\ndef test_of_a_defect(): assert False\n"
    sea, moon = skip("no sea here"), skip("no moon here")
    code, said = run(tmp_path, *workers, a=sea, b=sea, c=moon, d=PASSES, e=failure)
    assert code == 0, said
    assert "    2 no sea here\n    1 no moon here\n1 passed, 3 skipped, 1 xfailed" in said


@WORKERS
def test_skips_that_may_not_be_fail_the_run(tmp_path: Path, workers: list[str]) -> None:
    code, said = run(
        tmp_path,
        *workers,
        passes=PASSES,
        absent_from_the_list=skip("no air"),
        false_here=skip("no sun here"),
        part_of_a_text=skip("there is no sea here"),
        too_many="@pytest.mark.parametrize('i', range(3))\ndef test(i): pytest.skip('no sea here')\n",
        module="pytest.skip('no module', allow_module_level=True)\n",
        package="pytest.importorskip('absent_package')\n",
        mark="@pytest.mark.skipif(True, reason='no mark')\ndef test(): pass\n",
        fixture="@pytest.fixture\ndef x(): pytest.skip('no fixture')\ndef test(x): pass\n",
    )
    assert code == 1, said
    assert "1 passed" in said
    assert "ERROR: 3 skipped where 2 may: no sea here\n" in said
    for reason in ("no air", "no sun here", "there is no sea here", "no module", "no mark", "no fixture"):
        assert f"1 skipped for a reason that tests/tools/skips.py does not allow here: {reason}\n" in said
    assert "does not allow here: could not import 'absent_package'" in said


def test_failure_beside_skips_that_may_be_fails_the_run(tmp_path: Path) -> None:
    code, said = run(tmp_path, a=skip("no sea here"), b="def test_fails(): assert False\n")
    assert code == 1, said
    assert "1 failed, 1 skipped" in said
