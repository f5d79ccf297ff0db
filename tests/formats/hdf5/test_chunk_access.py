"""Filters and chunks as a file has them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis
from tamis import Deflate, FileError, Fletcher32, Pipeline, Shuffle, UnknownFilter
from tamis.filters import Stage
from tamis.formats.hdf5.chunk_access import pipeline_of, read_chunk
from tamis.formats.hdf5.stored_array import Hdf5Array

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


def counts(dataset: h5py.Dataset) -> tuple[int, int, dict[int, int]]:
    """Chunks that are stored, their bytes, and how many have each mask."""
    index = Hdf5Array.of(dataset).chunk_index()
    return len(index), index.nbytes, index.mask_counts()


def test_pipeline_of_of_sample_in_order_with_flags_and_values() -> None:
    with h5py.File(SAMPLE) as file:
        assert pipeline_of(file["TS"]).stages == (Stage(Shuffle(), True, (4,)), Stage(Deflate(2), True, (2,)))
        assert pipeline_of(file["nbnd"]) == Pipeline(())


def test_pipeline_of_required_or_optional_told_apart(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((8,))
        plist.set_filter(400, h5z.FLAG_OPTIONAL, (1, 2, 0xFFFFFFFF))
        plist.set_fletcher32()
        h5d.create(file.id, b"v", h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
    with h5py.File(tmp_path / "a.h5") as file:
        pipeline = pipeline_of(file["v"])
    words = (1, 2, 0xFFFFFFFF)
    assert pipeline.stages == (Stage(UnknownFilter(400, words), True, words), Stage(Fletcher32(), False, ()))
    assert str(pipeline) == "filter(400,1,2,4294967295)|fletcher32"


def test_pipeline_of_of_zfp_are_the_stored_parameters(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.zeros((8, 8), "f4"), chunks=(8, 8), **tamis.Zfp(rate=8))
        (found,) = pipeline_of(file["v"]).stages
    assert found.filter == tamis.Zfp(rate=8)
    assert found.stored is not None
    assert found.stored[1] == 0x0570667A  # 'zfp', codec 5


def test_chunks_of_sample_counts_and_adds_up() -> None:
    with h5py.File(SAMPLE) as file:
        assert counts(file["TS"]) == (30, file["TS"].id.get_storage_size(), {0: 30})


def test_chunks_of_dataset_with_masks_counted_by_mask(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (60,), "f4", chunks=(10,), shuffle=True, compression=1)
        for index, mask in enumerate([0, 1, 2, 3, 3]):
            made.id.write_direct_chunk((10 * index,), bytes(40 + index), mask)
        found = counts(made)
    assert found == (5, 210, {0: 1, 1: 1, 2: 1, 3: 2})


def test_chunks_of_dataset_that_was_never_written_none(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        assert counts(file.create_dataset("v", (60,), "f4", chunks=(10,))) == (0, 0, {})


def test_chunks_of_every_index_of_the_format_counted(tmp_path: Path) -> None:
    """One chunk, implicit, fixed array, extensible array and B-tree, as the newest format chooses them."""
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for name, shape, maxshape, chunks, expected in (
            ("one", (10, 10), (10, 10), (10, 10), 1),
            ("fixed", (10, 10), (10, 10), (3, 3), 16),
            ("extensible", (10, 10), (None, 10), (3, 3), 16),
            ("tree", (10, 10), (None, None), (3, 3), 16),
        ):
            made = file.create_dataset(name, shape, "f4", maxshape=maxshape, chunks=chunks, shuffle=True)
            made[...] = 1
            found = counts(made)
            assert found == (expected, made.id.get_storage_size(), {0: expected})
            assert found[0] == made.id.get_num_chunks()


def chunked(path: Path, values: np.ndarray[Any, Any], chunks: tuple[int, ...], options: int = 0) -> None:
    """Make a shuffled and deflated dataset with HDF5's chunk options, which h5py has no call for."""
    library = ctypes.CDLL(h5p.__file__)
    with h5py.File(path, "w", libver="latest") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk(chunks)
        plist.set_shuffle()
        plist.set_deflate(4)
        plist.set_fill_value(np.array(7, values.dtype))
        assert library.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(options)) >= 0
        space = h5s.create_simple(values.shape, tuple(4 * extent for extent in values.shape))
        found = h5py.Dataset(h5d.create(file.id, b"x", h5t.py_create(values.dtype), space, plist))
        found[...] = values


@pytest.mark.parametrize("options", [0, 2], ids=["all", "whole chunks"])
def test_read_chunk_partial_ones_filtered_or_not_same_as_hdf5(tmp_path: Path, options: int) -> None:
    values = np.arange(70, dtype="f8").reshape(7, 10)
    chunked(tmp_path / "a.h5", values, (4, 4), options)
    with h5py.File(tmp_path / "a.h5") as file:
        for i in range(0, 7, 4):
            for j in range(0, 10, 4):
                part = values[i : i + 4, j : j + 4]
                np.testing.assert_array_equal(read_chunk(file["x"], (i, j))[: part.shape[0], : part.shape[1]], part)


def test_repack_source_with_unfiltered_partial_chunks_right(tmp_path: Path) -> None:
    values = np.arange(70, dtype="f8").reshape(7, 10)
    chunked(tmp_path / "a.h5", values, (4, 4), 2)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": "zfp(reversible=true)"})
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["x"], values)
        np.testing.assert_array_equal(read_chunk(file["x"], (4, 8))[:3, :2], values[4:, 8:])


def test_read_chunk_not_stored_fill_value(tmp_path: Path) -> None:
    chunked(tmp_path / "a.h5", np.arange(4, dtype="i2"), (4,))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["x"].resize((12,))
        assert read_chunk(file["x"], (8,)).tolist() == [7] * 4
        assert read_chunk(file["x"], (0,)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("origin", [(1,), (4,), (-4,), (0, 0), ()])
def test_read_chunk_no_such_chunk_refused(tmp_path: Path, origin: tuple[int, ...]) -> None:
    chunked(tmp_path / "a.h5", np.arange(4, dtype="i2"), (4,))
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"a.h5: /x: chunk at .*: expected a mul"):
        read_chunk(file["x"], origin)


def test_read_chunk_damaged_refused_with_file_dataset_chunk_and_filter(tmp_path: Path) -> None:
    chunked(tmp_path / "a.h5", np.arange(4, dtype="i2"), (4,))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["x"].id.write_direct_chunk((0,), b"damaged")
    with (
        h5py.File(tmp_path / "a.h5") as file,
        pytest.raises(FileError, match=r"a.h5: /x: chunk at \(0,\) cannot be decoded: filter 2, deflate\(4\)"),
    ):
        read_chunk(file["x"], (0,))


def test_pipeline_of_more_parameters_than_hdf5_gives_out_said(tmp_path: Path) -> None:
    words = tuple(range(4000))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((8,))
        plist.set_filter(999, h5z.FLAG_OPTIONAL, words)
        h5d.create(file.id, b"v", h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
    with h5py.File(tmp_path / "a.h5") as file:
        (stage,) = pipeline_of(file["v"]).stages
    assert stage.stored == words[:256]
    assert stage.in_words == "filter [999], not readable: it has 4000 parameters, of which HDF5 returns 256"
    (found,) = tamis.inspect(tmp_path / "a.h5").datasets
    assert found.path == "/v"


def test_read_chunk_fill_value_of_compound(tmp_path: Path) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (8,), dtype, chunks=(4,), fillvalue=np.array((7, 2.5), dtype))
    with h5py.File(tmp_path / "a.h5") as file:
        assert read_chunk(file["x"], (4,)).tolist() == [(7, 2.5)] * 4


def test_read_chunk_of_contiguous_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4)
        with pytest.raises(FileError, match="/x: has no chunks"):
            read_chunk(file["x"], (0,))


def test_read_chunk_stored_longer_than_a_chunk_without_filters_refused(tmp_path: Path) -> None:
    # HDF5 would write beyond the buffer that h5py made for it.
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=np.arange(12, dtype="f8"), chunks=(4,), maxshape=(None,))
        file["x"].id.write_direct_chunk((4,), bytes(40))
    with h5py.File(tmp_path / "a.h5") as file:
        stored = file["x"].id.get_chunk_info(1).size
        if stored != 32:
            with pytest.raises(FileError, match=rf"chunk at \(4,\): damaged: {stored} bytes at "):
                read_chunk(file["x"], (4,))
