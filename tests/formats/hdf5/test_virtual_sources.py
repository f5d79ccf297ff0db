"""Known defect U102: virtual datasets are read by tamis, whatever filters their sources have."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

_MASTER = """
import h5py, hdf5plugin, numpy as np
values = np.arange(12 * 16 * 16, dtype="u4").reshape(12, 16, 16)
layout = h5py.VirtualLayout(values.shape, "u4")
for i in range(3):
    with h5py.File(f"d{i}.h5", "w") as file:
        part = values[4 * i : 4 * i + 4]
        file.create_dataset("x", data=part, chunks=(1, 16, 16), **hdf5plugin.Bitshuffle(cname="lz4"))
    layout[4 * i : 4 * i + 4] = h5py.VirtualSource(f"d{i}.h5", "x", (4, 16, 16))
with h5py.File("m.h5", "w") as file:
    file.create_virtual_dataset("v", layout)
"""

_JOBS = {
    "open": "print(np.array_equal(tamis.open('m.h5')['v'][...], values))",
    "frame": "print(np.array_equal(tamis.open('m.h5')['v'][5], values[5]))",
    "inspect": "print(tamis.inspect('m.h5')['v'].layout == 'virtual')",
    "repack": "print(tamis.repack('m.h5', 'o.h5', {'v': 'shuffle|deflate(4)'}).datasets[0].largest_error == 0)",
    "zarr": "print(tamis.repack('m.h5', 'o.zarr', {'v': 'shuffle|deflate(4)'}).datasets[0].largest_error == 0)",
    "verify": "tamis.repack('m.h5', 'p.h5', {'v': 'deflate(1)'}); print(tamis.verify('m.h5', 'p.h5').ok)",
    "folder": "print(tamis.repack_many('.', 'out', {}, include='?*.h5', workers=1).ok)",
    "xarray": "print(np.array_equal(xr.open_dataset('m.h5', engine='tamis', phony_dims='sort')['v'], values))",
}


@pytest.mark.matrix
@pytest.mark.parametrize("job", _JOBS)
def test_u102_master_over_bitshuffle_is_read_without_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("needs hdf5plugin")
    monkeypatch.delenv("HDF5_PLUGIN_PATH", raising=False)
    subprocess.run([sys.executable, "-c", _MASTER], cwd=tmp_path, check=True)
    start = (
        "import numpy as np, tamis, xarray as xr\nvalues = np.arange(12 * 16 * 16, dtype='u4').reshape(12, 16, 16)\n"
    )
    command = [sys.executable, "-c", start + _JOBS[job]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.split()[-1:] == ["True"], done.stderr


def virtual(path: Path, layout: h5py.VirtualLayout, **options: Any) -> Path:
    with h5py.File(path, "w", libver="v110") as file:
        file.create_virtual_dataset("v", layout, **options)
    return path


def check(path: Path, keys: list[Any]) -> None:
    """Compare selections with h5py."""
    with h5py.File(path) as file, tamis.open(path) as own:
        for key in keys:
            np.testing.assert_array_equal(own["v"][key], file["v"][key], err_msg=str(key))


KEYS = [
    ...,
    0,
    -1,
    np.s_[3:9],
    np.s_[::3],
    np.s_[1, 2],
    np.s_[:, 3],
    np.s_[[0, 4, 9]],
    np.s_[2:2],
    np.s_[4, 1:5, ::2],
    np.s_[[1, 2, 7], 0, 1],
    (7, 3, 2),
]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    rng = np.random.default_rng(102)
    for number in range(4):
        with h5py.File(tmp_path / f"s{number}.h5", "w") as file:
            file.create_dataset("x", data=rng.normal(size=(5, 6, 4)), chunks=(2, 3, 4), compression="gzip")
            file["flat"] = rng.normal(size=(6, 4))
            file["big"] = rng.normal(size=(5, 6, 4)).astype(">f4")
    return tmp_path


def test_u102_virtual_boxes_are_read_as_by_h5py(parts: Path) -> None:
    layout = h5py.VirtualLayout((14, 6, 4), "f8")
    layout[0:5] = h5py.VirtualSource(parts / "s0.h5", "x", (5, 6, 4))
    layout[5] = h5py.VirtualSource(parts / "s1.h5", "flat", (6, 4))
    layout[6:8, 1:3] = h5py.VirtualSource(parts / "s2.h5", "x", (5, 6, 4))[1:3, 4:6]
    layout[9, :, 2] = h5py.VirtualSource(parts / "s3.h5", "x", (5, 6, 4))[4, :, 1]
    check(virtual(parts / "m.h5", layout, fillvalue=-7.5), KEYS)


def test_u102_virtual_steps_and_other_types_are_read_by_hdf5(parts: Path) -> None:
    layout = h5py.VirtualLayout((10, 6, 4), "f8")
    layout[0:10:2] = h5py.VirtualSource(parts / "s0.h5", "x", (5, 6, 4))
    check(virtual(parts / "steps.h5", layout, fillvalue=1), KEYS)
    layout = h5py.VirtualLayout((10, 6, 4), "f8")
    layout[:5] = h5py.VirtualSource(parts / "s0.h5", "big", (5, 6, 4))
    layout[5:] = h5py.VirtualSource(parts / "s1.h5", "x", (5, 6, 4))
    check(virtual(parts / "types.h5", layout), KEYS)


def test_u102_virtual_sources_of_virtual_datasets_are_read(parts: Path) -> None:
    layout = h5py.VirtualLayout((10, 6, 4), "f8")
    for number in range(2):
        layout[5 * number : 5 * number + 5] = h5py.VirtualSource(parts / f"s{number}.h5", "x", (5, 6, 4))
    virtual(parts / "m.h5", layout)
    outer = h5py.VirtualLayout((10, 6, 4), "f8")
    outer[:] = h5py.VirtualSource("m.h5", "v", (10, 6, 4))
    check(virtual(parts / "outer.h5", outer), KEYS)


def test_u102_virtual_source_that_was_resized_or_is_absent_reads_as_fill_values(parts: Path) -> None:
    layout = h5py.VirtualLayout((14, 6, 4), "f8")
    layout[0:5] = h5py.VirtualSource(parts / "s0.h5", "x", (5, 6, 4))
    layout[5:10] = h5py.VirtualSource(parts / "gone.h5", "x", (5, 6, 4))
    with h5py.File(parts / "s3.h5", "a") as file:
        del file["x"]
        file.create_dataset("x", data=np.ones((2, 6, 4)), chunks=(1, 6, 4), maxshape=(None, 6, 4))
    layout[10:14] = h5py.VirtualSource(parts / "s3.h5", "x", (5, 6, 4))[:4]
    path = virtual(parts / "m.h5", layout, fillvalue=-1)
    check(path, KEYS)
    with pytest.raises(tamis.FileError, match="a source of this virtual dataset"):
        tamis.repack(path, parts / "o.h5", {"v": "deflate(1)"})


@pytest.mark.check
def test_u102_virtual_dataset_of_many_sources_keeps_few_open(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((200, 8), "i4")
    for number in range(200):
        with h5py.File(tmp_path / f"s{number}.h5", "w") as file:
            file.create_dataset("x", data=np.full((1, 8), number, "i4"), chunks=(1, 8), compression="gzip")
        layout[number] = h5py.VirtualSource(f"s{number}.h5", "x", (1, 8))
    path = virtual(tmp_path / "m.h5", layout)
    with tamis.open(path) as file:
        array = file["v"]
        np.testing.assert_array_equal(array[...], np.arange(200)[:, None] + np.zeros((1, 8), int))
        assert len(list(Path("/proc/self/fd").iterdir())) < 400
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[150], np.full(8, 150))
    tamis.repack(path, tmp_path / "o.h5", {"v": "shuffle|deflate(1)"}, chunks={"v": (50, 8)})
    assert tamis.verify(path, tmp_path / "o.h5").ok
