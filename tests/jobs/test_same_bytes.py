"""The same call makes the same bytes in every process, whatever the order that Python gives to sets."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

zarr = pytest.importorskip("zarr")

SEEDS = ("1", "2", "3", "4")
"""Of the hashes of texts: two of them order a set of two texts differently, with all but one case in eight."""

JOBS = """
import sys
import tamis

folder = sys.argv[1]
for source in ("a.h5", "a.zarr"):
    for number, (ending, options) in enumerate((
        ("h5", {"missing": "mask"}),
        ("nc", {}),
        ("zarr", {"missing": "mask"}),
        ("zarr", {"zarr_format": 2}),
        ("zarr", {"shards": 4, "missing": "mask", "history": True}),
    )):
        name = f"{folder}/{source}-{number}.{ending}"
        tamis.repack(source, name, {"*": "zfp(accuracy=0.1)|shuffle|deflate(4)"}, **options)
"""


def write_sources(folder: Path) -> None:
    values = np.random.default_rng(4).normal(size=(40, 60)).astype("f4")
    values[3:5, 7] = 1e20
    attributes = {"units": "K", "_FillValue": np.float32(1e20), "long_name": "a field", "cell_methods": "time: mean"}
    with h5py.File(folder / "a.h5", "w") as file:
        file.attrs.update({"title": "several", "Conventions": "CF-1.8", "history": "made"})
        for name in ("ts", "group/ps", "group/inner/u"):
            dataset = file.create_dataset(name, data=values, chunks=(10, 20), compression="gzip")
            dataset.attrs.update(attributes)
    root = zarr.create_group(folder / "a.zarr")
    for name in ("ts", "ps"):
        array = root.create_array(name, shape=values.shape, chunks=(10, 20), dtype="f4", fill_value=np.nan)
        array[...] = values
        array.attrs.update({key: float(value) if key == "_FillValue" else value for key, value in attributes.items()})


def made(sources: Path, folder: Path, seed: str) -> dict[str, str]:
    """Return a checksum of each file that the jobs write in a process of its own."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", JOBS, str(folder)], check=True, cwd=sources, env=environment)
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.check
def test_bytes_do_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    write_sources(tmp_path)
    first, *others = (made(tmp_path, tmp_path / f"out{seed}", seed) for seed in SEEDS)
    assert len(first) > 100
    for other in others:
        assert {name for name in first | other if first.get(name) != other.get(name)} == set()
