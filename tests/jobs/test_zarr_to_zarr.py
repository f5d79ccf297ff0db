"""Zarr to Zarr: codecs that HDF5 has no filters for keep their chunks; else values are stored anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import xarray
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec

import tamis

VALUES = np.arange(960, dtype="i4").reshape(8, 10, 12) * 7
CODECS: dict[str, dict[str, Any]] = {
    "3: transposed, gzip, checksum": {
        "zarr_format": 3,
        "filters": TransposeCodec(order=(2, 0, 1)),
        "compressors": [GzipCodec(level=2), Crc32cCodec()],
    },
    "3: blosc of bits": {"zarr_format": 3, "compressors": BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4)},
    "2: delta, lz4": {"zarr_format": 2, "filters": numcodecs.Delta("i4"), "compressors": numcodecs.LZ4()},
    "2: in Fortran's order": {"zarr_format": 2, "order": "F", "compressors": numcodecs.GZip()},
}

pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning", "ignore:Numcodecs codecs")


def write(path: Path, options: dict[str, Any]) -> None:
    group = zarr.open_group(path, mode="w", zarr_format=options["zarr_format"], attributes={"title": "t"})
    array = group.create_array("v", shape=VALUES.shape, dtype="i4", chunks=(4, 10, 5), fill_value=3, **_rest(options))
    array[:4] = VALUES[:4]  # the other chunks are not stored
    array.attrs["units"] = "K"


def _rest(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "zarr_format"}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CODECS)
def test_chunks_and_codecs_move_as_they_are(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    write(source, CODECS[name])
    tamis.repack(source, target, {}, zarr_format=CODECS[name]["zarr_format"])
    before, after = files(source / "v"), files(target / "v")
    for metadata in ("zarr.json", ".zarray"):
        if metadata in before:
            old, new = (json.loads(found.pop(metadata)) for found in (before, after))
            for key in old.keys() - {"dimension_names", "attributes"}:
                assert new[key] == old[key]
    assert before.pop(".zattrs", None) == b'{\n  "units": "K"\n}' or name.startswith("3")
    after.pop(".zattrs", None)
    assert after == before
    assert len(after) == 3
    assert tamis.verify(source, target).ok
    with xarray.open_zarr(target) as opened:
        expected = np.where(np.arange(8)[:, None, None] < 4, VALUES, 3)
        np.testing.assert_array_equal(opened["v"].fillna(3), expected)
        assert opened["v"].units == "K"


def test_other_format_or_shards_store_the_values_anew(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    write(source, CODECS["3: transposed, gzip, checksum"])
    for options in ({"zarr_format": 2}, {"shards": 2}):
        target = tmp_path / f"{next(iter(options))}.zarr"
        tamis.repack(source, target, {}, **options)
        np.testing.assert_array_equal(zarr.open_array(target / "v", mode="r")[:4], VALUES[:4])
        assert b"transpose" not in (target / "v" / ("zarr.json" if "shards" in options else ".zarray")).read_bytes()
        assert tamis.verify(source, target).ok
