"""Chunks of types that numpy has not, or whose values lie elsewhere in the file."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p

from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of

TEXT, BYTES = h5py.string_dtype(), h5py.vlen_dtype("u1")
TYPES: dict[str, tuple[Any, int]] = {
    "reference": (h5py.ref_dtype, 8),
    "region": (h5py.regionref_dtype, 12),
    "text": (TEXT, 16),
    "varying length": (h5py.vlen_dtype("i4"), 16),
    "compound": (np.dtype([("a", "i4"), ("s", TEXT), ("b", "f8")]), 28),
    "nested": (np.dtype([("a", "i4"), ("s", TEXT, (3,)), ("b", [("q", "i1"), ("r", BYTES)])]), 69),
    "array": (np.dtype([("m", "f4", (2, 3))]), 24),
    "enum": (h5py.enum_dtype({"A": 0, "B": 1}, basetype="i2"), 2),
    "complex": (np.dtype("c16"), 16),
    "opaque": (np.dtype("V7"), 7),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shuffle", [False, True])
def test_decode_of_any_type_gives_the_bytes_of_the_chunk(name: str, shuffle: bool, tmp_path: Path) -> None:
    dtype, nbytes = TYPES[name]
    with h5py.File(tmp_path / "t.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # writes all chunks
        plist.set_fill_time(h5d.FILL_TIME_ALLOC)
        file.create_dataset("x", (6,), dtype, chunks=(4,), compression="gzip", shuffle=shuffle, dcpl=plist)
    with h5py.File(tmp_path / "t.h5") as file:
        found = file["x"]
        pipeline, chunk = pipeline_of(found), chunk_type(found)
        mask = found.id.get_chunk_info(0).filter_mask
        data = found.id.read_direct_chunk((0,))[1]
    assert chunk.dtype.itemsize == nbytes
    assert len(zlib.decompress(data)) == 4 * nbytes
    plain = pipeline.decode(data, mask, chunk)
    assert plain.shape == (4,)
    assert pipeline.decode(*pipeline.encode(plain), chunk).tobytes() == plain.tobytes()
    if mask:
        assert plain.tobytes() == zlib.decompress(data)
