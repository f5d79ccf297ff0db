"""Known defect U81: HDF5 → Zarr and references dropped a second hard link to a group, with all that is in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

zarr = pytest.importorskip("zarr")

VALUES = np.arange(1000, dtype="f4")
ARRAYS = {"a/x", "a/tags/d", "b/d2", "b/soft", "b/tags/d", "b/text", "a/text"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write a file whose groups and datasets have several names, one of them inside the group itself."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        tags = file.create_group("a/tags")
        tags.attrs["k"] = "v"
        tags["d"] = [1, 2, 3]
        file["a"].create_dataset("x", data=VALUES, chunks=(100,), compression=4)
        file["a"].create_dataset("text", data=["x", "yz"], dtype=h5py.string_dtype())
        file["a/empty"] = file.create_group("empty")
        group = file.create_group("b")
        group["tags"], group["d2"], group["text"] = tags, tags["d"], file["a/text"]
        group["soft"] = h5py.SoftLink("/a/x")
        file["a/me"] = file["a"]
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u81_hard_links_to_groups_are_copied_and_verified(source: Path, tmp_path: Path, zarr_format: int) -> None:
    target = tmp_path / "out.zarr"
    result = tamis.repack(source, target, {"/a/x": "shuffle|deflate(9)"}, zarr_format=zarr_format)
    store = zarr.open_group(target, mode="r")
    members = dict(store.members(max_depth=None))
    assert {name for name, item in members.items() if isinstance(item, zarr.Array)} == ARRAYS
    assert {"a/empty", "empty", "b/tags"} < members.keys()
    assert dict(store["b/tags"].attrs)["k"] == "v"
    np.testing.assert_array_equal(store["b/soft"][:], VALUES)
    assert [*store["b/text"][:]] == ["x", "yz"]
    assert "/a/me: hard link to /a, which encloses it: left out" in result.notes
    assert "/b/soft: another link to /a/x: it becomes an array of its own" in result.notes

    found = tamis.verify(source, target)
    assert found.ok
    assert {f"/{name}" for name in ARRAYS} == {dataset.path for dataset in found.datasets}


@pytest.mark.parametrize("name", ["b/tags", "b/d2", "a/empty", "b/soft"])
def test_u81_absent_second_path_is_a_violation(source: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "out.zarr"
    tamis.repack(source, target, {})
    shutil.rmtree(target / name)
    assert not tamis.verify(source, target).ok


def test_u81_changed_values_at_the_second_path_are_a_violation(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.zarr"
    tamis.repack(source, target, {})
    zarr.open_group(target)["b/tags/d"][1] = 7
    found = tamis.verify(source, target)
    assert [finding.path for finding in found.violations] == ["/b/tags/d"]


def test_u81_second_path_gets_the_filters_of_a_recipe_by_any_name(source: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("/a/x", "/b/soft")):
        target = tmp_path / f"{number}.zarr"
        tamis.repack(source, target, {name: "zfp(accuracy=0.5)"})
        inspected = tamis.inspect(target, ["/a/x", "/b/soft"]).datasets
        assert all("zfp(accuracy=0.5)" in str(dataset.pipeline) for dataset in inspected)
        assert tamis.verify(source, target, bounds="recorded").ok


def test_u81_references_have_both_paths_of_a_group(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "r+") as file:
        del file["a/text"], file["b/text"]
    target = tmp_path / "refs.json"
    tamis.export(source, target, "kerchunk")
    keys = json.loads(target.read_text())["refs"]
    assert {"a/tags/d/.zarray", "b/tags/d/.zarray", "b/tags/.zgroup"} < keys.keys()


def test_u81_report_has_each_array_once(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.zarr"
    tamis.repack(source, target, {})
    assert [dataset.path for dataset in tamis.report(source, target).datasets] == ["/a/tags/d", "/a/text", "/a/x"]
