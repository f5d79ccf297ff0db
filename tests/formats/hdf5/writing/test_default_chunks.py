"""U8: default chunks follow our own advice, and chunks that waste much are said."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

import tamis

SHAPE = (10, 4, 2, 61, 120)
ZFP = "zfp(accuracy=0.01)"


@pytest.fixture
def levels(tmp_path: Path) -> Path:
    """Write temperatures of members, times, two levels and a grid, as ERA5's files have them: without chunks."""
    path = tmp_path / "in.nc"
    steps = np.meshgrid(*(np.linspace(0, 3, extent) for extent in SHAPE), indexing="ij", sparse=True)
    values = 250 + sum(np.sin(step * (axis + 1)) for axis, step in enumerate(steps)) + 40 * np.round(steps[2])
    noise = np.random.default_rng(0).normal(0, 0.05, SHAPE)
    with h5py.File(path, "w") as file:
        file["t"] = values + noise
    return path


def advice(path: Path) -> set[str]:
    return {each.code for each in tamis.inspect(path).datasets[0].notes}


def test_u08_default_chunks_have_no_padding_axes(levels: Path, tmp_path: Path) -> None:
    advised = tamis.repack(levels, tmp_path / "advised.nc", {"t": ZFP}, chunks={"t": (1, 4, 1, 61, 120)}).datasets[0]
    default = tamis.repack(levels, tmp_path / "default.nc", {"t": ZFP}).datasets[0]
    padded = tamis.repack(levels, tmp_path / "padded.nc", {"t": ZFP}, chunks={"t": (1, 4, 2, 61, 120)}).datasets[0]
    assert default.chunk_shape == (1, 4, 1, 61, 120)
    assert default.target_nbytes == advised.target_nbytes < 0.7 * padded.target_nbytes
    assert not advice(tmp_path / "default.nc") & {"zfp-padding", "edge-chunks", "zfp-unit-axes"}


@pytest.mark.parametrize("filters", [ZFP, "shuffle|deflate(4)"])
def test_u08_every_way_to_write_chooses_the_same_chunks(levels: Path, tmp_path: Path, filters: str) -> None:
    repacked = tamis.repack(levels, tmp_path / "out.nc", {"t": filters}).datasets[0].chunk_shape
    with h5py.File(levels) as file, h5py.File(tmp_path / "written.h5", "w") as out:
        written = tamis.hdf5.write(out, "t", file["t"], filters=filters).chunks
        created = tamis.hdf5.create_dataset(out, "u", SHAPE, "f8", filters=filters).chunks
        dataset = xr.Dataset({"t": (tuple("nplyx"), file["t"][:])})
    encoding = tamis.encoding(dataset, {"t": filters}, engine="h5netcdf")
    assert {repacked} == {written, created, encoding["t"]["chunksizes"]}


def test_u08_axis_without_end_gets_whole_blocks_and_sensible_chunks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for steps in (0, 1, 10):
            made = tamis.hdf5.create_dataset(
                file, f"x{steps}", (steps, 30), "f4", filters=ZFP, maxshape=(None, 30)
            ).chunks
            assert made[0] % 4 == 0
            assert made[1] == 30
            assert 1 << 15 <= made[0] * made[1] * 4 <= 1 << 20


def test_u08_chunks_that_waste_much_are_said_with_better_ones(levels: Path, tmp_path: Path) -> None:
    wasteful = {"t": (1, 4, 2, 61, 120)}
    preview = tamis.preview_repack(levels, tmp_path / "out.nc", {"t": ZFP}, chunks=wasteful)
    said = " ".join(preview.datasets[0].notes)
    assert "52 % of what the filters get is padding in chunks of 1x4x2x61x120" in said
    assert "with -c '/t:1x4x1x61x120' it is 4.7 %" in said
    assert said in " ".join(tamis.repack(levels, tmp_path / "out.nc", {"t": ZFP}, chunks=wasteful).datasets[0].notes)
    # The source's own shape is said too, and what is stored already is left alone.
    anew = tamis.repack(tmp_path / "out.nc", tmp_path / "b.nc", {"t": "zfp(rate=8)"})
    assert "52 %" in " ".join(anew.datasets[0].notes)
    again = tamis.repack(tmp_path / "out.nc", tmp_path / "c.nc", {"t": ZFP}).datasets[0]
    assert again.copied
    assert "padding" not in " ".join(again.notes)
    good = tamis.preview_repack(levels, tmp_path / "d.nc", {"t": ZFP}, chunks={"t": (1, 4, 1, 61, 120)})
    assert not good.datasets[0].notes


def test_u08_huge_chunks_that_are_nearly_empty_are_said_though_the_array_may_grow(tmp_path: Path) -> None:
    """PyTables with blosc2 has chunks of 34 million values for arrays of 5,000."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, step in (("huge", 4 << 20), ("large", 1 << 20)):
            file.create_dataset(name, data=np.arange(5000.0), chunks=(step,), maxshape=(None,), compression=1)
        file.create_dataset("filled", (3 << 20,), "f8", chunks=(4 << 20,), maxshape=(None,), compression=1)
    plan = tamis.preview_repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=0.1)|shuffle|deflate(4)"})
    notes = {each.path: " ".join(each.notes) for each in plan.datasets}
    assert "chunks of 4194304 are much larger than all of 5000: 33.6 MB decoded, for 40 kB of values" in notes["/huge"]
    assert "-c '/huge:5000' makes smaller ones" in notes["/huge"]
    assert "chunks of 1048576 are much larger than all of 5000" in notes["/large"]
    assert "larger than" not in notes["/filled"]
    assert not any("padding" in text for text in notes.values())


def test_u08_chunks_that_reach_past_the_edges_are_said_without_zfp_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (1100, 1100), "f4", data=np.arange(1100**2).reshape(1100, 1100), chunks=(1000, 1000))
        file.create_dataset("y", (100, 1100), "f4", chunks=(1000, 100), maxshape=(None, 1100))
    preview = tamis.preview_repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "shuffle|deflate(1)"})
    notes = {each.path: " ".join(each.notes) for each in preview.datasets}
    assert "70 % of what the filters get is padding in chunks of 1000x1000" in notes["/x"]
    assert "with -c '/x:1100x1100' it is none" in notes["/x"]
    assert not notes["/y"], "an axis without end is filled some day"
