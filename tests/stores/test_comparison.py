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


def test_absent_files_of_an_array_that_ends_before_its_dimension_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "values.h5", "w") as file:
        file["w"] = np.arange(6.0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("t", data=np.arange(10.0), maxshape=(None,), chunks=(10,)).make_scale("t")
        layout = h5py.VirtualLayout((6,), "f8", maxshape=(None,))
        layout[:] = h5py.VirtualSource("values.h5", "w", shape=(6,))
        file.create_virtual_dataset("v", layout).dims[0].attach_scale(file["t"])
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.zarr", {})
    (tmp_path / "values.h5").unlink()
    notes = tamis.verify(tmp_path / "a.h5", tmp_path / "b.zarr").notes
    assert [note.path for note in notes if note.code == "absent-files"] == ["/v"]
