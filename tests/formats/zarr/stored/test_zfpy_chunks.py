"""Chunks of numcodecs' zfpy in Zarr 2: written by tamis, by numcodecs and by both, read, carried and damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numcodecs.zfpy
import numpy as np
import pytest
import xarray
import zarr

import tamis
from tamis import zfp
from tamis.formats.zarr.stored.store import ZarrStore
from tamis.zarr import H5zZfp, Zfpy

SHAPE, CHUNKS = (6, 24, 32), (1, 24, 16)
SAMPLE = Path(__file__).resolve().parents[4] / "examples" / "data" / "cam_ts.nc"


def field() -> np.ndarray[Any, Any]:
    return (280 + 10 * np.sin(np.arange(np.prod(SHAPE)) / 90)).reshape(SHAPE).astype("f4")


def create(path: Path, codec: Any, chunks: tuple[int, ...] = CHUNKS) -> zarr.Array:
    group = zarr.open_group(str(path), mode="a", zarr_format=2)
    array = group.create_array("v", shape=SHAPE, dtype="f4", chunks=chunks, compressors=codec, fill_value=None)
    array[...] = field()
    return array


def chunk_file(store: Path, *index: int) -> Path:
    return store / "v" / ".".join(map(str, index))


def assert_read_alike(store: Path) -> None:
    """Check that tamis, xarray and zarr-python read the same values."""
    expected = zarr.open_array(str(store / "v"), mode="r")[...]
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["v"][...], expected)
        np.testing.assert_array_equal(file["v"][3, 5:9, ::7], expected[3, 5:9, ::7])
    with xarray.open_dataset(store, engine="tamis") as ds:
        np.testing.assert_array_equal(ds["v"].values, expected)


@pytest.mark.matrix
@pytest.mark.parametrize("filters", ["zfp(accuracy=0.1)", "zfp(rate=9)", "zfp(precision=14)", "zfp(reversible=True)"])
@pytest.mark.parametrize("rest", ["", "|fletcher32", "|deflate(1)", "|deflate(1)|fletcher32"])
def test_streams_go_from_hdf5_to_zarr_2_and_back_without_being_encoded_again(
    filters: str, rest: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("v", data=field(), chunks=CHUNKS)
    paths = [tmp_path / name for name in ("source.h5", "a.h5", "b.zarr", "c.h5")]
    tamis.repack(*paths[:2], {"v": filters + rest}, checksum=False)
    tamis.repack(paths[1], paths[2], {}, zarr_format=2)
    tamis.repack(paths[2], paths[3], {})
    metadata = json.loads((paths[2] / "v" / ".zarray").read_text())
    assert [*(metadata["filters"] or []), metadata["compressor"]][0]["id"] == "zfpy"
    assert_read_alike(paths[2])
    pipeline = tamis.Pipeline.parse(filters)
    with h5py.File(paths[1]) as first, h5py.File(paths[3]) as last:
        chunk = tamis.filters.ChunkType(np.dtype("f4"), CHUNKS)
        stages = tamis.Pipeline([*pipeline.stages, *tamis.Pipeline.parse(rest[1:] or "none").stages])
        before, after = (file["v"].id.read_direct_chunk((2, 0, 16)) for file in (first, last))
        streams = [bytes(stages.decode_rest(data, mask, chunk)) for mask, data in (before, after)]
        assert after[0] == before[0]
        # libzfp reads whole words, so the stream of zfpy ends with up to seven bytes of zeros.
        assert streams[1].rstrip(b"\0") == streams[0].rstrip(b"\0")
        assert len(streams[0]) <= len(streams[1]) < len(streams[0]) + 8
    assert tamis.verify(paths[1], paths[3]).ok


def test_stream_of_numcodecs_keeps_its_unit_axes_and_ours_leaves_them_out(tmp_path: Path) -> None:
    create(tmp_path / "ours.zarr", Zfpy(tolerance=0.1))
    create(tmp_path / "theirs.zarr", numcodecs.zfpy.ZFPY(tolerance=0.1))
    headers = [
        zfp.Header.unpack(chunk_file(tmp_path / name, 0, 0, 0).read_bytes()) for name in ("ours.zarr", "theirs.zarr")
    ]
    assert [header.shape for header in headers] == [CHUNKS[1:], CHUNKS]
    for name, decoded in (("ours.zarr", True), ("theirs.zarr", False)):
        assert ZarrStore(tmp_path / name).array("/v").can_read_chunks == decoded
        assert_read_alike(tmp_path / name)


@pytest.mark.parametrize("chunks", [CHUNKS, (2, 24, 16)], ids=["unit axes", "none"])
def test_chunks_that_others_wrote_with_other_parameters_are_read_and_kept(
    chunks: tuple[int, ...], tmp_path: Path
) -> None:
    store = tmp_path / "a.zarr"
    create(store, Zfpy(tolerance=0.1), chunks)
    other = np.ascontiguousarray(field()[: chunks[0], :, :16] + 7)
    chunk_file(store, 1, 0, 0).write_bytes(numcodecs.zfpy.ZFPY(tolerance=0.001).encode(other))
    assert ZarrStore(store).array("/v").can_read_chunks
    assert_read_alike(store)
    tamis.repack(store, tmp_path / "b.h5", {})
    assert tamis.verify(store, tmp_path / "b.h5").ok
    with h5py.File(tmp_path / "b.h5") as file:
        masks = [file["v"].id.get_chunk_info(i).filter_mask for i in range(file["v"].id.get_num_chunks())]
    assert sorted(masks)[-2:] == [0, 1]  # one chunk is stored without zfp


@pytest.mark.parametrize("rest", [None, numcodecs.Zlib(1)])
def test_damaged_chunk_is_an_error_that_names_it(rest: Any, tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    group = zarr.open_group(str(store), mode="a", zarr_format=2)
    codecs = (
        {"compressors": Zfpy(tolerance=0.1)}
        if rest is None
        else {"filters": [Zfpy(tolerance=0.1)], "compressors": rest}
    )
    group.create_array("v", shape=SHAPE, dtype="f4", chunks=(2, 24, 16), **codecs)[...] = field()
    path = chunk_file(store, 1, 0, 1)
    good = path.read_bytes()
    for bad in (
        b"",
        good[:5],
        good[: len(good) // 2],
        b"\0" * 40,
        zfp.Header(np.dtype("f4"), (1 << 24, 1 << 24), zfp.Rate(1)).pack(),
    ):
        path.write_bytes(bad)
        with tamis.open(store) as file, pytest.raises(tamis.FileError, match=r"chunk at \(2, 0, 16\)"):
            file["v"][...]
    path.write_bytes(good)
    assert_read_alike(store)


def test_h5z_zfp_that_nobody_asked_to_change_is_copied_as_it_is(tmp_path: Path) -> None:
    """netCDF-C reads it, and not zfpy."""
    values = field()
    values[2, 3, 4] = np.nan  # stored raw
    array = create(tmp_path / "a.zarr", H5zZfp.of(tamis.Zfp(accuracy=0.1), "f4", CHUNKS))
    array[...] = values
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, zarr_format=2)
    for file in sorted((tmp_path / "a.zarr" / "v").iterdir()):
        if file.name != ".zattrs":
            assert (tmp_path / "b.zarr" / "v" / file.name).read_bytes() == file.read_bytes()


def test_workers_and_dask_write_zfpy_as_one_process_does(tmp_path: Path) -> None:
    for name, options in (("a.zarr", {}), ("b.zarr", {"workers": 2})):
        tamis.repack(SAMPLE, tmp_path / name, {"TS": "zfp(bound=0.1)"}, zarr_format=2, history=False, **options)
    files = sorted(path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file())
    assert all(
        path.read_bytes() == (tmp_path / "b.zarr" / path.relative_to(tmp_path / "a.zarr")).read_bytes()
        for path in files
    )
    with xarray.open_dataset(SAMPLE) as ds:
        ds.tamis.to_zarr(tmp_path / "c.zarr", {"TS": "zfp(bound=0.1)"}, zarr_format=2)
    assert str(tamis.inspect(tmp_path / "c.zarr")["TS"].readers) == "Zarr with zfpy or tamis"


@pytest.mark.parametrize("size", [1, 4, 8])
def test_shuffle_of_numcodecs_with_any_size_is_read_as_numcodecs_reads_it(size: int, tmp_path: Path) -> None:
    """numcodecs' default is 4, whatever the type: eight bytes were assumed for float64, and gave other values."""
    values = np.arange(600.0).reshape(20, 30)
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    options: dict[str, Any] = {"filters": [numcodecs.Shuffle(size)], "compressors": numcodecs.Zlib(1)}
    group.create_array("v", shape=values.shape, dtype="f8", chunks=(5, 30), **options)[...] = values
    with tamis.open(tmp_path / "a.zarr") as file:
        np.testing.assert_array_equal(file["v"][...], values)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.nc", {})
    with h5py.File(tmp_path / "b.nc") as file:
        np.testing.assert_array_equal(file["v"][...], values)
