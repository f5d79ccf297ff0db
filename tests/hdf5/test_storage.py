"""Filters and chunks as a file has them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis
from tamis.filters import Deflate, Fletcher32, Shuffle, Stage, UnknownFilter
from tamis.hdf5.storage import Chunks, chunks_of, pipeline_of
from tamis.pipeline import Pipeline

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


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
        assert chunks_of(file["TS"]) == Chunks(30, file["TS"].id.get_storage_size(), {0: 30})


def test_chunks_of_dataset_with_masks_counted_by_mask(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (60,), "f4", chunks=(10,), shuffle=True, compression=1)
        for index, mask in enumerate([0, 1, 2, 3, 3]):
            made.id.write_direct_chunk((10 * index,), bytes(40 + index), mask)
        found = chunks_of(made)
    assert found == Chunks(5, 210, {0: 1, 1: 1, 2: 1, 3: 2})


def test_chunks_of_dataset_that_was_never_written_none(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        assert chunks_of(file.create_dataset("v", (60,), "f4", chunks=(10,))) == Chunks(0, 0, {})


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
            found = chunks_of(made)
            assert found == Chunks(expected, made.id.get_storage_size(), {0: expected})
            assert found.count == made.id.get_num_chunks()
