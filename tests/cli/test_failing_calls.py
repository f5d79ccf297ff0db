"""Known defects U25 and U32: what a command prints when close(), fsync() or link() fails.

Each of these calls fails through the library that `tests/faults` compiles for its sweep.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main

LIBRARY = Path(__file__).parents[1] / "faults" / "failing_calls.c"
TAMIS = Path(sys.executable).with_name("tamis")
TARGET = "out/target.nc"

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"), needs.needs("cc")]

Repack = Callable[..., tuple[int, str]]


@pytest.fixture
def sample() -> Path:
    return Path(__file__).parents[2] / "examples" / "data" / "cam_ts.nc"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = tmp_path_factory.mktemp("library") / "failing_calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", compiled, LIBRARY, "-ldl"], check=True)
    return compiled


@pytest.fixture
def repack(library: Path, sample: Path, tmp_path: Path) -> Repack:
    """Run repack while a call on files of the target's folder fails; return exit code and what it printed."""
    (tmp_path / "out").mkdir()

    def run(kind: str, number: int, error: int, *options: str) -> tuple[int, str]:
        faults = {"FAULT_KIND": kind, "FAULT_NUMBER": str(number), "FAULT_ERROR": str(error)}
        done = subprocess.run(
            [TAMIS, "repack", sample, tmp_path / TARGET, "-f", "TS:zfp(accuracy=0.1)", "-j", "1", *options],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | faults | {"LD_PRELOAD": str(library), "FAULT_FOLDER": str(tmp_path / "out")},
        )
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        assert "closed twice" not in text
        return done.returncode, text

    return run


def assert_complete(target: Path, sample: Path) -> None:
    assert os.listdir(target.parent) == [target.name]
    assert tamis.verify(sample, target, bounds={"TS": 0.1}).ok


@pytest.mark.check
def test_u25_failing_close_names_the_file_and_what_became_of_the_target(
    repack: Repack, sample: Path, tmp_path: Path
) -> None:
    target, codes = tmp_path / TARGET, []
    for number in range(14):
        target.write_bytes(b"the old file")
        error = (errno.EIO, errno.EDQUOT)[number % 2]
        code, text = repack("close", number, error, "--overwrite")
        assert "standard output" not in text
        if code == 0:
            assert_complete(target, sample)
        else:
            assert code == 1
            assert f"tamis repack: {target.parent}" in text  # the target, or its temporary file
            assert os.strerror(error) in text
            assert os.listdir(target.parent) == [target.name]
            assert target.read_bytes() == b"the old file"
        codes.append(code)
    assert codes.count(1) > 0  # where HDF5 closes what it wrote
    assert codes.count(0) > codes.count(1)  # nothing is lost by the others
    assert codes[-1] == 0  # so that all calls were seen


def test_u25_standard_output_is_named_only_where_it_fails(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(tamis, "repack", fail)
    done = CliRunner().invoke(main, ["repack", str(sample), str(tmp_path / "o.nc"), "-f", "TS:zfp(accuracy=0.1)"])
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert "standard output" not in done.output
    assert "Input/output error" in done.output


@pytest.mark.matrix
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("command", [["inspect"], ["inspect", "--json"], ["filters"], ["--help"]])
def test_u25_standard_output_that_fails_is_still_named(command: list[str], color: bool, sample: Path) -> None:
    path = [sample] * 8 if "inspect" in command else []  # more than Python holds back
    environment = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [TAMIS, *command, *path],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment | ({"FORCE_COLOR": "1"} if color else {}),
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("tamis: standard output cannot be written: No space left on device")


@pytest.mark.matrix
@pytest.mark.parametrize("options", [(), ("--overwrite",), ("--resume",)])
@pytest.mark.parametrize("error", [errno.EIO, errno.EDQUOT])
def test_u32_folder_that_cannot_be_made_durable_is_reported_with_what_is_there(
    error: int, options: tuple[str, ...], repack: Repack, sample: Path, tmp_path: Path
) -> None:
    if "--overwrite" in options:
        (tmp_path / TARGET).write_bytes(b"the old file")
    code, text = repack("sync", 2, error, *options)
    assert code == 1
    assert f"{tmp_path / TARGET}: complete and verified, but a power failure may undo the rename" in text
    assert os.strerror(error) in text
    assert_complete(tmp_path / TARGET, sample)
    if options == ("--resume",):
        code, text = repack("", 0, 0, *options)
        assert code == 0
        assert "already done" in text


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "option"), [("link", "--quiet"), ("rename", "--overwrite")])
def test_u32_failing_link_is_never_called_file_exists(kind: str, option: str, repack: Repack, tmp_path: Path) -> None:
    for error in (errno.EIO, errno.ENOSPC) if kind == "rename" else (errno.EEXIST,):
        code, text = repack(kind, 0, error, option)
        assert code == 1
        assert ("File exists" in text) == (error == errno.EEXIST)
        assert os.strerror(error) in text
        assert os.listdir(tmp_path / "out") == []
    if kind == "link":  # file systems without hard links answer with errors of many kinds: rename is next
        assert repack(kind, 0, errno.EIO, option)[0] == 0
        assert os.listdir(tmp_path / "out") == ["target.nc"]
