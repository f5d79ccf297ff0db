"""Repack, write, Appender, to_netcdf and Zarr with values rounded to multiples of a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import tamis
import tamis.hdf5
from tamis import ParameterError

TEXT = "absolute(bound=0.1)|shuffle|deflate(4)"


def field() -> Any:
    return (280 + 30 * np.sin(np.arange(24 * 40) / 17)).reshape(24, 40).astype("f4")


def make(path: Path, data: Any, **attributes: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=data, chunks=(8, 40)).attrs.update(attributes)
    return path


def values(path: Path) -> Any:
    with tamis.open(path) as file:
        return file["v"][...]


def test_repack_proves_records_and_is_verified(tmp_path: Path) -> None:
    data = field()
    data[0, :4] = [np.nan, np.inf, 1e20, 0]
    data[1, 0] = 309.97  # would cross the limit
    source = make(tmp_path / "a.h5", data, _FillValue=np.float32(1e20), valid_max=np.float32(309.98))
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": TEXT}).datasets
    expected = tamis.Absolute(0.1).round(data, missing_values=[1e20], valid_range=(None, 309.98))
    assert values(tmp_path / "b.h5").tobytes() == expected.tobytes()
    assert (result.bound, result.relative_bound, result.pipeline) == (0.0625, None, TEXT)
    assert 0.06 < result.largest_error <= 0.0625
    assert result.unrounded_values > 0
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].attrs["quantization_step"].tolist() == [0.125]
    found = tamis.verify(source, tmp_path / "b.h5", bounds="recorded")
    assert found.ok
    assert (found["v"].bound, found["v"].relative_bound, found["v"].recorded) == (0.0625, None, True)
    assert tamis.verify(source, tmp_path / "b.h5", bounds={"v": 0.0625}).ok
    assert "rounded by absolute(bound=0.0625): error at most 0.0625" in str(tamis.inspect(tmp_path / "b.h5"))
    (again,) = tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"v": TEXT}).datasets
    assert again.copied
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        file["v"][9, 9] += 0.125
    assert [item.code for item in tamis.verify(source, tmp_path / "b.h5", bounds="recorded").violations] == ["bound"]


def test_the_bound_of_packed_floats_is_in_units_of_the_variable(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", field(), scale_factor=0.01, add_offset=5.0)
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": TEXT}).datasets
    assert np.array_equal(values(tmp_path / "b.h5"), tamis.Absolute(0.1 / 0.01).round(field()))
    assert result.bound == pytest.approx(0.08)
    assert "absolute(bound=0.1) in its units is absolute(bound=10.0) of the stored values" in str(result.notes)
    assert tamis.verify(source, tmp_path / "b.h5", bounds="recorded").ok
    assert tamis.verify(source, tmp_path / "b.h5", bounds={"v": 0.1}).ok


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_targets(zarr_format: int, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    source = make(tmp_path / "a.h5", field())
    tamis.repack(source, tmp_path / "b.zarr", {"v": TEXT}, zarr_format=zarr_format)
    array = zarr.open_group(tmp_path / "b.zarr", mode="r")["v"]
    assert array.attrs["quantization_step"] == 0.125
    assert np.array_equal(array[...], tamis.Absolute(0.1).round(field()))
    assert tamis.verify(source, tmp_path / "b.zarr", bounds="recorded").ok
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.h5", {"v": TEXT})
    assert np.array_equal(values(tmp_path / "c.h5"), tamis.Absolute(0.1).round(field()))


def test_write_and_appender(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        whole = tamis.hdf5.write(file, "v", field(), filters=TEXT, chunks=(8, 40))
        options = {"filters": TEXT, "chunks": (8, 40), "maxshape": (None, 40)}
        steps = tamis.hdf5.create_dataset(file, "w", (0, 40), "f4", **options)
        with tamis.hdf5.Appender(steps) as appender:
            appender.append(field()[:5])
            appender.append(field()[5:])
        expected = tamis.Absolute(0.1).round(field())
        assert np.array_equal(whole[...], expected)
        assert np.array_equal(steps[...], expected)
        assert steps.attrs["quantization_step"] == 0.125


def test_xarray_saves_it_and_other_engines_refuse_it(tmp_path: Path) -> None:
    ds = xr.Dataset({"v": (("y", "x"), field())})
    ds.tamis.to_netcdf(tmp_path / "a.nc", {"v": TEXT})
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as read:
        assert np.array_equal(read["v"].values, tamis.Absolute(0.1).round(field()))
        assert read["v"].attrs["quantization_step"] == 0.125
    for engine in ("h5netcdf", "netcdf4"):
        with pytest.raises(ParameterError, match=r"cannot round by absolute.*round the values before, tamis\.Absolute"):
            tamis.encoding(ds, {"v": TEXT}, engine=engine)


def test_integers_are_refused_by_name_and_kept_by_a_pattern(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", np.arange(960, dtype="i2").reshape(24, 40))
    with pytest.raises(ParameterError, match="expected float32 or float64 for absolute"):
        tamis.repack(source, tmp_path / "b.h5", {"v": TEXT})
    assert "expected float32" in dict(tamis.repack(source, tmp_path / "b.h5", {"*": TEXT}).kept)["/v"]
