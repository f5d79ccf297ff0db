"""What the other format lacks is listed by name, by repack, its dry run, export and verify alike."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.formats import open_store
from tamis.stores.translation import TO_HDF5, TO_ZARR, translations

pytest.importorskip("zarr")

LISTED = {
    "/: user block of 512 bytes: left out",
    "/external: external link to o.h5 /x: left out",
    "/g/around: hard link to /, which encloses it: left out",
    "/hard: another link to /first: it becomes an array of its own",
    "/latin: attribute 'units' is not UTF-8: as Latin-1 in Zarr, \"°C\"",
    "/named: named type compound {a: int32}: left out",
    "/nowhere: soft link to /none: left out",
    "/references: attribute 'one' of references: left out",
    "/soft: another link to /first: it becomes an array of its own",
    "/softgroup: soft link to /g: left out",
    "/v: dimension scale /x of axis 0: left out",
    "/x: name 'long name' of its dimension: left out",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write a file with all that Zarr lacks, or has in another form."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["first"] = [1, 2]
        file["hard"], file["soft"] = file["first"], h5py.SoftLink("/first")
        file["external"], file["nowhere"] = h5py.ExternalLink("o.h5", "/x"), h5py.SoftLink("/none")
        file.create_group("g")["around"] = file["/"]
        file["softgroup"] = h5py.SoftLink("/g")
        file["named"] = np.dtype([("a", "i4")])
        file["latin"] = [1.0]
        file["latin"].attrs["units"] = np.bytes_(b"\xb0C")
        file["references"] = [1]
        file["references"].attrs["one"] = file["first"].ref
        for name, label in (("x", "long name"), ("y", "y")):
            file[name] = np.arange(3)
            file[name].make_scale(label)
        file["v"] = np.arange(3)
        for name in "xy":
            file["v"].dims[0].attach_scale(file[name])
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = run_tamis(*arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_what_zarr_lacks_is_listed_by_every_command(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.zarr"
    dry = json.loads(run("repack", source, target, "--dry-run", "--json").stdout)["notes"]
    lines = run("repack", source, target).stdout.splitlines()
    known = json.loads(run("repack", source, tmp_path / "again.zarr", "--json").stdout)["notes"]
    assert LISTED == {line for line in dry if line.startswith("/")} == {line for line in known if line.startswith("/")}
    assert set(lines) > LISTED
    assert set(tamis.export(source, tmp_path / "refs.json", "kerchunk").notes) >= LISTED
    found = {f"{finding.path}: {finding.text}" for finding in tamis.verify(source, target).notes}
    assert {line.replace(": left out", " is left out") for line in LISTED} <= found


def test_every_kind_is_in_the_table(source: Path) -> None:
    with open_store(source) as store:
        kinds = {item.kind for item in translations(store, to_zarr=True)}
    assert {TO_ZARR[kind].said for kind in kinds} == {"listed"}
    others = {"shorter", "other filters"}  # tested where their values are
    assert kinds | others == {name for name, row in TO_ZARR.items() if row.said == "listed"}
    assert {row.said for row in (TO_ZARR | TO_HDF5).values()} == {"", "listed", "refused"}


def test_what_is_left_out_with_an_array_is_not_listed(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "out.zarr", tamis.Recipe(drop=["latin", "references", "v"]))
    assert not [note for note in result.notes if note.startswith(("/latin: attr", "/references: attr", "/v: dim"))]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_class_and_name_of_objects_that_are_no_scales_are_kept(tmp_path: Path, zarr_format: int) -> None:
    source, store, back = tmp_path / "in.h5", tmp_path / "s.zarr", tmp_path / "back.h5"
    with h5py.File(source, "w") as file:
        for item in (file, file.create_group("g"), file.create_dataset("image", data=np.zeros((2, 3), "u1"))):
            item.attrs["CLASS"], item.attrs["NAME"] = np.bytes_("IMAGE"), "mine"
    tamis.repack(source, store, {}, zarr_format=zarr_format)
    tamis.repack(store, back, {})
    with h5py.File(back) as file:
        for name in ("/", "g", "image"):
            assert (file[name].attrs["CLASS"], file[name].attrs["NAME"]) == (b"IMAGE", "mine")


def grown(path: Path) -> None:
    """Write variables that end before their unlimited dimension, or never began."""
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path, "w") as file:
        for name, size in (("t", None), ("x", 3), ("e", None)):
            file.createDimension(name, size)
        file.createVariable("t", "i4", ("t",))[:] = np.arange(7)
        short = file.createVariable("short", "f4", ("t", "x"), zlib=True, fill_value=-9, chunksizes=(4, 2))
        short[:5] = np.arange(15).reshape(5, 3)
        file.createVariable("contiguous", "f4", ("t", "x"))[:6] = np.arange(18).reshape(6, 3)
        file.createVariable("none", "i2", ("t",), zlib=True)
        file.createVariable("text", str, ("t",))[:2] = np.array(["a", "bc"], object)
        file.createVariable("letters", "S1", ("t",))[:3] = np.array([*"abc"], "S1")
        file.createVariable("empty", "f8", ("e", "x"), zlib=True)
        file.createVariable("both", "f8", ("t", "e"), zlib=True)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("recipe", [{}, {"short": "zfp(accuracy=0.1)|deflate(1)", "contiguous": "shuffle|deflate(2)"}])
def test_u99_variable_shorter_than_its_dimension_ends_in_the_fill_value(
    tmp_path: Path, zarr_format: int, recipe: dict[str, str]
) -> None:
    xarray: Any = pytest.importorskip("xarray")
    source, target = tmp_path / "in.nc", tmp_path / "out.zarr"
    grown(source)
    result = tamis.repack(source, target, recipe, zarr_format=zarr_format)
    text = "it has values for 5 of 7 along 't': the others are the fill value, as netCDF reads them"
    assert f"/short: {text}" in result.notes
    found = tamis.verify(source, target, bounds={"short": 0.1} if recipe else {})
    assert found.ok
    assert ("/short", text) in {(note.path, note.text) for note in found.notes}
    keywords = {"mask_and_scale": False}
    with (
        xarray.open_dataset(source, engine="netcdf4", **keywords) as before,
        xarray.open_zarr(target, **keywords) as after,
    ):
        assert set(before.variables) == set(after.variables)
        for name in before.variables:
            values, expected = after[name].to_numpy(), before[name].to_numpy()
            if name == "short" and recipe:
                np.testing.assert_allclose(values, expected, rtol=0, atol=0.1)
            else:
                np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("filters", ["zfp(accuracy=0.1)", "zfp(accuracy=0.1)|deflate(1)"])
def test_u99_lossy_variable_that_is_shorter_is_stored_without_loss(tmp_path: Path, filters: str) -> None:
    first, source, target = tmp_path / "first.nc", tmp_path / "in.nc", tmp_path / "out.zarr"
    grown(first)
    tamis.repack(first, source, {"short": filters}, min_size=0, larger=True)
    tamis.repack(source, target, {"short": "zfp(accuracy=0.1)"}, min_size=0, larger=True)
    assert tamis.verify(source, target).ok


def test_u99_changed_end_is_a_violation(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    source, target = tmp_path / "in.nc", tmp_path / "out.zarr"
    grown(source)
    tamis.repack(source, target, {})
    zarr.open_group(target)["short"][6, 0] = 1
    assert {finding.path for finding in tamis.verify(source, target).violations} == {"/short"}
