"""Targets for the cloud: metadata together, references at addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fsspec
import h5py
import netCDF4
import numpy as np
import pytest
from range_server import Server

import tamis
from tamis.jobs.inspect.cost import reading_cost

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


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


@pytest.mark.matrix
@pytest.mark.parametrize("filters", ["shuffle|deflate(1)", "zfp(accuracy=0.01)", "zfp(bound=0.01)", "pack(bound=0.01)"])
def test_chunks_for_an_object_store_take_few_requests(tmp_path: Path, filters: str) -> None:
    source, values = tmp_path / "source.h5", np.random.default_rng(2).random((160, 180, 240), np.float32)
    with h5py.File(source, "w") as file:
        file.create_dataset("v", data=values, chunks=(10, 36, 40))
        file.create_dataset("small", data=values[:10])
    costs = {}
    for storage in ("disk", "s3"):
        target = tmp_path / f"{storage}.h5"
        tamis.repack(source, target, {"*": filters}, storage=storage)
        assert tamis.verify(source, target, bounds={"*": 0.0101}).ok
        costs[storage] = reading_cost(target, ["v"]).accesses
    stored = tamis.inspect(tmp_path / "s3.h5")
    steps = zip((160, 180, 240), stored["v"].chunks, strict=True)
    count = np.prod([-(-extent // step) for extent, step in steps])
    assert (4 << 20) * 0.8 <= stored["v"].stored_nbytes / count <= 16 << 20
    assert stored["small"].chunks == (10, 180, 240)
    before, after = (sum(access.requests for access in costs[storage]) for storage in ("disk", "s3"))
    assert after < before


def test_chunks_that_are_given_or_lossy_stay(tmp_path: Path) -> None:
    source, values = tmp_path / "source.h5", np.random.default_rng(2).random((64, 128, 128), np.float32)
    with h5py.File(source, "w") as file:
        tamis.hdf5.write(file, "lossy", values, chunks=(8, 64, 64), filters="zfp(rate=8)")
        file.create_dataset("given", data=values, chunks=(8, 64, 64))
    recipe = {"lossy": "zfp(rate=8)", "given": "deflate(1)"}
    tamis.repack(source, tmp_path / "a.h5", recipe, chunks={"given": (4, 64, 64)}, storage="s3", checksum=False)
    tamis.repack(source, tmp_path / "a.zarr", {"given": "deflate(1)"}, storage="s3")  # no such metadata in Zarr
    stored = tamis.inspect(tmp_path / "a.h5")
    assert stored["lossy"].chunks == (8, 64, 64)
    assert stored["given"].chunks == (4, 64, 64)
    assert tamis.inspect(tmp_path / "a.zarr")["given"].chunks == (64, 128, 128)
    with pytest.raises(tamis.ParameterError, match="expected storage to be disk or s3, got 'tape'"):
        tamis.repack(source, tmp_path / "b.h5", {}, storage="tape")  # type: ignore[arg-type]


@pytest.mark.check
def test_a_plan_for_an_object_store_has_such_chunks(tmp_path: Path) -> None:
    values = np.random.default_rng(2).standard_normal((100, 128, 256)).cumsum(axis=0).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(10, 32, 32))
    plan = tamis.plan(tmp_path / "a.h5", {"v": "abs=0.1"}, access="series=0.5,map=0.5", storage="s3", readers="netcdf")
    planned = plan.datasets[0]
    assert planned.chosen is not None
    nbytes = 4 * np.prod(planned.chunks) / planned.chosen.ratio
    assert min(4 << 20, values.nbytes / planned.chosen.ratio) * 0.5 <= nbytes <= 16 << 20


def test_only_hdf5_has_such_metadata(tmp_path: Path, make_file: Callable[..., Path]) -> None:
    with pytest.raises(tamis.ParameterError, match="cloud is only for HDF5 and netCDF-4 files"):
        tamis.repack(make_file(), tmp_path / "a.zarr", {}, cloud=True)


def test_references_go_to_an_address(make_file: Callable[..., Path]) -> None:
    path, place = make_file(), "memory://test_cloud/refs.json"
    tamis.export(path, place, "kerchunk")
    stored = fsspec.filesystem("memory").cat_file("/test_cloud/refs.json")
    assert json.loads(stored)["refs"]["TS/0.0.0"][0] == path.as_uri()
    with pytest.raises(tamis.FileError, match="File exists: choose another name, or replace it: overwrite=True"):
        tamis.export(path, place, "kerchunk")
    tamis.export(path, place, "kerchunk", overwrite=True)
    with pytest.raises(tamis.ParameterError, match="only kerchunk can be written to an address, and icechunk to S3"):
        tamis.export(path, "memory://test_cloud/x", "icechunk")
    fsspec.filesystem("memory").rm("/test_cloud", recursive=True)


@pytest.mark.matrix
@pytest.mark.parametrize("target", ["s3://bucket/test_icechunk/repository", "repository"])
def test_a_repository_of_icechunk_on_s3_has_the_values(s3: str, tmp_path: Path, target: str) -> None:
    icechunk, zarr = pytest.importorskip("icechunk"), pytest.importorskip("zarr")
    source = "s3://bucket/test_icechunk/a.nc"
    tamis.repack(SAMPLE, source, {"TS": "zfp(accuracy=0.1)"}, overwrite=True)
    place = target if target.startswith("s3") else str(tmp_path / target)
    tamis.export(source, place, "icechunk")
    keys, server = {"access_key_id": "key", "secret_access_key": "secret"}, {"endpoint_url": s3, "allow_http": True}
    storage = (
        icechunk.s3_storage(
            bucket="bucket",
            prefix="test_icechunk/repository",
            region="us-east-1",
            force_path_style=True,
            **keys,
            **server,
        )
        if target.startswith("s3")
        else icechunk.local_filesystem_storage(place)
    )
    allowed = icechunk.containers_credentials({"s3://bucket/test_icechunk/": icechunk.s3_credentials(**keys)})
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)
    group = zarr.open_group(repository.readonly_session("main").store, mode="r")
    with tamis.open(source) as file:
        np.testing.assert_array_equal(group["TS"][...], file["TS"][...])
    with pytest.raises(tamis.FileError, match="File exists: choose another name"):
        tamis.export(source, place, "icechunk")


@pytest.mark.parametrize(("scheme", "option"), [("gs", "base_url"), ("az", "endpoint")], ids=["Google", "Azure"])
def test_public_buckets_of_google_and_azure_are_read(server: Server, tmp_path: Path, scheme: str, option: str) -> None:
    (tmp_path / "bucket" / "run").mkdir(parents=True)
    tamis.repack(SAMPLE, tmp_path / "bucket/run/a.nc", {"TS": "zfp(accuracy=0.1)"})
    tamis.repack(SAMPLE, tmp_path / "bucket/run/a.zarr", {"TS": "zfp(accuracy=0.1)"})
    options: dict[str, object] = {option: server.url("").rstrip("/"), "skip_signature": True}
    options |= {"account_name": "account"} if scheme == "az" else {}
    with tamis.open(tmp_path / "bucket/run/a.nc") as file:
        expected = file["TS"][...]
    for name in ("a.nc", "a.zarr"):
        with tamis.open(f"{scheme}://bucket/run/{name}", storage_options=options) as file:
            np.testing.assert_array_equal(file["TS"][:, 3, 5], expected[:, 3, 5])
            np.testing.assert_array_equal(file["TS"][...], expected)
    address = tamis.Address(f"{scheme}://bucket/run/a.nc", **options)
    assert tamis.verify(SAMPLE, address, bounds={"TS": 0.1}).ok
    with pytest.raises(tamis.FileError, match="no such object"):
        tamis.open(f"{scheme}://bucket/run/b.nc", storage_options=options)


def test_the_last_bytes_on_azure_come_with_what_is_needed_first(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    values = np.random.default_rng(5).random((60, 80, 80), np.float32)
    with h5py.File(tmp_path / "bucket/ends.h5", "w") as file:
        tamis.hdf5.write(file, "TS", values, chunks=(10, 40, 40), filters="shuffle|deflate(1)")
        file["TS"].attrs["units"] = "K"
    server.in_rounds = True
    options = {"endpoint": server.url("").rstrip("/"), "skip_signature": True, "account_name": "account"}
    with tamis.open("az://bucket/ends.h5", storage_options=options) as file:
        assert file["TS"].attrs["units"] == "K"
        assert (server.rounds, server.requests) == (2, 2)  # Azure has no ranges from the end
        np.testing.assert_array_equal(file["TS"][...], values)
