"""README, Start and the demo work as printed in an empty folder, without extras and with all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from document_blocks import FIRST_PAGES, ROOT, blocks, run_session, skip_without_programs
from installation import environment_of, make_installation


@pytest.fixture(scope="module", params=["base", "all"])
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with tamis, with its extras or without them."""
    if request.param == "all":
        return Path(sys.executable)
    return make_installation(tmp_path_factory.mktemp("base") / ".venv", ["tamis"])


def prepared(folder: Path, python: Path) -> dict[str, str]:
    """Make a folder that is empty but for the environment, and return the variables of its shell."""
    (folder / ".venv").symlink_to(python.parent.parent)
    return environment_of(python) | {"TMPDIR": str(folder)}


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_u69_page_works_as_printed(page: Path, python: Path, tmp_path: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    skip_without_programs(found)
    environment = prepared(tmp_path, python)
    is_base = python != Path(sys.executable)
    for block in found:
        if block.is_session:
            run_session(block, tmp_path, environment, compares=not (is_base and block.extras))
        elif block.run and block.language in ("python", "sh") and not (is_base and block.extras):
            command = [str(python), "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
            done = subprocess.run(
                [*command, block.text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{page.name}:{block.line}: {done.stdout[-1500:]}{done.stderr[-3000:]}"


def test_line_of_the_readme_puts_the_command_on_the_path(python: Path, tmp_path: Path) -> None:
    prepared(tmp_path, python)
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0].text
    (line,) = [line for line in first.splitlines() if line.startswith(". ")]
    code = f"{line}\ncommand -v tamis\npython -c 'import tamis; print(tamis.__file__)'\n"
    script, env = ["bash", "-eu", "-c", code], {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command, module = map(Path, done.stdout.split())
    assert command == python.with_name("tamis")
    assert module.is_relative_to(python.parents[1])


@pytest.mark.check
def test_demo_works(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, ROOT / "examples" / "demo.py"],
        cwd=tmp_path,
        env=environment_of(python) | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "of 0.1 K allowed, checked value by value: kept" in done.stdout


def test_base_installation_has_no_extra(tmp_path: Path) -> None:
    """Otherwise the tests above would test nothing."""
    python = make_installation(tmp_path / ".venv", ["tamis"])
    code = "import importlib.util, sys; print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    names = ["h5py", "imagecodecs", "zstandard", "hdf5plugin", "xarray", "zarr", "netCDF4", "pytest"]
    done = subprocess.run(
        [python, "-c", code, *names], env=environment_of(python), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["h5py"]
    assert os.path.exists(python.parent / "tamis")
