"""A run ends with its skips by reason, and fails for one that tests/tools/skips.py does not allow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import needs
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


def run(folder: Path, *options: str, ci: bool = False, **modules: str) -> tuple[int, str]:
    """Run modules of tests in a process of its own, in CI or not; give its exit code and what it printed."""
    if not (folder / "conftest.py").exists():
        (folder / "conftest.py").write_text(LISTED)
    for name, tests in modules.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{tests}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "skip_report", "-p", "no:cacheprovider", *options, "."]
    # Other plugins take a second to import.
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | ({"CI": "true"} if ci else {})
    environment |= {"PYTHONPATH": str(TOOLS), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
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
        ci=True,
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


MANY = "@pytest.mark.parametrize('i', range(3))\ndef test(i): pytest.skip('no sea here')\n"


def test_u65_only_ci_limits_how_many_may_skip(tmp_path: Path) -> None:
    assert run(tmp_path, a=MANY)[0] == 0
    code, said = run(tmp_path, ci=True, a=MANY)
    assert (code, "ERROR: 3 skipped where 2 may: no sea here\n" in said) == (1, True)


NEEDS = """
import needs
needs.PACKAGES |= {"oar": "boat-tools", "sail": "boat-tools", "rudder": "boat-tools rudder-dev", "tar": "tar"}
def test_oar(): needs.need("tar", "oar")
def test_sail(): needs.need("sail")
@needs.needs("tar", "rudder")
def test_rudder(): pass
@needs.needs("tar")
def test_tar(): pass
"""


def test_u65_packages_that_bring_tests_back_end_a_run_in_one_line_to_paste(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").touch()
    code, said = run(tmp_path, a=NEEDS, b=skip(needs.NO_DATA) if not needs.DATA.is_dir() else PASSES)
    assert code == 0, said
    assert "    1 no oar here: apt-get install boat-tools\n" in said
    lines = said[said.index("packages that bring back skipped tests") :].splitlines()
    assert lines[1:4] == [
        "    2 boat-tools             oar, sail",
        "    1 boat-tools rudder-dev  rudder",
        "apt-get install boat-tools rudder-dev",
    ]


def test_program_that_is_absent_fails_in_ci(tmp_path: Path) -> None:
    code, said = run(tmp_path, ci=True, a=NEEDS)
    assert code == 1
    assert "2 failed, 1 passed, 1 skipped" in said
    assert "Failed: no oar here: apt-get install boat-tools" in said
    assert "ERROR: 1 skipped for a reason that tests/tools/skips.py does not allow here: no rudder here" in said


def test_programs_that_tests_name_have_packages() -> None:
    called = re.compile(r"""\bneeds?\(((?:["'][\w.+-]+["'](?:, )?)+)\)""")
    names = {
        name.strip("\"' ")
        for path in TOOLS.parent.rglob("test_*.py")
        if path.name != Path(__file__).name
        for found in called.findall(path.read_text())
        for name in found.split(",")
    }
    assert len(names) > 10
    assert names - {*needs.PACKAGES} == set()
