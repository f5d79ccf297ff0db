"""The installed command: whole jobs, pipes, terminals and their encodings."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


TAMIS = Path(sys.executable).with_name("tamis")


RECIPE = ("-f", "TS:zfp(accuracy=0.1)")


def without_progress(text: str) -> str:
    """What stands on stderr beside the lines for finished datasets."""
    step = r"\w+ /.* \(\d+ of \d+\)|verifying \d+ datasets?|decoding \d+ datasets? copied as stored"
    line = rf"^tamis \w+: ({step}): done( in [0-9.]+ s)?\n"
    return re.sub(line, "", text, flags=re.MULTILINE)


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TAMIS, *arguments], capture_output=True, text=True, errors="replace", check=False, env=os.environ | environment
    )


def test_installed_command_does_the_whole_job(tmp_path: Path) -> None:
    target = tmp_path / "small.nc"
    done = run("repack", SAMPLE, target, *RECIPE)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "read back and verified" in done.stdout
    shown = run("inspect", target)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "zfp accuracy, effective tolerance 2^-4 = 0.0625" in shown.stdout
    again = run("repack", SAMPLE, target, *RECIPE)
    assert (again.returncode, again.stdout) == (1, "")
    assert "File exists" in again.stderr


def test_installed_command_with_plugin_path_serves_ncdump(tmp_path: Path) -> None:
    needs.need("ncdump")
    target = tmp_path / "small.nc"
    run("repack", SAMPLE, target, *RECIPE)
    command = f'HDF5_PLUGIN_PATH=$("{TAMIS}" plugin-path) ncdump -v TS "{target}" | tail -n 3'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "}"
    assert float(done.stdout.split(";")[0].split(",")[-1]) > 200


@pytest.mark.matrix
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_installed_command_on_output_without_unicode_still_prints(encoding: str, tmp_path: Path) -> None:
    for arguments in (("inspect", SAMPLE), ("repack", SAMPLE, tmp_path / "b.nc", *RECIPE)):
        done = run(*arguments, PYTHONIOENCODING=encoding)
        assert (done.returncode, without_progress(done.stderr)) == (0, "")
        assert "/TS" in done.stdout


def test_installed_command_into_a_closed_pipe_has_no_traceback() -> None:
    command = f'"{TAMIS}" inspect "{SAMPLE}" "{SAMPLE}" | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def read_terminal(control: int) -> bytes:
    """Return everything that is shown on a terminal until its last user closes it."""
    shown = b""
    try:
        while part := os.read(control, 4096):
            shown += part
    except OSError:
        pass  # the other end is closed
    os.close(control)
    return shown


def test_installed_command_on_a_terminal_folds_to_its_width(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "b.nc", {"TS": "shuffle|bzip2(9)|deflate(4)|fletcher32"})
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [TAMIS, "inspect", "b.nc"], stdout=terminal, cwd=tmp_path, env=os.environ | {"TERM": "dumb", "COLUMNS": "80"}
    )
    os.close(terminal)
    shown = read_terminal(control)
    process.wait()
    lines = shown.decode().splitlines()
    assert max(map(len, lines)) <= 80
    at = next(i for i, line in enumerate(lines) if line.startswith("/TS "))
    assert [line.strip() for line in lines[at + 1 : at + 3]] == ["deflate(4)|", "fletcher32"]


def test_installed_command_on_a_terminal_shows_progress_and_any_name(tmp_path: Path) -> None:
    """The name must not be taken for markup in the bar either."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("[/b]", data=np.arange(4096.0).reshape(64, 64), chunks=(4, 4))
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [TAMIS, "repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "*:zfp(rate=16)"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = read_terminal(control)
    process.communicate()
    assert process.returncode == 0, shown.decode(errors="replace")[-2000:]
    assert b"256/256" in shown


def test_installed_command_interrupted_while_it_starts_has_no_traceback() -> None:
    # As if Ctrl-C came in the middle of the imports.
    code = (
        "import os, signal, sys, tamis_command\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'tamis.cli': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "tamis_command.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
