"""The Zarr 3 codec tamis.pipeline: HDF5 chunks behind their masks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pytest
import zarr

import tamis
from tamis.formats.zarr.masked import MASK_MARK
from tamis.formats.zarr.zarr3_codecs import as_declared
from tamis.zarr import Pipeline2Codec, PipelineCodec, ZfpCodec, codecs

LOSSY = "zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"


def field() -> np.ndarray[Any, Any]:
    return (280 + 10 * np.sin(np.arange(4096) / 50)).reshape(16, 16, 16).astype("f4")


def write(path: Path, values: np.ndarray[Any, Any], filters: str, **options: Any) -> Any:
    array = zarr.create_array(
        str(path),
        shape=values.shape,
        dtype=values.dtype,
        chunks=(8,) * values.ndim,
        serializer=PipelineCodec(filters),
        compressors=None,
        **options,
    )
    array[...] = values
    return zarr.open_array(str(path))


@pytest.mark.parametrize(
    "serializer", [PipelineCodec("shuffle|deflate(4)"), ZfpCodec(reversible=True), PipelineCodec("zfp(accuracy=0.01)")]
)
def test_filter_in_front_that_hands_on_bits_as_integers(serializer: Any, tmp_path: Path) -> None:
    from zarr.codecs.numcodecs import BitRound

    values = np.linspace(1, 300, 64, dtype="f4").reshape(8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns of codecs that are not registered
        options: dict[str, Any] = {"compressors": None, "serializer": serializer, "filters": [BitRound(keepbits=12)]}
        zarr.create_array(tmp_path / "a.zarr", shape=(8, 8), chunks=(4, 8), dtype="f4", **options)[:] = values
        read = zarr.open_array(tmp_path / "a.zarr")[:]
    assert np.abs(read - values).max() <= 300 * 2.0**-12
    with pytest.raises(tamis.ParameterError, match="expected values of float32 from the codec before it, got uint8"):
        as_declared(np.zeros(4, np.uint8), np.dtype("f4"))


def test_missing_values_kept_bit_by_bit_and_others_within_the_bound(tmp_path: Path) -> None:
    values = field()
    values[0, 3, 4] = np.nan
    values[9, 9, 9] = 9.96921e36
    result = write(tmp_path / "a.zarr", values, LOSSY, fill_value=np.nan)[...]
    ordinary = np.isfinite(values) & (values < 1e30)
    assert np.abs(result - values)[ordinary].max() <= 0.1
    np.testing.assert_array_equal(result[~ordinary], values[~ordinary])
    chunks = [path.read_bytes() for path in (tmp_path / "a.zarr" / "c").rglob("*") if path.is_file()]
    assert {chunk.startswith(MASK_MARK + b"\1\0\0\0") for chunk in chunks} == {True, False}  # zfp was skipped for some


def test_chunk_has_the_bytes_of_hdf5(tmp_path: Path) -> None:
    values = field()
    filters = "zfp(accuracy=0.1)|fletcher32"
    write(tmp_path / "a.zarr", values, filters)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.create_dataset(file, "x", values.shape, "f4", filters=filters, chunks=(8, 8, 8))[...] = values
        _, chunk = file["x"].id.read_direct_chunk((8, 0, 8))
    assert (tmp_path / "a.zarr" / "c" / "1" / "0" / "1").read_bytes() == chunk


@pytest.mark.parametrize("filters", ["scaleoffset(integer)", "bitshuffle(lz4)", "shuffle|deflate(4)", "nbit", "none"])
def test_filters_without_a_codec_of_zarr_work(tmp_path: Path, filters: str) -> None:
    values = np.arange(512, dtype="i4").reshape(8, 8, 8)
    np.testing.assert_array_equal(write(tmp_path / "a.zarr", values, filters)[...], values)


def test_big_endian_values_stored_little_endian(tmp_path: Path) -> None:
    values = np.arange(64, dtype=">f8").reshape(8, 8)
    np.testing.assert_array_equal(write(tmp_path / "a.zarr", values, "shuffle")[...], values)


@pytest.mark.parametrize(
    "chunk",
    [MASK_MARK, MASK_MARK + b"\0\0", MASK_MARK + b"\x02\0\0\0" + bytes(256), MASK_MARK + b"\0\0\0\1" + bytes(256)],
)
def test_damaged_mask_refused(tmp_path: Path, chunk: bytes) -> None:
    write(tmp_path / "a.zarr", np.zeros((8, 8), "f4") + 1, "shuffle")
    (tmp_path / "a.zarr" / "c" / "0" / "0").write_bytes(chunk)
    with pytest.raises(tamis.StreamError, match="expected a filter mask of 1 bits"):
        zarr.open_array(str(tmp_path / "a.zarr"))[...]


def test_damaged_bytes_refused_by_the_checksum(tmp_path: Path) -> None:
    write(tmp_path / "a.zarr", field()[:8, :8, :8], LOSSY)
    chunk = tmp_path / "a.zarr" / "c" / "0" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    data[20] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(tamis.StreamError, match="fletcher32"):
        zarr.open_array(str(tmp_path / "a.zarr"))[...]


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"filters": 3},
        {"filters": "shuffle", "x": 1},
        {"filters": "shuffle", "mask": 2},
        {"filters": "shuffle", "mask": -1},
        {"filters": "gzip5"},
    ],
)
def test_metadata_malformed_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(tamis.ParameterError, match=r"tamis\.pipeline"):
        PipelineCodec.from_dict({"name": "tamis.pipeline", "configuration": configuration})


def test_codecs_shuffle_behind_zfp_refused_with_what_to_use() -> None:
    with pytest.raises(tamis.ParameterError, match=r"serializer=tamis\.zarr\.PipelineCodec"):
        codecs(LOSSY, "f4", (8, 8, 8))


def test_codecs_filter_without_codec_refused() -> None:
    with pytest.raises(tamis.ParameterError, match="Zarr has none"):
        codecs("nbit", "f4", (8, 8))
    with pytest.raises(tamis.ParameterError, match="zarr_format 2 or 3"):
        codecs("shuffle", "f4", (8, 8), zarr_format=4)


def test_chunk_that_begins_like_a_mark_is_marked(tmp_path: Path) -> None:
    values = np.frombuffer(MASK_MARK + bytes(52), "f4").reshape(4, 4)
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(4, 4),
        dtype="f4",
        chunks=(4, 4),
        serializer=PipelineCodec("none"),
        compressors=None,
    )
    array[...] = values
    assert (tmp_path / "a.zarr" / "c" / "0" / "0").read_bytes() == MASK_MARK + bytes(4) + values.tobytes()
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a.zarr"))[...], values)


def test_usual_mask_of_existing_chunks_needs_no_mark() -> None:
    pipeline, values = tamis.Pipeline.parse(LOSSY), field()[:8, :8, :8]
    data, mask = pipeline.encode(values, skip=[tamis.Shuffle, tamis.Deflate])
    codec = Pipeline2Codec(pipeline, "<f4", (8, 8, 8), mask=mask)
    assert np.abs(codec.decode(data) - values).max() <= 0.1
    assert numcodecs.get_codec(codec.get_config()) == codec


def test_zarr2_same_chunks_and_missing_values(tmp_path: Path) -> None:
    values = field()
    values[3, 3, 3] = np.nan
    write(tmp_path / "a.zarr", values, LOSSY)
    codec = Pipeline2Codec(LOSSY, "<f4", (8, 8, 8))
    array = zarr.create_array(
        str(tmp_path / "b.zarr"), shape=(16,) * 3, dtype="f4", chunks=(8,) * 3, zarr_format=2, compressors=codec
    )
    array[...] = values
    for i in (0, 1):
        assert (tmp_path / "b.zarr" / f"{i}.0.0").read_bytes() == (tmp_path / "a.zarr" / "c" / f"{i}/0/0").read_bytes()
    np.testing.assert_array_equal(
        zarr.open_array(str(tmp_path / "b.zarr"))[...], zarr.open_array(str(tmp_path / "a.zarr"))[...]
    )


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"dtype": "<f4", "shape": [2], "x": 1},
        {"dtype": "O", "shape": [2]},
        {"dtype": "<f4", "shape": 2},
        {"dtype": "<f4", "shape": [2], "fill": "xy"},
    ],
)
def test_zarr2_metadata_malformed_refused(config: dict[str, Any]) -> None:
    with pytest.raises(tamis.ParameterError, match=r"tamis\.pipeline"):
        numcodecs.get_codec({"id": "tamis.pipeline", "filters": "none", **config})
