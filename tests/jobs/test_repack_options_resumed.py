"""Each option of a repack that changes the target: a repeated call with another value makes it anew with ``resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.io import netcdf_file

import tamis
from tamis.jobs.repack.option_table import TABLE

OTHERS: dict[str, tuple[str, str, Any]] = {
    "chunks": ("a.h5", "b.h5", {"x": (16, 64)}),
    "require": ("a.h5", "b.h5", {"x": "abs=1e-9"}),
    "checksum": ("a.h5", "b.h5", False),
    "missing": ("a.h5", "b.h5", "mask"),
    "follow": ("a.h5", "b.h5", True),
    "self_contained": ("a.h5", "b.h5", True),
    "min_size": ("a.h5", "b.h5", 1 << 30),
    "larger": ("a.h5", "b.h5", True),
    "keep_classic": ("classic.nc", "b.nc", True),
    "zarr_format": ("a.h5", "b.zarr", 2),
    "shards": ("a.h5", "b.zarr", 4),
    "packed_as": ("a.h5", "b.zarr", "codecs"),
    "consolidated": ("a.h5", "b.zarr", False),
    "cloud": ("a.h5", "b.h5", True),
    "storage": ("a.h5", "b.h5", "s3"),
    "history": ("a.h5", "b.h5", False),
    "drop": ("a.h5", "b.h5", ["y"]),
}
"""Source, target and another value than the default, for which this target has other bytes."""

SAME_BYTES = {"threads", "resume", "witness"}
"""Options that change no byte of a target."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make sources whose targets each of the options changes."""
    x = np.linspace(0, 1, 64 * 64, dtype="f4").reshape(64, 64)
    x[3, 5] = np.nan
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        file.create_dataset("v", data=x)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["history"] = "made"
        file.create_dataset("x", data=x, chunks=(32, 32))
        file.create_dataset("y", data=np.random.default_rng(1).integers(0, 256, 50_000, "u1"), chunks=(50_000,))
        packed = file.create_dataset("packed", data=np.arange(4096, dtype="i2").reshape(64, 64), chunks=(64, 64))
        packed.attrs["scale_factor"], packed.attrs["add_offset"] = np.float32(0.25), np.float32(0)
        file.create_dataset("z", data=np.arange(5000, dtype="i4"), chunks=(5000,))
        layout = h5py.VirtualLayout((64, 64), "f4")
        layout[:] = h5py.VirtualSource("raw.h5", "v", (64, 64))
        file.create_virtual_dataset("v", layout)
    with netcdf_file(tmp_path / "classic.nc", "w") as classic:
        classic.createDimension("n", 4)
        classic.createVariable("x", "f4", ("n",))[:] = 0
    return tmp_path


def content(target: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of each file in a folder."""
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


def repacked(source: Path, target: Path, **options: Any) -> dict[str, bytes]:
    recipes = {"x": "zfp(accuracy=0.01)", "*": "deflate(1)"} if source.name == "a.h5" else {"x": "shuffle|deflate(1)"}
    tamis.repack(source, target, recipes, **options)
    return content(target)


def test_options_are_all_here() -> None:
    names = {option.name for option in TABLE}
    assert OTHERS.keys() | SAME_BYTES == names, "say here whether the option changes the bytes of a target"


@pytest.mark.parametrize("name", OTHERS)
def test_repeated_call_with_another_value_makes_the_target_anew(name: str, folder: Path) -> None:
    source, target, value = OTHERS[name]
    before = repacked(folder / source, folder / target)
    repeated = repacked(folder / source, folder / target, resume=True, **{name: value})
    fresh = repacked(folder / source, folder / f"fresh_{target}", **{name: value})
    assert fresh != before, "take another value, or another source"
    assert repeated == fresh, "tell --resume of the option: TargetRecord.of or _checksum_of_recipe in resuming.py"
