"""Differences between stores of two formats."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import zarr

import tamis

NAMES = [f"{letter}{number}" for number in range(6) for letter in "zyx"]


def test_what_is_new_comes_in_the_order_of_the_target(tmp_path: Path) -> None:
    """Python's hashes of text differ from process to process, and so would an order that follows them."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(8.0)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.zarr", {})
    group = zarr.open_group(tmp_path / "b.zarr", mode="a")
    for name in NAMES:
        group.attrs[name] = 1
        group.create_group(name)
    notes = tamis.verify(tmp_path / "a.h5", tmp_path / "b.zarr").notes
    attributes = [note.text.split("'")[1] for note in notes if note.code == "attribute"]
    assert attributes == NAMES
    groups = [note.path for note in notes if note.code == "new-group"]
    assert groups == [path for path in tamis.open(tmp_path / "b.zarr").data_model().group_paths() if path != "/"]
