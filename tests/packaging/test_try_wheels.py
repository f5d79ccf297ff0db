"""`make check-wheel` on a wheel of the installed files, and what it says where something is wrong."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(PACKAGING))
    spec = importlib.util.spec_from_file_location("try_wheels", PACKAGING / "try_wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(PACKAGING))
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Pack the installed files as a wheel for this Python, as pip takes it on this machine alone."""
    number = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    path = tmp_path / f"tamis-{distribution('tamis').version}-{number}-{number}-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in distribution("tamis").files or ():
            source = Path(str(file.locate()))
            if source.is_file() and ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(source, str(PurePosixPath(file)))
    return path


@pytest.mark.check
def test_wheel_works_alone_in_an_empty_environment(
    script: ModuleType, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--pythons", sys.executable, "--folder", str(tmp_path / "environments"), str(wheel)]
    assert script.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "ok", "ok", "ok", "check-wheel:"]
    assert lines[-1].endswith("failed: nothing")


def test_wheel_for_no_python_at_hand_fails(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tamis-0.1.0-cp310-cp310-linux_x86_64.whl"
    path.touch()
    assert script.main(["--pythons", sys.executable, str(path)]) == 1
    assert "check-wheel: tried with no Python" in capsys.readouterr().out


def test_failed_step_is_named_and_others_follow(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> str:
        raise script.StepError("what was said")

    steps = {"first": lambda *_: "3 packages", "second": fail, "third": lambda *_: ""}
    assert script.try_steps(steps, None, Path("a.whl"), "3.12.1") == ["3.12.1: second"]
    said = capsys.readouterr().out
    assert "FAILED 3.12.1: second\nwhat was said\n" in said
    assert "3.12.1: third" in said
    # Without the first step there is nothing to try.
    assert script.try_steps({"first": fail, "second": fail}, None, Path("a.whl"), "3.12.1") == ["3.12.1: first"]


def test_compiler_on_the_path_is_refused(script: ModuleType, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "gcc"
    program.parent.mkdir()
    program.touch(mode=0o755)
    environment = script.Environment(script.Python("3.12.1", Path(sys.executable)), tmp_path, alone=True)
    with pytest.raises(script.StepError, match="expected no compiler on the path, found gcc"):
        script.install_alone(environment, Path("a.whl"))


@pytest.mark.parametrize(
    ("version", "tag", "fits"),
    [
        ("3.11.7", "cp311-cp311", True),
        ("3.12.1", "cp311-cp311", False),
        ("3.13.0", "cp312-abi3", True),
        ("3.11.7", "cp312-abi3", False),
        ("3.12.1", "py3-none", False),
    ],
)
def test_python_fits_wheels_of_its_version(script: ModuleType, version: str, tag: str, fits: bool) -> None:
    wheel = Path(f"tamis-0.1.0-{tag}-manylinux_2_28_x86_64.whl")
    assert script.Python(version, Path("python")).fits(wheel) is fits


def test_pythons_are_found_once_each(script: ModuleType, tmp_path: Path) -> None:
    found = script.pythons([sys.executable, sys.executable, "no-such-python", str(tmp_path)])
    assert [python.minor for python in found] == [f"{sys.version_info[0]}.{sys.version_info[1]}"]
