"""Known defect U106: links, virtual sources and raw files that are pipes, devices or folders are refused at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

_SCRIPT = """
import sys, tamis, xarray
path, name = sys.argv[1:]
jobs = {
    "open": lambda: tamis.open(path)[name][...],
    "verify": lambda: tamis.verify(path, path, variables=[name] if name != "link" else []),
    "repack": lambda: tamis.repack(path, path + ".h5", {name: "deflate(1)"} if name != "link" else {}, overwrite=True),
    "copy": lambda: tamis.repack(path, path + ".h5", {"*": "deflate(1)"}, overwrite=True),
    "inspect": lambda: tamis.inspect(path),
    "plan": lambda: tamis.plan(path),
    "xarray": lambda: xarray.open_dataset(path, engine="tamis", phony_dims="sort").load(),
}
for job, do in jobs.items():
    try:
        result = do()
        print(job, getattr(result, "problems", "done"))
    except tamis.TamisError as error:
        print(job, error)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "word"), [("pipe", "a pipe"), ("folder", "a folder"), ("device", "a device")])
@pytest.mark.parametrize("name", ["virtual", "raw", "link"])
def test_u106_other_file_that_is_no_file_is_refused_at_once(tmp_path: Path, name: str, kind: str, word: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    other = {"device": "/dev/zero"}.get(kind, str(tmp_path / kind))
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["n"] = np.arange(10.0)
        if name == "virtual":
            layout = h5py.VirtualLayout((10,), "f8")
            layout[:] = h5py.VirtualSource(other, "x", (10,))
            file.create_virtual_dataset(name, layout)
        elif name == "raw":
            file.create_dataset(name, (10,), "f8", external=[(other, 0, 80)])
        else:
            file[name] = h5py.ExternalLink(other, "/x")
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path / "m.h5"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert f"expected a file, found {word}" in done.stdout.partition("\n")[0], done.stdout
