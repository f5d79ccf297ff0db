"""Known defect U77: chunks that cannot be decoded were copied without a word by a pattern, and from a folder."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from inprocess import said_by_tamis, said_by_workers, threads_as_workers

import tamis

RECIPES = {
    "pattern": "*:shuffle|deflate(5)",
    "other": "TS:shuffle|deflate(5)",
    "lossy": "*:zfp(accuracy=0.1)|shuffle|deflate(4)",
    "as stored": "V:deflate(4)|fletcher32",
    "pattern as stored": "V*:deflate(4)|fletcher32",
    "chunks": "TS:none",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of two variables, one of which has a damaged chunk."""
    (tmp_path / "in").mkdir()
    values = np.random.default_rng(0).normal(280, 10, (40, 20, 20)).round(1).astype("f4")
    for name in ("a.nc", "b.nc"):
        with h5py.File(tmp_path / "in" / name, "w") as file:
            for variable in ("TS", "U"):
                file.create_dataset(variable, data=values, chunks=(10, 20, 20), compression=4, shuffle=True)
            # The damage is in a chunk of its own filters: any recipe may match it or not.
            made = file.create_dataset("V", data=values, chunks=(10, 20, 20), compression=4, fletcher32=True)
            if name == "a.nc":
                file["U"].id.write_direct_chunk((10, 0, 0), b"\xff" * 400, 0)
                made.id.write_direct_chunk((0, 0, 0), b"\xff" * 400, 0)
    return tmp_path / "in"


@pytest.mark.matrix
@pytest.mark.parametrize("recipe", RECIPES)
def test_u77_damage_of_one_file_ends_with_exit_1(folder: Path, tmp_path: Path, recipe: str) -> None:
    source, target = folder / "a.nc", tmp_path / "out.nc"
    filters = RECIPES[recipe]
    said = said_by_workers("repack", source, target, "-f", filters, "-q", code=1)
    assert "/U: damaged, and copied as it is: 1 of 4 chunks cannot be decoded: chunk at (10, 0, 0)" in said
    assert "/V: damaged, and copied as it is: 1 of 4 chunks" in said
    again = json.loads(
        said_by_workers("repack", source, target, "-f", filters, "--overwrite", "--json", "-q", "--keep-damaged")
    )
    assert [item["path"] for item in again["damaged"]] == ["/U", "/V"]
    with h5py.File(source) as before, h5py.File(target) as after:
        assert before["U"].id.read_direct_chunk((10, 0, 0)) == after["U"].id.read_direct_chunk((10, 0, 0))


def test_u77_damage_in_a_folder_is_in_result_status_manifest_and_report(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("repack", folder, out, "-f", "*:shuffle|deflate(5)", "--workers", "1")
    said = said_by_workers(*asked, code=1)
    assert "2 of 2 files done" in said
    assert "1 with damage, copied as it is" in said
    assert "a.nc     /U       1 of 4 chunks cannot be decoded" in said
    said = said_by_workers(*asked, "-q", code=1)  # it is done, and stays damaged
    assert "a.nc: /V: damaged, and copied as it is" in said
    for words in (("status", out), (*asked, "-q")):
        found = json.loads(said_by_workers(*words, "--json", code=1))
        assert [(item["path"], item["dataset"]) for item in found["damaged"]] == [("a.nc", "/U"), ("a.nc", "/V")]
    rows = {
        (row["path"], row["dataset"]): row
        for row in csv.DictReader(io.StringIO(said_by_workers("manifest", out, "--format", "csv")))
    }
    assert rows["a.nc", "/U"]["damaged"].startswith("1 of 4 chunks")
    assert rows["b.nc", "/U"]["damaged"] == ""
    assert "1 of 4 chunks cannot be decoded" in said_by_workers("manifest", out, "--format", "markdown")
    kept = json.loads((out / ".tamis" / "manifest.json").read_bytes())["files"]
    assert [[item["path"] for item in file["damaged"]] for file in kept] == [["/U", "/V"], []]
    said_by_workers("report", folder / "a.nc", out / "a.nc", "-o", tmp_path / "page.html", code=1)
    assert "cannot be decoded" in (tmp_path / "page.html").read_text()
    said_by_workers(*asked, "-q", "--keep-damaged")
    assert "1 with damage" in said_by_workers("status", out)


def test_u77_damage_is_said_where_files_are_replaced(folder: Path) -> None:
    before = (folder / "a.nc").read_bytes()
    said = said_by_workers(
        "repack", folder, "--replace", "--yes", "-f", "TS:shuffle|deflate(9)", "--workers", "1", "-q", code=1
    )
    assert "/U: damaged, and copied as it is" in said
    assert (folder / "a.nc").read_bytes() != before
    with h5py.File(folder / "a.nc") as file:
        assert file["U"].id.read_direct_chunk((10, 0, 0))[1] == b"\xff" * 400


def test_u77_verify_says_damage_that_both_files_have(folder: Path, tmp_path: Path) -> None:
    said_by_workers("repack", folder, tmp_path / "out", "-f", "*:shuffle|deflate(5)", "--workers", "1", "-q", code=1)
    pair = folder / "a.nc", tmp_path / "out" / "a.nc"
    assert "/U: damaged, and the same in both files: 1 of 4 chunks" in said_by_workers("verify", *pair, "-q", code=1)
    assert "damaged, and the same" in said_by_workers("verify", *pair, "--keep-damaged")
    assert "damaged, and the same" in said_by_workers("verify", folder, tmp_path / "out", code=1)
    said_by_workers("verify", folder, tmp_path / "out", "--keep-damaged", "-q")
    found = tamis.verify(*pair)
    assert [(item.path, item.code) for item in found.problems] == [("/U", "damaged"), ("/V", "damaged")]


def test_u77_damage_of_records_flags_and_small_datasets_is_found(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(100.0), chunks=(10,), compression=4)
        record = np.zeros(500, [("a", "i4"), ("b", "f8")])
        file.create_dataset("record", data=record, chunks=(100,), compression=4)
        flags = h5py.enum_dtype({"A": 0, "B": 1}, "i1")
        file.create_dataset("flags", data=np.arange(500) % 2, dtype=flags, chunks=(100,), compression=4)
        file.create_dataset("small", data=np.arange(4.0), chunks=(2,), compression=4)
        for name in ("record", "flags", "small"):
            file[name].id.write_direct_chunk((file[name].chunks[0],), b"\xff" * 30, 0)
    for number, recipe in enumerate(({}, {"x": "shuffle|deflate(1)"}, {"*": "shuffle|deflate(9)"})):
        result = tamis.repack(tmp_path / "a.h5", tmp_path / f"{number}.h5", recipe)
        assert [item.path for item in result.damaged] == ["/flags", "/record", "/small"]
        assert "/record: damaged, and copied as it is" in str(result)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u77_a_damaged_zarr_array_is_an_error(tmp_path: Path, zarr_format: int) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    for name in ("a", "b"):
        made = group.create_array(name, shape=(40,), chunks=(10,), dtype="f4")
        made[:] = np.random.default_rng(0).normal(size=40)
    chunk = tmp_path / "a.zarr" / "b" / ("1" if zarr_format == 2 else "c/1")
    chunk.write_bytes(chunk.read_bytes()[:20])
    said = said_by_workers(
        "repack", tmp_path / "a.zarr", tmp_path / "b.zarr", "-f", "a:shuffle|deflate(4)", "-q", code=1
    )
    assert "/b: chunk at (10,) cannot be decoded" in said
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize("filters", ["zfp(accuracy=0.1)", "shuffle|deflate(4)", "pack(bound=0.1)", "zfp(bound=0.1)"])
def test_named_dataset_with_damage_fails_without_leftovers_and_with_a_way_out(tmp_path: Path, filters: str) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    values = np.random.default_rng(0).standard_normal((64, 64, 64)).cumsum(axis=1).astype("f4")
    with h5py.File(folder / "a.nc", "w") as file:
        for name in ("TS", "PS"):
            file.create_dataset(name, data=values, chunks=(1, 64, 64), compression="gzip", fletcher32=True)
        at = file["TS"].id.get_chunk_info(60).byte_offset
    data = bytearray((folder / "a.nc").read_bytes())
    data[at + 5 : at + 40] = bytes(35)
    (folder / "a.nc").write_bytes(data)
    os.utime(folder / "a.nc", (1e9, 1e9))
    options = ("--replace", "--yes", "--workers", "1", "-f", f"TS:{filters}", "-f", "PS:shuffle|deflate(1)")
    with threads_as_workers():
        said = said_by_tamis("repack", folder, *options, code=1)
        assert "(--keep-damaged) copies its bytes as they are" in " ".join(said.split())
        assert {path.name for path in folder.iterdir()} == {".tamis", "a.nc"}
        assert (folder / "a.nc").read_bytes() == data
        said = said_by_tamis("repack", folder, *options, "--keep-damaged")
    assert "1 of 1 file done" in said
    assert "1 with damage, copied as it is" in said
    with h5py.File(folder / "a.nc") as file:
        np.testing.assert_array_equal(file["PS"][:], values)
    (tmp_path / "b.nc").write_bytes(data)
    with threads_as_workers():
        said = said_by_tamis("repack", tmp_path, tmp_path / "out", "--include", "b.nc", "-f", "P*:shuffle", code=1)
    assert "a run with --keep-damaged accepts that" in " ".join(said.split())
    single = ("repack", tmp_path / "b.nc", tmp_path / "c.nc", "-f", f"TS:{filters}")
    assert "(--keep-damaged) copies" in " ".join(said_by_tamis(*single, code=1).split())
    said_by_tamis(*single, "--keep-damaged")
