"""Chunks in shards, read by tamis: where zarr-python puts the index, chunks with marks, and hostile indexes."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

import tamis
from tamis import FileError
from tamis.formats.zarr.stored.store import ZarrStore
from tamis.zarr import PipelineCodec

SHAPE, SHARDS, CHUNKS = (9, 20, 30), (8, 20, 30), (4, 10, 15)
FIELD = (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE).astype("f4")
FIELD[0, 0, 0] = np.nan
LITTLE, BIG = BytesCodec(endian="little"), BytesCodec(endian="big")
MARKED = PipelineCodec("zfp(accuracy=0.1)|deflate(4)")


def create(path: Path, fill: float = 7, **options: Any) -> Any:
    """Write an array in shards of 8 chunks, some of which are not stored."""
    root = zarr.open_group(str(path), mode="w")
    sharding = ShardingCodec(chunk_shape=CHUNKS, **options)
    array = root.create_array(
        "a", shape=SHAPE, dtype="f4", chunks=SHARDS, fill_value=fill, serializer=sharding, compressors=None
    )
    array[:5, :15] = FIELD[:5, :15]
    return array


@pytest.mark.parametrize(
    ("by_tamis", "options"),
    [
        (True, {"codecs": [LITTLE, ZstdCodec(level=2)]}),
        (True, {"codecs": [BIG], "index_location": "start"}),
        (True, {"codecs": [MARKED], "index_codecs": [LITTLE]}),
        (False, {"codecs": [LITTLE, GzipCodec()]}),
        (False, {"codecs": [LITTLE], "index_codecs": [BIG, Crc32cCodec()]}),
        (False, {"codecs": [ShardingCodec(chunk_shape=(2, 10, 15), codecs=[LITTLE])]}),
    ],
    ids=["zstd", "index first", "marks", "gzip", "big-endian index", "nested"],
)
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning", "ignore:Numcodecs codecs")
def test_values_are_those_of_zarr_python(by_tamis: bool, options: dict[str, Any], tmp_path: Path) -> None:
    expected = create(tmp_path / "a.zarr", **options)[...]
    with tamis.open(tmp_path / "a.zarr", threads=2) as file:
        np.testing.assert_array_equal(file["a"][()], expected)
        np.testing.assert_array_equal(file["a"][3:9:2, 4, ::2], expected[3:9:2, 4, ::2])
    array = ZarrStore(tmp_path / "a.zarr").array("/a")
    assert array.can_read_chunks == by_tamis
    if by_tamis:
        assert 0 < len(array.chunk_index()) < array.grid.chunk_count
        assert len(array.chunk_index().mask_counts()) == 1 + (options["codecs"] == [MARKED])


def test_chunks_move_out_of_shards_and_into_others_as_they_are(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr", codecs=[MARKED])
    for name, shards in (("plain", None), ("other", 3)):
        tamis.repack(tmp_path / "a.zarr", tmp_path / f"{name}.zarr", {}, shards=shards)
        assert tamis.verify(tmp_path / "a.zarr", tmp_path / f"{name}.zarr").ok
        assert _chunks(tmp_path / f"{name}.zarr") == _chunks(tmp_path / "a.zarr")
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "a.nc").ok


def _chunks(store: Path) -> dict[Any, Any]:
    array = ZarrStore(store).array("/a")
    chunks = array.open_chunks()
    return {origin: chunks.stored(origin) for origin, _ in array.chunk_index().records()}


def _index(*entries: tuple[int, int]) -> bytes:
    absent = [((1 << 64) - 1,) * 2] * (8 - len(entries))
    data = b"".join(struct.pack("<2Q", *entry) for entry in [*entries, *absent])
    return data + google_crc32c.value(data).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"\0" * 100, "expected an index of 132 bytes for 8 chunks, found a file of 100 bytes"),
        (_index()[:-1] + b"\0", "expected the checksum .* of the index, found"),
        (_index((0, 1)), "expected chunks from byte 0 to 0, found 1 bytes at 0"),
        (b"x" * 64 + _index((60, 5)), "expected chunks from byte 0 to 64, found 5 bytes at 60"),
        (b"x" * 64 + _index((1 << 63, 1 << 63)), "expected chunks from byte 0 to 64, found 9223372036854775808 bytes"),
        (b"x" * 64 + _index((0, (1 << 64) - 1)), "expected chunks from byte 0 to 64, found 18446744073709551615"),
        (
            b"x" * 64 + _index(((1 << 64) - 1, 0)),
            "expected chunks from byte 0 to 64, found 0 bytes at 184467440737",
        ),
        (b"x" * 64 + _index((0, 64)), "chunk at .* cannot be decoded"),
    ],
)
def test_hostile_index_refused(content: bytes, error: str, tmp_path: Path) -> None:
    create(tmp_path / "a.zarr", codecs=[LITTLE, ZstdCodec()])
    (tmp_path / "a.zarr" / "a" / "c" / "0" / "0" / "0").write_bytes(content)
    with tamis.open(tmp_path / "a.zarr") as file, pytest.raises(FileError, match=error):
        file["a"][()]


def test_shard_of_too_many_chunks_refused_without_memory_for_them(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr", codecs=[LITTLE])
    metadata = tmp_path / "a.zarr" / "a" / "zarr.json"
    content = json.loads(metadata.read_text())
    content["shape"] = content["chunk_grid"]["configuration"]["chunk_shape"] = [4 << 40, 20, 30]
    metadata.write_text(json.dumps(content))
    with tamis.open(tmp_path / "a.zarr") as file, pytest.raises(FileError, match="expected an index of 7036874"):
        file["a"][0, 0, 0]


def test_index_without_codecs_is_an_error_of_the_file(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "a.zarr", shape=(4,), chunks=(2,), shards=(4,), dtype="f4")[:] = 1
    file = tmp_path / "a.zarr" / "zarr.json"
    metadata = json.loads(file.read_text())
    metadata["codecs"][0]["configuration"]["index_codecs"] = []
    file.write_text(json.dumps(metadata))
    with tamis.open(tmp_path / "a.zarr") as store, pytest.raises(FileError, match="cannot be read"):
        _ = store["a"][:]
