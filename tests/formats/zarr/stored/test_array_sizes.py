"""Shapes and chunks in damaged metadata are refused before anything is computed with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from inprocess import run_tamis

import tamis

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

HUGE = 10**30
PLACES: dict[str, tuple[int, str, tuple[Any, ...]]] = {
    "shape of Zarr 3": (3, "x/zarr.json", ("shape",)),
    "chunks of Zarr 3": (3, "x/zarr.json", ("chunk_grid", "configuration", "chunk_shape")),
    "chunks in shards": (3, "shards/zarr.json", ("codecs", 0, "configuration", "chunk_shape")),
    "shards": (3, "shards/zarr.json", ("chunk_grid", "configuration", "chunk_shape")),
    "an array without its group": (3, "x/zarr.json", ("shape",)),
    "shape of Zarr 2": (2, "x/.zarray", ("shape",)),
    "chunks of Zarr 2": (2, "x/.zarray", ("chunks",)),
}
VALUES = [[HUGE, 3], [1 << 62, 3], [3, -3], ["3", 3], [3], 7, None]


def write_store(path: Path, zarr_format: Any) -> None:
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    group.create_array("x", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3))
    if zarr_format == 3:
        group.create_array("shards", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3), shards=(4, 6))
    group.create_array("other", data=np.array([1, 2]))
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)


def replace_value(file: Path, place: tuple[Any, ...], value: Any) -> None:
    content = json.loads(file.read_text())
    owner = content
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    file.write_text(json.dumps(content))


@pytest.mark.matrix
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("value", [*VALUES, [0, 3]], ids=repr)
def test_store_wrong_sizes_are_an_error_of_the_array(name: str, value: Any, tmp_path: Path) -> None:
    if "shape" in name or "without" in name:
        value = [HUGE, HUGE] if value == [0, 3] else value  # an axis without values is none that is wrong
    zarr_format, file, place = PLACES[name]
    path = tmp_path / "a.zarr"
    write_store(path, zarr_format)
    replace_value(path / file, place, value)
    if name == "an array without its group":
        with pytest.raises(tamis.FileError, match="its Zarr metadata cannot be read"):
            tamis.open(path / "x")
        return
    with tamis.open(path) as opened:
        with pytest.raises(tamis.FileError, match="its Zarr metadata cannot be read"):
            opened[file.partition("/")[0]]
        assert "other" in list(opened)
        np.testing.assert_array_equal(opened["other"][...], [1, 2])


@pytest.mark.parametrize("place", ["chunks of Zarr 3", "chunks of Zarr 2"])
@pytest.mark.parametrize("target", ["b.zarr", "b.h5"])
def test_repack_huge_chunks_end_in_words(place: str, target: str, tmp_path: Path) -> None:
    zarr_format, file, at = PLACES[place]
    write_store(tmp_path / "a.zarr", zarr_format)
    replace_value(tmp_path / "a.zarr" / file, at, [HUGE, 3])
    done = run_tamis("repack", tmp_path / "a.zarr", tmp_path / target)
    assert done.returncode == 1, done.stdout + done.stderr
    words = f"/x: its Zarr metadata cannot be read ({file}): expected a chunk shape of whole numbers from 0 to 2^63 - 1"
    assert f"{words}, got (1000000" in done.stderr
    assert "Traceback" not in done.stderr
    assert [item.name for item in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_store_chunks_of_no_values_are_read_where_there_are_none(zarr_format: Any, tmp_path: Path) -> None:
    """Older programs write chunks as long as the array, also where it has no values."""
    array = zarr.create_array(tmp_path / "a.zarr", shape=(0, 3), chunks=(1, 3), dtype="f4", zarr_format=zarr_format)
    del array
    place = ("chunks",) if zarr_format == 2 else ("chunk_grid", "configuration", "chunk_shape")
    replace_value(tmp_path / "a.zarr" / (".zarray" if zarr_format == 2 else "zarr.json"), place, [0, 3])
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})
    with tamis.open(tmp_path / "b.h5") as file:
        assert file["a"].shape == (0, 3)
