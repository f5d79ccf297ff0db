"""Known defect U93: names of dimensions with several lengths, in groups or arrays, were refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

netCDF4 = pytest.importorskip("netCDF4")  # noqa: N816
zarr = pytest.importorskip("zarr")


def make_netcdf(path: Path, *, own_variable: bool, same: bool) -> None:
    """Write a file whose inner groups have dimensions with the names of those of the root."""
    with netCDF4.Dataset(path, "w") as file:
        for depth, size in enumerate((10, 10 if same else 5, 7)):
            group = file if not depth else file.createGroup("/".join("cde"[:depth]))
            group.createDimension("x", size)
            group.createVariable("v", "f4", ("x",))[:] = np.arange(size) + depth
            if own_variable or not depth:
                group.createVariable("x", "f8", ("x",))[:] = np.arange(size) * 2
        file["c"].createGroup("inherits").createVariable("w", "i2", ("x",))[:] = 1


@pytest.mark.matrix
@pytest.mark.parametrize("own_variable", [True, False])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u93_shadowed_dimensions_go_to_zarr_and_back(
    tmp_path: Path, own_variable: bool, same: bool, zarr_format: int
) -> None:
    source, store, back = tmp_path / "in.nc", tmp_path / "s.zarr", tmp_path / "back.nc"
    make_netcdf(source, own_variable=own_variable, same=same)
    tamis.repack(source, store, {}, zarr_format=zarr_format)
    assert tamis.verify(source, store).ok
    tamis.repack(store, back, {})
    assert tamis.verify(store, back).ok
    assert tamis.verify(source, back).ok or same or not own_variable  # Zarr has no dimensions without an array
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(back) as after:
        for path in ("v", "c/v", "c/d/v", "c/inherits/w"):
            np.testing.assert_array_equal(before[path][:], after[path][:])
            assert after[path].dimensions == ("x",)


def make_pyramid(path: Path, zarr_format: int) -> None:
    """Write levels of an image as OME-Zarr has them: one group, whose arrays have the same names of axes."""
    root = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for level, size in enumerate((16, 8, 4)):
        keywords: dict[str, Any] = {"dimension_names": ["y", "x"]} if zarr_format == 3 else {}
        array = root.create_array(str(level), shape=(size, 16), chunks=(4, 4), dtype="u2", **keywords)
        array[:] = np.arange(size * 16).reshape(size, 16)
        if zarr_format == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u93_names_with_several_lengths_get_dimensions_in_netcdf(tmp_path: Path, zarr_format: int) -> None:
    store, target, back = tmp_path / "p.zarr", tmp_path / "p.nc", tmp_path / "back.zarr"
    make_pyramid(store, zarr_format)
    assert tamis.verify(store, store).ok
    result = tamis.repack(store, target, {})
    text = "dimension 'y' becomes 'y_8': others of its name have other lengths"
    assert f"/1: {text}" in result.notes
    assert tamis.verify(store, target).ok
    with netCDF4.Dataset(target) as file:
        assert [file[level].dimensions for level in "012"] == [("y", "x"), ("y_8", "x"), ("y_4", "x")]
        np.testing.assert_array_equal(file["1"][:], zarr.open_group(store)["1"][:])
    tamis.repack(target, back, {})
    assert tamis.verify(store, back).ok


def test_u93_length_of_a_name_is_that_of_its_coordinate(tmp_path: Path) -> None:
    store, target = tmp_path / "p.zarr", tmp_path / "p.nc"
    root = zarr.open_group(store, mode="w")
    for name, size in (("a", 3), ("b", 4), ("x", 4)):
        root.create_array(name, shape=(size,), dtype="f4", dimension_names=["x"])[:] = 1
    root.create_array("twice", shape=(3, 4), dtype="f4", dimension_names=["x", "x"])[:] = 1
    root.create_array("x_3", shape=(2,), dtype="f4", dimension_names=["z"])[:] = 1
    tamis.repack(store, target, {})
    assert tamis.verify(store, target).ok
    with netCDF4.Dataset(target) as file:
        assert file["x"].dimensions == file["b"].dimensions == ("x",)
        assert file["a"].dimensions == ("x_3_",)
        assert file["twice"].dimensions == ("x_3_", "x")


def test_u93_changed_dimension_is_still_a_violation(tmp_path: Path) -> None:
    store, other = tmp_path / "a.zarr", tmp_path / "b.nc"
    root = zarr.open_group(store, mode="w")
    root.create_array("a", shape=(3,), dtype="f4", dimension_names=["x"])[:] = 1
    with h5py.File(other, "w") as file:
        file["a"] = np.ones(3, "f4")
        file["time"] = np.ones(3, "f4")
        file["time"].make_scale("time")
        file["a"].dims[0].attach_scale(file["time"])
    assert "dimensions" in {finding.code for finding in tamis.verify(store, other).violations}
