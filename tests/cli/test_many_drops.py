"""An error about many datasets that the target lacks has a command to paste, of any length."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import h5py
import numpy as np
from inprocess import run_tamis


def test_command_that_leaves_out_hundreds_of_datasets_is_whole(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["kept"] = np.arange(3)
        for number in range(300):
            file[f"a group with a long name/record {number}"] = np.zeros(2, [("a", "i4"), ("b", "f8")])
    arguments = ["repack", "a.h5", "b.zarr", "--json"]
    done = run_tamis(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) < 20
    assert "and 290 more" in done.stderr
    assert json.loads(done.stdout)["error"]["message"].endswith(lines[-1])
    again = run_tamis(*shlex.split(lines[-1])[1:], cwd=tmp_path)
    assert again.returncode == 0
    assert len(json.loads(again.stdout)["notes"]) > 300
    assert (tmp_path / "b.zarr/kept/zarr.json").is_file()
