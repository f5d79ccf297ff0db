"""Known defect U39: a copy without a recipe is refused, and so are files of other formats without saying which."""

from __future__ import annotations

import gzip
import os
import subprocess
from importlib.metadata import metadata
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.stores import READABLE


def tamis_(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_tamis(*arguments)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 1000)
        variable = file.createVariable("v", "f4", ("x",), zlib=True, chunksizes=(100,))
        variable[:] = np.arange(1000)
    return path


@pytest.mark.parametrize("name", ["b.nc", "b.h5", "b.zarr"])
def test_u39_repack_without_recipes_copies_to_any_format(source: Path, name: str, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / name, {})
    more = ", as far as the format of the target has them" if name == "b.zarr" else ""
    assert f"no filters or chunks were requested: all datasets keep theirs{more}" in result.notes
    assert tamis.verify(source, tmp_path / name).ok
    if name != "b.zarr":
        with h5py.File(tmp_path / name) as file:
            assert (file["v"].compression, file["v"].chunks) == ("gzip", (100,))


def test_u39_repack_command_without_filters_copies(source: Path, tmp_path: Path) -> None:
    done = tamis_("repack", source, tmp_path / "b.nc")
    assert (done.returncode, done.stderr) == (0, "")
    assert "no filters or chunks were requested: all datasets keep theirs" in done.stdout
    assert tamis_("verify", source, tmp_path / "b.nc").returncode == 0


@pytest.mark.parametrize("command", [("inspect",), ("verify",), ("repack",), ("plan",), ("export",)], ids=str)
@pytest.mark.parametrize("kind", ["gzip", "html", "folder"])
def test_u39_unknown_files_are_refused_with_all_formats_and_what_was_given(
    command: tuple[str], kind: str, source: Path, tmp_path: Path
) -> None:
    path = tmp_path / "unknown.nc"
    if kind == "gzip":
        path.write_bytes(gzip.compress(source.read_bytes()))
    elif kind == "html":
        path.write_text("<!DOCTYPE html>\n<title>404 Not Found</title>")
    else:
        path.mkdir()
    words = {
        "gzip": "got gzip data: unpack it first (gunzip)",
        "html": "got an HTML page: the download is a message instead of the file: read it, and download",
        "folder": "got an empty folder",
    }
    more = {
        "verify": (source,),
        "repack": (tmp_path / "b.nc",),
        "export": ("--to", "kerchunk", "-o", tmp_path / "b.json"),
    }
    done = tamis_(*command, path, *more.get(command[0], ()))
    assert done.returncode == 1
    assert f"{path}: expected {READABLE}, {words[kind]}" in done.stderr
    assert done.stderr.count("expected") == 1
    assert sorted(os.listdir(tmp_path)) == ["a.nc", "unknown.nc"]


def test_u39_extra_all_has_each_package_that_the_package_uses() -> None:
    about = metadata("tamis")
    assert "all" in about.get_all("Provides-Extra")
    needs = {need.partition(";")[0].split(">")[0].split("[")[0].strip() for need in about.get_all("Requires-Dist")}
    assert {"imagecodecs", "zarr", "netCDF4", "h5netcdf", "xarray"} <= needs
    (own,) = [need for need in about.get_all("Requires-Dist") if need.endswith('"all"') or need.endswith("'all'")]
    named = set(own.partition("[")[2].partition("]")[0].split(","))
    assert named == set(about.get_all("Provides-Extra")) - {"all", "test", "dev", "docs", "wheel", "bench"}
