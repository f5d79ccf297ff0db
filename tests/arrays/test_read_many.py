"""Parts that go over many small chunks: what h5py reads, and the errors of one chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import FileError, Pipeline, _native
from tamis.arrays import Grid, read_many
from tamis.arrays.read_many import ManyChunks, goes_over_many
from tamis.filters import ChunkType
from tamis.formats.hdf5.lib.chunks import _rows

SHAPE, CHUNKS = (30, 41, 22), (4, 8, 5)
OPTIONS: dict[str, dict[str, Any]] = {
    "raw": {},
    "zfp": dict(tamis.Zfp(accuracy=1e-3)),
    "rate": dict(tamis.Zfp(rate=8)),
    "deflate": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "lzf": {"compression": "lzf", "fletcher32": True},
}
PARTS = [
    np.s_[...],
    np.s_[3],
    np.s_[:, 7:30, 4],
    np.s_[5:29, 3:41, 1:20],
    np.s_[-1:, :, :],
    np.s_[:, :, -3:],
    np.s_[::2, 5:20, :],
    np.s_[[1, 5, 29]],
]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of chunks that were left to Python, one for each native call."""
    left = []
    read = ManyChunks.read

    def counted(self: ManyChunks, *arguments: Any) -> Any:
        origins = read(self, *arguments)
        left.append(len(origins))
        return origins

    monkeypatch.setattr(ManyChunks, "read", counted)
    return left


def write(path: Path, values: NDArray[Any], **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=CHUNKS, **options)
    return path


def values(dtype: str = "f4") -> NDArray[Any]:
    return (np.random.default_rng(0).random(SHAPE) * 100).astype(dtype)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_selections_read_as_by_h5py(tmp_path: Path, calls: list[int], name: str, threads: int) -> None:
    path = write(tmp_path / "x.h5", values(), **OPTIONS[name])
    with h5py.File(path) as file, tamis.open(path, threads=threads) as opened:
        for part in PARTS:
            np.testing.assert_array_equal(opened["x"][part], file["x"][part])
    assert len(calls) >= 6
    assert all(calls) if name == "lzf" else not any(calls), "lzf has no native decoder"


@pytest.mark.parametrize("dtype", [">f8", "i2", "u1", "f2", "<i8"])
def test_types_read_as_by_h5py(tmp_path: Path, calls: list[int], dtype: str) -> None:
    path = write(tmp_path / "x.h5", values().astype(dtype), shuffle=True, compression=1)
    with h5py.File(path) as file, tamis.open(path) as opened:
        np.testing.assert_array_equal(opened["x"].read(), file["x"][...])
    assert calls == [0]


def test_chunks_that_are_not_stored_hold_the_fill_value(tmp_path: Path, calls: list[int]) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        sparse = file.create_dataset("x", SHAPE, "f4", chunks=CHUNKS, fillvalue=-999, shuffle=True)
        sparse[4:12, 8:16] = 7
        expected = sparse[...]
    with tamis.open(path) as opened:
        np.testing.assert_array_equal(opened["x"][...], expected)
        np.testing.assert_array_equal(opened["x"][16:], expected[16:])
    assert calls == [0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_error_of_a_damaged_chunk_is_that_of_the_chunk_alone(tmp_path: Path, threads: int) -> None:
    path = write(tmp_path / "x.h5", values(), **OPTIONS["deflate"])
    with h5py.File(path) as file:
        place = file["x"].id.get_chunk_info_by_coord((8, 16, 5)).byte_offset
    with path.open("r+b") as bytes_of:
        bytes_of.seek(place + 20)
        bytes_of.write(b"damaged")
    with tamis.open(path, threads=threads) as opened:
        errors = []
        for part in (np.s_[8:12, 16:24, 5:10], np.s_[...]):
            with pytest.raises(tamis.FileError) as caught:
                opened["x"][part]
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        assert "chunk at (8, 16, 5) cannot be decoded: filter 3, fletcher32" in errors[0]


def test_error_of_a_truncated_file_names_the_first_chunk_that_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path / "x.h5", values())
    with tamis.open(path) as opened:
        with h5py.File(path) as file:
            first, size = file["x"].id.get_chunk_info(0).byte_offset, file["x"].id.get_storage_size()
        with path.open("r+b") as bytes_of:
            bytes_of.truncate(first + size // 2)
        with pytest.raises(tamis.FileError, match=r"chunk at \(\d+, \d+, \d+\): expected .* truncated or damaged"):
            opened["x"].read()


def test_large_or_few_chunks_are_not_many() -> None:
    small, large = ChunkType(np.dtype("f4"), (16, 16)), ChunkType(np.dtype("f4"), (128, 128))
    assert goes_over_many((slice(0, 100), slice(0, 100)), small)
    assert not goes_over_many((slice(0, 100), slice(0, 16)), small)
    assert not goes_over_many((slice(0, 10000), slice(0, 10000)), large)


def test_calls_go_over_a_limited_number_of_chunks(
    tmp_path: Path, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_many, "_CALL_NBYTES", 3000)
    path = write(tmp_path / "x.h5", values(), **OPTIONS["deflate"])
    with tamis.open(path) as opened:
        np.testing.assert_array_equal(opened["x"][...], values())
    assert calls == [0]


@pytest.mark.parametrize(
    "chunk",
    [((0, 0), 1 << 63), ((1, 0), 0), ((64, 0), 0)],
    ids=["offset", "between", "beyond"],
)
def test_damaged_entries_of_the_index_are_refused(chunk: tuple[tuple[int, int], int]) -> None:
    entry = h5py.h5d.StoreInfo(chunk[0], 0, chunk[1], 4)
    with pytest.raises(FileError, match="damaged: "):
        _rows([entry], Grid((64, 64), (16, 16)))


def test_records_and_text_have_no_native_pipeline() -> None:
    for dtype in ("S4", "V8", [("a", "f4")]):
        assert read_many.native_pipeline(Pipeline(), ChunkType(np.dtype(dtype), (4,))) is None
    assert isinstance(read_many.native_pipeline(Pipeline(), ChunkType(np.dtype("f4"), (4,))), _native.ChunkPipeline)
