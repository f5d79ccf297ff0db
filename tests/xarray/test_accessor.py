"""The accessor ``Dataset.tamis``: files with any filters, proven; compared with xarray's own to_netcdf."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import netCDF4
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tamis
from tamis import BoundError, DataError, FileError, ParameterError
from tamis.formats.hdf5.netcdf_target import NetcdfTarget

T = 280 + np.sin(np.arange(16 * 24 * 32, dtype="f4") / 50).reshape(16, 24, 32)
RECIPE = "zfp(accuracy=0.01)|shuffle|deflate(4)"


def fields(**variables: Any) -> xr.Dataset:
    """Return a dataset of T and other variables, with coordinates."""
    time = pd.date_range("2000-01-01", periods=16, freq="6h")
    coordinates = {"time": time, "lat": np.linspace(-90, 90, 24), "lon": np.arange(32.0)}
    ds = xr.Dataset({"T": (("time", "lat", "lon"), T, {"units": "K"}), **variables}, coordinates, {"title": "fields"})
    return ds.assign_coords(height=2.0, area=(("lat", "lon"), np.ones((24, 32))))


def check_like_xarray(ds: xr.Dataset, path: Path, own: Path, **keywords: Any) -> None:
    """Compare a file with the one that xarray writes, as the engine netcdf4 reads both, without decoding."""
    ds.to_netcdf(own, engine="h5netcdf", **keywords)
    for decode in (False, True):
        with (
            xr.open_dataset(path, engine="netcdf4", decode_cf=decode) as ours,
            xr.open_dataset(own, engine="netcdf4", decode_cf=decode) as theirs,
        ):
            xr.testing.assert_identical(ours, theirs)
            assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"]
            assert {name: ours[name].encoding["dtype"] for name in ours.variables} == {
                name: theirs[name].encoding["dtype"] for name in theirs.variables
            }


def test_to_netcdf_any_pipeline_proven(tmp_path: Path) -> None:
    ds = fields()
    result = ds.tamis.to_netcdf(tmp_path / "a.nc", {"T": RECIPE}, chunks={"T": (4, 24, 32)})
    assert result["T"].largest_error <= 0.01
    assert result["T"].pipeline == "zfp(accuracy=0.01)|fletcher32"
    with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as saved:
        assert saved["T"].encoding["chunksizes"] == (4, 24, 32)
        assert float(abs(saved["T"] - T).max()) == pytest.approx(result["T"].largest_error)
        xr.testing.assert_identical(saved.drop_vars("T"), ds.drop_vars("T"))
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "a.nc").ok


def test_to_netcdf_conventions_as_xarray_writes_them(tmp_path: Path) -> None:
    names = ("time", "lat")
    ds = fields(
        packed=(names, np.linspace(0, 10, 16 * 24).reshape(16, 24)),
        gaps=(names, np.where(np.eye(16, 24), np.nan, 1.5)),
        text=("lat", np.array([f"wörd {i}" for i in range(24)])),
        letters=("lat", np.array([b"ab", b"c"] * 12)),
        flag=("lat", np.arange(24) % 2 == 0),
        delay=("time", np.arange(16).astype("m8[h]")),
        big=(names, np.ones((16, 24), ">i4")),
        scalar=7,
        empty=(("none",), np.empty(0, "f4")),
    )
    ds["packed"].encoding = {"dtype": "i2", "scale_factor": 0.001, "add_offset": 5.0, "_FillValue": -9999}
    ds["T"].encoding = {"_FillValue": np.float32(1e20), "chunksizes": (4, 24, 32), "zlib": True, "complevel": 2}
    ds["gaps"].attrs = {"many": [1, 2, 3], "words": ["a", "b"], "number": 1.5, "empty": ""}
    ds.encoding["unlimited_dims"] = {"time"}
    ds.tamis.to_netcdf(tmp_path / "a.nc")
    check_like_xarray(ds, tmp_path / "a.nc", tmp_path / "b.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert str(tamis.hdf5.pipeline_of(file["T"])) == "deflate(2)"


def test_to_netcdf_text_of_any_kind_as_xarray_writes_it(tmp_path: Path) -> None:
    ds = xr.Dataset(
        {
            "gaps": ("x", np.array(["ab", "", np.nan], object)),
            "one": "wörd",
            "raw": ("x", np.array([b"a", b"bc", b"d"])),
        }
    )
    ds["gaps"].encoding = {"_FillValue": "none", "dtype": str}
    ds["raw"].encoding = {"dtype": str}
    ds.tamis.to_netcdf(tmp_path / "a.nc")
    check_like_xarray(ds, tmp_path / "a.nc", tmp_path / "b.nc")


def test_to_netcdf_unlimited_dimension_that_is_gone_warns(tmp_path: Path) -> None:
    ds = fields()
    ds.encoding["unlimited_dims"] = {"time"}
    with pytest.warns(UserWarning, match="dimensions that are no longer unlimited: time"):
        ds.isel(time=0).tamis.to_netcdf(tmp_path / "a.nc")


def test_to_netcdf_encoding_and_unlimited_dimensions_given(tmp_path: Path) -> None:
    encoding = {"T": {"dtype": "f8", "_FillValue": -1.0}, "time": {"units": "hours since 1999-01-01"}}
    fields().tamis.to_netcdf(tmp_path / "a.nc", {"T": "deflate(1)"}, encoding=encoding, unlimited_dims=["lat"])
    check_like_xarray(fields(), tmp_path / "a.nc", tmp_path / "b.nc", encoding=encoding, unlimited_dims=["lat"])


@pytest.mark.parametrize(
    ("encoding", "pipeline", "chunks"),
    [
        ({"zstd": True, "complevel": 7}, "zstd(7)", (4, 4, 4)),
        ({"chunksizes": (2, 24, 32)}, "shuffle|deflate(4)", (2, 24, 32)),
        ({"zlib": False, "contiguous": True}, "none", None),
        ({**tamis.Zfp(rate=8), "chunksizes": (8, 8, 8)}, "zfp(rate=8)|fletcher32", (8, 8, 8)),
    ],
)
def test_to_netcdf_given_encoding_replaces_filters_or_chunks(
    tmp_path: Path, encoding: dict[str, Any], pipeline: str, chunks: tuple[int, ...] | None
) -> None:
    ds = fields()
    ds["T"].encoding = {"zlib": True, "shuffle": True, "chunksizes": (4, 4, 4)}
    ds.tamis.to_netcdf(tmp_path / "a.nc", encoding={"T": encoding})
    with h5py.File(tmp_path / "a.nc") as file:
        stored = tamis.hdf5.pipeline_of(file["T"])
        assert (str(stored), file["T"].chunks) == (pipeline, chunks)


def test_to_netcdf_filters_in_encoding_of_scalars_and_text_warn(tmp_path: Path) -> None:
    ds = fields(text=("lat", np.array(["a"] * 24, object)))
    with pytest.warns(UserWarning, match="left out: it is a scalar, text") as warned:
        ds.tamis.to_netcdf(tmp_path / "a.nc", encoding={name: {"zlib": True} for name in ("T", "height", "text")})
    assert [str(warning.message).partition(":")[0] for warning in warned] == ["/height", "/text"]


def test_to_netcdf_open_save_keeps_filters_and_chunks(tmp_path: Path) -> None:
    ds = fields(other=(("lat", "lon"), np.ones((24, 32))))
    ds.tamis.to_netcdf(tmp_path / "a.nc", {"T": RECIPE, "other": "bzip2(5)"}, chunks={"T": (4, 24, 32)})
    with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as opened:
        opened.isel(time=slice(0, 6)).tamis.to_netcdf(tmp_path / "b.nc", {"other": "none"})
    with h5py.File(tmp_path / "b.nc") as file:
        stored = {name: (str(tamis.hdf5.pipeline_of(file[name])), file[name].chunks) for name in ("T", "other")}
    assert stored["T"] == ("zfp(accuracy=0.0078125)|fletcher32", (4, 24, 32))
    assert stored["other"][0] == "none"


@pytest.mark.parametrize(
    ("encoding", "pipeline"),
    [
        ({"zlib": True, "complevel": 3, "shuffle": True, "fletcher32": True}, "shuffle|deflate(3)|fletcher32"),
        ({"compression": "gzip", "compression_opts": 5}, "deflate(5)"),
        ({"compression": "lzf", "compression_opts": None, "shuffle": True}, "shuffle|lzf"),
        ({"zstd": True, "complevel": 7, "zlib": False}, "zstd(7)"),
        ({"bzip2": True, "complevel": 6}, "bzip2(6)"),
        ({"szip": {"coding": "nn", "pixels_per_block": 8}, "complevel": 0}, "szip(coding=nn, pixels=8)"),
        ({"compression": 32013, "compression_opts": (1, 0, 0, 1075838976)}, "zfp(rate=8)"),
        ({"contiguous": False}, "none"),
    ],
)
def test_filters_of_encodings_of_any_engine(encoding: dict[str, Any], pipeline: str) -> None:
    ds = fields()
    ds["T"].encoding = encoding
    assert ds.tamis.filters["T"] == tamis.Pipeline.parse(pipeline)
    assert "T" in str(ds.tamis.filters)
    assert ds.tamis.filters.to_dict()["variables"][0]["name"] == "T"


def test_filters_contradiction_in_encoding_refused() -> None:
    ds = fields()
    ds["T"].encoding = {"pipeline": "shuffle|deflate(4)", "zlib": True, "complevel": 9, "shuffle": True}
    with pytest.raises(ParameterError, match=r"T: expected one pipeline in its encoding, got .* and complevel=9"):
        _ = ds.tamis.filters
    ds["T"].encoding = {"compression": "unknown"}
    with pytest.raises(ParameterError, match=r"T: .*open the file with engine='tamis', or give a recipe"):
        _ = ds.tamis.filters


def test_to_netcdf_dask_computes_each_block_once_in_little_memory(tmp_path: Path) -> None:
    computed: list[tuple[int, ...]] = []

    def block(block_info: Any = None) -> np.ndarray:
        start = block_info[None]["array-location"][0][0]
        computed.append(start)
        return T[start : start + 4]

    lazy = da.map_blocks(block, chunks=((4,) * 4, 24, 32), dtype="f4", meta=np.empty((0, 0, 0), "f4"))
    ds = fields(lazy=(("time", "lat", "lon"), lazy)).drop_vars("T")
    for recipes in ({"lazy": RECIPE}, {}):
        computed.clear()
        result = ds.tamis.to_netcdf(tmp_path / f"{len(recipes)}.nc", recipes, threads=2)
        assert sorted(computed) == [0, 4, 8, 12]
        assert result["lazy"].largest_error <= 0.01
    with h5py.File(tmp_path / "0.nc") as file:
        np.testing.assert_array_equal(file["lazy"], T)


@pytest.mark.parametrize("missing", ["exact", "mask", "refuse"])
def test_to_netcdf_missing_values_as_repack(tmp_path: Path, missing: str) -> None:
    values = T.copy()
    values[3, 5:8] = np.nan
    ds = fields(gaps=(("time", "lat", "lon"), values))
    ds["gaps"].encoding["_FillValue"] = np.float32(1e20)
    target = tmp_path / "a.nc"
    if missing == "refuse":
        with pytest.raises(DataError, match=r"missing values found, .*: /gaps: 96"):
            ds.tamis.to_netcdf(target, {"gaps": RECIPE}, missing="refuse")
        assert not list(tmp_path.iterdir())
        return
    result = ds.tamis.to_netcdf(target, {"gaps": RECIPE}, missing=missing)
    assert result["gaps"].missing_values == 96
    with xr.open_dataset(target, engine="tamis") as saved:
        np.testing.assert_array_equal(np.isnan(saved["gaps"]), np.isnan(values))
        assert float(abs(saved["gaps"] - values).max()) <= 0.01


def test_to_netcdf_pattern_leaves_coordinates_exact(tmp_path: Path) -> None:
    result = fields().tamis.to_netcdf(tmp_path / "a.nc", {"*": "zfp(accuracy=0.01)"})
    assert [item.path for item in result.datasets] == ["/T"]
    assert "coordinate" in dict(result.kept)["/area"]


def test_to_netcdf_group_and_tree(tmp_path: Path) -> None:
    ds = fields().drop_vars(["area"])
    ds.tamis.to_netcdf(tmp_path / "group.nc", {"/in/side/T": RECIPE}, group="in/side")
    with xr.open_dataset(tmp_path / "group.nc", engine="tamis", group="in/side") as saved:
        xr.testing.assert_identical(saved.drop_vars("T"), ds.drop_vars("T"))
    tree = xr.DataTree.from_dict({"/": xr.Dataset(coords={"lat": ds["lat"]}), "/a": ds, "/a/b": ds[["T"]].isel(time=0)})
    tree.tamis.to_netcdf(tmp_path / "tree.nc", {"/a/T": RECIPE, "*": "deflate(1)"})
    tree.to_netcdf(tmp_path / "theirs.nc", engine="h5netcdf")
    with (
        xr.open_datatree(tmp_path / "tree.nc", engine="tamis") as ours,
        xr.open_datatree(tmp_path / "theirs.nc", engine="tamis") as theirs,
    ):
        xr.testing.assert_allclose(ours, theirs, atol=0.01)
        assert list(ours.subtree_with_keys)[-1][0] == "a/b"
    with netCDF4.Dataset(tmp_path / "tree.nc") as file:
        assert list(file["/a"].dimensions) == ["time", "lon"]  # lat is that of the root


def test_to_netcdf_takes_a_saved_recipe(tmp_path: Path) -> None:
    ds = fields(U=(("time", "lat", "lon"), T - 280, {"standard_name": "eastward_wind"}))
    chunks = {"T": {"time": 4}, "standard_name=eastward_wind": {"time": 100, "lon": 8}}
    tamis.Recipe(
        {"T": "zfp(bound=0.01)", "standard_name=*_wind": "zstd(5)"}, chunks=chunks, require={"T": "sign"}
    ).dump(tmp_path / "r.toml")
    recipe = tamis.Recipe.load(tmp_path / "r.toml")
    result = ds.tamis.to_netcdf(tmp_path / "a.nc", recipe)
    assert result["T"].largest_error <= 0.01
    assert "zfp(accuracy=" in str(result["T"].pipeline)
    with h5py.File(tmp_path / "a.nc") as file:
        assert (file["T"].chunks, file["U"].chunks) == ((4, 24, 32), (16, 24, 8))
        assert str(result["U"].pipeline) == "zstd(5)"
    ds.tamis.to_netcdf(tmp_path / "b.nc", recipe, chunks={"T": (8, 24, 32)}, missing="refuse")
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["T"].chunks == (8, 24, 32)
    ds.tamis.to_netcdf(tmp_path / "d.nc", {"T": "zstd"}, chunks={"*": {"time": 2}})  # lat and area have none
    with h5py.File(tmp_path / "d.nc") as file:
        assert (file["T"].chunks, file["area"].chunks) == ((2, 24, 32), None)
    with pytest.raises(ParameterError, match="T: expected chunks for the dimensions time, lat, lon, got level"):
        ds.tamis.to_netcdf(tmp_path / "c.nc", {"T": "zstd"}, chunks={"T": {"level": 2}})


def test_to_netcdf_wrong_input_refused(tmp_path: Path) -> None:
    ds, path = fields(), tmp_path / "a.nc"
    for recipes, keywords, error, text in [
        ({"TS": RECIPE}, {}, FileError, "expected a dataset named 'TS', found only /T"),
        ({"T": "zfp(accuracy=0)"}, {}, ParameterError, "accuracy"),
        ({"T": "no filter"}, {}, ParameterError, "filter"),
        ({"height": "deflate(1)"}, {}, ParameterError, "height: expected an array, got a scalar"),
        ({"T": RECIPE}, {"chunks": {"T": (4, 4)}}, ParameterError, "T: expected chunks with 3 axes"),
        ({"T": RECIPE}, {"chunks": {"T": (4, 24, 64)}}, ParameterError, "expected chunks within the shape"),
        (RECIPE, {}, ParameterError, "expected recipes such as"),
        ([], {}, ParameterError, "expected recipes such as"),
        ({}, {"missing": "drop"}, ParameterError, "expected missing to be one of"),
        ({}, {"threads": 0}, ParameterError, "threads"),
        ({}, {"unlimited_dims": ["level"]}, ParameterError, "expected unlimited_dims among the dimensions .*'level'"),
        ({"*": "zstd(5)"}, {"encoding": {"T": {"zlib": True}}}, ParameterError, "a recipe or 'zlib' .*got both"),
        ({}, {"encoding": {"T": {"chunksizes": (4, 4)}}}, ParameterError, r"expected 3 chunk sizes, got \(4, 4\)"),
        (
            {},
            {"encoding": {"T": {"chunksizes": (4, 4, 4)}}, "chunks": {"T": (2, 2, 2)}},
            ParameterError,
            "chunks or 'chunksizes' in its encoding, got both",
        ),
        ({}, {"encoding": {"T": {"dtpye": "i2"}}}, ParameterError, "T: xarray knows no encoding 'dtpye'"),
        ({}, {"encoding": {"T": "i2"}}, ParameterError, "T: expected an encoding such as .* got 'i2'"),
        ({}, {"encoding": {"TS": {}}}, ParameterError, "expected encodings of variables of the dataset, got '/TS'"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            ds.tamis.to_netcdf(path, recipes, **keywords)
    for name, values in {"nested": np.zeros((), [("z", "c8")]), "objects": np.array({}, object)}.items():
        with pytest.raises(ParameterError, match=r"complex numbers or records of numbers, .*got \[\('z'|cannot encode"):
            ds.assign({name: values}).tamis.to_netcdf(path)
    with pytest.raises(ParameterError, match="expected numbers, got values of the type complex128"):
        ds.assign(z=("lon", np.arange(32) + 1j)).tamis.to_netcdf(path, {"z": "zfp(rate=8)"})
    with pytest.raises(ParameterError, match="MultiIndex"):
        ds.stack(point=("lat", "lon")).tamis.to_netcdf(path)
    with pytest.raises(ParameterError, match="attribute 'nested' to be text"):
        ds.assign_attrs(nested={"a": {1, 2}}).tamis.to_netcdf(path)
    with pytest.raises(ParameterError, match=r"names of variables .* without slashes, got 'a/b'"):
        ds.assign({"a/b": 1}).tamis.to_netcdf(path)
    with pytest.raises(FileError, match="there is no folder"):
        ds.tamis.to_netcdf(tmp_path / "no" / "a.nc")
    assert not list(tmp_path.iterdir())


def test_to_netcdf_encoding_without_fill_value(tmp_path: Path) -> None:
    fields().tamis.to_netcdf(tmp_path / "a.nc", encoding={"T": {"_FillValue": None}})
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert "_FillValue" not in file["T"].ncattrs()


@pytest.mark.parametrize("engine", ["netcdf4", "tamis"])
def test_to_netcdf_enumerations_as_engine_netcdf4_writes_them(tmp_path: Path, engine: str) -> None:
    with netCDF4.Dataset(tmp_path / "source.nc", "w") as file:
        sky = file.createEnumType("u1", "sky_t", {"clear": 0, "cloudy": 1, "missing": 127})
        file.createDimension("x", 6)
        file.createVariable("marked", sky, ("x",), fill_value=127)[:] = [0, 1, 1, 127, 0, 1]
        file.createVariable("packed", sky, ("x",), chunksizes=(3,), zlib=True)[:] = [0, 1, 1, 0, 0, 1]
    with xr.open_dataset(tmp_path / "source.nc", engine=engine) as ds:
        result = ds.tamis.to_netcdf(tmp_path / "a.nc", {"marked": "shuffle|deflate(1)"}, larger=True)
        assert result["packed"].pipeline == "shuffle|deflate(4)"
        ds.to_netcdf(tmp_path / "b.nc", engine="netcdf4")
        with pytest.raises(ParameterError, match="marked: expected numbers, got values of the type enum"):
            ds.tamis.to_netcdf(tmp_path / "c.nc", {"marked": "zfp(accuracy=1)"})
        ds["packed"].encoding["dtype"] = np.dtype("u1", metadata={"enum": {"clear": 0}, "enum_name": "sky_t"})
        with pytest.raises(FileError, match="/packed: its type needs the name 'sky_t', which another"):
            ds.tamis.to_netcdf(tmp_path / "c.nc")
    for decode in (False, True):
        ours, theirs = (
            xr.load_dataset(path, engine="netcdf4", decode_cf=decode) for path in (tmp_path / "a.nc", tmp_path / "b.nc")
        )
        xr.testing.assert_identical(ours, theirs)
        for name in ("marked", "packed"):
            assert ours[name].encoding["dtype"].metadata == theirs[name].encoding["dtype"].metadata


def test_to_netcdf_complex_numbers_and_records_as_netcdf4_has_them(tmp_path: Path) -> None:
    records = np.zeros(6, np.dtype([("a", "i1"), ("b", "f8"), ("pair", "f4", (2,))], align=True))
    records["b"] = np.arange(6)
    ds = xr.Dataset(
        {
            "z": ("x", np.arange(6) + 1j, {"units": "m"}),
            "lazy": ("x", da.from_array((np.arange(6) - 2j).astype("c8"), chunks=4)),
            "one": 3j,
            "rec": ("x", records),
            "rec_t": ("x", np.arange(6)),
        }
    )
    result = ds.tamis.to_netcdf(tmp_path / "a.nc", {"z": "shuffle|deflate(4)", "rec": "deflate(1)"}, larger=True)
    assert result["z"].pipeline == "shuffle|deflate(4)"
    ds[["z", "one"]].to_netcdf(tmp_path / "b.nc", engine="netcdf4", auto_complex=True)
    theirs = xr.load_dataset(tmp_path / "b.nc", engine="netcdf4", auto_complex=True)
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert [*file.cmptypes] == ["_PFNC_DOUBLE_COMPLEX_TYPE", "_PFNC_FLOAT_COMPLEX_TYPE", "rec_t_t"]
    for engine, options in {"netcdf4": {"auto_complex": True}, "h5netcdf": {}, "tamis": {}}.items():
        saved = xr.load_dataset(tmp_path / "a.nc", engine=engine, **options)
        xr.testing.assert_identical(saved[["z", "lazy", "one"]], ds[["z", "lazy", "one"]].compute())
        xr.testing.assert_identical(saved[["z", "one"]], theirs)
        np.testing.assert_array_equal(saved["rec"].to_numpy(), records)
        saved.tamis.to_netcdf(tmp_path / "again.nc", overwrite=True)
        assert tamis.verify(tmp_path / "a.nc", tmp_path / "again.nc").ok


def test_to_netcdf_variable_without_name_as_xarray_stores_it(tmp_path: Path) -> None:
    ds = xr.Dataset({None: ("x", [1, 2])})
    ds.tamis.to_netcdf(tmp_path / "a.nc")
    check_like_xarray(ds, tmp_path / "a.nc", tmp_path / "b.nc")


def test_to_netcdf_compares_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = NetcdfTarget.copy

    def damage(self: NetcdfTarget, variable: Any, array: Any) -> None:
        own(self, variable, array)
        self._variables[variable.path][1] = "other"

    monkeypatch.setattr(NetcdfTarget, "copy", damage)
    ds = xr.Dataset({"text": ("x", np.array(["a", "b", "c"], object))})
    with pytest.raises(BoundError, match=r"/text: values differ from those of the source"):
        ds.tamis.to_netcdf(tmp_path / "a.nc")
    assert not list(tmp_path.iterdir())


def test_to_netcdf_failure_leaves_earlier_file(tmp_path: Path) -> None:
    ds, path = fields(), tmp_path / "a.nc"
    ds.tamis.to_netcdf(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match="File exists: choose another name, or replace it: overwrite=True"):
        ds.tamis.to_netcdf(path)

    def fail(block: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("no such value")

    broken = ds.assign(lazy=(("time", "lat", "lon"), da.from_array(T, chunks=(8, 24, 32)).map_blocks(fail, dtype="f4")))
    with pytest.raises(ZeroDivisionError, match="no such value"):
        broken.tamis.to_netcdf(path, {"lazy": RECIPE}, overwrite=True)
    assert [item.name for item in tmp_path.iterdir()] == ["a.nc"]
    assert path.read_bytes() == before
    ds.tamis.to_netcdf(path, {"T": RECIPE}, overwrite=True)
    assert path.read_bytes() != before


@pytest.mark.check
def test_accessor_there_as_soon_as_xarray_opens_a_file(tmp_path: Path) -> None:
    fields().to_netcdf(tmp_path / "a.nc")
    code = f"import xarray; print(xarray.open_dataset({str(tmp_path / 'a.nc')!r}).tamis.filters['T'])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "none"


def test_to_netcdf_rounds_as_repack_and_not_twice(tmp_path: Path) -> None:
    values = np.linspace(1, 300, 6000, dtype="f4").reshape(60, 100)
    dataset = xr.Dataset({"TS": (("y", "x"), values)})
    recipe = "bitgroom(digits=3)|shuffle|deflate(4)"
    (result,) = dataset.tamis.to_netcdf(tmp_path / "a.nc", {"TS": recipe}).datasets
    assert (result.pipeline, result.bound, result.relative_bound) == (recipe, None, 2**-11)
    with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as saved:
        assert np.array_equal(saved["TS"], tamis.BitGroom(3).round(values))
        assert saved["TS"].attrs["_QuantizeBitGroomNumberOfSignificantDigits"] == 3
        (again,) = saved.tamis.to_netcdf(tmp_path / "b.nc", {"TS": recipe}).datasets
        assert again.largest_error == 0


WARNED = {
    "to_netcdf": lambda ds, folder: ds.tamis.to_netcdf(folder / "a.nc"),
    "to_zarr": lambda ds, folder: ds.tamis.to_zarr(folder / "a.zarr"),
    "tree": lambda ds, folder: xr.DataTree.from_dict({"/": ds}).tamis.to_netcdf(folder / "a.nc"),
    "encoding": lambda ds, _: tamis.encoding(ds, {"*": "deflate"}, chunks={"*": (1, 2, 3, 4, 5)}),
}


@pytest.mark.parametrize("name", WARNED)
def test_warnings_name_the_file_of_the_caller(tmp_path: Path, name: str) -> None:
    ds = fields()
    ds.encoding["unlimited_dims"] = {"gone"}
    with pytest.warns(UserWarning, match=r"no longer unlimited: gone|left as they are") as caught:
        WARNED[name](ds, tmp_path)
    assert [item.filename for item in caught] == [__file__]


def test_dates_of_a_calendar_without_encoding_are_saved(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
    with xr.open_dataset(sample, engine="tamis") as dataset:
        assert dataset.time_bnds.dtype == object
        plain = dataset.drop_encoding()
        plain.time.encoding["units"] = "days since 1920-01-01"
        plain.tamis.to_netcdf(tmp_path / "a.nc")
        with xr.open_dataset(tmp_path / "a.nc", engine="tamis") as saved:
            assert (saved.time == dataset.time).all()
            assert (saved.time_bnds == dataset.time_bnds).all()


@pytest.mark.matrix
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_bounds_that_are_too_large_warn_once_for_each_variable(tmp_path: Path, name: str, lazy: bool) -> None:
    rain = np.abs(np.random.default_rng(0).normal(0, 1e-8, (16, 24, 32))).astype("f4")
    ds = fields(rain=(("time", "lat", "lon"), rain), snow=(("time", "lat", "lon"), rain))
    ds = ds.chunk(time=4) if lazy else ds
    save = ds.tamis.to_netcdf if name == "a.nc" else ds.tamis.to_zarr
    with pytest.warns(UserWarning, match="the bound 0.1") as caught:
        result = save(tmp_path / name, {"*": "zfp(accuracy=0.1)", "T": "zfp(accuracy=1e-3)"})
    texts = [str(item.message) for item in caught if "the bound 0.1" in str(item.message)]
    assert sorted(text.partition(":")[0] for text in texts if text.startswith("/")) == ["/rain", "/snow"]
    assert all("makes 100 % of the values other than 0 to 0" in text for text in texts if text.startswith("/"))
    assert {item.filename for item in caught if "the bound 0.1" in str(item.message)} == {__file__}
    assert [f"{path}: {text}" for path, text in result.warnings] == texts
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        plain = ds.drop_vars(["rain", "snow"])
        (plain.tamis.to_netcdf if name == "a.nc" else plain.tamis.to_zarr)(
            tmp_path / f"plain-{name}", {"T": "zfp(accuracy=1e-3)"}
        )


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_large_variables_without_filters_are_in_the_result(tmp_path: Path, ending: str) -> None:
    opened = xr.Dataset({"TS": (("time", "x"), np.random.default_rng(0).normal(280, 9, (20, 2000)))})
    opened["TS"].encoding = {"zlib": True}
    ds = opened.assign(computed=opened["TS"] - 273.15, small=opened["TS"].isel(x=0) + 1, name=("x", ["a"] * 2000))
    path = tmp_path / f"a{ending}"
    save = ds.tamis.to_netcdf if ending == ".nc" else ds.tamis.to_zarr
    result = save(path)
    ((name, reason),) = result.kept
    assert name == "/computed"
    assert "/computed: kept as it is: without filters in 320 kB, because recipes name none" in str(result)
    assert "{'computed': 'shuffle|deflate(4)'}" in reason
    assert "/computed" not in dict(save(path, {"*": "shuffle|deflate(4)"}, overwrite=True).kept)
    # Its own encoding says that it has none, too.
    ds["computed"].encoding = {"dtype": "f4"}
    ((name, reason),) = save(path, {"TS": "deflate(1)"}, overwrite=True).kept
    assert (name, reason[:24]) == ("/computed", "without filters in 160 k")
    more = (ds[["computed"]] + 1).rename(computed="more")
    ((name, _),) = (more.tamis.to_netcdf if ending == ".nc" else more.tamis.to_zarr)(path, mode="a").kept
    assert name == "/more"


def test_target_that_exists_is_refused_before_values_are_computed(tmp_path: Path) -> None:
    def fail(block: Any) -> Any:
        raise AssertionError("computed")

    values = da.map_blocks(fail, da.zeros((4, 8), chunks=2), dtype="f8", meta=np.empty((0, 0)))
    ds = xr.Dataset({"v": (("y", "x"), values)})
    ds["v"].encoding = {"dtype": "f4"}
    (tmp_path / "a.nc").write_text("mine")
    (tmp_path / "a.zarr").mkdir()
    for save, name in ((ds.tamis.to_netcdf, "a.nc"), (ds.tamis.to_zarr, "a.zarr")):
        with pytest.raises(
            FileError, match=rf"{name}: File exists: choose another name, or replace it: overwrite=True"
        ):
            save(tmp_path / name, {"v": "pack(bound=0.1)"})
    assert (tmp_path / "a.nc").read_text() == "mine"


@pytest.mark.parametrize("kind", [xr.Dataset, xr.DataTree])
def test_unknown_keyword_names_the_call_and_the_near_one(kind: Any, tmp_path: Path) -> None:
    ds = xr.Dataset({"a": ("x", np.arange(3.0))})
    owner = ds if kind is xr.Dataset else xr.DataTree.from_dict({"/": ds})
    calls = {
        "to_netcdf": ("unlimited_dim", "unlimited_dims"),
        "to_zarr": ("overwite", "overwrite"),
        "plan": ("reader", "readers"),
    }
    for name, (given, near) in calls.items():
        if (call := getattr(owner.tamis, name, None)) is None:
            continue  # trees lack it
        text = rf"^{name}\(\) got an unexpected keyword argument '{given}' \(did you mean {near}\?\): it takes "
        with pytest.raises(TypeError, match=text):
            call(*(() if name == "plan" else (tmp_path / f"a.{name[3:]}",)), **{given: "x"})
    assert not [*tmp_path.iterdir()]
