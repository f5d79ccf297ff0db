"""Chunks that were never written and that HDF5 does not fill: their values are those that h5py reads."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from h5py import h5d, h5p, h5s, h5t
from inprocess import run_tamis

import tamis


@pytest.fixture(params=[(2,), (64,)], ids=["several chunks", "one chunk"])
def never_filled(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A dataset whose fill value HDF5 never uses (H5D_FILL_TIME_NEVER), with one chunk at most."""
    path = tmp_path / "never.h5"
    layout = h5p.create(h5p.DATASET_CREATE)
    layout.set_chunk(request.param)
    layout.set_fill_value(np.array(-99, "i4"))
    layout.set_fill_time(h5d.FILL_TIME_NEVER)
    with h5py.File(path, "w") as file:
        dataset = h5d.create(file.id, b"v", h5t.NATIVE_INT32, h5s.create_simple((64,)), layout)
        if request.param == (2,):
            dataset.write_direct_chunk((0,), np.array([7, -99], "i4").tobytes())
    return path


def test_never_filled_chunks_are_as_h5py_reads_them(never_filled: Path) -> None:
    with h5py.File(never_filled) as file:
        expected = file["v"][()]
    with tamis.open(never_filled) as file:
        assert np.array_equal(file["v"][()], expected)
        assert file["v"][40] == expected[40] == 0


@pytest.mark.parametrize("form", [2, 3])
def test_never_filled_chunks_are_the_same_in_zarr(never_filled: Path, form: int) -> None:
    with h5py.File(never_filled) as file:
        expected = file["v"][()]
    target = never_filled.with_name("never.zarr")
    for command in (["repack", never_filled, target, "--zarr-format", str(form)], ["verify", never_filled, target]):
        done = run_tamis(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert np.array_equal(zarr.open(target)["v"][...], expected)


def test_never_filled_chunks_stay_so_in_a_copy(never_filled: Path) -> None:
    copy = never_filled.with_name("copy.h5")
    for command in (["repack", never_filled, copy, "-f", "v:shuffle|deflate(1)"], ["verify", never_filled, copy]):
        done = run_tamis(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    with h5py.File(never_filled) as source, h5py.File(copy) as target:
        assert np.array_equal(target["v"][()], source["v"][()])
        assert target["v"].id.get_create_plist().get_fill_time() == h5d.FILL_TIME_NEVER
        assert target["v"].fillvalue == -99
