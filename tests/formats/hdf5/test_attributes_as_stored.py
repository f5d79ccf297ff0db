"""Attributes of types that h5py has no conversion for do not hide the others."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from h5py import h5a, h5s, h5t

import tamis


@pytest.fixture
def odd_attributes(tmp_path: Path) -> Path:
    """Attributes of bitfield and opaque type, which h5py has no conversion for."""
    path = tmp_path / "attributes.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(3)
        opaque = h5t.create(h5t.OPAQUE, 4)
        opaque.set_tag(b"four bytes")
        for owner in (file, file.create_group("g"), file["v"]):
            owner.attrs["units"] = "K"
            for name, kind, content in ((b"flags", h5t.STD_B8LE, b"\x05\x06"), (b"opaque", opaque, b"abcdefgh")):
                attribute = h5a.create(owner.id, name, kind, h5s.create_simple((2,)))
                attribute.write(np.frombuffer(content, f"V{len(content) // 2}"), mtype=kind)
    return path


def test_attributes_that_h5py_cannot_read_are_there(odd_attributes: Path) -> None:
    with tamis.open(odd_attributes) as file:
        for owner in (file, file["g"], file["v"]):
            assert owner.attrs["units"] == "K"
            assert owner.attrs["flags"].tobytes() == b"\x05\x06"
            assert owner.attrs["opaque"].tobytes() == b"abcdefgh"
    with xr.open_dataset(odd_attributes, engine="tamis") as dataset:
        assert dataset.attrs["units"] == dataset["v"].attrs["units"] == "K"
        assert dataset["v"].attrs["opaque"].tobytes() == b"abcdefgh"
