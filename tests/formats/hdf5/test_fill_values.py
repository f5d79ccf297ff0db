"""Fill values that are not defined, as in files of old C programs, and of varying length, which h5py frees twice."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.stored_array import Hdf5Array

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


MEMBER = 16
"""Bytes of a length and an address."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.array([1, 2, 3], "i1")
    raw = np.array([3, numbers.ctypes.data], np.uintp).tobytes()
    sequence, pair = h5t.vlen_create(h5t.STD_I8LE), h5t.create(h5t.COMPOUND, MEMBER)
    pair.insert(b"inner", 0, sequence)
    named, name = h5t.create(h5t.COMPOUND, MEMBER), ctypes.create_string_buffer(b"nobody")
    named.insert(b"number", 0, h5t.STD_I64LE)
    named.insert(b"name", 8, h5t.py_create(h5py.string_dtype(), logical=True))
    text = np.array([-1, ctypes.addressof(name)], np.intp).tobytes()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for path, datatype, fill in ((b"v", sequence, raw), (b"pairs", pair, raw), (b"texts", named, text)):
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk((10,))
            calls.set_fill_bytes(plist, datatype, fill)
            h5d.create(file.id, path, datatype, h5s.create_simple((4,), (h5s.UNLIMITED,)), plist)
    return tmp_path / "a.h5"


def test_fill_value_is_a_copy(path: Path) -> None:
    with h5py.File(path) as file:
        assert Hdf5Array(file, "/v").fill.value[()].tolist() == [1, 2, 3]


@pytest.mark.matrix
@pytest.mark.parametrize("command", [("inspect", "--cdl"), ("inspect", "--json"), ("repack",), ("verify",)])
def test_no_command_frees_it_twice(path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    others = {"repack": [str(tmp_path / "b.h5")], "verify": [str(path)]}.get(command[0], [])
    done = subprocess.run(
        [sys.executable, "-m", "tamis", *command, str(path), *others], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
