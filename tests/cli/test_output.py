"""Output that cannot be written, or that nobody reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
TAMIS = Path(sys.executable).with_name("tamis")

COMMANDS = [
    ["inspect", SAMPLE],
    ["inspect", SAMPLE, "--json"],
    ["inspect", SAMPLE, "--as", "h5repack"],
    ["repack", SAMPLE, "target.nc", "-f", "TS:zfp(rate=8)", "--overwrite"],
    ["repack", SAMPLE, "target.nc", "-f", "TS:zfp(rate=8)", "--overwrite", "--json"],
    ["repack", SAMPLE, "target.nc", "-f", "TS:zfp(rate=8)", "--dry-run"],
    ["verify", SAMPLE, SAMPLE],
    ["spec", "zfp(rate=8)"],
    ["filters"],
    ["repack", "--help"],
]


def without_progress(text: str) -> str:
    """What stands on stderr beside the lines for finished datasets."""
    step = r"/.* \(\d+ of \d+\)|\d+ datasets?( copied as stored)?"
    line = rf"^tamis \w+: \w+ ({step}): done( in [0-9.]+ s)?\n"
    return re.sub(line, "", text, flags=re.MULTILINE)


def words(command: list[str | Path]) -> str:
    return " ".join(each if isinstance(each, str) else each.name for each in command)


@pytest.mark.matrix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_command_onto_a_full_disk_says_so_and_fails(command: list[str | Path], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [TAMIS, *command], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
        deaf = subprocess.run([TAMIS, *command], stdout=full, stderr=full, cwd=tmp_path, check=False)
    written = "; target.nc is complete" if "--overwrite" in command else ""
    assert (
        without_progress(done.stderr) == f"tamis: standard output cannot be written: No space left on device{written}\n"
    )
    assert (done.returncode, deaf.returncode) == (1, 1)
    assert (tmp_path / "target.nc").exists() == bool(written)


@pytest.mark.matrix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["repack", SAMPLE, "target.nc", "-f", "TS:zfp(accuracy=0.1)"], 0),
        (["verify", SAMPLE, "other.nc", "--bound", "TS:1e-9"], 3),
        (["inspect", "absent.nc"], 1),
    ],
    ids=["repack", "verify", "inspect"],
)
def test_u65_full_standard_error_does_not_change_the_exit_code(
    command: list[str | Path], code: int, tmp_path: Path
) -> None:
    subprocess.run([TAMIS, "repack", SAMPLE, "other.nc", "-f", "TS:zfp(accuracy=0.1)", "-q"], cwd=tmp_path, check=True)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([TAMIS, *command], stdout=subprocess.DEVNULL, stderr=full, cwd=tmp_path, check=False)
    assert done.returncode == code


@pytest.mark.matrix
@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_command_whose_output_nobody_reads_is_quiet(command: list[str | Path], tmp_path: Path) -> None:
    with subprocess.Popen(
        [TAMIS, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert without_progress(run.stderr.read()) == ""
        assert run.wait() == 1


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-f", "*:zfp(accuracy=0.1)"], 0),
        (["-f", "*:zfp(accuracy=0.1)", "--dry-run"], 0),
        (["-f", "nothing:zfp(accuracy=0.1)"], 1),
        (["-f", "*:zfp(accuracy=0.1)", "--missing", "refuse", "--min-size", "0", "--larger"], 1),
    ],
)
def test_repack_name_that_a_terminal_would_act_on_is_written_out(options: list[str], code: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x\x1b[2J"] = np.array([1, 2, np.nan, 4], "f4")
        file["t\x1b]0;"] = "text"
    command = [TAMIS, "repack", tmp_path / "a.h5", tmp_path / "b.h5", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "x\\x1b[2J" in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_command_started_without_outputs_does_its_work(command: list[str | Path], tmp_path: Path) -> None:
    closed = ["bash", "-c", '"$0" "$@" >&- 2>&-', TAMIS, *command]
    assert subprocess.run(closed, cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "target.nc").exists() == ("--overwrite" in command)
