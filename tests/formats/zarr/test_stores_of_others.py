"""Zarr stores as other programs write them, found by `tests/tools/sweep.py`: read, copied and compared as they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import zarr

import tamis


def test_characters_that_old_netcdf_calls_unicode_are_single_bytes(tmp_path: Path) -> None:
    """netCDF-C 4.9.0 and older write a byte for each character, and the type <U1, of four."""
    source, text = tmp_path / "a.zarr", b"Argo profile    "
    (source / "t").mkdir(parents=True)
    array = {
        "zarr_format": 2, "shape": [16], "dtype": "<U1", "chunks": [8], "fill_value": " ", "order": "C",
        "compressor": None, "filters": None, "_NCZARR_ARRAY": {"dimrefs": ["/s"], "storage": "chunked"},
    }  # fmt: skip
    group = {"dims": {"s": 16}, "vars": ["t"], "groups": []}
    for name, content in {
        ".zgroup": {"zarr_format": 2, "_NCZARR_GROUP": group, "_NCZARR_SUPERBLOCK": {"version": "2.0.0"}},
        "t/.zarray": array,
        "t/.zattrs": {"_ARRAY_DIMENSIONS": ["s"]},
    }.items():
        (source / name).write_text(json.dumps(content))
    for number in range(2):
        (source / f"t/{number}").write_bytes(text[8 * number : 8 * number + 8])
    with tamis.open(source) as file:
        assert file["t"][:].tobytes() == text
    for target, form in (("b.zarr", {"zarr_format": 2}), ("c.zarr", {}), ("d.nc", {})):
        tamis.repack(source, tmp_path / target, {}, **form)
        assert tamis.verify(source, tmp_path / target).ok
    assert json.loads((tmp_path / "b.zarr/t/.zarray").read_text())["dtype"] == "<U1"
    assert (tmp_path / "b.zarr/t/1").read_bytes() == text[8:]
    assert zarr.open_group(tmp_path / "c.zarr", mode="r")["t"][:].tobytes() == text
    with netCDF4.Dataset(tmp_path / "d.nc") as file:
        assert netCDF4.chartostring(file["t"][:]) == "Argo profile    "


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stores_of_one_array_are_compared_whatever_their_names(tmp_path: Path, zarr_format: int) -> None:
    values = np.arange(12, dtype="f4").reshape(3, 4)
    source, same, other, group = (tmp_path / name for name in ("a.zarr", "b.zarr", "c.zarr", "d.zarr"))
    zarr.create_array(source, shape=(3, 4), chunks=(2, 4), dtype="f4", zarr_format=zarr_format)[:] = values
    for copy in (same, other):
        shutil.copytree(source, copy)
    zarr.open_array(other, mode="r+")[2, 3] = 99
    result = tamis.repack(source, group, {}, zarr_format=zarr_format)
    note = "/a: the store is this array, without a group: in the target it is an array of the root group"
    assert note in result.notes
    assert note in tamis.preview_repack(source, tmp_path / "e.zarr", {}, zarr_format=zarr_format).notes
    for first, second in ((source, same), (source, group), (group, same)):
        assert tamis.verify(first, second).ok
    for first in (source, group):
        assert not tamis.verify(first, other).ok
    zarr.open_group(group, mode="r+").create_array("more", shape=(), dtype="i1")
    assert not tamis.verify(group, same).ok


@pytest.mark.parametrize("filters", [{}, {"*": "deflate"}])
def test_arrays_of_zarr_2_without_attributes_get_no_file_for_them(tmp_path: Path, filters: dict[str, str]) -> None:
    source = tmp_path / "a.zarr"
    group = zarr.open_group(source, mode="w", zarr_format=2)
    for name in ("x", "y"):
        group.create_array(name, shape=(64,), chunks=(32,), dtype="i2")[:] = 1
    (source / "x/.zattrs").unlink(missing_ok=True)
    (source / "y/.zattrs").write_text("{}")
    tamis.repack(source, tmp_path / "b.zarr", filters, min_size=1, larger=True, zarr_format=2)
    assert [(tmp_path / "b.zarr" / name / ".zattrs").exists() for name in "xy"] == [False, True]
    assert zarr.open_consolidated(tmp_path / "b.zarr")["x"].attrs == {}
    assert tamis.verify(source, tmp_path / "b.zarr").ok


@pytest.mark.parametrize("filters", [{}, {"*": "deflate"}])
def test_documents_without_attributes_stay_without(tmp_path: Path, filters: dict[str, str]) -> None:
    source = tmp_path / "a.zarr"
    zarr.open_group(source, mode="w").create_array("x", shape=(64,), chunks=(32,), dtype="i2")[:] = 1
    for name in ("zarr.json", "x/zarr.json"):
        content = json.loads((source / name).read_text())
        del content["attributes"]
        (source / name).write_text(json.dumps(content))
    tamis.repack(source, tmp_path / "b.zarr", filters, min_size=1, larger=True, consolidated=False)
    for name in ("zarr.json", "x/zarr.json"):
        assert "attributes" not in json.loads((tmp_path / "b.zarr" / name).read_text())
    assert zarr.open_group(tmp_path / "b.zarr", mode="r")["x"].attrs == {}
    assert tamis.verify(source, tmp_path / "b.zarr").ok


def test_result_says_that_an_array_with_new_filters_is_little_endian(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for name, dtype in (("big", ">i2"), ("little", "<i2")):
        group.create_array(name, shape=(64,), chunks=(32,), dtype=dtype)[:] = np.arange(64)
    arguments = {"min_size": 1, "larger": True, "zarr_format": 2}
    result = tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {"*": "shuffle|deflate"}, **arguments)
    notes = {item.path: item.notes for item in result.datasets}
    assert notes == {"/big": ("big-endian in the source, stored little-endian",), "/little": ()}
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "b.zarr", mode="r")["big"], np.arange(64))
    copy = tamis.repack(tmp_path / "a.zarr", tmp_path / "c.zarr", {}, zarr_format=2)
    assert not any("endian" in note for note in copy.notes)
    assert zarr.open_group(tmp_path / "c.zarr", mode="r")["big"].dtype == ">i2"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_of_zarr_are_not_said_to_lie_elsewhere(tmp_path: Path, zarr_format: int) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    group.create_array("t", shape=(2,), dtype=str)[:] = np.array(["a", "bb"])
    assert [note.code for item in tamis.inspect(tmp_path / "a.zarr").datasets for note in item.notes] == []
