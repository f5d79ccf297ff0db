"""One set of ZFP bytes: HDF5 chunks move to Zarr and back as they are."""

from __future__ import annotations

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

import tamis

MODES: dict[str, dict[str, float]] = {
    "rate": {"rate": 16},
    "precision": {"precision": 20},
    "accuracy": {"accuracy": 0.5},
    "reversible": {"reversible": True},
    "expert": {"minbits": 64, "maxbits": 4096, "maxprec": 30, "minexp": -20},
}
TYPES = ("i4", "i8", "f4", "f8")
CHUNKS = ((40,), (8, 12), (4, 8, 6), (4, 4, 5, 6), (1, 20), (4, 1, 12), (1, 4, 8, 6), (1, 4, 1, 4, 5, 6))


@pytest.mark.check
@pytest.mark.filterwarnings("ignore:Numcodecs codecs")
def test_chunks_keep_their_bytes_from_hdf5_to_zarr_and_back(tmp_path: Path) -> None:
    """Five modes, four types, one to four axes, and unit axes."""
    names = []
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for mode, dtype, chunk in itertools.product(MODES, TYPES, CHUNKS):
            if mode == "accuracy" and dtype[0] == "i":
                continue
            shape = (chunk[0] * 2, *chunk[1:])
            values = (1000 * np.sin(np.arange(np.prod(shape)) / 9)).reshape(shape).astype(dtype)
            names.append(f"{mode}_{dtype}_{'x'.join(map(str, chunk))}")
            file.create_dataset(names[-1], data=values, chunks=chunk, **tamis.Zfp(**MODES[mode]))
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {}, consolidated=False)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r")
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(tmp_path / "b.h5") as after:
        for name in names:
            origin = (before[name].chunks[0], *(0,) * (before[name].ndim - 1))
            key = "/".join(["c", "1", *"0" * (before[name].ndim - 1)])
            chunk = before[name].id.read_direct_chunk(origin)
            assert chunk[0] == 0
            assert (tmp_path / "a.zarr" / name / key).read_bytes() == chunk[1], name
            assert after[name].id.read_direct_chunk(origin) == chunk, name
            np.testing.assert_array_equal(group[name][:], before[name][:], err_msg=name)
