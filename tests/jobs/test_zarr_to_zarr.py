"""Zarr to Zarr: codecs that HDF5 has no filters for keep their chunks; else values are stored anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
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
            assert new == old
    assert after == before
    assert tamis.verify(source, target).ok
    expected = np.where(np.arange(8)[:, None, None] < 4, VALUES, 3)
    np.testing.assert_array_equal(zarr.open_array(target / "v", mode="r")[:], expected)


def test_other_format_or_shards_store_the_values_anew(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    write(source, CODECS["3: transposed, gzip, checksum"])
    for options in ({"zarr_format": 2}, {"shards": 2}):
        target = tmp_path / f"{next(iter(options))}.zarr"
        tamis.repack(source, target, {}, **options)
        np.testing.assert_array_equal(zarr.open_array(target / "v", mode="r")[:4], VALUES[:4])
        assert b"transpose" not in (target / "v" / ("zarr.json" if "shards" in options else ".zarray")).read_bytes()
        assert tamis.verify(source, target).ok


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("recipes", [{}, {"plain": "shuffle|deflate(9)"}], ids=["copied", "rewritten"])
def test_consolidated_metadata_of_a_copy_are_those_of_its_arrays(
    recipes: dict[str, str], zarr_format: Any, tmp_path: Path
) -> None:
    """Those of the source are older than its arrays: one grew, one has other attributes, one is new, one is gone."""
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    root = zarr.create_group(source, zarr_format=zarr_format)
    for name in ("plain", "grown", "gone", "inner/deep"):
        root.create_array(name, data=VALUES[0], chunks=(5, 12), compressors=_gzip(zarr_format))
    root.create_array("text", shape=(2,), dtype=str)[:] = np.array(["a", "bc"], object)
    zarr.consolidate_metadata(source, zarr_format=zarr_format)
    grown = zarr.open_array(source / "grown", mode="r+")
    grown.resize((15, 12))
    grown[10:] = 7
    zarr.open_array(source / "inner/deep", mode="r+").attrs["units"] = "K"
    zarr.create_array(source / "new", data=VALUES[1], zarr_format=zarr_format)
    shutil.rmtree(source / "gone")
    tamis.repack(source, target, recipes, zarr_format=zarr_format)
    by_root = zarr.open_consolidated(target, zarr_format=zarr_format)
    by_arrays = zarr.open_group(target, use_consolidated=False)
    names = ["grown", "inner/deep", "new", "plain", "text"]
    for group in (by_root, by_arrays):
        arrays = {name: item for name, item in group.members(max_depth=None) if isinstance(item, zarr.Array)}
        assert sorted(arrays) == names
        assert arrays["grown"].shape == (15, 12)
        assert arrays["inner/deep"].attrs["units"] == "K"
    for name in names:
        assert by_root[name].metadata == by_arrays[name].metadata
        np.testing.assert_array_equal(by_root[name][...], zarr.open_array(source / name)[...])


def _gzip(zarr_format: int) -> Any:
    return GzipCodec(level=1) if zarr_format == 3 else numcodecs.GZip(1)


def test_pattern_keeps_arrays_whose_type_is_only_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    root = zarr.create_group(source)
    times = np.arange(6).astype("M8[s]")
    root.create_array("times", data=times, chunks=(4,))
    root.create_array("x", data=VALUES, chunks=(4, 10, 12))
    result = tamis.repack(source, target, {"*": "shuffle|deflate(1)"}, min_size=0, larger=True)
    assert [dataset.path for dataset in result.datasets] == ["/x"]
    assert dict(result.kept)["/times"] == "the target can only keep values of its type as they are stored"
    np.testing.assert_array_equal(zarr.open_group(target)["times"][...], times)
    with pytest.raises(tamis.TamisError, match="times"):
        tamis.repack(source, tmp_path / "c.zarr", {"times": "deflate(1)"}, larger=True)


@pytest.mark.parametrize("fill", ["2000-01-01", "NaT", 0])
def test_times_of_zarr_2_are_written_with_their_fill_value(fill: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    root = zarr.create_group(source, zarr_format=2)
    fill = np.datetime64(fill, "s")
    array = root.create_array("times", shape=(6,), dtype="M8[s]", chunks=(2,), fill_value=fill)
    array[:2] = np.arange(2).astype("M8[s]")
    tamis.repack(source, target, {"times": "shuffle|deflate(1)"}, zarr_format=2, larger=True)
    np.testing.assert_array_equal(zarr.open_group(target)["times"][...], array[...])
