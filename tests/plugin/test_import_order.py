"""Importing tamis is enough for h5py, and our filter is used whichever of tamis and hdf5plugin comes first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
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


# Each of the two libraries writes what the other one reads, and hdf5plugin's filters work beside ours. Its Blosc does
# not if netCDF4 is imported first, with or without tamis: h5py then loads the plugin that netCDF4 carries.
EXCHANGE = """
import sys
import numpy as np
values = np.sin(np.arange(6000.0)).reshape(60, 100)
first, second = sys.argv[1:]
with h5py.File(first, "w") as file:
    file.create_dataset("zfp", data=values, chunks=(20, 100), compression=32013, compression_opts=(5,))
    file.create_dataset("lz4", data=values, chunks=(20, 100), **hdf5plugin.LZ4())
with netCDF4.Dataset(second, "w") as file:
    file.createDimension("y", 60)
    file.createDimension("x", 100)
    file.createVariable("plain", "f8", ("y", "x"))[:] = values
    options = {"filters": "zfp(reversible=true)", "chunksizes": (20, 100)}
    tamis.netcdf.create_variable(file, "zfp", "f8", ("y", "x"), **options)[:] = values
with netCDF4.Dataset(first) as file:
    assert (file["zfp"][:] == values).all()
with h5py.File(second) as file:
    assert (file["zfp"][:] == values).all() and (file["plain"][:] == values).all()
    print(file["zfp"].id.get_create_plist().get_filter(0)[3].decode())
with h5py.File(first) as file:
    assert (file["lz4"][:] == values).all()
for path in (first, second):
    with tamis.open(path) as file:
        assert (file["zfp"][...] == values).all()
"""
ORDERS = [", ".join(order) for order in permutations(("h5py", "hdf5plugin", "netCDF4", "tamis"))]


@pytest.mark.matrix
@pytest.mark.parametrize("order", ORDERS)
def test_libraries_imported_in_any_order_read_what_others_wrote(python: Run, tmp_path: Path, order: str) -> None:
    pytest.importorskip("netCDF4")
    said = python(f"import {order}\n{EXCHANGE}", tmp_path / "first.h5", tmp_path / "second.nc")
    assert "(tamis, ZFP codec 5)" in said
