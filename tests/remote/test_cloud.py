"""Targets for the cloud: metadata together, references at addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fsspec
import netCDF4
import numpy as np
import pytest

import tamis
from tamis.jobs.inspect.cost import reading_cost


@pytest.mark.parametrize("is_classic", [False, True])
def test_metadata_lie_together(tmp_path: Path, *, is_classic: bool) -> None:
    source, shape = tmp_path / "source.nc", (120, 64, 64)
    with netCDF4.Dataset(source, "w", format="NETCDF3_CLASSIC" if is_classic else "NETCDF4") as file:
        for name, extent in zip("tyx", shape, strict=True):
            file.createDimension(name, extent)
        file.createVariable("v", "f4", ("t", "y", "x"))[:] = np.random.default_rng(2).random(shape)
    opened = {}
    for cloud in (False, True):
        target = tmp_path / f"{cloud}.nc"
        tamis.repack(source, target, {"v": "shuffle|deflate(1)"}, chunks={"v": (2, 8, 16)}, cloud=cloud)
        assert tamis.verify(source, target).ok
        opened[cloud] = {access.name: access.requests for access in reading_cost(target, ["v"]).accesses}
    assert opened[True]["open"] <= 4
    assert opened[True]["/v map"] <= 8  # with an index of 1,920 chunks
    assert opened[True]["/v map"] <= opened[False]["/v map"]


def test_only_hdf5_has_such_metadata(tmp_path: Path, make_file: Callable[..., Path]) -> None:
    with pytest.raises(tamis.ParameterError, match="expected the name of an HDF5 or netCDF-4 file for cloud"):
        tamis.repack(make_file(), tmp_path / "a.zarr", {}, cloud=True)


def test_references_go_to_an_address(make_file: Callable[..., Path]) -> None:
    path, place = make_file(), "memory://test_cloud/refs.json"
    tamis.export(path, place, "kerchunk")
    stored = fsspec.filesystem("memory").cat_file("/test_cloud/refs.json")
    assert json.loads(stored)["refs"]["TS/0.0.0"][0] == path.as_uri()
    with pytest.raises(tamis.FileError, match="File exists: use overwrite"):
        tamis.export(path, place, "kerchunk")
    tamis.export(path, place, "kerchunk", overwrite=True)
    with pytest.raises(tamis.ParameterError, match="expected kind kerchunk for a target that is elsewhere"):
        tamis.export(path, "memory://test_cloud/x", "icechunk")
    fsspec.filesystem("memory").rm("/test_cloud", recursive=True)
