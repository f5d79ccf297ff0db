"""Known defect U15: what ``--resume`` must not take for done, though source and recipe are the same."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

RECIPE = {"x": "shuffle|deflate(4)"}


def values_in(path: Path) -> list[float]:
    with h5py.File(path) as file:
        return [float(each) for each in file["x"][:]]


def make_virtual(folder: Path) -> None:
    with h5py.File(folder / "part.h5", "w") as file:
        file["x"] = np.arange(8.0)
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource("part.h5", "x", (8,))
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_virtual_dataset("x", layout)


def make_external(folder: Path) -> None:
    (folder / "raw").write_bytes(np.arange(8.0).tobytes())
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", (8,), "f8", external=[("raw", 0, 64)])


def change_virtual(folder: Path) -> None:
    with h5py.File(folder / "part.h5", "a") as file:
        file["x"][...] = -1


def change_external(folder: Path) -> None:
    (folder / "raw").write_bytes(np.full(8, -1.0).tobytes())


@pytest.mark.parametrize(
    ("make", "change"), [(make_virtual, change_virtual), (make_external, change_external)], ids=["virtual", "external"]
)
def test_u15_values_of_other_files_are_compared_before_a_target_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object, change: object
) -> None:
    monkeypatch.chdir(tmp_path)
    assert callable(make)
    assert callable(change)
    make(tmp_path)
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    assert not tamis.repack(source, target, RECIPE, resume=True).done_already
    assert tamis.repack(source, target, RECIPE, resume=True).done_already
    change(tmp_path)
    again = tamis.repack(source, target, RECIPE, resume=True)
    assert not again.done_already
    assert "made again: its values are from other files, and these may have changed" in again.notes[0]
    assert values_in(target) == [-1] * 8


def test_u15_target_with_datasets_that_could_not_be_read_is_made_anew(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        damaged = file.create_dataset("x", data=np.arange(1000.0), chunks=(100,), fletcher32=True)
        file.create_dataset("y", data=np.arange(1000.0), chunks=(100,))
        file.flush()
        place = damaged.id.get_chunk_info(3).byte_offset
    with source.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"\xff" * 20)
    for _ in range(2):
        result = tamis.repack(source, target, {"*": "shuffle|deflate(4)"}, resume=True)
        assert not result.done_already
        assert result.unreadable == ("/x",)
    assert "made again: the values of 1 dataset could not be read" in result.notes[0]


@pytest.mark.parametrize("record", [b"[" * 3500, b'"a"', b"[]", b"{}", b'{"version": 1}', b"null", b"\xff"])
def test_u15_record_that_means_nothing_is_as_none(tmp_path: Path, record: bytes) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(8.0)
    tamis.repack(source, target, RECIPE, resume=True)
    try:
        os.setxattr(target, "user.tamis.made", record)
    except OSError as error:
        pytest.skip(f"no such extended attributes here: {error}")
    (note,) = tamis.repack(source, target, RECIPE, resume=True).notes
    assert note.endswith("it has the filters and chunks of the recipe, and all values are within the bounds")


def test_u15_larger_is_part_of_the_recipe(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.random.default_rng(0).integers(0, 256, 40_000, np.uint8)
    with h5py.File(source, "w") as file:
        file["x"] = values
    kept = tamis.repack(source, target, {"*": "deflate(1)"}, chunks={"*": (100,)}, resume=True)
    assert "/x" in dict(kept.kept)
    again = tamis.repack(source, target, {"*": "deflate(1)"}, chunks={"*": (100,)}, resume=True, larger=True)
    assert not again.done_already
    assert [each.path for each in again.datasets] == ["/x"]


def without_record(target: Path) -> None:
    if hasattr(os, "removexattr") and os.listxattr(target):
        os.removexattr(target, "user.tamis.made")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Make a file with a dataset that gets smaller, one that would grow, and one that is small."""
    generator = np.random.default_rng(0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["smaller"] = np.arange(40_000.0)
        file["larger"] = generator.integers(0, 256, 40_000, np.uint8)
        file.create_dataset("chunked", data=generator.integers(0, 256, 40_000, np.uint8), chunks=(4000,), compression=9)
        file["small"] = np.arange(9.0)
    return tmp_path / "a.h5"


RECIPES = {"*": "shuffle|deflate(4)"}


def test_u15_datasets_that_were_kept_as_they_would_grow_are_done_without_a_record(mixed: Path) -> None:
    target, options = mixed.with_name("b.h5"), {"chunks": {"*": (100,)}}
    assert set(dict(tamis.repack(mixed, target, RECIPES, **options).kept)) == {"/larger", "/chunked", "/small"}
    without_record(target)
    result = tamis.repack(mixed, target, RECIPES, **options, resume=True)
    assert result.done_already
    assert "all values are within the bounds" in result.notes[0]
    with pytest.raises(tamis.FileError, match="File exists"):
        tamis.repack(mixed, target, RECIPES, **options, resume=True, larger=True)
    # One that would become smaller was never stored by such a recipe.
    tamis.repack(mixed, target, {"larger": "deflate(1)"}, overwrite=True)
    without_record(target)
    with pytest.raises(tamis.FileError, match="File exists"):
        tamis.repack(mixed, target, RECIPES, **options, resume=True)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("before", ["exact", "mask"])
@pytest.mark.parametrize("after", ["exact", "mask", "refuse"])
def test_u15_target_without_a_record_is_done_for_its_own_missing_policy(
    tmp_path: Path, before: str, after: str, gaps: bool
) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = (280 + np.sin(np.arange(4096) / 99)).astype("f4")
    values[50:60] = np.nan if gaps else 280
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(1024,))
    recipes = {"x": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
    tamis.repack(source, target, recipes, missing=before)
    without_record(target)
    if not gaps or before == after:  # without missing values all of them give the same bytes
        assert tamis.repack(source, target, recipes, missing=after, resume=True).done_already
        return
    reason = "missing values are kept in /x itself" if before == "exact" else "nothing says that tamis made it"
    with pytest.raises(tamis.FileError, match=f"File exists, and {reason}"):
        tamis.repack(source, target, recipes, missing=after, resume=True)
