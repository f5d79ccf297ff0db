"""Damaged chunks, indexes and parameters are errors that say where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError
from tamis.arrays.index import ChunkRecord
from tamis.formats.hdf5.stored_array import Hdf5Array

VALUES = np.random.default_rng(0).standard_normal((23, 17)).cumsum(0)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Chunks of four pipelines."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("raw", data=VALUES, chunks=(8, 8))
        file.create_dataset("deflate", data=VALUES, chunks=(8, 8), shuffle=True, compression="gzip")
        file.create_dataset("checked", data=VALUES, chunks=(8, 8), fletcher32=True, **tamis.Zfp(accuracy=1e-3))
        file.create_dataset("accuracy", data=VALUES, chunks=(8, 8), **tamis.Zfp(accuracy=1e-3))
        file.create_dataset("rate", data=np.tile(VALUES, (6, 6)), chunks=(64, 64), **tamis.Zfp(rate=8))
    return tmp_path / "a.h5"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("deflate", b"damaged", r"filter 2, deflate\(4\) \(optional\): deflate stream is"),
        ("checked", b"damaged " * 9, r"filter 2, fletcher32 \(required\): fletcher32 checksum differs"),
        ("checked", b"12", r"filter 2, fletcher32 \(required\): expected a fletcher32 checksum"),
        ("accuracy", b"\xff", r"filter 1, zfp\(accuracy=.*\) \(.*\): stream is truncated or damaged"),
    ],
)
@pytest.mark.parametrize("key", [(9, 1), (slice(8, 16), slice(0, 8)), ()], ids=["part", "chunk", "all"])
def test_damaged_chunk_file_error_names_file_dataset_chunk_and_filter(
    good: Path, name: str, data: bytes, text: str, key: Any
) -> None:
    with h5py.File(good, "r+") as file:
        file[name].id.write_direct_chunk((8, 0), data)
    with tamis.open(good) as file:
        where = rf"a\.h5: /{name}: chunk at \(8, 0\) cannot be decoded: {text}"
        with pytest.raises(FileError, match=where):
            file[name][key]
        with pytest.raises(FileError, match=where):
            file[name].read()
        assert np.allclose(file[name][:8], VALUES[:8], atol=1e-3)


def test_damaged_fixed_rate_chunk_ends_before_its_block_file_error(good: Path) -> None:
    with h5py.File(good, "r+") as file:
        _, data = file["rate"].id.read_direct_chunk((64, 0))
        file["rate"].id.write_direct_chunk((64, 0), data[: len(data) // 2])
    with tamis.open(good) as file, h5py.File(good) as theirs:
        with pytest.raises(FileError, match=r"/rate: chunk at \(64, 0\) cannot be decoded: filter 1, zfp\(rate=8\)"):
            file["rate"][127, 0]
        assert np.isfinite(file["rate"][64, 0])
        assert np.array_equal(file["rate"][:64], theirs["rate"][:64])


def test_file_that_ends_before_a_chunk_file_error(good: Path) -> None:
    with h5py.File(good) as file:
        records = dict(Hdf5Array.of(file["raw"]).chunk_index().records())
    source = tamis.open(good)
    last, record = max(records.items(), key=lambda each: each[1].offset)
    os.truncate(good, record.offset + 100)
    with pytest.raises(
        FileError, match=r"/raw: chunk at .*: expected 512 bytes at \d+, got 100: the file is truncated"
    ):
        source["raw"][tuple(last)]


@pytest.mark.parametrize(
    "record",
    [ChunkRecord(10**15, 512, 0), ChunkRecord(0, 10**15, 0), ChunkRecord(2**63 - 1, 8, 0)],
    ids=["offset", "size", "undefined"],
)
def test_index_that_says_anything_file_error_without_memory_for_it(good: Path, record: ChunkRecord) -> None:
    with h5py.File(good) as file:
        source = Hdf5Array.of(file["raw"]).open_chunks()
    source.index.offsets[0], source.index.sizes[0] = record.offset, record.nbytes
    with pytest.raises(FileError, match=r"chunk at \(0, 0\): expected .* the file is truncated or damaged"):
        source.values((0, 0))


def test_zfp_parameters_of_other_chunks_file_error(tmp_path: Path) -> None:
    """As a copy by a tool that keeps them for another chunk shape leaves them: HDF5's plugin reads garbage."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(8, 8), **tamis.Zfp(rate=9))
        stored = file["x"].id.get_create_plist().get_filter(0)[2]
    script = tmp_path / "craft.py"
    script.write_text(
        "import sys, json, h5py, numpy as np\n"
        "file = h5py.File(sys.argv[1], 'w')\n"
        "plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE); plist.set_chunk((4, 4))\n"
        "plist.set_filter(32013, 1, tuple(json.loads(sys.argv[2])))\n"
        "space = h5py.h5s.create_simple((23, 17))\n"
        "found = h5py.h5d.create(file.id, b'x', h5py.h5t.NATIVE_DOUBLE, space, plist)\n"
        "found.write_direct_chunk((0, 0), bytes(200)); file.close()\n"
    )
    subprocess.run([sys.executable, script, tmp_path / "b.h5", json.dumps([int(each) for each in stored])], check=True)
    with tamis.open(tmp_path / "b.h5") as file, pytest.raises(FileError, match="ZFP parameters describe chunks of 512"):
        file["x"][0]
