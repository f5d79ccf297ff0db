"""Large chunks are read and decoded by one native call; see `tamis.arrays.read_many.native_pipeline_of_large`."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis.arrays.chunk_reader import ChunkReader

SHAPE, CHUNK = (40, 64, 70), (16, 64, 40)  # 160 KiB; partial along the first axis and the last

FILTERS = [
    "shuffle|deflate(1)",
    "deflate(1)",
    "shuffle",
    "fletcher32",
    "zfp(accuracy=0.001)",
    "shuffle|deflate(1)|fletcher32",
]


@pytest.fixture
def native_reads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each large chunk was read by the native call."""
    reads: list[bool] = []
    own = ChunkReader._read_native

    def counted(self: ChunkReader, *arguments: object) -> object:
        values = own(self, *arguments)  # type: ignore[arg-type]
        reads.append(values is not None)
        return values

    monkeypatch.setattr(ChunkReader, "_read_native", counted)
    return reads


def write(path: Path, filters: str, dtype: str = "f4", chunks: tuple[int, ...] = CHUNK) -> np.ndarray:
    values = np.random.default_rng(1).normal(280, 5, SHAPE).round(2).astype(dtype)
    with h5py.File(path, "w") as f:
        tamis.hdf5.write(f, "x", values, filters=filters, chunks=chunks)
    return values


@pytest.mark.parametrize("filters", FILTERS)
def test_large_chunks_are_read_by_one_native_call(tmp_path: Path, filters: str, native_reads: list[bool]) -> None:
    values = write(tmp_path / "a.h5", filters)
    with h5py.File(tmp_path / "a.h5") as f:
        expected = f["x"][:]
    assert np.abs(expected - values).max() <= 0.001
    with tamis.open(tmp_path / "a.h5", threads=2) as f:
        assert np.array_equal(f["x"].read(), expected)
        assert np.array_equal(f["x"][3:37, :, 5:69], expected[3:37, :, 5:69])
        assert np.array_equal(f["x"][:16, :, :40], expected[:16, :, :40])
    assert native_reads
    assert all(native_reads)


@pytest.mark.parametrize("dtype", ["i2", ">f4", "f8"])
def test_large_chunks_of_any_number_are_read_alike(tmp_path: Path, dtype: str, native_reads: list[bool]) -> None:
    values = write(tmp_path / "a.h5", "shuffle|deflate(1)", dtype)
    with tamis.open(tmp_path / "a.h5") as f:
        assert np.array_equal(f["x"].read(), values)
        wider = np.empty(SHAPE, "f8")
        assert np.array_equal(f["x"].read(wider), values)
    assert any(native_reads)


def test_damaged_large_chunk_is_refused_with_the_name_of_its_filter(tmp_path: Path, native_reads: list[bool]) -> None:
    write(tmp_path / "a.h5", "shuffle|deflate(1)")
    with h5py.File(tmp_path / "a.h5") as f:
        chunk = f["x"].id.get_chunk_info(1)
    with open(tmp_path / "a.h5", "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(bytes(64))
    with tamis.open(tmp_path / "a.h5") as f, pytest.raises(tamis.FileError, match=r"chunk at \(0, 0, 40\).*deflate"):
        f["x"].read()
    assert False in native_reads


@pytest.mark.parametrize(("filters", "chunks"), [("lzf", CHUNK), ("deflate(1)", (4, 16, 16))])
def test_other_filters_and_small_chunks_are_left_to_python(
    tmp_path: Path, filters: str, chunks: tuple[int, ...], native_reads: list[bool]
) -> None:
    values = write(tmp_path / "a.h5", filters, chunks=chunks)
    with tamis.open(tmp_path / "a.h5") as f:
        assert np.array_equal(f["x"].read(), values)
    assert True not in native_reads
