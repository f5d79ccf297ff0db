"""The command `tamis verify`: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis.cli import main

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
TAMIS = Path(sys.executable).with_name("tamis")


def without_progress(text: str) -> str:
    """What stands on stderr beside the lines for finished datasets."""
    return re.sub(r"^tamis \w+: \w+ /.* \(\d+ of \d+\): done( in [0-9.]+ s)?\n", "", text, flags=re.MULTILINE)


def verify(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)], prog_name="tamis")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verify") / "small.nc"
    tamis.repack(SAMPLE, path, {"TS": "zfp(accuracy=0.1)"})
    return path


def test_verify_within_the_bound_exits_0_and_prints_errors(small: Path) -> None:
    result = verify(SAMPLE, small, "--bound", "TS:0.1", "--bound", "*:0", "-j", "2")
    assert (result.exit_code, without_progress(result.stderr)) == (0, "")
    assert result.stdout == f"{tamis.verify(SAMPLE, small, bounds={'TS': 0.1, '*': 0})}\n"
    assert "within bounds: 6 datasets compared, 5 equal" in result.stdout


def test_verify_violated_exits_3_and_says_where(small: Path) -> None:
    result = verify(SAMPLE, small, "--bound", "TS:0.001")
    assert result.exit_code == 3
    assert "violation: /TS: expected an error of at most 0.001, found 0.0" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 dataset differs: 6 datasets compared, 1 violation"


def test_verify_bits_differ_exits_3(small: Path) -> None:
    assert verify(SAMPLE, small, "--bound", "*:0").exit_code == 3
    assert verify(SAMPLE, small, "--bound", "*:0", "-v", "lat").exit_code == 0


def test_verify_without_bound_exits_3_where_values_differ(small: Path) -> None:
    result = verify(SAMPLE, small)
    assert result.exit_code == 3
    assert "expected the same bits (no bound was given), found" in result.stdout
    assert verify(SAMPLE, SAMPLE).stdout.splitlines()[-1] == "equal: 6 datasets compared"


def test_verify_json_is_the_result(small: Path) -> None:
    result = verify(SAMPLE, small, "--bound", "TS:0.001", "--json", "-v", "TS")
    assert result.exit_code == 3
    found = tamis.verify(SAMPLE, small, bounds={"TS": 0.001}, variables=["TS"])
    assert json.loads(result.stdout) == found.to_dict()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--bound", "TS"], 2, "expected NAME:BOUND such as 'TS:0.1', got 'TS'"),
        (["--bound", "TS:x"], 2, "expected a bound such as 0.1, in units of the variable, or recorded, got 'x'"),
        (["--bound", "TS:-1"], 2, "expected a bound of 0 or more for TS"),
        (["--bound", "TS:nan"], 2, "expected a bound of 0 or more for TS"),
        (["--bound", "TS:1", "--bound", "TS:2"], 2, "expected each name once in --bound"),
        (["--bound", "PS:1"], 1, "expected a dataset named 'PS', found only /TS"),
        (["-v", "PS"], 1, "expected a dataset named 'PS', found only /TS"),
    ],
)
def test_verify_refused_says_why(arguments: list[str], code: int, said: str) -> None:
    result = verify(SAMPLE, SAMPLE, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert result.stderr.startswith("tamis verify: ")


def test_verify_no_threads_is_wrong_use() -> None:
    result = verify(SAMPLE, SAMPLE, "-j", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "0 is not in the range x>=1" in result.stderr


def test_verify_whole_number_bound_is_exact(tmp_path: Path) -> None:
    for name, value in (("a.h5", 0), ("b.h5", 2**60 + 1)):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = np.array([value, 0])
    assert verify(tmp_path / "a.h5", tmp_path / "b.h5", "--bound", f"x:{2**60 + 1}").exit_code == 0
    assert verify(tmp_path / "a.h5", tmp_path / "b.h5", "--bound", f"x:{2**60}").exit_code == 3


def test_verify_unreadable_exits_1(small: Path, tmp_path: Path) -> None:
    assert verify(SAMPLE, tmp_path / "none.nc").exit_code == 1
    with h5py.File(small) as file:
        chunk = file["TS"].id.get_chunk_info(3)
    data = bytearray(small.read_bytes())
    data[chunk.byte_offset + 100] ^= 1
    (tmp_path / "damaged.nc").write_bytes(data)
    result = verify(SAMPLE, tmp_path / "damaged.nc", "--bound", "TS:0.1")
    assert result.exit_code == 1
    assert "problem: /TS: " in result.stdout
    assert "chunk at (3, 0, 0) cannot be decoded: filter 2, fletcher32" in result.stdout
    assert result.stdout.splitlines()[-1] == "failed: 6 datasets compared, 1 problem, 0 violations"


def test_verify_on_a_terminal_shows_progress_and_leaves_nothing_of_it(small: Path) -> None:
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "150"}
    with subprocess.Popen([TAMIS, "verify", SAMPLE, small], stdout=subprocess.PIPE, stderr=follower, env=env) as done:
        os.close(follower)
        seen = b""
        try:
            while got := os.read(leader, 65536):
                seen += got
        except OSError:  # the other end was closed
            pass
        printed = done.stdout.read() if done.stdout else b""
    os.close(leader)
    assert done.returncode == 3
    assert b"comparing /" in seen
    assert seen.rstrip().endswith(b"\x1b[2K"), "the bar is wiped"
    assert b"comparing" not in printed


def test_verify_help_names_exit_codes_and_options() -> None:
    text = verify("--help").stdout
    for each in (
        "--bound NAME:BOUND",
        "-j, --threads N",
        "-v, --variable NAME",
        "--json",
        "Exit codes: 0 equal or within the bounds",
    ):
        assert each in text
