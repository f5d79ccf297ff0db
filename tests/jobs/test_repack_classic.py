"""repack, verify and inspect of netCDF classic files, which become netCDF-4 files as nccopy makes them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray

import tamis
from tamis import DataError, FileError
from tamis.jobs.copy import CopyOptions, run_copy
from tamis.jobs.inspect.cdl import cdl_header

FORMATS = {"classic": "NETCDF3_CLASSIC", "64-bit-offset": "NETCDF3_64BIT_OFFSET", "cdf5": "NETCDF3_64BIT_DATA"}
FILL = np.float32(9.96921e36)


@pytest.fixture(params=FORMATS)
def each_format(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return write(tmp_path / "classic.nc", FORMATS[request.param])


@pytest.fixture
def classic(tmp_path: Path) -> Path:
    return write(tmp_path / "classic.nc", "NETCDF3_64BIT_OFFSET")


def write(path: Path, form: str) -> Path:
    """Write a file with what netCDF-4 stores in a way of its own."""
    rng = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w", format=form) as file:
        # In an order in which variables do not first need them; `strlen` and `nv` are also names of variables.
        for name, size in {"x": 96, "time": None, "strlen": 5, "nv": 2, "lat": 64, "unused": 7}.items():
            file.createDimension(name, size)
        file.setncatts({"title": "Klima °C", "numbers": np.array([1, 2, 3], "i2"), "one": np.float64(1.5), "empty": ""})
        values = np.cumsum(rng.normal(0, 0.1, (9, 64, 96)), axis=2).astype("f4") + 280
        values[:, :20, :30] = FILL  # netCDF's own fill value, without an attribute
        t = file.createVariable("T", "f4", ("time", "lat", "x"))
        t.setncatts({"units": "K", "coordinates": "name"})
        t[:] = values
        declared = file.createVariable("S", "f4", ("time", "lat", "x"), fill_value=np.float32(-9))
        declared[:] = np.where(values == FILL, np.float32(-9), values)
        file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-89, 89, 64)
        file.createVariable("lat_bnds", "f8", ("lat", "nv"))[:] = rng.normal(size=(64, 2))
        file.createVariable("name", "S1", ("x", "strlen"))[:] = rng.choice([b"a", b"b", b""], (96, 5))
        file.createVariable("note", "S1", ("time", "strlen"))[:] = rng.choice([b"c", b"d"], (9, 5))
        file.createVariable("time", "i4", ("time",))[:] = np.arange(9)
        file.createVariable("scalar", "i4", ())[...] = 4
        file.createVariable("small", "i1", ("lat",))[:] = np.arange(64)
        file.createVariable("strlen", "i2", ("x",))[:] = np.arange(96)
        file.createVariable("nv", "S1", ("nv", "strlen"))[:] = rng.choice([b"e", b"f"], (2, 5))
        file.createVariable("square", "f4", ("lat", "lat"))[:] = rng.normal(size=(64, 64))
    return path


def test_repack_gives_the_file_that_nccopy_gives(each_format: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    out, copy = tmp_path / "out.nc", tmp_path / "copy.nc"
    tamis.repack(each_format, out, {"*": "shuffle|deflate(4)|fletcher32"})
    tool("nccopy", "-k", "nc4", each_format, copy)
    texts = [re.sub(r"^netcdf \w+", "", tool("ncdump", path)) for path in (out, copy)]
    assert texts[0] == texts[1]
    assert 'title = "Klima °C"' in texts[0]
    assert tool("ncdump", "-k", out).strip() == "netCDF-4"


def test_repack_reads_the_same_through_netcdf4_and_xarray(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    tamis.repack(classic, out, {"T": "shuffle|deflate(1)", "S": "shuffle|deflate(1)"}, threads=2)
    with netCDF4.Dataset(classic) as before, netCDF4.Dataset(out) as after:
        assert list(before.dimensions) == list(after.dimensions)
        assert list(before.variables) == list(after.variables)
        assert [own.isunlimited() for own in before.dimensions.values()] == [
            own.isunlimited() for own in after.dimensions.values()
        ]
        for name, variable in before.variables.items():
            other = after[name]
            assert (other.dimensions, other.dtype, other.ncattrs()) == (
                variable.dimensions,
                variable.dtype,
                variable.ncattrs(),
            )
            assert np.ma.allequal(variable[...], other[...], fill_value=False) or np.array_equal(
                np.ma.getmaskarray(variable[...]), np.ma.getmaskarray(other[...])
            )
            assert other.endian() in ("little", "native")
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_dataset(classic, engine="netcdf4") as before, xarray.open_dataset(out, engine=engine) as after:
            xarray.testing.assert_identical(before.load(), after.load())


def test_repacked_file_grows_by_the_netcdf_library(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    tamis.repack(classic, out, {"T": "shuffle|deflate(1)"})
    with netCDF4.Dataset(out, "a") as file:
        file["time"][9:11] = [100, 101]
        file.createVariable("new", "f4", ("time", "unused"))[:] = 1
    with netCDF4.Dataset(out) as file:
        assert file["T"].shape == (11, 64, 96)
        assert file["T"][9:].mask.all()  # netCDF's fill value
        assert file["S"][9:].mask.all()
        assert file["new"].shape == (11, 7)


@pytest.mark.parametrize("filters", ["zfp(accuracy=0.01)", "zfp(rate=12)", "zfp(precision=20)", "zfp(reversible=True)"])
def test_repack_with_each_mode_keeps_bounds_and_missing_values(classic: Path, tmp_path: Path, filters: str) -> None:
    out = tmp_path / "out.nc"
    result = tamis.repack(classic, out, {"[TS]": f"{filters}|shuffle|deflate(1)"}, threads=2)
    assert {item.path for item in result.datasets} == {"/T", "/S"}
    assert result["T"].missing_values == (0 if "rev" in filters else 9 * 20 * 30)
    with tamis.open(out) as after, netCDF4.Dataset(classic) as before:
        before.set_auto_mask(False)
        for name, fill in (("T", FILL), ("S", np.float32(-9))):
            values, others = before[name][...], after[name][...]
            valid = values != fill
            assert (others[~valid] == fill).all()
            error = np.abs(values.astype("f8") - others)[valid].max()
            assert error == result[name].largest_error
            assert error <= (0.01 if "acc" in filters else 0 if "rev" in filters else np.inf)
    verified = tamis.verify(classic, out, bounds={"[TS]": 0.01} if "acc" in filters else None)
    assert verified.ok == ("acc" in filters or "rev" in filters)
    assert not verified.notes


def test_repack_with_companion_restores_missing_values(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    result = tamis.repack(classic, out, {"S": "zfp(accuracy=0.01)"}, missing="mask")
    assert result["S"].lossless_chunks == 0
    assert tamis.verify(classic, out, bounds={"S": 0.01}).ok
    with netCDF4.Dataset(out) as file:
        assert file["S_missing"].dimensions == ("time", "lat", "x")
    with pytest.raises(DataError, match=r"/S: 5400 of 55296"):
        tamis.repack(classic, tmp_path / "refused.nc", {"S": "zfp(accuracy=0.01)"}, missing="refuse")


def test_verify_finds_each_change(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    tamis.repack(classic, out, {"T": "shuffle|deflate(1)"})
    assert tamis.verify(classic, out).ok
    with netCDF4.Dataset(out, "a") as file:
        file["T"].units = "C"
        file.delncattr("one")
        file["name"][3, 1] = b"z"
        file["lat"][4] = 77
        file.renameDimension("unused", "used")
    verified = tamis.verify(classic, out)
    assert {(item.path, item.code) for item in verified.violations} == {
        ("/T", "attribute"),
        ("/", "attribute"),
        ("/name", "values"),
        ("/lat", "bits"),
        ("/", "dimensions"),
    }


def test_verify_of_a_netcdf4_file_with_its_classic_copy(tmp_path: Path, tool: Callable[..., str]) -> None:
    classic, out, back = write(tmp_path / "a.nc", "NETCDF3_CLASSIC"), tmp_path / "b.nc", tmp_path / "c.nc"
    tamis.repack(classic, out, {"T": "zfp(accuracy=0.1)|shuffle|deflate(1)"})
    assert tamis.verify(out, classic, bounds={"T": 0.1}).ok
    tamis.repack(classic, out, {"T": "shuffle|deflate(1)"}, overwrite=True)
    tool("nccopy", "-k", "cdf5", out, back)
    assert tamis.verify(out, back).ok
    assert tamis.verify(back, out).ok


def test_verify_finds_lost_variable_and_other_dimensions(tmp_path: Path) -> None:
    for path, form in ((tmp_path / "a.nc", "NETCDF3_CLASSIC"), (tmp_path / "b.nc", "NETCDF4")):
        with netCDF4.Dataset(path, "w", format=form) as file:
            file.createDimension("x", 4)
            file.createDimension("y", 4)
            file.createVariable("v", "f4", ("x",) if form != "NETCDF4" else ("y",))[:] = 1
            file.createVariable("lost" if form != "NETCDF4" else "new", "f4", ("x",))[:] = 1
    verified = tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc")
    assert [(item.path, item.code, item.text) for item in verified.violations] == [
        ("/v", "dimensions", "dimensions (x) became (y)"),
        ("/lost", "missing-dataset", "no such dataset in the target"),
    ]
    assert ("/new", "new-dataset") in {(item.path, item.code) for item in verified.notes}
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "a.nc").ok


def test_output_does_not_depend_on_the_time(classic: Path, tmp_path: Path) -> None:
    targets = [tmp_path / "now.nc", tmp_path / "later.nc"]
    for target in targets:
        tamis.repack(classic, target, {"*": "shuffle|deflate(4)"})
        time.sleep(1.1)  # times in HDF5 files have whole seconds
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_output_does_not_depend_on_threads(classic: Path, tmp_path: Path) -> None:
    outputs = []
    for threads in (1, 3):
        out = tmp_path / f"out{threads}.nc"
        tamis.repack(classic, out, {"T": "zfp(accuracy=0.1)"}, threads=threads)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


def test_dry_run_and_inspect_know_layout_and_roles(classic: Path, tmp_path: Path) -> None:
    preview = tamis.preview_repack(classic, tmp_path / "out.nc", {"*": "zfp(accuracy=0.1)"})
    actions = {item.path: (item.action, item.source_chunks) for item in preview.datasets}
    assert actions["/T"] == ("store", None)
    assert actions["/lat"] == ("keep", None)
    assert not (tmp_path / "out.nc").exists()
    result = tamis.inspect(classic)
    assert (result["T"].layout, result["lat"].layout) == ("records", "contiguous")
    assert str(result["T"].readers) == "any netCDF"
    assert result["time"].role.kind == "coordinate"
    fields = json.loads(result.to_json())["datasets"][0]
    assert (fields["byteorder"], fields["maxshape"]) == ("big", [None, 64, 96])
    assert fields["readers"]["any_hdf5"] is False


def test_header_as_cdl_is_that_of_ncdump(tmp_path: Path, tool: Callable[..., str]) -> None:
    path = write(tmp_path / "classic.nc", "NETCDF3_CLASSIC")
    assert cdl_header(path) == tool("ncdump", "-hs", path)


def test_repack_resumes_and_is_done_already(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    call: dict[str, Any] = {"recipes": {"T": "zfp(accuracy=0.1)"}, "chunks": {"T": (4, 16, 96)}, "resume": True}

    def stop(step: object, done: int, count: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tamis.repack(classic, out, progress=stop, **call)
    result = tamis.repack(classic, out, **call)
    assert sum(item.reused_chunks for item in result.datasets) >= 4
    assert tamis.repack(classic, out, **call).done_already
    whole = tmp_path / "whole.nc"
    tamis.repack(classic, whole, call["recipes"], chunks=call["chunks"])
    assert out.read_bytes() == whole.read_bytes()


def test_variable_with_netcdf4_s_own_prefix_is_copied_as_by_nccopy(tmp_path: Path, tool: Callable[..., str]) -> None:
    name = "_nc4_non_coord_sensors"
    with netCDF4.Dataset(tmp_path / "classic.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("sensors", 2)
        file.createVariable("v", "i4", ("sensors",))[:] = [1, 2]
        file.createVariable(name, "i4", ())[...] = 7
    kinds = [tmp_path / f"{kind}" for kind in ("classic.nc", "a.nc", "b.zarr", "c.nc")]
    for source, target in pairwise(kinds):
        tamis.repack(source, target, {})
    for before, after in permutations(kinds, 2):
        found = tamis.verify(before, after)
        assert found.ok, (before, after, found)
    tool("nccopy", "-k", "nc4", kinds[0], tmp_path / "nccopy.nc")
    for path in (tmp_path / "nccopy.nc", kinds[1], kinds[3]):
        with netCDF4.Dataset(path) as file:
            assert file.variables.keys() == {"v", "sensors"}
            assert file["sensors"][...] == 7


def test_attribute_that_netcdf4_reserves_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",)).setncattr("NAME", "mine")
    with pytest.raises(FileError, match=r"/v: netCDF-4 reserves the attribute name 'NAME'"):
        tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"v": "deflate(1)"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("cam_ts_100days.nc", "classic"), ("pop_sst_60days.nc", "64-bit-offset"), ("era5_levels_members.nc", "cdf5")],
)
@pytest.mark.matrix
def test_real_fields_in_classic_files(
    real: Callable[[str], Path], tmp_path: Path, tool: Callable[..., str], name: str, kind: str
) -> None:
    source, out = tmp_path / "source.nc", tmp_path / "out.nc"
    tool("nccopy", "-k", kind, real(name), source)
    bound = 1.0 if "era5" in name else 0.1
    lossy = "[tz]" if "era5" in name else "TS" if "cam" in name else "SST"
    result = tamis.repack(source, out, {lossy: f"zfp(accuracy={bound})|shuffle|deflate(1)"}, threads=2)
    assert result.datasets[0].ratio > 1.5
    assert tamis.verify(source, out, bounds={lossy: bound}, threads=2).ok
    assert tamis.verify(real(name), out, bounds={lossy: bound}, variables=[lossy], threads=2).ok


def test_copy_with_options_of_nccopy(classic: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.nc"
    run_copy(classic, out, CopyOptions.asked(["T,2|1,2"], chunks=["time/3,lat/32"], kind="nc4"))
    assert tamis.verify(classic, out).ok
    assert str(tamis.inspect(out)["T"].pipeline) == "shuffle|deflate(2)"
    assert tamis.inspect(out)["T"].chunks == (3, 32, 96)
