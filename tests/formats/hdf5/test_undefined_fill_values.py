"""Known defect U7: datasets without a fill value (H5D_FILL_VALUE_UNDEFINED), as old C programs make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis.formats.hdf5.lib import calls

VALUES: NDArray[Any] = (280 + np.sin(np.arange(40 * 40) / 50)).reshape(40, 40)


def make(
    file: h5py.File, name: str, kind: Any = "<f4", chunks: tuple[int, ...] | None = None, raw: str = ""
) -> h5py.Dataset:
    """Create a 40x40 dataset without a fill value."""
    datatype, plist = h5t.py_create(np.dtype(kind), logical=True), h5p.create(h5p.DATASET_CREATE)
    if chunks:
        plist.set_chunk(chunks)
    if raw:
        plist.set_external(raw.encode(), 0, 40 * 40 * 4)
    calls.set_undefined_fill(plist, datatype)
    return h5py.Dataset(h5d.create(file.id, name.encode(), datatype, h5s.create_simple((40, 40)), plist))


def is_undefined(dataset: h5py.Dataset) -> bool:
    return bool(dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_UNDEFINED)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, kind, chunks in (
            ("contiguous", "<f4", None),
            ("chunked", "<f4", (8, 8)),
            ("big", ">f8", (8, 8)),
            ("whole", "<i2", (16, 40)),
        ):
            make(file, name, kind, chunks)[:] = VALUES
        make(file, "never_written", "<f4", (8, 8))
        make(file, "empty", "<f4")
        make(file, "partly", "<f4", (8, 8))[:8, :8] = VALUES[:8, :8]
        make(file, "pairs", [("a", "<f4"), ("b", "<i2")], (8, 8))[:] = np.ones((40, 40), [("a", "<f4"), ("b", "<i2")])
    return tmp_path / "a.h5"


@pytest.mark.parametrize("filters", ["shuffle|deflate(4)", "none", "zfp(accuracy=0.1)|shuffle|deflate(4)"])
@pytest.mark.parametrize("missing", ["exact", "mask", "refuse"])
def test_u07_undefined_fill_value_is_repacked(source: Path, tmp_path: Path, filters: str, missing: Any) -> None:
    found = tamis.repack(source, tmp_path / "b.h5", {"*": filters}, missing=missing)
    assert {"/contiguous", "/chunked", "/partly", "/never_written"} <= {each.path for each in found.datasets}
    assert tamis.verify(source, tmp_path / "b.h5", bounds={"*": 0.1}).ok
    with h5py.File(tmp_path / "b.h5") as file:
        assert all(is_undefined(file[name]) for name in ("contiguous", "chunked", "partly", "pairs"))


def test_u07_undefined_fill_value_is_inspected_and_verified(source: Path) -> None:
    assert len(tamis.inspect(source).datasets) == 8
    assert tamis.verify(source, source, bounds={"*": 0}).ok


@pytest.mark.parametrize("name", ["contiguous", "chunked", "big", "whole", "partly", "pairs"])
def test_u07_undefined_fill_value_reads_as_zeros_where_nothing_was_written(source: Path, name: str) -> None:
    with h5py.File(source) as file:
        stored = file[name][()]
    with tamis.open(source) as opened:
        read = opened[name][()]
    if name == "partly":
        assert not read[8:].any()
        assert not read[:, 8:].any()
        read, stored = read[:8, :8], stored[:8, :8]
    np.testing.assert_array_equal(read, stored)


@pytest.mark.parametrize("name", ["never_written", "empty"])
def test_u07_undefined_fill_value_reads_as_zeros_where_hdf5_refuses(source: Path, name: str) -> None:
    with h5py.File(source) as file, pytest.raises(OSError, match="no data can be read"):
        file[name][()]
    with tamis.open(source) as opened:
        np.testing.assert_array_equal(opened[name][()], np.zeros((40, 40), "f4"))
        np.testing.assert_array_equal(opened[name][3, 4:6], np.zeros(2, "f4"))


def test_u07_undefined_fill_value_takes_write_and_appender(source: Path) -> None:
    with h5py.File(source, "r+") as file:
        tamis.hdf5.write(file, "again", file["chunked"], filters="zfp(accuracy=0.1)", chunks=(8, 8))
        tamis.hdf5.write(file["never_written"], VALUES.astype("f4"))
        plist = file["chunked"].id.get_create_plist()
        space = h5s.create_simple((0, 40), (h5s.UNLIMITED, 40))
        grown = h5py.Dataset(h5d.create(file.id, b"grown", h5t.IEEE_F32LE, space, plist))
        with tamis.hdf5.Appender(grown) as appender:
            for row in VALUES[:13]:
                appender.append(row.astype("f4")[None])
    with tamis.open(source) as opened:
        np.testing.assert_allclose(opened["again"][()], VALUES, atol=0.1)
        np.testing.assert_array_equal(opened["never_written"][()], VALUES.astype("f4"))
        np.testing.assert_array_equal(opened["grown"][()], VALUES[:13].astype("f4"))


def test_u07_undefined_fill_value_stays_undefined_where_raw_files_are_embedded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        make(file, "x", raw=str(tmp_path / "x.raw"))[:] = VALUES
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": "shuffle|deflate(1)"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert is_undefined(file["x"])
        np.testing.assert_array_equal(file["x"][()], VALUES.astype("f4"))
