"""Packing while writing from Python: h5py, step by step, netCDF4 and xarray; what readers without tamis then get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
from hostile_values import hostile

import tamis
from tamis import DataError, ParameterError

SHAPE = (30, 24, 36)
FILTERS = "shuffle|deflate(4)"
LATER = f"pack(bound=0.1,range=200:330)|{FILTERS}"
HOURS = ("time", "y", "x")


def field(dtype: str = "f4") -> Any:
    steps = np.random.default_rng(3).standard_normal(SHAPE)
    values = (np.cumsum(np.cumsum(steps, -1), -2) / 10 + 280).astype(dtype)
    values[:, :3, :5] = np.nan
    values[5] = np.nan
    return values


def whole(path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        tamis.hdf5.write(file, "v", values, filters=f"pack(bound=0.1)|{FILTERS}")


def filled(path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        dataset = tamis.hdf5.create_dataset(file, "v", SHAPE, values.dtype, filters=LATER, chunks=(8, 24, 36))
        tamis.hdf5.write(dataset, values)


def appended(path: Path, values: Any) -> None:
    with h5py.File(path, "w") as file:
        tamis.hdf5.create_appender(file, "v", values[:3], filters=LATER, chunks=(8, 24, 36)).close()
    for begin, end in ((3, 13), (13, 30)):
        with h5py.File(path, "r+") as file, tamis.hdf5.Appender(file["v"]) as appender:
            for step in values[begin:end]:
                appender.append(np.ma.masked_invalid(step))


def by_netcdf4(path: Path, values: Any, model: str = "NETCDF4") -> None:
    with netCDF4.Dataset(path, "w", format=model) as file:
        for name, extent in zip(HOURS, (None, *SHAPE[1:]), strict=True):
            file.createDimension(name, extent)
        variable = tamis.netcdf.create_variable(file, "v", values.dtype, HOURS, LATER)
        variable[:10] = np.ma.masked_invalid(values[:10])
        file["v"][10:] = values[10:]


def by_classic_model(path: Path, values: Any) -> None:
    by_netcdf4(path, values, "NETCDF4_CLASSIC")


def by_engine(engine: str) -> Callable[[Path, Any], None]:
    def save(path: Path, values: Any) -> None:
        data = xarray.Dataset({"v": (HOURS, values, {"quantization_bound": 0.1})})
        encoding = tamis.encoding(data, {"v": f"pack(bound=0.1)|{FILTERS}"}, engine=engine)
        data.to_netcdf(path, engine=engine, encoding=encoding)

    return save


WRITERS = {
    "write": whole, "fill": filled, "append": appended, "netCDF4": by_netcdf4, "classic model": by_classic_model,
    "h5netcdf": by_engine("h5netcdf"), "xarray netcdf4": by_engine("netcdf4"),
}  # fmt: skip


def unpackings(path: Path) -> Iterator[Any]:
    """The values as h5py's users unpack them, in each type, and by netCDF4 and xarray, missing ones as NaN."""
    with h5py.File(path) as file:
        codes, own = file["v"][()], file["v"].attrs
        missing = np.isin(codes, [own[name] for name in ("_FillValue", "missing_value") if name in own])
        for dtype in ("f4", "f8")[own["scale_factor"].itemsize // 8 :]:
            values = codes.astype(dtype) * own["scale_factor"].astype(dtype) + own["add_offset"].astype(dtype)
            yield np.where(missing, np.nan, values.astype("f8"))
    with netCDF4.Dataset(path) as file:
        yield np.ma.filled(file["v"][:].astype("f8"), np.nan)
    for engine in ("h5netcdf", "tamis"):
        with xarray.open_dataset(path, engine=engine) as data:
            yield data["v"].values.astype("f8")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_keeps_bound_and_missing_values(tmp_path: Path, writer: str, dtype: str) -> None:
    values = field(dtype)
    WRITERS[writer](tmp_path / "a.nc", values)
    for unpacked in unpackings(tmp_path / "a.nc"):
        np.testing.assert_array_equal(np.isnan(unpacked), np.isnan(values))
        assert np.nanmax(np.abs(unpacked - values)) <= 0.1
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        variable = file["v"]
        assert {"_FillValue", "scale_factor", "add_offset", "quantization_bound"} == set(variable.ncattrs())
        assert variable.scale_factor.dtype == variable.add_offset.dtype == dtype
        assert (variable.quantization_bound, variable._FillValue.dtype) == (0.1, variable.dtype)


def test_codes_and_attributes_are_those_of_repack(tmp_path: Path) -> None:
    values = np.where(np.isnan(field()), np.float32(1e20), field())
    attributes = {"_FillValue": np.float32(1e20), "valid_min": np.float32(0), "units": "K", "actual_range": [1.0, 4.0]}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        given = {"fillvalue": 1e20, "attrs": attributes, "chunks": (8, 24, 36)}
        tamis.hdf5.write(file, "v", values, filters=FILTERS, **given)
        tamis.hdf5.write(file, "w", values, filters=f"pack(bound=0.01)|{FILTERS}", **given)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": f"pack(bound=0.01)|{FILTERS}"})
    with h5py.File(tmp_path / "a.h5") as direct, h5py.File(tmp_path / "b.h5") as repacked:
        first, second = direct["w"], repacked["v"]
        np.testing.assert_array_equal(first[()], second[()])
        assert {name: str(value) for name, value in first.attrs.items()} == {
            name: str(value) for name, value in second.attrs.items()
        }
        assert (first.dtype, first.fillvalue) == (second.dtype, second.fillvalue)


def test_appended_values_have_the_room_of_the_type_and_others_are_named(tmp_path: Path) -> None:
    values = field()
    appended(tmp_path / "a.h5", values)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        with tamis.hdf5.Appender(file["v"]) as appender:
            appender.append(values[0] + np.float32(1000))
            for wrong in (1e20, -1e4, np.inf):
                with pytest.raises(DataError, match=r"/v: step 31: expected values that a step of 0.199219 .* found"):
                    appender.append(np.full(SHAPE[1:], wrong))
            codes = np.full(SHAPE[1:], 7, "i2")
            appender.append(codes)  # integers are codes already
        assert file["v"].shape[0] == 32
        assert (file["v"][31] == 7).all()
        own = file["v"].attrs
        wide = file["v"][30] * own["scale_factor"].astype("f8") + own["add_offset"]
        assert np.nanmax(np.abs(np.where(np.isnan(values[0]), np.nan, wide) - 1000 - values[0])) <= 0.1 + 1e-4


def test_what_comes_later_needs_a_range(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for filters in ("pack(bound=0.1)", "pack(bound=0.1,range=200:330,outside=error)"):
            with pytest.raises(ParameterError, match=r"with range=LOW:HIGH, .*range=200:330"):
                tamis.hdf5.create_dataset(file, "v", SHAPE, "f4", filters=filters)
            with pytest.raises(ParameterError, match=r"with range=LOW:HIGH"):
                tamis.hdf5.create_appender(file, "v", field(), filters=filters)
        with pytest.raises(ParameterError, match=r"a smallest valid value that is a multiple of the step .* use 200."):
            tamis.hdf5.create_dataset(file, "v", SHAPE, "f4", filters=LATER, attrs={"valid_min": np.float32(200.05)})
        with pytest.raises(ParameterError, match="leave scale_factor out of attrs"):
            tamis.hdf5.write(file, "v", field(), filters="pack(0.1)", attrs={"scale_factor": 2.0})
        with pytest.raises(ParameterError, match=r"expected values from 0 to 10, found 2"):
            tamis.hdf5.write(file, "v", field(), filters="pack(0.1,0:10,error)")
        assert not len(file)
    with netCDF4.Dataset(tmp_path / "b.nc", "w") as nc:
        nc.createDimension("x", 100)
        with pytest.raises(ParameterError, match=r"with range=LOW:HIGH"):
            tamis.netcdf.create_variable(nc, "v", "f4", ("x",), filters="pack(bound=0.1)")
        with pytest.raises(ParameterError, match="expected a fill value"):
            tamis.netcdf.create_variable(nc, "v", "f4", ("x",), filters=LATER, fill_value=False)
        with pytest.raises(ParameterError, match="as only create_variable does"):
            tamis.netcdf.def_var_filter(nc.createVariable("w", "f4", ("x",)), LATER)
        assert "v" not in nc.variables


def test_netcdf4_names_values_without_a_code_and_writes_none_of_them(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as nc:
        nc.createDimension("x", 4)
        variable = tamis.netcdf.create_variable(nc, "v", "f4", ("x",), filters=LATER)
        for wrong in (1e20, [280.0, np.inf, 1, 2], -1e4):
            with pytest.raises(DataError, match=r"a.nc: v: expected values that a step of 0.199219"):
                variable[:] = wrong
        assert variable[:].mask.all()
        variable[0], variable[1:3] = 250, [251, 252]
        assert np.abs(variable[:3] - [250, 251, 252]).max() <= 0.1
        variable.set_auto_scale(False)
        variable[3] = 9
        assert variable[:].tolist()[3] == 9


def test_encodings_refuse_what_they_cannot_write(tmp_path: Path) -> None:
    recipe = {"v": f"pack(bound=0.1)|{FILTERS}"}
    for attributes, name in (({"valid_min": 0.0}, "valid_min"), ({"flag_values": 1}, "flag_values")):
        data = xarray.Dataset({"v": (HOURS, field(), attributes)})
        with pytest.raises(ParameterError, match=rf"the attribute {name} of the variable does not go with .*to_netcdf"):
            tamis.encoding(data, recipe)
    by_engine("h5netcdf")(tmp_path / "a.nc", field())
    with xarray.open_dataset(tmp_path / "a.nc") as packed, pytest.raises(ParameterError, match="quantization_bound"):
        tamis.encoding(packed, recipe)  # its errors would add up


def test_encodings_keep_the_bound_at_ties_which_xarray_divides(tmp_path: Path) -> None:
    values = (np.rint(field() / 0.7) * 0.7 + 0.35).astype("f4")
    data = xarray.Dataset({"v": (HOURS, values)})
    for bound in (0.35, 0.1, 0.0625, 1e-3):
        encoding = tamis.encoding(data, {"v": f"pack(bound={bound})|{FILTERS}"})
        data.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
        for unpacked in unpackings(tmp_path / "a.nc"):
            assert np.nanmax(np.abs(unpacked - values)) <= bound


def hostile_writers(values: Any, bound: float) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Each writer of values, NaN where they are missing; those of later values get the range."""
    now = f"pack(bound={bound})|shuffle"
    later = f"pack(bound={bound},range={float(np.nanmin(values))!r}:{float(np.nanmax(values))!r})|shuffle"
    count, width = values.shape

    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            tamis.hdf5.write(file, "v", values, filters=now)

    def append(path: Path) -> None:
        with h5py.File(path, "w") as file:
            most = {"maxshape": (None, width), "chunks": (8, width)}
            tamis.hdf5.create_dataset(file, "v", (0, width), values.dtype, filters=later, **most)
        for begin, end in ((0, 13), (13, count)):
            with h5py.File(path, "r+") as file, tamis.hdf5.Appender(file["v"]) as appender:
                appender.append(np.ma.masked_invalid(values[begin:end]))

    def assign(path: Path) -> None:
        with netCDF4.Dataset(path, "w") as file:
            for name, extent in zip("yx", values.shape, strict=True):
                file.createDimension(name, extent)
            tamis.netcdf.create_variable(file, "v", values.dtype, ("y", "x"), later)[:] = values

    def encode(path: Path) -> None:
        data = xarray.Dataset({"v": (("y", "x"), values)})
        data.to_netcdf(path, engine="h5netcdf", encoding=tamis.encoding(data, {"v": now}))

    yield from (("write", write), ("append", append), ("assign", assign), ("encode", encode))


@pytest.mark.check
def test_no_writer_gets_one_of_ten_million_hostile_values_wrong(tmp_path: Path) -> None:
    seen, refused = 0, set()
    for name, flat, attributes, bound in hostile(np.random.default_rng(12), 90_000):
        missing = np.isnan(flat) | (flat == attributes.get("_FillValue", np.nan))
        values = np.where(missing, flat.dtype.type(np.nan), flat).reshape(50, -1)
        for writer, write in hostile_writers(values, bound):
            path = tmp_path / "a.nc"
            path.unlink(missing_ok=True)
            try:
                write(path)
            except (ParameterError, DataError):
                refused.add(name)
                continue
            for unpacked in unpackings(path):
                np.testing.assert_array_equal(np.isnan(unpacked), np.isnan(values), err_msg=f"{name}: {writer}")
                assert np.nanmax(np.abs(unpacked - values.astype("f8"))) <= bound, (name, writer, values.dtype)
            seen += values.size
    assert refused <= {"spikes", "heavy", "denormal", "large", "tiny", "far from zero"}
    assert seen > 10_000_000
