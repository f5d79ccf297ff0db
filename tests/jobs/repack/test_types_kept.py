"""Known defect U17: lossless recipes turn big-endian values to little-endian, and copies lose their times."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.arrays.source import Descriptor, FileSource
from tamis.formats.hdf5.tree.times import _Header

FILTERS = ("none", "shuffle|deflate(4)", "fletcher32", "bitshuffle", "blosc2", "lzf", "nbit", "scaleoffset", "szip")
TYPES = (">f4", ">f8", ">i2", ">i4", ">u8", ">f2")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(17)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for dtype in TYPES:
            values = (rng.normal(size=(33, 20)) * 100).astype(dtype)
            if values.dtype.kind == "f":
                values[3, 4], values[0, 0] = np.nan, -0.0
            kept: dict[str, dict[str, Any]] = {"chunked": {"chunks": (8, 8)}, "contiguous": {}}
            for name, options in kept.items():
                file.create_dataset(f"{dtype[1:]}_{name}", data=values, fillvalue=7, **options)
    return tmp_path / "a.h5"


@pytest.mark.matrix
@pytest.mark.parametrize("chunks", [None, {"*": (5, 9)}])
@pytest.mark.parametrize(
    "filters",
    ["none", "shuffle|deflate(4)", "fletcher32", "bitshuffle", "blosc2", "lzf", "nbit", "scaleoffset", "szip"],
)
def test_u17_lossless_recipes_keep_the_byte_order(source: Path, tmp_path: Path, filters: str, chunks: Any) -> None:
    result = tamis.repack(source, tmp_path / "b.h5", {"*": filters}, chunks=chunks, min_size=0, larger=True)
    assert len(result.datasets) == (6 if filters == "scaleoffset" else 12), "it takes integers"
    assert not any("converted" in note for each in result.datasets for note in each.notes)
    with h5py.File(source) as before, h5py.File(tmp_path / "b.h5") as after, tamis.open(tmp_path / "b.h5") as read:
        for name in before:
            assert after[name].dtype == before[name].dtype
            assert after[name].fillvalue == 7
            assert read[name][()].tobytes() == before[name][()].tobytes()
    assert tamis.verify(source, tmp_path / "b.h5").ok


def test_u17_chunks_that_are_stored_as_asked_for_are_copied_in_any_byte_order(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.h5", {"*": "shuffle|deflate(4)"})
    assert all(
        each.copied for each in tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"*": "shuffle|deflate(4)"}).datasets
    )


def test_u17_zfp_takes_native_values_and_says_so(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(
        source, tmp_path / "b.h5", {"f4_chunked": "zfp(accuracy=0.1)", "f8_chunked": "zfp(reversible=true)"}
    )
    assert all("which zfp needs" in each.notes[0] for each in result.datasets)
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["f4_chunked"].dtype.isnative
        assert file["f4_contiguous"].dtype == ">f4"


@pytest.mark.matrix
@pytest.mark.parametrize("userblock", [0, 512])
@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_u17_objects_keep_their_times(tmp_path: Path, libver: str, userblock: int) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=(libver, "latest"), userblock_size=userblock) as file:
        file["type"] = np.dtype("f4")
        for name, order in (("x", False), ("group/y", True), ("group/inner/z", False)):
            made = file.create_dataset(name, data=np.arange(20.0), chunks=(5,), track_times=True, track_order=order)
            for i in range(12):
                made.attrs[f"attribute {i}"] = "long text" * i
        file.create_dataset("untracked", data=1)
        file.create_dataset("n", data=np.arange(100.0), track_times=True)
    made = []
    for name in ("b.h5", "c.h5"):
        time.sleep(1.1)  # a clock that counts seconds
        tamis.repack(tmp_path / "a.h5", tmp_path / name, {"n": "shuffle|deflate(4)"})
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]
    assert times_of(tmp_path / "b.h5") == times_of(tmp_path / "a.h5")
    assert len(times_of(tmp_path / "b.h5")) == 3
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").ok


def test_u17_datasets_stored_anew_and_groups_record_no_times(tmp_path: Path) -> None:
    """HDF5 would record the time of the run, and no run would give the bytes of another."""
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        plist = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        plist.set_obj_track_times(True)
        h5py.h5g.create(file.id, b"group", gcpl=plist).close()
        for name in ("group/x", "group/n"):
            file.create_dataset(name, data=np.arange(100.0), chunks=(10,), track_times=True)
    recipes = {"group/n": "zfp(accuracy=0.1)"}
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes)
    found = {
        name: [has_times(tmp_path / f"{each}.h5", name) for each in "ab"] for name in ("group/x", "group/n", "group")
    }
    assert found == {"group/x": [True, True], "group/n": [True, False], "group": [True, False]}
    with h5py.File(tmp_path / "w.h5", "w", libver="latest") as file:
        tamis.hdf5.write(file, "n", np.arange(100.0), filters="zfp(accuracy=0.1)", chunks=(10,))
    assert not has_times(tmp_path / "w.h5", "n")


def has_times(path: Path, name: str) -> bool:
    with h5py.File(path) as file, path.open("rb") as raw:
        return (
            _Header.read(
                FileSource(Descriptor(os.dup(raw.fileno()))), h5py.h5o.get_info(file[name].id).addr, file.userblock_size
            )
            is not None
        )


def times_of(path: Path) -> dict[str, bytes]:
    """Read the times of what was copied, as they are in the headers."""
    found = {}
    with h5py.File(path) as file, path.open("rb") as raw:
        for name in ("x", "group/y", "group/inner/z"):
            place = h5py.h5o.get_info(file[name].id).addr
            header = _Header.read(FileSource(Descriptor(os.dup(raw.fileno()))), place, file.userblock_size)
            assert header is not None, name
            found[name] = header.times
    return found
