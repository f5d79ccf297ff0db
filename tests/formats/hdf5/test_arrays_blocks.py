"""Selections of fixed-rate chunks decode the blocks that they touch, and nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import _native
from tamis.arrays.chunk_reader import ChunkReader
from tamis.arrays.index import ChunkRecord


class Counted:
    """Counts blocks that the codec decodes, and chunks that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks, self.chunks = 0, 0
        decode, stored, at_once = _native.decode, ChunkReader._read, ChunkReader._read_native

        def counting(data: Any, out: Any, *rest: Any) -> Any:
            self.blocks += int(np.prod([-(-extent // 4) for extent in out.shape]))
            return decode(data, out, *rest)

        def reading(source: ChunkReader, origin: Any, record: ChunkRecord, start: int, stop: int, *room: Any) -> Any:
            self.chunks += (start, stop) == (0, record.nbytes)
            return stored(source, origin, record, start, stop, *room)

        def reading_at_once(source: ChunkReader, *arguments: Any) -> Any:
            values = at_once(source, *arguments)
            if values is not None:
                self.chunks += 1
                self.blocks += int(np.prod([-(-extent // 4) for extent in values.shape]))
            return values

        monkeypatch.setattr(_native, "decode", counting)
        monkeypatch.setattr(ChunkReader, "_read_native", reading_at_once)
        monkeypatch.setattr(ChunkReader, "_read", reading)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count what the real codec and the real reader do."""
    return Counted(monkeypatch)


@pytest.fixture
def blocky(tmp_path: Path) -> Path:
    """Chunks of 16³ blocks; the last ones along the first axis reach beyond the array."""
    made = tmp_path / "blocky.h5"
    values = np.random.default_rng(0).standard_normal((100, 64, 128)).cumsum(0)
    with h5py.File(made, "w") as file:
        for name, dtype, keywords in (
            ("rate", "f4", dict(tamis.Zfp(rate=8))),
            ("doubles", "f8", dict(tamis.Zfp(rate=13.4))),
            ("numbers", "i4", dict(tamis.Zfp(minbits=900, maxbits=900, maxprec=64, minexp=-1074))),
            ("accuracy", "f4", dict(tamis.Zfp(accuracy=1e-3))),
            ("checked", "f4", {**tamis.Zfp(rate=8), "fletcher32": True}),
        ):
            data = (values * 1000).astype(dtype) if dtype == "i4" else values.astype(dtype)
            file.create_dataset(name, data=data, chunks=(64, 64, 64), **keywords)
        file.create_dataset("flat", data=values[None].astype("f4"), chunks=(1, 64, 1, 128), **tamis.Zfp(rate=8))
    return made


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["rate", "doubles", "numbers"])
@pytest.mark.parametrize(
    ("key", "nblocks"),
    [
        ((5, 5, 5), 1),
        (5, 2 * 256),
        ((99, slice(None), 127), 16),
        ((slice(62, 66), 0, slice(0, 8)), 2 * 2),
        ((slice(None), slice(8, 12), slice(0, 64)), 16 * 16 + 9 * 16),
        (([0, 99], 3), 2 * 2 * 16),
    ],
    ids=repr,
)
def test_fixed_rate_only_blocks_of_the_selection_decoded(
    blocky: Path, counted: Counted, name: str, key: Any, nblocks: int
) -> None:
    with h5py.File(blocky) as file:
        expected = file[name][key]
    counted.blocks = counted.chunks = 0
    with tamis.open(blocky) as file:
        assert np.array_equal(file[name][key], expected)
    assert counted.blocks == nblocks
    assert counted.chunks == 0, "only the bytes of the blocks are read"


def test_fixed_rate_points_only_their_blocks_decoded(blocky: Path, counted: Counted) -> None:
    mask = np.zeros((100, 64, 128), bool)
    mask[[0, 3, 70], [1, 2, 3], [1, 0, 127]] = True
    with h5py.File(blocky) as file:
        expected = file["rate"][mask]
    with tamis.open(blocky) as file:
        assert np.array_equal(file["rate"][mask], expected)
    assert counted.blocks == 2


def test_fixed_rate_chunks_with_unit_axes_only_blocks_of_the_selection_decoded(blocky: Path, counted: Counted) -> None:
    with h5py.File(blocky) as file:
        expected = file["flat"][0, 62:66, 7, 3:9]
    with tamis.open(blocky) as file:
        assert np.array_equal(file["flat"][0, 62:66, 7, 3:9], expected)
    assert counted.blocks == 2 * 3


@pytest.mark.parametrize("name", ["accuracy", "checked"])
def test_other_streams_decoded_whole(blocky: Path, counted: Counted, name: str) -> None:
    with tamis.open(blocky) as file:
        file[name][5, 5, 5]
    assert (counted.blocks, counted.chunks) == (4096, 1)


def test_rows_of_a_chunk_one_after_the_other_decoded_once(blocky: Path, counted: Counted) -> None:
    with h5py.File(blocky) as theirs, tamis.open(blocky) as file:
        array, expected = file["accuracy"], theirs["accuracy"][()]
        counted.chunks = 0
        for i in range(64):
            assert np.array_equal(array[i], expected[i])
    assert counted.chunks == 2


def test_rows_of_a_fixed_rate_chunk_never_more_than_twice_its_blocks(blocky: Path, counted: Counted) -> None:
    with h5py.File(blocky) as theirs, tamis.open(blocky) as file:
        array, expected = file["rate"], theirs["rate"][()]
        counted.blocks = 0
        for i in range(64):
            assert np.array_equal(array[i], expected[i])
    assert counted.blocks <= 2 * 2 * 4096


@pytest.mark.parametrize(("name", "threads"), [("rate", 1), ("accuracy", 2)])
def test_only_chunks_that_are_decoded_whole_go_to_other_threads(
    blocky: Path, monkeypatch: pytest.MonkeyPatch, name: str, threads: int
) -> None:
    readers = []
    reads = {name: getattr(ChunkReader, name) for name in ("_read", "_read_native")}

    def of(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*arguments: Any) -> Any:
            result = read(*arguments)
            if result is not None:
                readers.append(threading.current_thread() is threading.main_thread())
            return result

        return reading

    for method, read in reads.items():
        monkeypatch.setattr(ChunkReader, method, of(read))
    with tamis.open(blocky, threads=2) as file:
        first = file[name][:, 5]
        assert len(readers) == 4
        assert all(readers) if threads == 1 else not any(readers)
        np.testing.assert_array_equal(file[name][:, 5], first)
        np.testing.assert_array_equal(file[name][...][:, 5], first)
