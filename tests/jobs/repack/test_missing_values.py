"""Known defect D9: a fill value beside valid ones, which zfp of today's tools keeps at their cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest

import tamis

Run = Callable[..., str]
Make = Callable[..., Any]

RECIPE = "zfp(accuracy=0.1)|shuffle|deflate(4)"

# Reads a variable and its companion as others do, in a process without tamis.
READ = """
import sys, h5py, hdf5plugin, numpy
with h5py.File(sys.argv[1]) as file:
    name = sys.argv[2]
    found = {"values": file[name][()]}
    if name + "_missing" in file:
        found["flags"] = file[name + "_missing"][()]
        found["table"] = file[name + "_missing"].attrs["flag_missing_values"]
numpy.savez(sys.argv[3], **found)
assert not [each for each in sys.modules if each.startswith("tamis")]
"""


@pytest.fixture(params=["the sample", "pop_sst_60days.nc"])
def source(request: pytest.FixtureRequest, make_ocean: Make, tmp_path: Path) -> tuple[Path, str, Any]:
    """A file with missing values, the name of the variable that has them, and its values."""
    if request.param == "the sample":
        return tmp_path / "a.nc", "TS", make_ocean(tmp_path / "a.nc")
    path = needs.real(request.param)
    with h5py.File(path) as file:
        return path, "SST", file["SST"][()]


def missing(values: Any) -> Any:
    return ~(np.abs(values) < 1e30)


def read_elsewhere(path: Path, name: str) -> Any:
    env = {each: value for each, value in os.environ.items() if not each.startswith("HDF5_PLUGIN")}
    out = path.with_suffix(".npz")
    subprocess.run([sys.executable, "-c", READ, str(path), name, str(out)], env=env, check=True)
    return np.load(out)


def same_bits(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.view("u4"), other.view("u4")))


def test_d09_bare_zfp_loses_the_neighbours(source: tuple[Path, str, Any]) -> None:
    """What we promise against: without care a tenth of the values near coasts is lost."""
    _, _, values = source
    part = np.where(np.isfinite(values[:4]), values[:4], np.float32(9.96921e36))
    mode = tamis.Zfp(accuracy=0.1).mode
    again = tamis.zfp.decode(tamis.zfp.encode(part, mode), part.shape, part.dtype, mode)
    assert np.abs(again - part)[~missing(part)].max() > 1


@pytest.mark.parametrize("chunks", [(28, 16, 16), (12, 64, 64)])
@pytest.mark.matrix
def test_d09_exact_keeps_the_bound_and_every_bit_for_all_readers(
    source: tuple[Path, str, Any], chunks: tuple[int, ...], tmp_path: Path
) -> None:
    path, name, values = source
    tamis.repack(path, tmp_path / "b.nc", {name: RECIPE}, chunks={name: chunks})
    found, gaps = read_elsewhere(tmp_path / "b.nc", name)["values"], missing(values)
    assert np.abs(found - values)[~gaps].max() <= 0.1
    assert same_bits(found[gaps], values[gaps])


@pytest.mark.matrix
@pytest.mark.parametrize("chunks", [(28, 16, 16), (12, 64, 64)])
def test_d09_companion_keeps_the_bound_and_lets_all_readers_restore_every_bit(
    source: tuple[Path, str, Any], chunks: tuple[int, ...], tool: Run, tmp_path: Path
) -> None:
    path, name, values = source
    target, gaps = tmp_path / "b.nc", missing(values)
    result = tamis.repack(path, target, {name: RECIPE}, chunks={name: chunks}, missing="mask")
    dataset = result.datasets[0]
    assert dataset.lossless_chunks == dataset.lossless_for_growth
    with tamis.open(target) as file:
        restored = file[name][()]
    assert np.abs(restored - values)[~gaps].max() <= 0.1
    assert same_bits(restored[gaps], values[gaps])
    found = read_elsewhere(target, name)
    assert np.abs(found["values"] - values)[~gaps].max() <= 0.1
    assert np.array_equal(found["flags"] != 0, gaps)
    assert same_bits(found["table"][found["flags"][gaps].astype(int) - 1], values[gaps]), "as docs/missing.md says"
    said = tool("ncdump", "-h", target)
    assert f"ubyte {name}_missing(" in said
    if name == "TS":  # the other has a hundred megabytes of text
        tool("ncdump", "-v", f"{name},{name}_missing", target)
