"""Each package of Zarr is optional: where it is absent, an error names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

SCRIPT = """
import sys, tamis

absent, folder = sys.argv[1:]
sys.modules[absent] = None
CALLS = {
    "open": lambda: tamis.open(f"{folder}/a.zarr"),
    "repack": lambda: tamis.repack(f"{folder}/a.h5", f"{folder}/out.zarr", {}),
    "inspect": lambda: tamis.inspect(f"{folder}/a.zarr"),
    "repair": lambda: tamis.repair(f"{folder}/a.zarr"),
    "codecs": lambda: tamis.zarr.codecs("zfp(rate=8)", "f4", (4, 4)),
    "codec": lambda: tamis.zarr.ZfpCodec,
    "kerchunk": lambda: tamis.export(f"{folder}/a.h5", f"{folder}/a.json"),
    "zarr-manifest": lambda: tamis.export(f"{folder}/a.h5", f"{folder}/a.manifests", "zarr-manifest"),
    "icechunk": lambda: tamis.export(f"{folder}/a.h5", f"{folder}/a.ice", "icechunk"),
    "virtualizarr": lambda: tamis.ReferenceParser()(f"{folder}/a.h5", None),
}
for name, call in CALLS.items():
    try:
        call()
    except (ImportError, tamis.MissingFilterError) as error:
        print(name, absent in str(error), str(error).partition("pip install ")[2])
    except Exception as error:  # not about a package
        print(name, type(error).__name__)
    else:
        print(name, "done")
"""
NEED_ZARR = (
    "open",
    "repack",
    "inspect",
    "repair",
    "codecs",
    "codec",
    "kerchunk",
    "zarr-manifest",
    "icechunk",
    "virtualizarr",
)


@pytest.mark.matrix
@pytest.mark.parametrize("absent", ["zarr", "numcodecs", "icechunk", "virtualizarr"])
def test_error_names_the_extra(absent: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros((4, 4), "f4")
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    command = [sys.executable, "-c", SCRIPT, absent, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    assert answers.keys() == set(NEED_ZARR)
    if absent in ("icechunk", "virtualizarr"):
        assert answers[absent] == f"True 'tamis[{absent}]'"
        assert answers["kerchunk"] == answers["open"] == "done"
    else:
        if absent == "numcodecs":
            del answers["codec"]  # Python keeps parts of zarr, whose import failed before
        assert {answer.split(" ", 1)[1] for answer in answers.values()} == {"'tamis[zarr]'"}
