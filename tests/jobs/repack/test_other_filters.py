"""Known defect U87: filters that the target lacks became others without a word, with up to 75 times the bytes."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

zarr = pytest.importorskip("zarr")

VALUES = (np.cumsum(np.random.default_rng(3).integers(-3, 4, 60_000)) + 5000).astype("u2").reshape(60, 1000)


def stored_nbytes(path: Path, name: str) -> int:
    return tamis.inspect(path, [name]).datasets[0].stored_nbytes


@pytest.mark.parametrize("filters", ["bitshuffle(lz4)", "bitshuffle(zstd,3)", "szip", "lzf"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u87_filters_that_zarr_lacks_become_the_smallest_and_are_named(
    tmp_path: Path, filters: str, zarr_format: int
) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.zarr"
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file.create_dataset("s", data=VALUES, chunks=(10, 1000), compression="lzf" if filters == "lzf" else 1)
    if filters == "lzf":
        (tmp_path / "plain.h5").rename(source)
    else:
        tamis.repack(tmp_path / "plain.h5", source, {"s": filters}, larger=True, min_size=0, checksum=False)
    result = tamis.repack(source, target, {}, zarr_format=zarr_format)
    np.testing.assert_array_equal(zarr.open_group(target, mode="r")["s"][:], VALUES)
    after = stored_nbytes(target, "s")
    assert after <= 1.5 * stored_nbytes(source, "s")
    (note,) = [note for note in result.notes if note.startswith("/s: ")]
    assert ", which all readers of Zarr have: " in note
    assert note.endswith(f" became {tamis.formatting.size_text(after)}")
    tamis.repack(source, tmp_path / "again.zarr", {}, zarr_format=zarr_format)
    again = tamis.inspect(tmp_path / "again.zarr", ["s"]).datasets[0].pipeline
    assert again == tamis.inspect(target, ["s"]).datasets[0].pipeline


def test_u87_values_that_are_copied_as_stored_keep_their_filters_without_a_note(tmp_path: Path) -> None:
    source, target = tmp_path / "in.h5", tmp_path / "out.zarr"
    with h5py.File(source, "w") as file:
        file.create_dataset("s", data=VALUES, chunks=(10, 1000), compression=4, shuffle=True)
        file.create_dataset("plain", data=VALUES)
    result = tamis.repack(source, target, {})
    assert not [note for note in result.notes if note.startswith("/")]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u87_codecs_that_not_all_of_hdf5_have_become_deflate_and_are_named(tmp_path: Path, zarr_format: int) -> None:
    source, target = tmp_path / "in.zarr", tmp_path / "out.nc"
    root = zarr.open_group(source, mode="w", zarr_format=zarr_format)
    root.create_array("s", data=VALUES, chunks=(10, 1000))  # by zarr's default, zstd
    mask = root.create_array("mask", data=VALUES > 5000, chunks=(10, 1000))
    assert mask.compressors
    result = tamis.repack(source, target, {})
    for name in ("s", "mask"):
        (note,) = [note for note in result.notes if note.startswith(f"/{name}: ")]
        assert "deflate(4), which all readers of HDF5 have: " in note
        assert stored_nbytes(target, name) < 1.3 * stored_nbytes(source, name)
    with h5py.File(target) as file:
        np.testing.assert_array_equal(file["s"][:], VALUES)
        np.testing.assert_array_equal(file["mask"][:], VALUES > 5000)


def test_u87_packed_values_of_zarr_stay_small(tmp_path: Path) -> None:
    codecs = pytest.importorskip("zarr.codecs")
    if not hasattr(codecs, "ScaleOffset"):
        pytest.skip("zarr before 3.2")
    source, target = tmp_path / "in.zarr", tmp_path / "out.nc"
    values = np.zeros((60, 1000)) + (np.arange(1000) % 5) / 4
    root = zarr.open_group(source, mode="w")
    root.create_array(
        "s",
        shape=values.shape,
        dtype="f8",
        chunks=(10, 1000),
        filters=[codecs.ScaleOffset(offset=0, scale=4), codecs.CastValue(data_type="uint8")],
        fill_value=0,
    )[:] = values
    result = tamis.repack(source, target, {})
    assert "/s: its codecs pack uint8, which is stored with scale_factor and add_offset in their place" in result.notes
    assert stored_nbytes(target, "s") < 0.05 * values.nbytes
