"""Booleans, bytes and records between HDF5 and Zarr: as h5py stores them, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from inprocess import said_by_tamis

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("recipe", [[], ["-f", "*:deflate(1)", "--min-size", 0, "--larger"]], ids=["kept", "deflate"])
def test_booleans_are_booleans_for_h5py_and_every_engine(
    zarr_format: Any, recipe: list[object], tmp_path: Path
) -> None:
    store, file, again = tmp_path / "a.zarr", tmp_path / "a.nc", tmp_path / "b.zarr"
    group = zarr.open_group(store, mode="w", zarr_format=zarr_format)
    values = np.arange(20).reshape(4, 5) % 3 == 0
    group.create_array("bool", data=values, chunks=(2, 5), fill_value=True)
    group.create_array("x", data=np.arange(4.0))
    said = said_by_tamis("repack", store, file, *recipe)
    assert "1 variable such as /bool with booleans or opaque values, as h5py stores them" in " ".join(said.split())
    said = said_by_tamis("verify", store, file)
    assert "/bool: bool became enum of int8 {FALSE=0, TRUE=1}" in said
    with h5py.File(file) as opened:
        assert opened["bool"].dtype == bool
        assert opened["bool"].fillvalue
        np.testing.assert_array_equal(opened["bool"][:], values)
    with netCDF4.Dataset(file) as opened:
        assert opened["bool"].datatype.enum_dict == {"FALSE": 0, "TRUE": 1}
        np.testing.assert_array_equal(opened["bool"][:], values)
    for engine in ("netcdf4", "h5netcdf", "tamis"):
        with xarray.open_dataset(file, engine=engine) as opened:
            assert opened["bool"].dtype == bool, engine
            np.testing.assert_array_equal(opened["bool"], values, err_msg=engine)
    said_by_tamis("repack", file, again)
    said_by_tamis("verify", file, again)
    array = zarr.open_group(again, mode="r")["bool"]
    assert array.dtype == bool
    np.testing.assert_array_equal(array[:], values)


def test_opaque_values_and_records_come_back_through_zarr_2(tmp_path: Path) -> None:
    source, store, back = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    tagged = h5py.h5t.create(h5py.h5t.OPAQUE, 4)
    tagged.set_tag(b"a tag, by which h5py alone does not read them")
    with h5py.File(source, "w") as file:
        file["opaque"] = np.array([b"abc", b"d", b"\0\1\2"], "V3")
        file["record"] = np.array([(1, 2.5), (3, -1)], [("a", "<i2"), ("b", ">f8")])
        dataset = h5py.h5d.create(file.id, b"tagged", tagged, h5py.h5s.create_simple((2,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"abcd", b"efgh"], "V4"), tagged)
    said_by_tamis("repack", source, store, "--zarr-format", 2)
    said_by_tamis("verify", source, store)
    group = zarr.open_group(store, mode="r")
    assert group["tagged"][:].tolist() == [b"abcd", b"efgh"]
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    with h5py.File(source) as before, h5py.File(back) as after:
        for name in ("opaque", "record"):
            assert after[name][:].tolist() == before[name][:].tolist()
        assert after["tagged"][:].tolist() == [b"abcd", b"efgh"]
    with xarray.open_dataset(back, engine="h5netcdf", phony_dims="access") as opened:
        assert opened["opaque"].values.tolist() == [b"abc", b"d\0\0", b"\0\1\2"]


def test_records_that_zarr_has_not_are_refused_by_name(tmp_path: Path) -> None:
    """zarr-python has neither records in records nor members with axes: it cannot open a store that has them."""
    source, store = tmp_path / "a.h5", tmp_path / "a.zarr"
    with h5py.File(source, "w") as file:
        file["nested"] = np.zeros(2, [("a", "<i4"), ("inner", [("x", "<f4"), ("y", "S1")])])
        file["tables"] = np.zeros(2, [("a", "<i4"), ("t", "<f8", (3,))])
        file["plain"] = np.array([(1, b"ab")], [("a", "<i4"), ("s", "S2")])
    said = said_by_tamis("repack", source, store, "--zarr-format", 2, code=1)
    assert "/nested: tamis does not write the type" in said
    assert "/tables: tamis does not write the type" in said
    assert f"tamis repack --drop /nested --drop /tables {source} {store} --zarr-format 2" in said
    assert not store.exists()
    said_by_tamis("repack", "--drop", "/nested", "--drop", "/tables", source, store, "--zarr-format", 2)
    assert zarr.open_group(store, mode="r")["plain"][:].tolist() == [(1, b"ab")]
    said = said_by_tamis("repack", store, tmp_path / "b.h5", code=1)
    assert "/plain: netCDF-4 has no type for" in said
    assert "tamis repack --drop /plain" in said


def test_values_that_were_never_written_take_no_room_in_hdf5(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("x", shape=((1 << 32) + 1,), chunks=(1 << 20,), dtype="u1", fill_value=7)
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.h5")
    assert (tmp_path / "b.h5").stat().st_size < 100_000
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["x"].shape == ((1 << 32) + 1,)
        assert file["x"][-1] == 7


def test_verify_arrays_without_values_of_records_and_bytes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("record", shape=(0,), maxshape=(None,), dtype=[("a", "<i4"), ("b", "<f4")])
        file.create_dataset("text", shape=(0, 3), maxshape=(None, 3), dtype="S4")
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr", "--zarr-format", 2)
    assert "equal: 2 datasets compared" in said_by_tamis("verify", tmp_path / "a.h5", tmp_path / "a.zarr")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_of_numpy_characters_are_texts(zarr_format: Any, tmp_path: Path) -> None:
    """xarray stores str coordinates like this; repack refused them."""
    words = xarray.DataArray(["a", "bé", "long word"], dims="n")
    expected = xarray.Dataset(
        {"x": ("n", [1.0, 2, 3])}, coords={"n": words, "one": "ü", "none": ("m", words.values[:0])}
    )
    expected.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format)
    for source, target in (("a.zarr", "b.nc"), ("a.zarr", "c.zarr"), ("a.zarr", "d.zarr"), ("b.nc", "e.zarr")):
        other = 5 - zarr_format if target == "d.zarr" else zarr_format
        options = [] if target == "b.nc" else ["--zarr-format", other]
        said_by_tamis("repack", tmp_path / source, tmp_path / target, *options)
        said = said_by_tamis("verify", tmp_path / source, tmp_path / target)
        assert "fill value" not in said
    for name, engine in (
        ("a.zarr", "tamis"),
        ("b.nc", "netcdf4"),
        ("c.zarr", "zarr"),
        ("d.zarr", "zarr"),
        ("e.zarr", "zarr"),
    ):
        with xarray.open_dataset(tmp_path / name, engine=engine) as known:
            xarray.testing.assert_equal(known.load(), expected)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["n"].dtype is str
        assert file["one"][...] == "ü"
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis") as own:
        assert own["n"].dtype == xarray.open_zarr(tmp_path / "a.zarr")["n"].dtype == "<U9"
    root = zarr.open_group(tmp_path / "c.zarr", mode="r")
    assert str(root["n"].dtype) == "<U9"


def test_text_longer_than_a_message_of_hdf5(tmp_path: Path) -> None:
    """HDF-EOS has its structure in a text; HDF5 could not have the fill value, zeros, beside it."""
    text = b"GROUP=SwathStructure" * 4000
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"] = np.bytes_(text)
        file["texts"] = np.array([text, b""])
    for source, target in (("a.h5", "b.zarr"), ("b.zarr", "c.h5")):
        said_by_tamis("repack", tmp_path / source, tmp_path / target)
        said_by_tamis("verify", tmp_path / source, tmp_path / target)
    with h5py.File(tmp_path / "c.h5") as file:
        assert file["text"][()] == file["texts"][0] == text
        assert file["texts"].fillvalue == b""
