"""Fill values of any type: xarray opens what tamis makes of them, and sees what it sees of the source."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import tamis

FILLS: list[tuple[str, Any]] = [
    ("i2", np.float64(np.nan)),
    ("i2", np.float32(-999.5)),
    ("i2", np.int32(-9999)),
    ("i2", np.int16(7)),
    ("i1", np.float32(-999.0)),
    ("u1", np.int16(-1)),
    ("i4", np.float64(1e36)),
    ("i8", np.float64(7.0)),
    ("u8", np.uint64(2**64 - 1)),
    ("f4", np.int32(7)),
    ("f4", np.float64(1e20)),
    ("f8", np.float32(7)),
]
TEXTS: list[tuple[str, Any]] = [("i2", "-999"), ("f4", "7"), ("f8", "missing")]


def made(path: Path, dtype: str, fill: Any, **attributes: Any) -> Path:
    """Return a netCDF-4 file of a variable with a fill value, partly never written."""
    with h5py.File(path, "w") as file:
        values = file.create_dataset("z", (6, 8), dtype, chunks=(3, 8), compression="gzip")
        values[:3] = np.arange(24).reshape(3, 8)
        values.attrs["_FillValue"] = fill
        values.attrs.update(attributes)
        for axis, (name, extent) in enumerate((("y", 6), ("x", 8))):
            scale = file.create_dataset(name, data=np.arange(extent) * 1.0)
            scale.make_scale(name)
            values.dims[axis].attach_scale(scale)
    return path


def seen(path: Path, engine: str, **keywords: Any) -> xr.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, engine=engine, **keywords) as ds:
            return ds.load()


@pytest.mark.matrix
@pytest.mark.parametrize(("dtype", "fill"), FILLS)
@pytest.mark.parametrize("packing", [{}, {"scale_factor": 0.5, "add_offset": 10.0}])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u85_zarr_store_reads_as_its_source(
    tmp_path: Path, dtype: str, fill: Any, packing: dict[str, float], zarr_format: int
) -> None:
    source = made(tmp_path / "a.nc", dtype, fill, **packing)
    result = tamis.repack(source, tmp_path / "a.zarr", {}, zarr_format=zarr_format)
    expected, found = seen(source, "h5netcdf"), seen(tmp_path / "a.zarr", "zarr")
    np.testing.assert_array_equal(found["z"].values, expected["z"].values)
    assert tamis.verify(source, tmp_path / "a.zarr").ok
    tamis.repack(tmp_path / "a.zarr", tmp_path / "back.nc", {})
    with h5py.File(source) as before, h5py.File(tmp_path / "back.nc") as after:
        ours, theirs = (np.asarray(file["z"].attrs["_FillValue"]) for file in (before, after))
        np.testing.assert_array_equal(ours, theirs)
    first = np.ravel(fill)[0]
    hidden = zarr_format == 3 and dtype[0] != "f" and (first != first or first != int(first) or abs(first) > 2.0**64)
    assert hidden == any("is not written as an attribute, because xarray" in note for note in result.notes)


@pytest.mark.parametrize(("dtype", "fill"), TEXTS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u85_text_as_fill_value_of_numbers_opens(tmp_path: Path, dtype: str, fill: str, zarr_format: int) -> None:
    source = made(tmp_path / "a.nc", dtype, fill)
    tamis.repack(source, tmp_path / "a.zarr", {}, zarr_format=zarr_format)
    np.testing.assert_array_equal(seen(tmp_path / "a.zarr", "zarr")["z"][:3], np.arange(24).reshape(3, 8))
    tamis.repack(tmp_path / "a.zarr", tmp_path / "back.nc", {})
    with h5py.File(tmp_path / "back.nc") as file:
        assert file["z"].attrs["_FillValue"] == fill


def test_u85_several_fill_values_are_said(tmp_path: Path) -> None:
    source = made(tmp_path / "a.nc", "f4", np.array([7, 8], "f4"))
    for zarr_format in (2, 3):
        target = tmp_path / f"{zarr_format}.zarr"
        result = tamis.repack(source, target, {}, zarr_format=zarr_format)
        assert np.isnan(seen(target, "zarr")["z"].values[:3]).sum() == 4 - zarr_format
        assert any("xarray knows only the first value" in note for note in result.notes) == (zarr_format == 3)


@pytest.mark.matrix
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fill", [b" ", b"X", b"\0", b"\xff"])
@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_u85_characters_with_a_fill_value_open(tmp_path: Path, form: Any, fill: bytes, zarr_format: int) -> None:
    source = tmp_path / "argo.nc"
    with netCDF4.Dataset(source, "w", format=form) as file:
        file.createDimension("n", 3)
        file.createDimension("letters", 4)
        name = file.createVariable("name", "S1", ("n", "letters"), fill_value=fill)
        name[:] = np.array([list("abcd")] * 3, "S1")
        flag = file.createVariable("flag", "S1", ("n",), fill_value=fill)
        flag[:] = np.array([b"1", b"4", fill], "S1")
        file.createVariable("p", "f4", ("n",))[:] = 1
    result = tamis.repack(source, tmp_path / "a.zarr", {}, zarr_format=zarr_format)
    expected, found = seen(source, "netcdf4"), seen(tmp_path / "a.zarr", "zarr")
    assert found["name"].values.tolist() == expected["name"].values.tolist()
    assert found["flag"].values[:2].tolist() == [b"1", b"4"]
    if zarr_format == 2:
        assert str(found["flag"].values.tolist()) == str(expected["flag"].values.tolist())
    else:
        assert sum("is not written as an attribute" in note for note in result.notes) == 2
    by_tamis = seen(tmp_path / "a.zarr", "tamis")
    assert str(by_tamis["flag"].values.tolist()) == str(expected["flag"].values.tolist())
    tamis.repack(tmp_path / "a.zarr", tmp_path / "back.nc", {})
    back = seen(tmp_path / "back.nc", "netcdf4")
    assert str(back["flag"].values.tolist()) == str(expected["flag"].values.tolist())


@pytest.mark.parametrize(("dtype", "fill"), FILLS)
def test_u85_references_read_as_their_source(tmp_path: Path, dtype: str, fill: Any) -> None:
    icechunk = pytest.importorskip("icechunk")
    source = made(tmp_path / "a.nc", dtype, fill)
    shutil.rmtree(tmp_path / "a.ic", ignore_errors=True)
    tamis.export(source, tmp_path / "a.ic", "icechunk")
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(tmp_path / "a.ic")),
        authorize_virtual_chunk_access=icechunk.containers_credentials({f"file://{tmp_path}/": None}),
    )
    store = repository.readonly_session("main").store
    found = seen(store, "zarr", consolidated=False, zarr_format=3)
    np.testing.assert_array_equal(found["z"].values, seen(source, "h5netcdf")["z"].values)


def test_u85_saved_text_with_a_fill_value_opens(tmp_path: Path) -> None:
    values = np.array([b"ab", b"cdef", np.nan], object)
    ds = xr.Dataset({"x": ("t", values, {}, {"_FillValue": b"X", "dtype": "S1"})})
    result = ds.tamis.to_zarr(tmp_path / "a.zarr", zarr_format=3)
    assert seen(tmp_path / "a.zarr", "zarr")["x"].values.tolist() == [b"ab", b"cdef", b"X"]
    assert any("/x: its _FillValue 'X' is not written as an attribute" in note for note in result.notes)


def texts(path: Path, fill: str | None, values: list[str], **attributes: Any) -> Path:
    """Return a netCDF-4 file of a variable of texts."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", len(values))
        variable = file.createVariable("s", str, ("x",), fill_value=fill)
        variable.setncatts(attributes)
        variable[:] = np.array(values, object)
        file.createVariable("p", "f4", ("x",))[:] = 1
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("steps", [(3,), (2,), (2, 3), (3, 2), (3, 3), (2, 2)])
@pytest.mark.parametrize(
    ("fill", "attributes"), [("NA", {}), ("", {}), (None, {"missing_value": "NA"}), ("NA", {"missing_value": "NA"})]
)
def test_text_with_a_fill_value_reads_as_its_source_and_comes_back(
    tmp_path: Path, fill: str | None, attributes: dict[str, str], steps: tuple[int, ...]
) -> None:
    source = texts(tmp_path / "a.nc", fill, ["Mauna Loa", "NA", "", "Alert"], **attributes)
    expected, place = seen(source, "netcdf4"), source
    for number, zarr_format in enumerate(steps):
        target = tmp_path / f"{number}.zarr"
        result = tamis.repack(place, target, {}, zarr_format=zarr_format)
        xr.testing.assert_equal(seen(target, "zarr"), expected)
        xr.testing.assert_equal(seen(target, "tamis"), expected)
        assert tamis.verify(source, target).ok
        is_translated = zarr_format == 3 and (number == 0 or steps[number - 1] == 2)
        noted = any(note.startswith("/s: its _FillValue") for note in result.notes)
        assert noted == (fill is not None and is_translated)
        place = target
    tamis.repack(place, tmp_path / "back.nc", {})
    xr.testing.assert_equal(seen(tmp_path / "back.nc", "netcdf4"), expected)
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(tmp_path / "back.nc") as after:
        assert after["s"].__dict__ == before["s"].__dict__


def test_text_says_its_fill_value_in_another_attribute_in_zarr_3(tmp_path: Path) -> None:
    source = texts(tmp_path / "a.nc", "NA", ["a", "NA"])
    result = tamis.repack(source, tmp_path / "a.zarr", {}, zarr_format=3)
    (note,) = [note for note in result.notes if "_FillValue" in note]
    assert "/s: its _FillValue 'NA' is not written as an attribute" in note
    assert "it is written as missing_value, and tamis gives it back" in note
    with tamis.open(tmp_path / "a.zarr") as file:
        assert "missing_value" not in file["s"].attrs


def test_a_changed_stand_in_of_a_fill_value_is_kept(tmp_path: Path) -> None:
    source = texts(tmp_path / "a.nc", "NA", ["a", "NA", "none"])
    tamis.repack(source, tmp_path / "a.zarr", {}, zarr_format=3, consolidated=False)
    zarr.open_array(tmp_path / "a.zarr" / "s", mode="r+").attrs["missing_value"] = "none"
    with tamis.open(tmp_path / "a.zarr") as file:
        assert file["s"].attrs["missing_value"] == "none"


def test_several_texts_as_fill_value_are_all_missing_in_zarr_3(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["s"] = np.array(["a", "NA", "none"], object)
        file["s"].attrs.create("_FillValue", np.array(["NA", "none"], object), dtype=h5py.string_dtype())
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {}, zarr_format=3)
    assert seen(tmp_path / "a.zarr", "zarr")["s"].isnull().values.tolist() == [False, True, True]
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "a.zarr").ok


@pytest.mark.parametrize("values", [["a", None], [None, None]])
@pytest.mark.parametrize("after", ["nc", "2.zarr", "3.zarr"])
def test_texts_whose_fill_value_is_that_of_zarr_2_stay_missing(tmp_path: Path, values: list[Any], after: str) -> None:
    ds = xr.Dataset({"s": ("x", np.array(values, object))})
    ds.to_zarr(tmp_path / "a.zarr", zarr_format=2, encoding={"s": {"_FillValue": "NA"}})
    expected = seen(tmp_path / "a.zarr", "zarr")
    assert expected["s"].isnull().values.tolist() == [value is None for value in values]
    xr.testing.assert_equal(seen(tmp_path / "a.zarr", "tamis"), expected)
    target = tmp_path / f"b.{after}"
    tamis.repack(tmp_path / "a.zarr", target, {}, zarr_format=None if after == "nc" else int(after[0]))
    xr.testing.assert_equal(seen(target, "netcdf4" if after == "nc" else "zarr"), expected)
    assert tamis.verify(tmp_path / "a.zarr", target).ok


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_text_of_a_fixed_length_has_no_encoding_in_netcdf(tmp_path: Path, zarr_format: Any) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.nc"
    group = zarr.create_group(source, zarr_format=zarr_format)
    array = group.create_array("x", shape=(2,), dtype="S3", attributes={"_Encoding": "utf-8", "_ARRAY_DIMENSIONS": "t"})
    array[:] = np.array([b"abc", "ä".encode()])
    notes = tamis.repack(source, target, {}).notes
    assert any("no attribute '_Encoding'" in note for note in notes)
    assert tamis.verify(source, target).ok
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_dataset(target, engine=engine) as read:
            assert read["x"].values.tolist() == ["abc", "ä"]


@pytest.mark.parametrize("fill", ["NA", ""])
def test_characters_of_zarr_2_stay_missing_in_zarr_3(tmp_path: Path, fill: str) -> None:
    source, target, back = tmp_path / "2.zarr", tmp_path / "3.zarr", tmp_path / "back.zarr"
    dataset = xr.Dataset({"c": ("x", np.array(["a", fill, "b"]))})
    dataset["c"].encoding["_FillValue"] = fill
    dataset.to_zarr(source, zarr_format=2, consolidated=False)
    tamis.repack(source, target, {}, zarr_format=3)
    tamis.repack(target, back, {}, zarr_format=2)
    for path in (source, target, back):
        with xr.open_zarr(path, consolidated=False) as read:
            assert read["c"].isnull().values.tolist() == [False, True, False], path
    assert tamis.verify(source, target).ok
    assert tamis.verify(source, back).ok


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_text_that_utf_8_lacks_is_refused_in_words(tmp_path: Path, name: str) -> None:
    dataset = xr.Dataset({"c": ("x", np.array(["a", "\udaf6"]))})
    save = dataset.tamis.to_netcdf if name == "a.nc" else dataset.tamis.to_zarr
    with pytest.raises(tamis.DataError, match="/c: expected texts that UTF-8 has"):
        save(tmp_path / name)
    assert not [*tmp_path.iterdir()]
