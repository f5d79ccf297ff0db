"""Known defect U94: a chunk that ends after the last value of the array could not become Zarr, or be copied."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

zarr = pytest.importorskip("zarr")

VALUES = np.arange(100, dtype="<i2")
SHUFFLED = VALUES.view("u1").reshape(-1, 2).T.tobytes()
CHUNKS: dict[str, tuple[dict[str, Any], bytes]] = {
    "none": ({}, VALUES.tobytes()),
    "deflate": ({"compression": 1}, zlib.compress(VALUES.tobytes())),
    "shuffle": ({"compression": 1, "shuffle": True}, zlib.compress(SHUFFLED)),
}


@pytest.fixture(params=[*CHUNKS, "two axes"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a file as nanopore's fast5: the chunk has 400 values, its bytes only the 100 of the array."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        if request.param == "two axes":
            make_two_axes(file)
            return path
        keywords, data = CHUNKS[request.param]
        file.create_dataset("s", (100,), "<i2", chunks=(400,), maxshape=(None,), **keywords)
        file["s"].id.write_direct_chunk((0,), data)
    return path


def make_two_axes(file: h5py.File) -> None:
    """Write four chunks, of which the last ends after the array, and that before has rows that are partly outside."""
    values = np.arange(25, dtype="<i2").reshape(5, 5)
    dataset = file.create_dataset("s", (5, 5), "<i2", chunks=(4, 4), maxshape=(None, None), compression=1)
    dataset[...] = values
    dataset.id.write_direct_chunk((4, 4), zlib.compress(values[4:, 4:].tobytes()))
    dataset.id.write_direct_chunk((4, 0), zlib.compress(values[4, :4].tobytes()))


def expected(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["s"][()]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("filters", [{}, {"s": "shuffle|deflate(4)"}])
def test_u94_short_chunk_goes_to_zarr(source: Path, tmp_path: Path, zarr_format: int, filters: dict[str, str]) -> None:
    target = tmp_path / "out.zarr"
    tamis.repack(source, target, filters, zarr_format=zarr_format, larger=True, min_size=0)
    np.testing.assert_array_equal(zarr.open_group(target, mode="r")["s"][...], expected(source))
    assert tamis.verify(source, target).ok


@pytest.mark.parametrize("filters", [{}, {"s": "none"}, {"s": "shuffle|deflate(4)"}])
def test_u94_short_chunk_goes_to_hdf5(source: Path, tmp_path: Path, filters: dict[str, str]) -> None:
    target = tmp_path / "out.h5"
    tamis.repack(source, target, filters, larger=True, min_size=0)
    np.testing.assert_array_equal(expected(target), expected(source))
    assert tamis.verify(source, target).ok
    with h5py.File(target) as file:
        dataset = file["s"]
        if not dataset.compression and dataset.shape == (100,):  # and nothing of the memory of this process
            assert not any(dataset.id.read_direct_chunk((0,))[1][200:])


def test_u94_short_chunk_is_copied_into_references(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "refs.json"
    tamis.export(source, target, "kerchunk")
    with tamis.open(target) as file:
        np.testing.assert_array_equal(file["s"][...], expected(source))


def test_u94_unfiltered_chunk_without_all_values_is_damaged(tmp_path: Path) -> None:
    source = tmp_path / "in.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("s", (100,), "<i2", chunks=(400,), maxshape=(None,))
        file["s"].id.write_direct_chunk((0,), VALUES[:99].tobytes())
    for name in ("out.h5", "out.zarr"):
        with pytest.raises(tamis.FileError, match=r"198|800"):
            tamis.repack(source, tmp_path / name, {})
