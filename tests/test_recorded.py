"""`tests/tools/recorded.py` finds no difference between recordings of the same code, and finds a byte that changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import recorded
from recorded_runs import Sequence, sequences


def run(*words: object) -> tuple[int, str]:
    """Run the recorder in a process of its own; give its exit code and what it printed."""
    command = [sys.executable, recorded.__file__, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.check
def test_recordings_of_one_code_are_alike(tmp_path: Path) -> None:
    only = "translate climate.nc", "translate v2.zarr", "combine to all.zarr", "Python: hdf5"
    words = [word for each in only for word in ("--only", each)]
    for name in ("before.json", "after.json"):
        code, said = run("record", tmp_path / name, "--folder", tmp_path / "work", *words)
        assert code == 0, said
    code, said = run("compare", tmp_path / "before.json", tmp_path / "after.json")
    assert code == 0, said
    assert said.endswith("runs: nothing differs\n")


def test_change_of_a_byte_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "Path('written').write_bytes(Path('../given').read_bytes())", "tamis spec lz4", "1 / 0"
    paths = []
    for content in (b"\xff a", b"\xff b"):
        folder = tmp_path / content.hex()
        (folder / "inputs").mkdir(parents=True)
        (folder / "given").write_bytes(content)
        runs = recorded.run_apart([Sequence("three", (), lines)], folder, 1, None)
        assert runs["three: 1 / 0"]["error"] == recorded.digest(b"ZeroDivisionError: division by zero")
        assert runs["three: tamis spec lz4"]["exit code"] == recorded.digest(b"0")
        paths.append(folder / "runs.json")
        recorded.write_recording(paths[-1], {}, runs)
    assert recorded.compare(*paths) == 1
    assert capsys.readouterr().out == f"three: {lines[0]}\n    file written: 3 bytes, others\n1 of 3 runs differ\n"


def test_times_and_places_are_replaced_and_sizes_are_not() -> None:
    text = "in 0.3 s: 12 kB, /x/0001/a.nc\n2026-11-28T17:00:00+00:00 tamis copy[77]: reading: done in 2.1 s"
    expected = "in N s: 12 kB, FOLDER/a.nc\nTIME tamis copy[PROCESS]: reading: done"
    assert recorded.stable_text(text, Path("/x/0001")) == expected


def test_names_of_runs_are_unique() -> None:
    names = [f"{each.name}: {line}" for each in sequences() for line in dict.fromkeys(each.lines)]
    assert len(set(names)) == len(names) >= 600
