"""References to the chunks of existing files: opened through Zarr, their values are those of the files."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
import xarray
from inprocess import run_tamis

import tamis

LOSSY = "zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"
FILTERS = [
    "none",
    "shuffle|deflate(4)|fletcher32",
    "deflate(1)|shuffle",
    "bzip2",
    "zstd(3)",
    "zfp(accuracy=0.1)",
    "zfp(rate=8)|fletcher32",
    "zfp(reversible=true)|shuffle|deflate(4)",
    LOSSY,
    "scaleoffset(decimal,2)",
    "szip",
    "bitshuffle(lz4)",
    "lzf",
    "blosc(zstd)",
]


def write(path: Path, filters: str, *, values: np.ndarray[Any, Any] | None = None, start: int = 0, n: int = 8) -> Path:
    """A netCDF-4 file with a variable of three axes, one of them along time, and its coordinates."""
    ts = (280 + np.sin(np.arange(n * 12 * 20) / 9).reshape(n, 12, 20)).astype("f4") if values is None else values
    coords = {
        "time": ("time", np.arange(start, start + n, dtype="f8"), {"units": "days since 2000-01-01"}),
        "lat": ("lat", np.arange(12.0)),
    }
    ds = xarray.Dataset({"TS": (("time", "lat", "lon"), ts, {"units": "K"})}, coords=coords)
    ds.to_netcdf(
        path.with_suffix(".plain"), engine="h5netcdf", unlimited_dims=["time"], encoding={"TS": {"_FillValue": None}}
    )
    tamis.repack(path.with_suffix(".plain"), path, {"TS": filters}, chunks={"TS": (4, 12, 20)})
    return path


def kerchunk(path: Path) -> Any:
    return xarray.open_dataset(str(path), engine="kerchunk").load()


def h5netcdf(*paths: Path) -> Any:
    parts = [xarray.open_dataset(path, engine="h5netcdf").load() for path in paths]
    return parts[0] if len(parts) == 1 else xarray.concat(parts, "time", data_vars="minimal")


def icechunk(path: Path, *folders: Path) -> Any:
    library = pytest.importorskip("icechunk")
    # Icechunk 1 has no word for "no credentials"
    nothing = getattr(library.credentials, "LocalFileSystemAccess", None)
    allowed = {f"{folder.as_uri()}/": nothing for folder in folders}
    repository = library.Repository.open(
        library.local_filesystem_storage(str(path)), authorize_virtual_chunk_access=allowed
    )
    return xarray.open_zarr(repository.readonly_session("main").store, consolidated=False).load()


@pytest.mark.matrix
@pytest.mark.parametrize("filters", FILTERS)
def test_kerchunk_same_values_as_h5py(filters: str, tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", filters)
    result = tamis.export(source, tmp_path / "a.json")
    assert result["TS"].referenced_chunks == 2
    assert result["TS"].copied_nbytes == 0
    expected = h5netcdf(source.with_suffix(".plain"))
    expected["TS"].values[...] = tamis.open(source)["TS"][...]
    xarray.testing.assert_identical(kerchunk(tmp_path / "a.json"), expected)


def test_d21_chunk_with_another_mask_is_copied_and_decodes_right(tmp_path: Path) -> None:
    values = (280 + np.sin(np.arange(16 * 12 * 20) / 9)).reshape(16, 12, 20).astype("f4")
    values[5, 3, 4] = np.nan
    source = write(tmp_path / "a.nc", LOSSY, values=values, n=16)
    with h5py.File(source) as file:
        masks = {file["TS"].id.get_chunk_info(i).filter_mask for i in range(4)}
    assert len(masks) == 2
    result = tamis.export(source, tmp_path / "a.json")
    assert (result["TS"].referenced_chunks, result["TS"].codecs) == (3, ("tamis.pipeline",))
    assert result["TS"].copied_nbytes > 0
    xarray.testing.assert_identical(kerchunk(tmp_path / "a.json"), h5netcdf(source))


def test_chunks_that_all_skip_a_filter_need_no_codec_of_tamis(tmp_path: Path) -> None:
    values = np.full((8, 12, 20), np.nan, "f4")
    values[:, ::4, ::4] = 1
    source = write(tmp_path / "a.nc", LOSSY, values=values)
    result = tamis.export(source, tmp_path / "a.json")
    assert result["TS"].codecs == ("shuffle", "zlib", "fletcher32")
    xarray.testing.assert_identical(kerchunk(tmp_path / "a.json"), h5netcdf(source))


@pytest.mark.parametrize("filters", ["shuffle|deflate(4)", "zfp(accuracy=0.1)", LOSSY])
def test_icechunk_same_values_as_h5py(filters: str, tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", filters)
    tamis.export(source, tmp_path / "repository", "icechunk")
    xarray.testing.assert_identical(icechunk(tmp_path / "repository", tmp_path), h5netcdf(source))
    # The first version of the format, which Icechunk 1 reads, too: the second one has a file "repo"
    assert sorted(item.name for item in (tmp_path / "repository").iterdir()) == [
        *("config.yaml", "manifests", "refs", "snapshots", "transactions")
    ]


@pytest.mark.parametrize("kind", ["kerchunk", "icechunk"])
def test_files_joined_along_time(kind: str, tmp_path: Path) -> None:
    sources = [write(tmp_path / f"{i}.nc", LOSSY, start=8 * i) for i in range(3)]
    result = tamis.export(sources, tmp_path / "all", kind, concat="time")
    assert result["TS"].shape == (24, 12, 20)
    opened = kerchunk(tmp_path / "all") if kind == "kerchunk" else icechunk(tmp_path / "all", tmp_path)
    xarray.testing.assert_identical(opened, h5netcdf(*sources))


def test_joined_files_that_do_not_fit_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "a.nc", "deflate(4)", n=6, values=np.ones((6, 500, 400), "f4")[:, :12, :20].copy())
    other = write(tmp_path / "b.nc", "shuffle|deflate(4)")
    renamed = tmp_path / "c.nc"
    xarray.open_dataset(other).rename(TS="PS").to_netcdf(renamed, engine="h5netcdf")
    with pytest.raises(tamis.FileError, match="must have the same arrays as"):
        tamis.export([other, renamed], tmp_path / "x.json", concat="time")
    changed = tmp_path / "d.nc"
    shutil.copy(other, changed)
    with h5py.File(changed, "r+") as file:
        file["lat"][3] = 99
    with pytest.raises(tamis.FileError, match="/lat: has no dimension time, and other values than in"):
        tamis.export([other, changed], tmp_path / "x.json", concat="time")
    with pytest.raises(tamis.ParameterError, match=r"expected a dimension of .* lat, lon, time, got 'x'"):
        tamis.export([first, other], tmp_path / "x.json", concat="x")
    with pytest.raises(tamis.ParameterError, match="files need the dimension along which they are joined"):
        tamis.export([first, other], tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_small_arrays_whose_chunks_do_not_fit_are_copied(tmp_path: Path) -> None:
    sources = [write(tmp_path / f"{i}.nc", "deflate(4)", start=6 * i, n=6) for i in range(2)]
    result = tamis.export(sources, tmp_path / "all.json", concat="time")
    assert result["TS"].copied_nbytes == 12 * 12 * 20 * 4
    xarray.testing.assert_identical(kerchunk(tmp_path / "all.json"), h5netcdf(*sources))


def test_groups_big_endian_scalars_and_text_of_fixed_length(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/big", data=np.arange(24, dtype=">i4").reshape(4, 6), chunks=(2, 3), shuffle=True)
        file["g/names"] = np.array([b"ab", b"cde"])
        file["scalar"] = 3.5
        file.create_dataset("empty", (0, 3), "f4", chunks=(1, 3), maxshape=(None, 3))
        file.create_dataset("never", (4, 4), "f4", chunks=(2, 2), fillvalue=7)
        file["g"].attrs["about"] = "a group"
    tamis.export(tmp_path / "a.h5", tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert json.loads(document["refs"]["g/.zattrs"])["about"] == "a group"
    import fsspec
    import zarr

    files = fsspec.filesystem("reference", fo=str(tmp_path / "a.json"), asynchronous=True)
    root = zarr.open_group(zarr.storage.FsspecStore(files, read_only=True), mode="r", zarr_format=2)
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("g/big", "g/names", "scalar", "empty", "never"):
            np.testing.assert_array_equal(root[name][...], file[name][...])


def test_arrays_without_references_named_and_dropped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4.0)
        file["text"] = ["a", "bc"]
        file["record"] = np.zeros(3, [("a", "f4")])
        file.create_virtual_dataset("virtual", h5py.VirtualLayout((2,), "f4"))
    with pytest.raises(tamis.FileError, match=r"(?s)2 arrays cannot .*:\n  /text: .* string: .*\n  /virtual: "):
        tamis.export(tmp_path / "a.h5", tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()
    result = tamis.export(tmp_path / "a.h5", tmp_path / "a.json", drop=["text", "v*", "record"])
    assert [*result] == ["/x"]


def test_zfp_parameters_of_another_machine_refused(tmp_path: Path) -> None:
    source = needs.real("h5zzfp/test_zfp_be.h5")
    with pytest.raises(tamis.FileError, match="another machine or an old version"):
        tamis.export(source, tmp_path / "a.json")


def test_url_of_the_folder_where_readers_find_the_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a b.nc", "deflate(4)")
    tamis.export(source, tmp_path / "a.json", url="s3://bucket/run/")
    refs = json.loads((tmp_path / "a.json").read_text())["refs"]
    assert refs["TS/0.0.0"][0] == "s3://bucket/run/a%20b.nc"
    with pytest.raises(tamis.FileError, match="an Icechunk repository can refer only to"):
        tamis.export(source, tmp_path / "ice", "icechunk", url="http://localhost:8080/run/")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b.nc", "a b.plain", "a.json"]


def test_existing_target_kept_unless_asked(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.nc", "deflate(4)"), tmp_path / "a.json"
    target.write_text("mine")
    with pytest.raises(tamis.FileError, match="File exists: choose another name, or replace it: overwrite=True"):
        tamis.export(source, target)
    assert target.read_text() == "mine"
    tamis.export(source, target, overwrite=True)
    assert json.loads(target.read_text())["version"] == 1


VIRTUAL = """
import sys, xarray, tamis, virtualizarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore

url, path, folder = sys.argv[1:]
registry, parser = ObjectStoreRegistry({"file://": LocalStore()}), tamis.ReferenceParser()
with virtualizarr.open_virtual_dataset(url, registry=registry, parser=parser) as virtual:
    assert type(virtual.TS.data).__name__ == "ManifestArray"
opened = xarray.open_zarr(parser(url, registry), consolidated=False, zarr_format=3).load()
xarray.testing.assert_identical(opened, xarray.open_dataset(path, engine="h5netcdf").load())
for call, text in [
    (lambda: tamis.ReferenceParser(group="nosuch")(url, registry), "expected one of the groups /, got 'nosuch'"),
    (lambda: parser("s3://bucket/a.nc", registry), "expected a local file"),
]:
    try:
        call()
    except tamis.FileError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)

import json, pathlib, zarr
from virtualizarr import manifests


def array(path):
    metadata = json.loads((path / "zarr.json").read_text())
    assert metadata.pop("storage_transformers")[0]["configuration"] == {"manifest": "./manifest.json"}
    chunks = manifests.ChunkManifest(entries=json.loads((path / "manifest.json").read_text()))
    metadata = zarr.core.metadata.v3.ArrayV3Metadata.from_dict(metadata)
    return manifests.ManifestArray(metadata=metadata, chunkmanifest=chunks)


folder = pathlib.Path(folder)
arrays = {path.parent.name: array(path.parent) for path in folder.glob("*/manifest.json")}
group = manifests.ManifestGroup(arrays=arrays)
store = manifests.ManifestStore(registry=registry, group=group)
masked = xarray.open_dataset(folder.with_suffix(".nc"), engine="h5netcdf").load()
xarray.testing.assert_equal(xarray.open_zarr(store, consolidated=False, zarr_format=3).load(), masked)
try:
    zarr.open_array(str(folder / "TS"), mode="r")
except ValueError as error:
    assert "storage transformers" in str(error)
else:
    raise AssertionError("read without the manifest")
"""


@pytest.mark.check
def test_virtualizarr_parser_and_zarr_manifest(tmp_path: Path) -> None:
    """In a process of its own: VirtualiZarr imports hdf5plugin."""
    source = write(tmp_path / "a.nc", "zfp(accuracy=0.1)|fletcher32")
    values = (280 + np.sin(np.arange(16 * 12 * 20) / 9)).reshape(16, 12, 20).astype("f4")
    values[5, 3, 4] = np.nan  # this chunk has another mask, and is copied
    masked = write(tmp_path / "m.nc", LOSSY, values=values, n=16)
    result = tamis.export(masked, tmp_path / "m.manifests", "zarr-manifest")
    assert result["TS"].copied_nbytes == (tmp_path / "m.manifests" / "TS" / "c" / "1" / "0" / "0").stat().st_size
    command = [sys.executable, "-c", VIRTUAL, source.as_uri(), str(source), str(tmp_path / "m.manifests")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def tamis_export(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_tamis("export", *arguments)


def test_command_prints_codecs_and_refuses_in_words(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", LOSSY)
    run = tamis_export(source, "--to", "kerchunk", "-o", tmp_path / "a.json")
    assert (run.returncode, run.stderr) == (0, "")
    assert "h5z_zfp" in run.stdout or "tamis.pipeline" in run.stdout
    again = tamis_export(source, "--to", "kerchunk", "-o", tmp_path / "a.json")
    assert (again.returncode, "File exists" in again.stderr) == (1, True)
    assert tamis_export(source, "--to", "parquet", "-o", "x").returncode == 2
    document = json.loads(tamis_export(source, "--to", "icechunk", "-o", tmp_path / "ice", "--json").stdout)
    assert document["kind"] == "icechunk"
    assert document["datasets"][0]["path"]


def test_zarr_store_refused(tmp_path: Path) -> None:
    """Its chunks are files of their own, whose places no reference to one file tells."""
    xarray.Dataset({"x": ("n", np.arange(4.0))}).to_zarr(tmp_path / "a.zarr")
    with pytest.raises(tamis.FileError, match="a Zarr store or references need no references"):
        tamis.export(tmp_path / "a.zarr", tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


def test_classic_file_referenced_where_values_lie_in_one_run(tmp_path: Path) -> None:
    ds = xarray.Dataset({"x": (("m", "n"), np.arange(12, dtype="f4").reshape(3, 4))})
    ds.to_netcdf(tmp_path / "a.nc", format="NETCDF3_64BIT")
    tamis.export(tmp_path / "a.nc", tmp_path / "a.json")
    xarray.testing.assert_equal(kerchunk(tmp_path / "a.json"), ds)


def test_missing_package_named_with_its_extra(tmp_path: Path) -> None:
    source = write(tmp_path / "a.nc", "deflate(4)")
    code = f"import sys; sys.modules['icechunk'] = None; import tamis; tamis.export({str(source)!r}, 'x', 'icechunk')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'tamis[icechunk]'" in run.stderr


def test_links_that_are_left_out_are_noted(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("x", data=np.arange(4.0)).dims[0].label = "t"
            file["same"] = h5py.SoftLink("/x")
            file["gone"] = h5py.SoftLink("/nothing")
            file["other"] = h5py.ExternalLink("b.h5", "/x")
            file.create_group("g").attrs["ref"] = file["x"].ref
    result = tamis.export(tmp_path / "a.h5", tmp_path / "a.json")
    notes = (
        "/gone: soft link to /nothing: left out",
        "/other: external link to b.h5 /x: left out",
        "/same: another link to /x: it becomes an array of its own",
        "/g: attribute 'ref' of references: left out",
    )
    assert result.notes == notes
    run = tamis_export(tmp_path / "a.h5", "--to", "kerchunk", "-o", tmp_path / "b.json")
    assert all(note in run.stdout for note in notes)
    options = ("--to", "kerchunk", "-o", tmp_path / "c.json", "--json", "--drop", "other")
    assert json.loads(tamis_export(tmp_path / "a.h5", *options).stdout)["notes"] == [notes[0], *notes[2:]]


READ_WITHOUT_TAMIS = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tamis":
            raise ModuleNotFoundError("no tamis here", name="tamis")


sys.meta_path.insert(0, Absent())
import icechunk, xarray, zarr

kind, target, source, folder = sys.argv[1:]
if kind == "kerchunk":
    opened = xarray.open_dataset(target, engine="kerchunk").load()
else:
    nothing = getattr(icechunk.credentials, "LocalFileSystemAccess", None)
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(target), authorize_virtual_chunk_access={f"file://{folder}/": nothing}
    )
    store = repository.readonly_session("main").store
    assert zarr.open_group(store, mode="r")["TS"].shape == (8, 12, 20)
    opened = xarray.open_zarr(store, consolidated=False).load()
xarray.testing.assert_identical(opened, xarray.open_dataset(source, engine="h5netcdf").load())
assert "tamis" not in sys.modules
"""

WRITE_BY_VIRTUALIZARR = """
import sys, icechunk, tamis, virtualizarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore

kind, target, source, folder = sys.argv[1:]
registry, parser = ObjectStoreRegistry({"file://": LocalStore()}), tamis.ReferenceParser()
with virtualizarr.open_virtual_dataset(f"file://{source}", registry=registry, parser=parser) as virtual:
    accessor = getattr(virtual, "vz", None) or virtual.virtualize
    if kind == "kerchunk":
        accessor.to_kerchunk(target, format="json")
    else:
        config = icechunk.RepositoryConfig.default()
        container = icechunk.VirtualChunkContainer(f"file://{folder}/", icechunk.local_filesystem_store(folder))
        config.set_virtual_chunk_container(container)
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(target), config)
        session = repository.writable_session("main")
        accessor.to_icechunk(session.store)
        session.commit("references")
"""


@pytest.mark.check
@pytest.mark.parametrize("kind", ["kerchunk", "icechunk"])
@pytest.mark.parametrize("writer", ["tamis", "virtualizarr"])
def test_references_are_read_in_a_process_without_tamis(writer: str, kind: str, tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.nc", "shuffle|deflate(4)"), tmp_path / "target"
    arguments = [kind, *map(str, (target, source, tmp_path))]
    if writer == "tamis":
        tamis.export(source, target, kind)
    else:
        if importlib.util.find_spec("virtualizarr") is None:  # it is not imported here: it imports hdf5plugin
            pytest.skip("could not import 'virtualizarr'")
        subprocess.run([sys.executable, "-c", WRITE_BY_VIRTUALIZARR, *arguments], check=True)
    done = subprocess.run(
        [sys.executable, "-c", READ_WITHOUT_TAMIS, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
