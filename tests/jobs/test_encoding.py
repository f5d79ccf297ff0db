"""Filters handed to xarray: as asked for, as the opened file had them, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import tamis

GZIP = {"compression": "gzip", "compression_opts": 4, "shuffle": True}


def stored(path: Path, name: str = "TS") -> str:
    return str(tamis.inspect(path, [name]).datasets[0].pipeline)


def field(dtype: str = "f4") -> np.ndarray[Any, Any]:
    return (280 + 10 * np.sin(np.arange(8 * 16 * 24) / 50)).round().reshape(8, 16, 24).astype(dtype)


def made(dtype: str = "f4", **more: Any) -> xarray.Dataset:
    values = {"TS": (("time", "lat", "lon"), field(dtype), {"units": "K"}), "lat": np.linspace(-90, 90, 16), **more}
    return xarray.Dataset(values)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file whose TS went through zfp, PS through deflate and lat through nothing."""
    path = tmp_path / "saved.nc"
    ds = made(PS=(("time", "lat", "lon"), field() * 300))
    ds["TS"].encoding["_FillValue"] = None
    asked = {"TS": "zfp(accuracy=0.0625)|fletcher32", "PS": "shuffle|deflate(3)"}
    ds.to_netcdf(path, engine="h5netcdf", encoding=tamis.encoding(ds, asked, chunks={"TS": (4, 16, 24)}))
    return path


@pytest.mark.parametrize(
    "filters",
    [
        "zfp(accuracy=0.0625)",
        "zfp(rate=8)|fletcher32",
        "zfp(reversible=True)",
        "shuffle|deflate(4)|fletcher32",
        "lzf",
        "none",
    ],
)
def test_encoding_of_a_recipe_for_h5netcdf_is_what_the_file_has(filters: str, tmp_path: Path) -> None:
    ds = made()
    wanted = tamis.encoding(ds, {"TS": filters}, chunks={"TS": (4, 8, 24)})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=wanted)
    assert stored(tmp_path / "a.nc") == filters
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["TS"].chunks == (4, 8, 24)
        assert {file["TS"].id.get_chunk_info(i).filter_mask for i in range(4)} == {0}
        assert np.abs(file["TS"][...] - field()).max() <= (2 if "rate" in filters else 0.0625)


NETCDF4 = """
import sys, numpy, xarray, tamis
ds = xarray.Dataset({"TS": (("t", "y", "x"), (numpy.arange(3072) // 99).astype("f4").reshape(8, 16, 24))})
path, *asked = sys.argv[1:]
for filters in asked:
    ds.to_netcdf(path, engine="netcdf4", encoding=tamis.encoding(ds, {"TS": filters}, engine="netcdf4"))
    print(tamis.inspect(path, ["TS"]).datasets[0].pipeline)
    assert (xarray.load_dataset(path, engine="netcdf4").TS == ds.TS).all(), filters
"""


@pytest.mark.check
def test_encoding_of_a_recipe_for_netcdf4_is_what_the_file_has(tmp_path: Path) -> None:
    # Without the path of the tests, so that netCDF4 finds the plugins that it brings along.
    clean = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    asked = [
        "deflate(9)",
        "shuffle|deflate(1)",
        "fletcher32|shuffle|deflate(1)",
        "fletcher32",
        "zstd(3)",
        "fletcher32|bzip2(9)",
        "szip(coding=ec,pixels=16)",
        "blosc(compressor=lz4,level=5,shuffle=byte)",
        "blosc(compressor=blosclz,level=9,shuffle=none)",
        "blosc(compressor=zstd,level=9,shuffle=bit)",
    ]
    command = [sys.executable, "-c", NETCDF4, str(tmp_path / "a.nc"), *asked]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == asked


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_encoding_moves_fletcher32_to_the_place_of_the_engine(engine: str, tmp_path: Path) -> None:
    ds, middle = made(), "shuffle|deflate(4)"
    for asked in (f"{middle}|fletcher32", f"fletcher32|{middle}"):
        ds.to_netcdf(tmp_path / "a.nc", engine=engine, encoding=tamis.encoding(ds, {"TS": asked}, engine=engine))
        assert stored(tmp_path / "a.nc") == (f"{middle}|fletcher32" if engine == "h5netcdf" else f"fletcher32|{middle}")


def test_encoding_without_recipes_keeps_filters_chunks_and_how_values_are_stored(saved: Path, tmp_path: Path) -> None:
    with xarray.open_dataset(saved, engine="h5netcdf") as ds:
        ds.isel(time=slice(0, 6)).to_netcdf(
            tmp_path / "b.nc", engine="h5netcdf", encoding=tamis.encoding(ds.isel(time=slice(0, 6)))
        )
        again = ds.TS.values[:6]
    assert [stored(tmp_path / "b.nc", name) for name in ("TS", "PS", "lat")] == [
        "zfp(accuracy=0.0625)|fletcher32",
        "shuffle|deflate(3)",
        "none",
    ]
    with h5py.File(saved) as old, h5py.File(tmp_path / "b.nc") as new:
        assert new["TS"].chunks == old["TS"].chunks == (4, 16, 24)
        assert new["TS"].dtype == old["TS"].dtype
        assert dict(new["PS"].attrs)["_FillValue"].tobytes() == dict(old["PS"].attrs)["_FillValue"].tobytes()
        assert "_FillValue" not in new["TS"].attrs
        assert np.abs(new["TS"][...] - again).max() <= 0.0625


def test_encoding_with_a_recipe_keeps_the_filters_of_the_others(saved: Path, tmp_path: Path) -> None:
    with xarray.open_dataset(saved, engine="h5netcdf") as ds:
        ds.to_netcdf(tmp_path / "b.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"P*": "none"}))
    assert [stored(tmp_path / "b.nc", name) for name in ("TS", "PS")] == ["zfp(accuracy=0.0625)|fletcher32", "none"]


def test_encoding_packed_integers_with_time_stay_packed(tmp_path: Path) -> None:
    days = np.datetime64("2001-01-01", "ns") + np.arange(8) * np.timedelta64(1, "D")
    ds = made(time=("time", days))
    packing = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}
    ds["TS"].encoding |= packing
    ds["time"].encoding |= {"units": "days since 1999-01-01", "calendar": "noleap", "dtype": "f8"}
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"TS": "shuffle|deflate(4)"}))
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as opened:
        opened.to_netcdf(tmp_path / "b.nc", engine="netcdf4", encoding=tamis.encoding(opened, engine="netcdf4"))
        again = xarray.load_dataset(tmp_path / "b.nc", engine="netcdf4")
        xarray.testing.assert_identical(again, opened.load())
        assert {key: again.TS.encoding[key] for key in packing} == packing
    assert stored(tmp_path / "b.nc") == "shuffle|deflate(4)"


def test_encoding_of_a_group_finds_its_filters(tmp_path: Path) -> None:
    ds = made()
    path = tmp_path / "a.nc"
    wanted = tamis.encoding(ds, {"TS": "zfp(rate=8)"})
    ds.to_netcdf(path, engine="h5netcdf", group="run/one", encoding=wanted)
    with xarray.open_dataset(path, engine="h5netcdf", group="run/one") as opened:
        with pytest.raises(tamis.FileError, match=r"has no 'TS', which was read from it: give the group"):
            tamis.encoding(opened)
        kept = tamis.encoding(opened, group="run/one")
    assert kept["TS"]["compression"] == 32013


def test_encoding_big_endian_variable_through_zfp_becomes_native(tmp_path: Path) -> None:
    ds = made(">f4")
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, {"TS": "zfp(reversible=true)"}))
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["TS"].dtype == "<f4"
        assert np.array_equal(file["TS"][...], field())


def test_encoding_pattern_passes_over_what_cannot_be_filtered_and_says_so() -> None:
    ds = made(name=("lat", np.array(["a"] * 16, object)), crs=np.int32(0))
    with pytest.warns(UserWarning, match=r"left as they are: name: .*got text.*; crs: .*got shape \(\)"):
        wanted = tamis.encoding(ds, {"*": "shuffle|deflate(4)"})
    assert sorted(wanted) == ["TS", "lat"]


def test_encoding_with_nan_as_fill_value_leaves_those_chunks_without_zfp(tmp_path: Path) -> None:
    ds = made()
    ds["TS"][0, 0, 0] = np.nan
    wanted = tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": (4, 16, 24)})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=wanted)
    with h5py.File(tmp_path / "a.nc") as file:
        assert [file["TS"].id.get_chunk_info(i).filter_mask for i in range(2)] == [1, 0]
        assert file["TS"][:4].tobytes() == ds.TS.values[:4].tobytes()


def test_encoding_missing_values_that_zfp_would_get_as_numbers_refused(tmp_path: Path) -> None:
    ds = made()
    ds["TS"].encoding["_FillValue"] = np.float32(9.97e36)
    assert "TS" in tamis.encoding(ds, {"TS": "zfp(accuracy=0.1)"})  # none is missing
    ds["TS"][0, 0, :3] = np.nan
    ds["TS"].encoding["missing_value"] = np.float32(9.97e36)
    with pytest.raises(tamis.DataError, match=r"TS: missing values \(3 of 3072\).* 9.97e\+36 .*tamis repack") as said:
        tamis.encoding(ds, {"*S": "zfp(accuracy=0.1)"})
    exec(str(said.value).rpartition("store NaN: ")[2], {"ds": ds, "numpy": np})  # what it says helps
    wanted = tamis.encoding(ds, {"*S": "zfp(accuracy=0.1)"})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=wanted)
    with h5py.File(tmp_path / "a.nc") as file:
        assert np.isnan(file["TS"][0, 0, :3]).all()
        assert np.isnan(file["TS"].attrs["_FillValue"])
    raw = made()
    raw["TS"].attrs["missing_value"] = raw.TS.values[0, 0, 0]
    with pytest.raises(tamis.DataError, match=r"TS: missing values"):
        tamis.encoding(raw, {"TS": "zfp(accuracy=0.1)"})


@pytest.mark.parametrize(
    ("recipes", "options", "said"),
    [
        ({"TX": "lzf"}, {}, r"expected a dataset named 'TX', found only .*/TS"),
        ({"TS": "lzf"}, {"chunks": {"TX": (1, 1, 1)}}, r"expected a dataset named 'TX'"),
        ({"TS": "lzf"}, {"engine": "scipy"}, r"expected an engine that writes filters, h5netcdf or netcdf4, got"),
        ({"TS": "lzf"}, {"chunks": {"TS": (4, 4)}}, r"TS: expected chunks with 3 axes"),
        ({"TS": "zfp(accuracy=0.1)"}, {"engine": "netcdf4"}, r"TS: the engine netcdf4 cannot write zfp.*h5netcdf"),
        (
            {"TS": "zfp(rate=8)|shuffle|deflate(4)|fletcher32"},
            {},
            r"TS: the engine h5netcdf cannot write .* it can write the recipe 'zfp\(rate=8\)\|fletcher32'; tamis",
        ),
        ({"TS": "scaleoffset(kind=decimal,factor=2)"}, {}, r"TS: .* cannot write .*does not pass scaleoffset on"),
        (
            {"TS": "shuffle|zstd(3)"},
            {"engine": "netcdf4"},
            r"TS: the engine netcdf4 cannot write .*before deflate only",
        ),
        ({"TS": "deflate(0)"}, {"engine": "netcdf4"}, r"TS: the engine netcdf4 cannot write deflate\(0\)"),
        ({"TS": "blosc2(level=5)"}, {}, r"TS: blosc2 cannot be written by h5py here: import hdf5plugin first"),
        ({"TS": "lzf", "/TS": "none"}, {}, r"/TS: 'TS' and '/TS' name the same dataset, with lzf and none"),
        (tamis.Zfp(rate=8), {}, r"expected recipes such as"),
        ({"day": "zfp(accuracy=0.5)"}, {}, r"day: .*reversible"),
        ({"crs": "lzf"}, {}, r"crs: expected an array with values, got shape \(\)"),
        ({"name": "lzf"}, {}, r"name: expected numbers, got text"),
        ({"five": "zfp(rate=8)"}, {"chunks": {"five": (4,) * 5}}, r"five: .*axes"),
    ],
)
def test_encoding_what_cannot_be_written_refused(recipes: Any, options: dict[str, Any], said: str) -> None:
    ds = made(
        day=("time", np.arange(8, dtype="i4")),
        crs=np.int32(0),
        name=("lat", np.array(["a"] * 16)),
        five=(("a", "b", "c", "d", "e"), np.zeros((4,) * 5, "f4")),
    )
    with pytest.raises(tamis.TamisError, match=said):
        tamis.encoding(ds, recipes, **options)


def test_encoding_enumeration_for_which_engines_drop_filters_refused() -> None:
    ds = made(flag=("time", np.zeros(8, "i1")))
    ds["flag"].encoding["dtype"] = np.dtype("i1", metadata={"enum": {"off": 0, "on": 1}, "enum_name": "switch"})
    with pytest.raises(tamis.ParameterError, match=r"flag: expected numbers, got an enumeration"):
        tamis.encoding(ds, {"flag": "shuffle|deflate(4)"})


def test_encoding_file_gone_or_variable_renamed_refused(saved: Path) -> None:
    with xarray.open_dataset(saved, engine="h5netcdf") as opened:
        ds = opened.load()
    renamed = ds.rename(TS="T")
    with pytest.raises(tamis.FileError, match=r"saved\.nc: has no 'T', which was read from it"):
        tamis.encoding(renamed)
    assert tamis.encoding(renamed, {"T": "none"})["T"]["compression"] is None
    saved.unlink()
    with pytest.raises(tamis.FileError, match=r"saved\.nc: .*No such file or directory: give recipes for .*TS"):
        tamis.encoding(ds)


def test_encoding_of_classic_file_and_of_memory_has_nothing_to_keep(tmp_path: Path) -> None:
    ds = made()
    assert tamis.encoding(ds) == {}
    ds.to_netcdf(tmp_path / "classic.nc", engine="netcdf4", format="NETCDF3_CLASSIC")
    with xarray.open_dataset(tmp_path / "classic.nc", engine="netcdf4") as opened:
        assert tamis.encoding(opened) == {}


def test_encoding_chunks_alone_of_what_is_in_memory_are_in_the_file(tmp_path: Path) -> None:
    ds = xarray.Dataset({"TS": (("y", "x"), np.ones((20, 30), "f4")), "lat": (("y",), np.ones(20))})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, chunks={"TS": (5, 6)}))
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["TS"].chunks == (5, 6)
        assert file["lat"].chunks is None
    with pytest.raises(tamis.errors.ParameterError, match=r"lat: expected chunks with 1 axes, got \(5, 6\)"):
        tamis.encoding(ds, chunks={"lat": (5, 6)})
    with pytest.warns(UserWarning, match="lat: expected chunks with 1 axes"):
        assert tamis.encoding(ds, chunks={"*": (5, 6)})["TS"]["chunksizes"] == (5, 6)
    assert "lat" not in tamis.encoding(ds, {"TS": "deflate(4)"}, chunks={"*": (5, 6)})


def test_encoding_of_a_data_array_refused() -> None:
    with pytest.raises(tamis.errors.ParameterError, match="expected an xarray Dataset, got DataArray"):
        tamis.encoding(made()["TS"], {"TS": "deflate(4)"})


@pytest.mark.parametrize("decode", [True, "all"])
@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_encoding_attributes_that_xarray_made_coordinates_of_stay(engine: Any, decode: Any, tmp_path: Path) -> None:
    ds = made(
        area=(("lat", "lon"), np.ones((16, 24))),
        crs=np.int32(0),
        lat_bounds=(("lat", "bound"), np.zeros((16, 2))),
        height=(("lat", "lon"), np.ones((16, 24))),
    )
    ds["TS"].attrs |= {"coordinates": "height", "grid_mapping": "crs", "cell_measures": "area: area"}
    ds["lat"].attrs |= {"bounds": "lat_bounds"}
    source, target = tmp_path / "a.nc", tmp_path / "b.nc"
    ds.to_netcdf(source, engine=engine, encoding=tamis.encoding(ds, {"[!c]*": "shuffle|deflate(4)"}, engine=engine))
    with xarray.open_dataset(source, engine=engine, decode_coords=decode) as opened:
        opened.to_netcdf(target, engine=engine, encoding=tamis.encoding(opened, engine=engine))
        again = xarray.load_dataset(target, engine=engine, decode_coords=decode)
        xarray.testing.assert_identical(again, opened.load())
    assert stored(target) == stored(target, "height") == stored(target, "lat") == "shuffle|deflate(4)"
    assert tamis.verify(source, target, bounds={"*": 0}).ok


@pytest.mark.matrix
@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
@pytest.mark.parametrize(
    "name", ["cam_t_3months.nc", "cam_ts_100days.nc", "era5_levels_members.nc", "pop_sst_60days.nc"]
)
def test_encoding_real_file_opened_and_saved_keeps_filters_chunks_and_data(
    name: str, engine: Any, real: Callable[[str], Path], tmp_path: Path
) -> None:
    source, target = real(name), tmp_path / "b.nc"
    with xarray.open_dataset(source, engine=engine) as ds:
        ds.to_netcdf(target, engine=engine, encoding=tamis.encoding(ds, engine=engine))
        with xarray.open_dataset(target, engine=engine) as again:
            xarray.testing.assert_allclose(again, ds, rtol=0, atol=0 if "era5" not in name else 1e-9)
    before, after = (
        {each.path: (str(each.pipeline), each.chunks) for each in tamis.inspect(path).datasets}
        for path in (source, target)
    )
    assert after == before


@pytest.mark.parametrize(
    "text", ["bitround(keepbits=7)|shuffle|deflate(4)", "granular(digits=3)", "bitgroom(digits=3)|deflate(1)"]
)
def test_encoding_of_a_rounding_lets_netcdf_quantize(text: str, tmp_path: Path) -> None:
    ds, rounding = made(), tamis.Pipeline.parse(text).rounding
    assert rounding is not None
    wanted = tamis.encoding(ds, {"TS": text}, engine="netcdf4")
    assert (wanted["TS"]["quantize_mode"], wanted["TS"]["significant_digits"]) == (
        rounding.quantize_mode,
        rounding.number,
    )
    assert text.replace("|", "\n").split("\n")[0] in str(wanted)
    ds.to_netcdf(tmp_path / "a.nc", engine="netcdf4", encoding=wanted)
    with tamis.open(tmp_path / "a.nc") as file:
        assert np.array_equal(file["TS"][...], rounding.round(field()))
    assert tamis.inspect(tmp_path / "a.nc", ["TS"]).datasets[0].rounding == rounding
    with pytest.raises(tamis.ParameterError, match="the engine h5netcdf cannot round by"):
        tamis.encoding(ds, {"TS": text})


def test_encoding_of_a_rounding_that_netcdf_would_spoil_is_refused() -> None:
    for change, text in (
        (lambda ds: ds["TS"].values.__setitem__((0, 0, 0), np.inf), "bitgroom(digits=3)|deflate(4)"),
        (lambda ds: ds["TS"].values.__setitem__((0, 0, 0), -np.inf), "granular(digits=3)|deflate(4)"),
        (lambda ds: ds["TS"].attrs.update(valid_max=np.float32(289)), "bitround(keepbits=3)|deflate(4)"),
        (lambda ds: ds["TS"].attrs.update(missing_value=np.float32(281)), "bitround(keepbits=3)|deflate(4)"),
    ):
        ds = made()
        change(ds)
        with pytest.raises(tamis.DataError, match="would become missing, or cross a limit"):
            tamis.encoding(ds, {"TS": text}, engine="netcdf4")
        tamis.encoding(made(), {"TS": text}, engine="netcdf4")


def test_encoding_does_not_round_values_of_a_file_twice(tmp_path: Path) -> None:
    ds = made()
    ds.to_netcdf(
        tmp_path / "a.nc", engine="netcdf4", encoding=tamis.encoding(ds, {"TS": "granular(digits=2)"}, engine="netcdf4")
    )
    with xarray.open_dataset(tmp_path / "a.nc", engine="netcdf4") as again:
        assert "quantize_mode" not in tamis.encoding(again, {"TS": "granular(digits=2)"}, engine="netcdf4")["TS"]
        with pytest.raises(tamis.ParameterError, match="expected values that are not rounded yet"):
            tamis.encoding(again, {"TS": "granular(digits=1)"}, engine="netcdf4")


def test_encoding_takes_recipes_and_chunks_by_dimension_as_to_netcdf_does(tmp_path: Path) -> None:
    ds = made()
    recipe = tamis.Recipe({"TS": "zfp(accuracy=0.0625)"}, chunks={"TS": {"time": 4, "lat": 8}})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=tamis.encoding(ds, recipe))
    assert stored(tmp_path / "a.nc") == "zfp(accuracy=0.0625)"
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["TS"].chunks == (4, 8, ds.sizes["lon"])
    assert tamis.encoding(ds, recipe, chunks={"TS": (2, 8, 8)})["TS"]["chunksizes"] == (2, 8, 8)
    with pytest.raises(tamis.ParameterError, match="TS: expected chunks for the dimensions time, lat, lon, got lev"):
        tamis.encoding(ds, recipe, chunks={"TS": {"lev": 4}})


@pytest.mark.parametrize(
    ("filters", "require"), [("zfp(accuracy=0.0625)", "abs=0.1"), ("shuffle|lzf", "psnr=80,limits")]
)
def test_encoding_accepts_filters_whose_bound_keeps_what_is_required(filters: str, require: str) -> None:
    ds = made()
    assert tamis.encoding(ds, {"TS": filters}, require={"TS": require}) == tamis.encoding(ds, {"TS": filters})


@pytest.mark.parametrize(
    ("filters", "require"),
    [("zfp(accuracy=0.0625)", "abs=0.01"), ("zfp(rate=8)", "abs=10.0"), ("zfp(accuracy=0.0625)", "abs=0.1,limits")],
)
def test_encoding_refuses_filters_that_may_miss_what_is_required(filters: str, require: str) -> None:
    with pytest.raises(tamis.ParameterError, match=f"TS: expected filters whose own bound keeps {require}, got zfp"):
        tamis.encoding(made(), {"TS": filters}, require={"TS": require})


def test_encoding_refuses_what_only_a_target_of_its_own_can_have() -> None:
    with pytest.raises(tamis.ParameterError, match="expected missing='exact', got 'mask'"):
        tamis.encoding(made(), tamis.Recipe({"TS": "zfp(rate=8)"}, missing="mask"))


def test_encoding_refuses_a_recipe_that_drops_variables() -> None:
    with pytest.raises(tamis.ParameterError, match=r"does not apply to an xarray dataset: .* ds\.drop_vars"):
        tamis.encoding(made(), tamis.Recipe({"TS": "zfp(rate=8)"}, drop=["lat"]))
