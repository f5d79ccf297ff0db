"""Text of HDF5's attributes comes back from Zarr with its own length, character set and padding."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5a, h5s, h5t

import tamis


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_text_keeps_length_and_character_set_after_both_ways(tmp_path: Path, zarr_format: int) -> None:
    """PyTables calls its text UTF-8, and HDF-EOS pads its own with zeros."""
    texts = {(size, charset): b"GROUP" for size in (5, 6, 32) for charset in (h5t.CSET_ASCII, h5t.CSET_UTF8)}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        for owner in (file, file["x"], file.create_group("g")):
            for (size, charset), text in texts.items():
                kind = h5t.C_S1.copy()
                kind.set_size(size)
                kind.set_cset(charset)
                attribute = h5a.create(owner.id, f"t{size}_{charset}".encode(), kind, h5s.create(h5s.SCALAR))
                attribute.write(np.array(text, f"S{size}"), mtype=kind)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.zarr", {}, zarr_format=zarr_format)
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.h5", {})
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(tmp_path / "c.h5") as after:
        for path in ("/", "x", "g"):
            for size, charset in texts:
                one, other = (h5a.open(file[path].id, f"t{size}_{charset}".encode()) for file in (before, after))
                assert one.get_type() == other.get_type(), (path, size, charset)
                assert after[path].attrs[f"t{size}_{charset}"] == before[path].attrs[f"t{size}_{charset}"]
