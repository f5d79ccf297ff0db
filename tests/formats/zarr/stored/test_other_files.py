"""Files in a Zarr store that are not of Zarr are copied to another one, or listed; none goes without a word."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

import tamis

zarr = pytest.importorskip("zarr")


@pytest.fixture(params=[2, 3])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=request.param)
    for name in ("x", "inner/y"):
        array = group.create_array(name, shape=(4, 4), chunks=(2, 2), dtype="f4")
        array[:] = 1
    (path / "README").write_bytes(b"\x00what this is")
    (path / "OME").mkdir()
    (path / "OME" / "METADATA.ome.xml").write_text("<OME/>")
    (path / "inner" / ".hidden").write_text("hidden")
    (path / "x" / ".nczarray").write_text("{}")
    (path / "link").symlink_to("/etc/hostname")
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_other_files_go_to_zarr_but_for_links_and_those_of_nczarr(
    store: Path, zarr_format: Literal[2, 3], tmp_path: Path
) -> None:
    target = tmp_path / "b.zarr"
    shown = tamis.preview_repack(store, target, {}, zarr_format=zarr_format).notes
    notes = tamis.repack(store, target, {"x": "deflate(1)"}, zarr_format=zarr_format).notes
    for name in ("README", "OME/METADATA.ome.xml", "inner/.hidden"):
        assert (target / name).read_bytes() == (store / name).read_bytes()
    for name in ("link", "x/.nczarray"):
        assert not os.path.lexists(target / name)
        assert f"/{name}: a file that is not of Zarr: left out" in notes
        assert f"/{name}: a file that is not of Zarr: left out" in shown
    assert sum("not of Zarr" in note for note in notes) == 2
    assert tamis.verify(store, target).ok


def test_other_files_are_listed_where_the_target_is_one_file(store: Path, tmp_path: Path) -> None:
    notes = tamis.repack(store, tmp_path / "b.nc", {}).notes
    listed = {note.partition(":")[0] for note in notes if "a file that is not of Zarr: left out" in note}
    assert listed == {"/README", "/OME/METADATA.ome.xml", "/inner/.hidden", "/x/.nczarray", "/link"}
    assert tamis.verify(store, tmp_path / "b.nc").ok


def test_chunks_of_a_damaged_array_are_no_other_files(tmp_path: Path) -> None:
    array = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3).create_array("x", shape=(4,), dtype="f4")
    array[:] = 1
    zarr.open_group(tmp_path / "a.zarr", mode="a").create_array("y", shape=(4,), dtype="f4")
    (tmp_path / "a.zarr" / "x" / "zarr.json").write_text("{")
    notes = tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {}, drop=["x"]).notes
    assert not any("not of Zarr" in note for note in notes)
    assert not (tmp_path / "b.zarr" / "x").exists()
