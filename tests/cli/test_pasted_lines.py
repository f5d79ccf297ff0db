"""Known defect U60: lines to paste are broken at the width of the terminal, and messages are no plain English."""

from __future__ import annotations

import fcntl
import inspect
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.meaning.companions import MARK

TAMIS = Path(sys.executable).with_name("tamis")
CAM_TS = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(columns: int, *arguments: str, folder: Path, code: int = 0) -> str:
    """Run the command with a terminal of so many columns as its output, and return what it shows."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [TAMIS, *arguments], stdout=follower, stderr=subprocess.PIPE, cwd=folder, env=env | {"TERM": "xterm"}
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while data := os.read(leader, 65536):
                shown += data
        except OSError:  # the other end was closed
            pass
        errors = process.stderr.read() if process.stderr else b""
    os.close(leader)
    assert process.returncode == code, errors.decode()
    return ESCAPE.sub("", shown.decode(errors="surrogateescape")).replace("\r\n", "\n")


def run(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_tamis(*arguments, cwd=folder)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("columns", "name"),
    [
        (80, "surface_temperature_2000.nc"),
        (40, "surface_temperature_2000.nc"),
        (40, "surface temperature.nc"),
        (40, "it's.nc"),
        (80, "-f.nc"),
        (40, "a\tb\\.nc"),
        (40, "(x)$HOME.nc"),
    ],
)
def test_u60_lines_of_plan_run_as_they_are_pasted(columns: int, name: str, tmp_path: Path) -> None:
    shutil.copy(CAM_TS, tmp_path / name)
    given = f"./{name}" if name.startswith("-") else name
    shown = on_terminal(columns, "plan", given, "--require", "TS:abs=0.1", "--sample", "1MB", folder=tmp_path)
    lines = [
        line.replace(" OUT", " out.nc") for line in shown.splitlines() if re.match(r"tamis (repack|verify) ", line)
    ]
    assert len(lines) == 2
    env = os.environ | {"PATH": f"{TAMIS.parent}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
    with h5py.File(tmp_path / "out.nc") as file:
        assert file["TS"].id.get_create_plist().get_nfilters() > 0


@pytest.mark.matrix
@pytest.mark.parametrize("notation", ["h5repack", "nccopy", "tamis"])
def test_u60_options_of_inspect_and_spec_are_not_broken(notation: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a long name", data=np.zeros((4, 4)), chunks=(2, 2), compression=4, shuffle=True)
    piped = run("inspect", "a.h5", "--as", notation, folder=tmp_path).stdout
    assert on_terminal(30, "inspect", "a.h5", "--as", notation, folder=tmp_path) == piped
    text = ("spec", "shuffle|deflate(4)", "-v", "a long name")
    assert on_terminal(30, *text, folder=tmp_path).split("\n") == run(*text, folder=tmp_path).stdout.split("\n")


def test_u60_names_on_a_narrow_terminal_are_not_broken(tmp_path: Path) -> None:
    name = "n" * 60
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.zeros(100), chunks=(10,), compression=4)
        file["x"].attrs[MARK] = f"/{name}"
    assert f"/{name}" in on_terminal(40, "inspect", "a.h5", folder=tmp_path, code=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("repack", "a.h5", "-"),
        ("repack", "-", "b.h5"),
        ("copy", "a.h5", "-"),
        ("inspect", "-"),
        ("verify", "a.h5", "-"),
        ("plan", "a.h5", "-o", "-"),
        ("repack", "a.h5", "b.h5", "--log", "-"),
        ("export", "a.h5", "--to", "kerchunk", "-o", "-"),
    ],
    ids=" ".join,
)
def test_u60_standard_input_and_output_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(3)
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "neither reads files from standard input" in done.stderr
    assert os.listdir(tmp_path) == ["a.h5"]


def test_u60_a_file_named_like_standard_output_can_be_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(3)
    assert run("repack", "a.h5", "./-", folder=tmp_path).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["-", "a.h5"]


WRONG_KINDS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: tamis.verify(path, path, bounds=0.1), r"expected bounds to be a mapping .*, got 0\.1"),
    (lambda path: tamis.plan(path, "TS:abs=0.1"), r"expected require to be a mapping .*, got 'TS:abs=0\.1'"),
    (lambda path: tamis.inspect([path]), r"expected path to be a path .*, got \["),
    (lambda path: tamis.open(None), r"expected path to be a path .*, got None"),
    (lambda path: tamis.repack(path, 3, {}), r"expected target to be a path .*, got 3"),
    (lambda path: tamis.repack(path, path, {}, overwrite="no"), "expected overwrite to be True or False, got 'no'"),
    (lambda path: tamis.verify(path, path, variables=5), r"expected variables to be a name or several .*, got 5"),
    (lambda path: tamis.export(path, "b.json", url=5), "expected url to be text, got 5"),
    (lambda path: tamis.plan(path, ratio="10"), "expected ratio to be a number, got '10'"),
    (lambda path: tamis.inspect(path)[3], "expected path to be text, got 3"),
    (lambda path: tamis.Recipe({"x": "deflate"}, chunks=(4, 4)), r"expected chunks to be a mapping .*, got \(4, 4\)"),
]


@pytest.mark.parametrize(("call", "words"), WRONG_KINDS, ids=[words for _, words in WRONG_KINDS])
def test_u60_arguments_of_the_wrong_kind_are_refused_in_words(
    call: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(3)
    with pytest.raises(tamis.ParameterError, match=words):
        call(tmp_path / "a.h5")
    assert os.listdir(tmp_path) == ["a.h5"]


def jobs() -> dict[str, tuple[Callable[..., object], tuple[object, ...]]]:
    return {
        "inspect": (tamis.inspect, ("a.h5",)),
        "verify": (tamis.verify, ("a.h5", "a.h5")),
        "plan": (tamis.plan, ("a.h5", {"x": "abs=0.1"})),
        "repack": (tamis.repack, ("a.h5", "b.h5", {"x": "deflate"})),
        "preview_repack": (tamis.preview_repack, ("a.h5", "b.h5", {"x": "deflate"})),
        "export": (tamis.export, ("a.h5", "b.json")),
        "repair": (tamis.repair, ("a.h5",)),
        "open": (tamis.open, ("a.h5",)),
        "spec": (tamis.spec, ("zfp(rate=8)",)),
        "Recipe.load": (tamis.Recipe.load, ("a.toml",)),
    }


@pytest.mark.matrix
@pytest.mark.parametrize("name", jobs())
def test_u60_no_argument_of_any_kind_is_an_error_of_python(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file["x"] = np.zeros(3)
    function, arguments = jobs()[name]
    with open("a.h5", "rb") as stream, h5py.File("a.h5") as opened:
        parameters = [word for word in inspect.signature(function).parameters if word != "options"]
        for position, parameter in enumerate(parameters):
            for value in (None, 3, 0.5, ["x"], "x", {"x": 1}, b"x", tmp_path, stream, opened, object(), (), {1}):
                given, named = list(arguments), {}
                if position < len(arguments):
                    given[position] = value
                else:
                    named[parameter] = value
                for path in ("b.h5", "b.json"):
                    Path(path).unlink(missing_ok=True)
                with suppress(tamis.TamisError):  # any other error is one of Python
                    function(*given, **named)


def test_u60_places_are_said_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("DS1", (2,), h5py.vlen_dtype("i4"))
    done = run("repack", "a.h5", "b.zarr", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("/DS1: ") == 1
    assert done.stderr.count("a.h5: ") == 1
