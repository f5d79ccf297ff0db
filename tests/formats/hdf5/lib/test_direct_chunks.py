"""Chunks written past HDF5's filters, and its two traps: the mask of a second write, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from tamis import FileError
from tamis.arrays import Grid
from tamis.formats.hdf5.lib.chunks import check_recorded, first_stored, noted, put_chunk, record_of, settle


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[h5py.Dataset]:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        yield file.create_dataset("x", (16,), "f4", chunks=(8,), maxshape=(None,), shuffle=True)


RAW = np.arange(8, dtype="f4").tobytes()


def test_put_chunk_second_time_with_the_same_size_gets_its_mask(dataset: h5py.Dataset) -> None:
    put_chunk(dataset, (0,), RAW, 1)
    # What HDF5 itself makes of it:
    dataset.id.write_direct_chunk((0,), RAW, 0)
    assert record_of(dataset, (0,)) == (32, 1)
    put_chunk(dataset, (0,), RAW, 0)
    assert record_of(dataset, (0,)) == (32, 0)
    put_chunk(dataset, (0,), RAW, 1)
    assert record_of(dataset, (0,)) == (32, 1)
    assert record_of(dataset, (8,)) is None
    assert dataset.id.get_storage_size() == 32


@pytest.mark.parametrize("others", [False, True])
def test_check_recorded_names_the_chunk_that_differs(others: bool, dataset: h5py.Dataset) -> None:
    def check(chunks: dict[tuple[int, ...], tuple[int, int]]) -> None:
        grid = Grid(dataset.shape, dataset.chunks)
        check_recorded(dataset, grid, noted(grid, chunks), others=others)

    put_chunk(dataset, (0,), RAW, 1)
    check({(0,): (32, 1)})
    with pytest.raises(FileError, match=r"/x: .* the chunk at \(0,\) .* \(32, 0\), found \(32, 1\)"):
        check({(0,): (32, 0)})
    with pytest.raises(FileError, match=r"the chunk at \(8,\) .* \(32, 1\), found None"):
        check({(0,): (32, 1), (8,): (32, 1)})
    if others:
        check({})
        return
    with pytest.raises(FileError, match=r"the chunk at \(0,\) .* None, found \(32, 1\)"):
        check({})


def test_first_stored_finds_what_hdf5_still_holds_in_memory(dataset: h5py.Dataset) -> None:
    assert first_stored(dataset) is None
    dataset[9] = 1
    assert first_stored(dataset) == (8,)
    dataset.resize((0,))
    assert first_stored(dataset) is None


@pytest.mark.parametrize("other_stored", [False, True])
@pytest.mark.parametrize("last", [(0,), (8,)])
def test_settle_last_chunk_reads_right(last: tuple[int], other_stored: bool, dataset: h5py.Dataset) -> None:
    if other_stored:
        put_chunk(dataset, (8 - last[0],), RAW, 1)
    put_chunk(dataset, last, RAW, 1)
    settle(dataset, last, 1)
    assert dataset[last[0] : last[0] + 8].tobytes() == RAW


def test_settle_chunk_written_again_reads_right_though_its_mask_is_0(dataset: h5py.Dataset) -> None:
    dataset.resize((8,))
    put_chunk(dataset, (0,), RAW, 1)
    settle(dataset, (0,), 1)
    assert dataset[()].tobytes() == RAW
    shuffled = np.frombuffer(RAW, "u1").reshape(8, 4).T.tobytes()
    put_chunk(dataset, (0,), shuffled, 0)
    settle(dataset, (0,), 0, again=True)
    assert dataset[()].tobytes() == RAW
