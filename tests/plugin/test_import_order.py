"""Importing tamis is enough for h5py, and our filter is used whichever of tamis and hdf5plugin comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]

# Our filter refuses a chunk with five long axes; hdf5plugin's stores it unfiltered without a word.
FIVE_AXES = """
import sys
import h5py
import numpy as np
with h5py.File(sys.argv[1], "w") as file:
    try:
        file.create_dataset("v", data=np.ones((4,) * 5), chunks=(4,) * 5, compression=32013, compression_opts=(5,))
    except ValueError as error:
        print("refused:", error)
    else:
        print("mask", file["v"].id.get_chunk_info(0).filter_mask)
"""

ROUND_TRIP = """
import sys
import h5py
import numpy as np
values = np.sin(np.arange(5000.0)).reshape(50, 100)
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("v", data=values, chunks=(20, 30), compression=32013, compression_opts=(2, 0, 20))
with h5py.File(sys.argv[1]) as file:
    plist, error = file["v"].id.get_create_plist(), np.abs(file["v"][...] - values).max()
    assert 0 < error < 1e-4, error
    assert file["v"].id.get_chunk_info(0).filter_mask == 0
    print(plist.get_filter(0)[3].decode())
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    "imports",
    ["import tamis", "import h5py, tamis", "import hdf5plugin, tamis", "import tamis, hdf5plugin"],
)
def test_importing_tamis_before_or_after_hdf5plugin_uses_our_filter(python: Run, tmp_path: Path, imports: str) -> None:
    said = python(f"{imports}\n{FIVE_AXES}", tmp_path / "five.h5")
    assert "refused:" in said
    assert "zfp: chunk must have only 1...4 non-unity dimensions, got 4x4x4x4x4 with 5; use 1x4x4x4x4" in said


def test_importing_only_hdf5plugin_uses_its_filter(python: Run, tmp_path: Path) -> None:
    # What tells the two apart in the test above.
    assert "mask 1" in python(f"import hdf5plugin\n{FIVE_AXES}", tmp_path / "five.h5")


@pytest.mark.matrix
@pytest.mark.parametrize("imports", ["import tamis", "import hdf5plugin, tamis", "import tamis, hdf5plugin"])
def test_importing_tamis_lets_h5py_write_and_read(python: Run, tmp_path: Path, imports: str) -> None:
    assert "(tamis, ZFP codec 5)" in python(f"{imports}\n{ROUND_TRIP}", tmp_path / "values.h5")


def test_importing_nothing_with_plugin_path_lets_h5py_write_and_read(
    python: Run, tmp_path: Path, plugins: Path
) -> None:
    assert "(tamis, ZFP codec 5)" in python(ROUND_TRIP, tmp_path / "values.h5", plugins=plugins)


def test_importing_nothing_without_plugin_path_refuses(python: Run, tmp_path: Path) -> None:
    said = python(f"import os\nos.environ['HDF5_PLUGIN_PRELOAD'] = '::'\n{ROUND_TRIP}", tmp_path / "v.h5", exit_code=1)
    assert "Unknown compression filter" in said


def test_plugin_path_command_prints_folder_of_plugin(python: Run, plugins: Path) -> None:
    said = python("import sys; from tamis.cli import main; sys.argv = ['tamis', 'plugin-path']; main()")
    assert Path(said.strip()) == plugins
    assert [entry.suffix for entry in plugins.iterdir()] == [".so"]
