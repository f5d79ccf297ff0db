"""Packing by repack: what every reader gets from HDF5, netCDF-4 and Zarr, proven; and what repack refuses."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from hostile_values import hostile

import tamis
from tamis import DataError, ParameterError

SHAPE = (6, 24, 36)
FILL = np.float32(1e20)
PACKED = "pack(bound=0.1)|shuffle|deflate(4)"


def field() -> Any:
    steps = np.random.default_rng(3).standard_normal(SHAPE)
    values = (np.cumsum(np.cumsum(steps, -1), -2) / 10 + 280).astype("f4")
    values[:, :3, :5] = FILL
    return values


def make(path: Path, values: Any, fill: Any = FILL, **attributes: Any) -> Path:
    """A netCDF-4 file with a variable of a growing dimension, and a coordinate."""
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "y", "x"), (None, *values.shape[1:]), strict=True):
            file.createDimension(name, extent)
        variable = file.createVariable(
            "v", values.dtype, ("time", "y", "x"), fill_value=fill, chunksizes=(1, *SHAPE[1:])
        )
        variable.setncatts({"units": "K", **attributes})
        variable.set_auto_maskandscale(False)
        variable[:] = values
        file.createVariable("time", "f8", ("time",))[:] = np.arange(len(values))
        file["time"].units = "days since 2000-01-01"
    return path


def readings(path: Path) -> Iterator[tuple[str, Any]]:
    """The values by readers that do not know tamis, missing ones as NaN."""
    if path.suffix == ".zarr":
        with xarray.open_dataset(path, engine="zarr") as data:
            yield "zarr", data["v"].values.astype("f8")
        return
    with netCDF4.Dataset(path) as file:
        yield "netCDF4", np.ma.filled(file["v"][:].astype("f8"), np.nan)
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(path, engine=engine) as data:
            yield engine, data["v"].values.astype("f8")
    with h5py.File(path) as file:
        codes, own = file["v"][()], file["v"].attrs
        for dtype in ("f4", "f8")[own["scale_factor"].itemsize // 8 :]:
            values = codes.astype(dtype) * own["scale_factor"].astype(dtype) + own["add_offset"].astype(dtype)
            lost = codes == own["_FillValue"] if "_FillValue" in own else np.zeros(codes.shape, bool)
            lost |= codes == own["missing_value"] if "missing_value" in own else False
            yield f"h5py {dtype}", np.where(lost, np.nan, values.astype("f8"))


def check(path: Path, values: Any, bound: float, missing: Any) -> None:
    for reader, found in readings(path):
        np.testing.assert_array_equal(np.isnan(found), missing, err_msg=reader)
        assert np.abs(found - values)[~missing].max(initial=0) <= bound, reader


@pytest.mark.parametrize("target", ["b.nc", "b.zarr"])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_every_reader_gets_the_values_within_the_bound(tmp_path: Path, target: str, dtype: str) -> None:
    values = field().astype(dtype)
    source = make(tmp_path / "a.nc", values, missing_value=values.dtype.type(FILL), valid_min=values.dtype.type(0))
    result = tamis.repack(source, tmp_path / target, {"v": PACKED})
    check(tmp_path / target, values.astype("f8"), 0.1, values == FILL)
    assert 0.09 < (result["v"].largest_error or 0) <= 0.1 == result["v"].bound
    assert result["v"].pipeline == PACKED
    verified = tamis.verify(source, tmp_path / target, bounds="recorded")
    assert verified.ok
    assert verified["v"].tally.error == pytest.approx(result["v"].largest_error)


def test_attributes_and_type_are_those_of_cf(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field(), missing_value=FILL, valid_range=np.array([200, 400], "f4"))
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.01")})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        variable = file["v"]
        assert (variable.dtype, variable.units) == (np.int16, "K")
        types = {name: np.asarray(variable.getncattr(name)).dtype for name in variable.ncattrs() if name != "units"}
        assert types == {
            **dict.fromkeys(("scale_factor", "add_offset"), np.dtype("f4")),
            **dict.fromkeys(("_FillValue", "missing_value", "valid_range"), np.dtype("i2")),
            "quantization_bound": np.dtype("f8"),
        }
        assert (variable._FillValue, variable.missing_value, variable.quantization_bound) == (0, 0, 0.01)
        low, high = variable.valid_range * variable.scale_factor + variable.add_offset
        assert (low, high) == pytest.approx((200, 400), abs=0.01)
        assert variable[:].dtype == np.float32
    with h5py.File(tmp_path / "b.nc") as hdf5:
        assert hdf5["v"].fillvalue == 0
    with xarray.open_dataset(tmp_path / "b.nc") as data:
        assert data["v"].dtype == np.float32


def test_nan_beside_a_fill_value_stays_apart(tmp_path: Path) -> None:
    values = field()
    values[0, 10, 10] = np.nan
    source = make(tmp_path / "a.nc", values)
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED})
    check(tmp_path / "b.nc", values.astype("f8"), 0.1, (values == FILL) | np.isnan(values))
    with h5py.File(tmp_path / "b.nc") as file:
        codes, own = file["v"][()], file["v"].attrs
        np.testing.assert_array_equal(codes == own["_FillValue"], values == FILL)
        np.testing.assert_array_equal(codes == own["missing_value"], np.isnan(values))
    values[0, 11, 11] = -5
    make(tmp_path / "c.nc", values, missing_value=np.float32(-5))
    with pytest.raises(ParameterError, match=r"/v: expected at most 2 different missing values"):
        tamis.repack(tmp_path / "c.nc", tmp_path / "d.nc", {"v": PACKED})
    assert not (tmp_path / "d.nc").exists()


def test_patterns_keep_coordinates_and_what_cannot_be_packed(tmp_path: Path) -> None:
    values = field()
    values[2, 5, 9] = np.inf
    source = make(tmp_path / "a.nc", values)
    result = tamis.repack(source, tmp_path / "b.nc", {"*": PACKED})
    kept = dict(result.kept)
    assert "coordinate" in kept["/time"]
    assert "found an infinite one" in kept["/v"]
    with pytest.raises(DataError, match=r"/v: chunk at \(2, 0, 0\): expected finite or missing values"):
        tamis.repack(source, tmp_path / "c.nc", {"v": PACKED})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["v"].dtype == np.float32


def test_requirements_hold_for_unpacked_values(tmp_path: Path) -> None:
    values = np.where(field() == FILL, FILL, field() - 280).astype("f4")
    values[1, 20, 20] = 0
    source = make(tmp_path / "a.nc", values)
    require = {"v": "abs=0.02,rmse=0.05,psnr=20,corr=0.9,dssim=0.5,sign"}
    result = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED}, require=require)
    check(tmp_path / "b.nc", values.astype("f8"), 0.02, values == FILL)
    assert set(result["v"].measures) == {"rmse", "psnr", "corr", "dssim"}
    assert (result["v"].measures["rmse"] or 1) < 0.02
    with pytest.raises(tamis.BoundError, match=r"expected psnr of at least 200\.0, reached"):
        tamis.repack(source, tmp_path / "c.nc", {"v": PACKED}, require={"v": "psnr=200"})
    with pytest.raises(ParameterError, match="no relative requirement for pack"):
        tamis.repack(source, tmp_path / "c.nc", {"v": PACKED}, require={"v": "rel=0.1"})
    near = values.copy()
    near[0, 20, 20] = 0.001
    make(tmp_path / "near.nc", near)
    with pytest.raises(DataError, match=r"/v: from \(0, 0, 0\) on: .*zeros apart from others"):
        tamis.repack(tmp_path / "near.nc", tmp_path / "c.nc", {"v": PACKED}, require={"v": "zeros"})
    assert not (tmp_path / "c.nc").exists()


def test_packed_values_are_packed_again_with_both_errors_recorded(tmp_path: Path) -> None:
    values = field()
    source = make(tmp_path / "a.nc", values)
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED})
    result = tamis.repack(tmp_path / "b.nc", tmp_path / "c.nc", {"v": PACKED.replace("0.1", "0.5")})
    assert any("packed before by scale_factor" in note for note in result["v"].notes)
    check(tmp_path / "c.nc", values.astype("f8"), 0.6, values == FILL)
    with netCDF4.Dataset(tmp_path / "c.nc") as file:
        assert file["v"].quantization_bound == pytest.approx(0.6)
        assert file["v"][:].dtype == np.float32
    assert tamis.verify(source, tmp_path / "c.nc", bounds="recorded").ok
    assert tamis.verify(tmp_path / "b.nc", tmp_path / "c.nc", bounds={"v": 0.5}).ok


def test_sources_of_other_formats(tmp_path: Path) -> None:
    values = field()
    make(tmp_path / "a.nc", values)
    with netCDF4.Dataset(tmp_path / "classic.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, extent in zip(("time", "y", "x"), SHAPE, strict=True):
            file.createDimension(name, extent)
        file.createVariable("v", "f4", ("time", "y", "x"), fill_value=FILL)[:] = np.ma.masked_equal(values, FILL)
    tamis.repack(tmp_path / "a.nc", tmp_path / "a.zarr", {}, zarr_format=2)
    for source, target in (("classic.nc", "b.nc"), ("classic.nc", "b.zarr"), ("a.zarr", "c.nc"), ("a.zarr", "c.zarr")):
        tamis.repack(tmp_path / source, tmp_path / target, {"v": PACKED})
        check(tmp_path / target, values.astype("f8"), 0.1, values == FILL)
        assert tamis.verify(tmp_path / source, tmp_path / target, bounds="recorded").ok
    assert zarr.open(str(tmp_path / "c.zarr"), mode="r")["v"].dtype == np.int8


def test_values_that_are_never_written_stay_missing_or_themselves(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, fill in (("none", None), ("filled", -999.0), ("nan", np.nan)):
            made = file.create_dataset(name, (8, 40), "f4", chunks=(2, 40), maxshape=(None, 40), fillvalue=fill)
            made[2:4] = np.linspace(5, 6, 80).reshape(2, 40)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": PACKED}, min_size=0)
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        for name, expected in (("none", 0.0), ("filled", None), ("nan", None)):
            data = file[name]
            data.resize((10, 40))
            own = data.attrs
            last = data[-1, 0]
            if expected is None:
                assert last == data[0, 0] == own["_FillValue"]
            else:
                assert last * own["scale_factor"] + own["add_offset"] == expected
                assert "_FillValue" not in own


def test_a_range_gives_several_files_the_same_attributes(tmp_path: Path) -> None:
    recipe = {"v": "pack(bound=0.1,range=200:330)|shuffle|deflate(4)"}
    attributes = []
    for number in range(2):
        source = make(tmp_path / f"a{number}.nc", np.where(field() == FILL, FILL, field() + number).astype("f4"))
        tamis.repack(source, tmp_path / f"b{number}.nc", recipe)
        with netCDF4.Dataset(tmp_path / f"b{number}.nc") as file:
            attributes.append({name: str(file["v"].getncattr(name)) for name in file["v"].ncattrs()})
    assert attributes[0] == attributes[1]
    with pytest.raises(ParameterError, match=r"/v: expected values from 0 to 10, found .*: give a wider range"):
        tamis.repack(tmp_path / "a0.nc", tmp_path / "c.nc", {"v": "pack(0.1,0:10,error)"})


def test_preview_inspect_and_history_tell_of_it(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    (preview,) = [
        row for row in tamis.preview_repack(source, tmp_path / "b.nc", {"v": PACKED}).datasets if row.path == "/v"
    ]
    assert (preview.pipeline, preview.bound, preview.action) == (PACKED, 0.1, "store")
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED})
    (described,) = [row for row in tamis.inspect(tmp_path / "b.nc").datasets if row.path == "/v"]
    assert described.values_in_words.startswith("packed: step 0.199219, proven bound 0.1, add_offset ")
    assert json.loads(json.dumps(described.to_dict()))["rounding"]["attribute"] == "quantization_bound"
    assert "rounded before, by pack(bound=0.1)" in str(tamis.plan(tmp_path / "b.nc", {"v": "abs=0.1"}))


def test_small_and_empty_arrays_and_one_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("one", data=np.full((3, 4), 7.25, "f8"), chunks=(3, 4))
        file.create_dataset("empty", (0, 4), "f4", chunks=(2, 4), maxshape=(None, 4))
        file.create_dataset("missing", data=np.full((3, 4), np.nan, "f4"), chunks=(2, 2))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", dict.fromkeys(("one", "empty", "missing"), PACKED))
    with h5py.File(tmp_path / "b.h5") as file:
        assert {name: (data.dtype.str, data.shape) for name, data in file.items()} == {
            "one": ("|i1", (3, 4)), "empty": ("|i1", (0, 4)), "missing": ("|i1", (3, 4)),
        }  # fmt: skip
        assert (file["missing"][()] == file["missing"].attrs["_FillValue"]).all()
        own = file["one"].attrs
        assert np.abs(file["one"][()] * own["scale_factor"] + own["add_offset"] - 7.25).max() <= 0.1


def test_resumed_run_is_done_already(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    first = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED}, resume=True)
    data = (tmp_path / "b.nc").read_bytes()
    again = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED}, resume=True)
    assert (first.done_already, again.done_already) == (False, True)
    other = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.2")}, resume=True)
    assert not other.done_already
    tamis.repack(source, tmp_path / "c.nc", {"v": PACKED}, threads=1)
    assert (tmp_path / "c.nc").read_bytes() == data


def test_missing_refuse_counts_what_would_be_packed(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    with pytest.raises(DataError, match=r"missing values found, .*: /v: 90 of 5184"):
        tamis.repack(source, tmp_path / "b.nc", {"v": PACKED}, missing="refuse")


def test_actual_range_is_that_of_unpacked_values_and_tells_inspect_how_many_bits_are_used(tmp_path: Path) -> None:
    values = field()
    ends = np.array([values.min(), values[values != FILL].max()], "f4")
    source = make(tmp_path / "a.nc", values, actual_range=ends)
    result = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.01")})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        kept, unpacked = file["v"].actual_range, file["v"][:]
        file["v"].set_auto_maskandscale(False)
        codes = file["v"][:]
        assert kept.dtype == np.float32
        assert kept.tolist() == [unpacked.min(), unpacked.max()] != ends.tolist()
    bits = (int(codes.max()) - int(codes.min())).bit_length()
    assert 8 < bits < 16
    assert f"packed to int16, {bits} bits of which are used" in result["v"].notes
    assert tamis.verify(source, tmp_path / "b.nc", bounds="recorded").ok
    info = tamis.inspect(tmp_path / "b.nc")["v"]
    assert (info.used_bits, info.to_dict()["used_bits"]) == (bits, bits)
    said = f", proven bound 0.01, {bits} bits of 16 used, add_offset "
    assert said in info.values_in_words
    assert said in str(tamis.inspect(tmp_path / "b.nc"))
    assert said in tamis.inspect(tmp_path / "b.nc")._repr_html_()
    assert tamis.inspect(source)["v"].used_bits is None
    with netCDF4.Dataset(tmp_path / "b.nc", "a") as file:
        file["v"].actual_range = ends  # not that of packed values
    assert tamis.inspect(tmp_path / "b.nc")["v"].used_bits is None


@pytest.mark.parametrize(("dtype", "count"), [("f4", 1), ("f8", 0)])
def test_int_for_float32_is_noted_because_cf_has_it_for_doubles(dtype: str, count: int, tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", np.where(field() == FILL, FILL, field() - 280).astype(dtype))
    result = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.00005")})
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["v"].dtype == np.int32
    assert sum("the CF conventions have int for doubles only" in note for note in result["v"].notes) == count


def test_flags_are_refused(tmp_path: Path) -> None:
    values = field()
    make(tmp_path / "c.nc", values, flag_values=np.array([1, 2], "f4"), flag_meanings="ice water")
    with pytest.raises(ParameterError, match=r"packing would change flags \(attribute flag_values"):
        tamis.repack(tmp_path / "c.nc", tmp_path / "d.nc", {"v": PACKED})
    assert not (tmp_path / "d.nc").exists()


def test_open_unpacks_on_request(tmp_path: Path) -> None:
    values = field()
    source = make(tmp_path / "a.nc", values)
    for target in ("b.nc", "b.zarr"):
        tamis.repack(source, tmp_path / target, {"v": PACKED})
        with tamis.open(tmp_path / target) as stored, tamis.open(tmp_path / target, unpack=True) as file:
            assert stored["v"].dtype == np.int8
            array = pickle.loads(pickle.dumps(file))["v"]
            assert array.dtype == np.float32
            np.testing.assert_array_equal(np.isnan(array[...]), values == FILL)
            assert np.nanmax(np.abs(array.read().astype("f8") - np.where(values == FILL, np.nan, values))) <= 0.1
            assert abs(array[2, 10, 10] - values[2, 10, 10]) <= 0.1
            assert np.isnan(array[0, 0, 0])
            assert file["time"][...].tolist() == list(range(6))
            assert array.__dask_tokenize__() != stored["v"].__dask_tokenize__()


@pytest.mark.check
def test_no_reader_gets_one_of_ten_million_hostile_values_wrong(tmp_path: Path) -> None:
    rows, count = 500, 330_000
    seen = 0
    refused = set()
    for name, flat, attributes, bound in hostile(np.random.default_rng(11), count):
        values = flat.reshape(rows, -1)
        with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
            for axis, extent in zip("yx", values.shape, strict=True):
                file.createDimension(axis, extent)
            fill = attributes.get("_FillValue", False)
            variable = file.createVariable(
                "v", values.dtype, ("y", "x"), fill_value=fill, chunksizes=(50, values.shape[1])
            )
            variable.setncatts({key: value for key, value in attributes.items() if key != "_FillValue"})
            variable.set_auto_maskandscale(False)
            variable[:] = values
        missing = np.isnan(values)
        if "_FillValue" in attributes:
            missing |= values == attributes["_FillValue"]
        for target in ("b.nc", "b.zarr"):
            recipe = {"v": f"pack(bound={bound})|shuffle|deflate(1)"}
            try:
                result = tamis.repack(tmp_path / "a.nc", tmp_path / target, recipe, overwrite=True)
            except (ParameterError, DataError):
                refused.add(name)
                continue
            assert (result["v"].largest_error or 0) <= bound
            seen += values.size
            for reader, found in readings(tmp_path / target):
                outside = missing | beyond(values, attributes) if reader == "netCDF4" else missing
                np.testing.assert_array_equal(np.isnan(found), outside, err_msg=f"{name}: {reader}")
                errors = np.abs(found - values.astype("f8"))[~outside]
                assert errors.max(initial=0) <= bound, (name, reader, values.dtype)
    assert refused <= {"spikes", "heavy", "denormal", "large", "tiny", "far from zero", "around zero"}
    assert seen > 10_000_000


def beyond(values: Any, attributes: dict[str, Any]) -> Any:
    """Which values netCDF4-python masks because they are outside the valid range."""
    if "valid_min" not in attributes:
        return np.zeros(values.shape, bool)
    return (values < attributes["valid_min"]) | (values > attributes["valid_max"])


def test_limits_stay_those_of_later_values(tmp_path: Path) -> None:
    values = np.where(field() == FILL, field(), field() - 280)
    limits = {"valid_min": np.float32(-10), "valid_max": np.float32(10)}
    source = make(tmp_path / "a.nc", values, missing_value=FILL, **limits)
    result = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.01")})
    assert not any("valid limit" in note for note in result["v"].notes)
    with netCDF4.Dataset(tmp_path / "b.nc", "r+") as file:
        variable = file["v"]
        assert variable.dtype == np.int16
        low, high = (
            limit * variable.scale_factor + variable.add_offset for limit in (variable.valid_min, variable.valid_max)
        )
        assert (low, high) == pytest.approx((-10, 10), abs=0.01)
        variable[0] = -9.99
        assert not np.ma.is_masked(variable[0])
    assert not [note for note in tamis.verify(source, tmp_path / "b.nc").notes if note.code == "valid-limits"]


def test_limits_without_codes_are_said(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field(), missing_value=FILL, valid_range=np.array([0, 1e30], "f4"))
    result = tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.01")})
    (note,) = (note for note in result["v"].notes if "valid limit" in note)
    assert "int16 has no code for the valid limit 1e+30" in note
    (change,) = (note for note in tamis.verify(source, tmp_path / "b.nc").notes if note.code == "valid-limits")
    assert change.text.startswith("the largest valid value, 1e+30 became 65")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["v"].valid_range[1] == np.iinfo("i2").max
        assert file["v"].valid_range[0] * file["v"].scale_factor + file["v"].add_offset == pytest.approx(0, abs=0.1)


def test_one_infinite_limit_leaves_the_other(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field(), missing_value=FILL, valid_range=np.array([0, np.inf], "f4"))
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED.replace("0.1", "0.01")})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["v"].valid_range.tolist()[1] == np.iinfo("i2").max
        assert file["v"].valid_range[0] * file["v"].scale_factor + file["v"].add_offset == pytest.approx(0, abs=0.1)
