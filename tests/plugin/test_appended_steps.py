"""U1: steps that other programs append to repacked files, in any order, come back within the tolerance."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import tamis

Run = Callable[..., str]

MIXTURES = Path(__file__).resolve().parents[1] / "plugin" / "mixtures.py"
STEPS, CHUNK = 8, 4
SHAPE = (STEPS, 16, 24)

APPEND = """
import sys
import netCDF4, numpy as np
path, values, order = sys.argv[1], np.load(sys.argv[2]), [int(each) for each in sys.argv[3].split(",")]
for step in order:
    with netCDF4.Dataset(path, "a") as nc:
        nc.set_auto_maskandscale(False)
        nc["T"][8 + step] = values[step]
assert "tamis" not in sys.modules
"""


def field(dtype: str) -> np.ndarray:
    return (280 + 10 * np.random.default_rng(0).normal(size=SHAPE)).astype(dtype)


def make(path: Path, dtype: str, fill: Any) -> None:
    with netCDF4.Dataset(path, "w") as nc:
        for name, extent in zip(("time", "y", "x"), (None, *SHAPE[1:]), strict=True):
            nc.createDimension(name, extent)
        v = nc.createVariable("T", dtype, ("time", "y", "x"), chunksizes=(CHUNK, 16, 24), zlib=True, fill_value=fill)
        v[:] = field(dtype)


def append(python: Run, path: Path, values: np.ndarray, order: str) -> None:
    np.save(path.with_suffix(".npy"), values)
    plugins = {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    python(APPEND, path, path.with_suffix(".npy"), order, env=plugins)


def assert_appended(path: Path, values: np.ndarray, bound: float, fill: Any = None) -> None:
    with h5py.File(path) as file:
        found = file["T"][STEPS:]
    assert np.abs(found.astype("f8") - values.astype("f8")).max() <= bound
    if fill is not None:
        np.testing.assert_array_equal(found == fill, values == fill)


@pytest.mark.matrix
@pytest.mark.parametrize("order", ["0,1,2,3,4,5,6,7", "7,3,6,2,5,1,4,0"])
@pytest.mark.parametrize(
    ("dtype", "fill", "accuracy"),
    [("f4", None, 0.01), ("f4", -999, 0.5), ("f4", 1e20, 0.1), ("f8", 0, 0.5), ("i4", None, 300), ("i4", -99, 300)],
)
def test_u01_steps_appended_by_netcdf4_to_a_repacked_file_are_kept(
    tmp_path: Path, python: Run, dtype: str, fill: Any, accuracy: float, order: str
) -> None:
    make(tmp_path / "a.nc", dtype, fill)
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"/T": f"zfp(accuracy={accuracy})|shuffle|deflate(4)"})
    values = field(dtype)[::-1] + 1
    if fill is not None:
        values[:, 3:9, 5:20] = fill
    append(python, tmp_path / "b.nc", values, order)
    # Chunks whose other steps are of like size go through zfp at each of the writes.
    assert_appended(tmp_path / "b.nc", values, CHUNK * accuracy, fill)


@pytest.mark.matrix
@pytest.mark.parametrize("rechunked", [False, True])
@pytest.mark.parametrize("program", ["h5repack", "nccopy"])
def test_u01_steps_appended_after_another_copy_are_kept(
    tmp_path: Path, python: Run, tool: Run, program: str, rechunked: bool
) -> None:
    make(tmp_path / "a.nc", "f4", -999)
    # nccopy of netCDF-C 4.9.0 passes on zfp where it is alone.
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"/T": "zfp(accuracy=0.5)"}, checksum=False)
    chunks = {"h5repack": ["-l", "T:CHUNK=4x8x24"], "nccopy": ["-c", "T:4,8,24"]}[program] if rechunked else []
    tool(program, *chunks, tmp_path / "b.nc", tmp_path / "c.nc")
    values = field("f4") + 1
    values[:, 3:9, 5:20] = -999
    append(python, tmp_path / "c.nc", values, "1,0,3,2,5,4,7,6")
    with h5py.File(tmp_path / "c.nc") as file:
        words = file["T"].id.get_create_plist().get_filter(0)[2]
    # nccopy (4.9.0) leaves HDF5's fill value as it is, and writes the attribute only.
    fill = -999 if program == "h5repack" else None
    assert_appended(tmp_path / "c.nc", values, CHUNK * 0.5, fill)
    assert tamis.filters.StoredZfp.parse(tuple(words)).fill == fill, "h5repack passes the note on"


def test_u01_xarray_writes_within_the_bound(tmp_path: Path) -> None:
    values = field("f4")
    values[5, 3, 7] = 3e8
    dataset = xr.Dataset({"T": (("time", "y", "x"), values)})
    encoding = tamis.encoding(dataset, {"T": "zfp(accuracy=0.1)"})
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as back:
        assert np.abs(back["T"].values.astype("f8") - values.astype("f8")).max() <= 0.1


@pytest.mark.check
@pytest.mark.peer
def test_u01_mixtures_of_values_by_every_writer_are_kept(python: Run) -> None:
    """A small part of what `tests/plugin/mixtures.py` does."""
    printed = python(str(MIXTURES), 200_000, 7)
    assert "no value over the bound, no valid value missing, no missing one valid" in printed
    done = dict(re.findall(r"^(\w.*?) +([0-9,]+)$", printed, re.MULTILINE))
    assert min(int(done[name].replace(",", "")) for name in ("chunks by zfp", "chunks without zfp")) > 20
