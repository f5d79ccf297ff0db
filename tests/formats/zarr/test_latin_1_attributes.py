"""Known defect U40: attributes in Latin-1, as old programs write them, keep no file from becoming a Zarr store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from h5py import h5a, h5s, h5t
from inprocess import said_by_tamis
from tests.formats.zarr.test_attributes_through_zarr import facts

import tamis

STRINGS = h5py.string_dtype()
VALUES: dict[str, tuple[Any, Any, Any]] = {  # value, type, and what Zarr has
    "units": (np.bytes_(b"\xb0C"), None, "°C"),
    "varying": (b"\xb5m", STRINGS, "µm"),
    "ascii": (b"\xb5m", h5py.string_dtype("ascii"), "µm"),
    "texts": (np.array([b"a\xe9", b"bc"]), None, ["aé", "bc"]),
    "table": (np.array([[b"\xe9", b"b"], [b"c", b""]], object), STRINGS, ["é", "b", "c", ""]),
    "any bytes": (np.bytes_(b"\x80\xff\x01z"), None, "\x80\xff\x01z"),
    "record": (np.array((1, b"\xb0C"), [("a", "i4"), ("b", "S2")]), None, {"a": 1, "b": "°C"}),
    "text": ("°C", None, "°C"),
}
OTHERS = [name for name in VALUES if name != "text"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3), compression="gzip")
        file["words"] = np.array(["a", "é"], STRINGS)
        for owner in (file, file["x"], file["words"], file.create_group("g")):
            for name, (value, kind, _) in VALUES.items():
                owner.attrs.create(name, value, dtype=kind)
        kind = h5t.C_S1.copy()
        kind.set_size(1)
        h5a.create(file["x"].id, b"ends", kind, h5s.create(h5s.SCALAR)).write(np.array(b"\xe9", "S1"), mtype=kind)
    return tmp_path / "a.h5"


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u40_text_that_is_not_utf_8_is_latin_1_in_zarr_and_comes_back(
    zarr_format: int, source: Path, tmp_path: Path
) -> None:
    store, copy, back = (tmp_path / name for name in ("a.zarr", "b.zarr", "b.h5"))
    result = tamis.repack(source, store, {"x": "deflate(1)"}, zarr_format=zarr_format)
    noted = [note for note in result.notes if "is not UTF-8" in note]
    assert len(noted) == 4 * len(OTHERS) + 1
    assert "/x: attribute 'units' is not UTF-8: as Latin-1 in Zarr, \"°C\"" in noted
    group = zarr.open_group(store, mode="r")
    for owner in (group, group["x"], group["words"], group["g"]):
        known = dict(owner.attrs)
        assert {name: known[name] for name in VALUES} == {name: content for name, (_, _, content) in VALUES.items()}
    assert group["x"].attrs["ends"] == "é"
    same = tamis.verify(source, store)
    assert same.ok
    assert all(note.partition(": ")[2] in str(same) for note in noted)
    with tamis.open(store) as file:
        assert file["x"].attrs["units"] == "°C"
    tamis.repack(store, copy, {}, zarr_format=5 - zarr_format)
    tamis.repack(copy, back, {})
    for other in (copy, back):
        assert tamis.verify(source, other).ok
        assert tamis.verify(store, other).ok
    with h5py.File(source) as before, h5py.File(back) as after:
        for place in ("/", "x", "words", "g"):
            for name in before[place].attrs:
                assert facts(after[place], name) == facts(before[place], name)
                kinds = [owner[place].attrs.get_id(name).get_type() for owner in (before, after)]
                assert kinds[0] == kinds[1], (place, name)


def test_u40_other_text_in_zarr_is_a_change(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "a.zarr", {}, consolidated=False)
    place = tmp_path / "a.zarr" / "x" / "zarr.json"
    metadata = json.loads(place.read_text())
    metadata["attributes"] |= {"units": "€", "texts": ["ae", "bc"]}
    place.write_text(json.dumps(metadata))
    found = str(tamis.verify(source, tmp_path / "a.zarr"))
    assert "/x: attribute 'units': '°C' became '€'" in found
    assert "/x: attribute 'texts': ['aé', 'bc'] became ['ae', 'bc']" in found
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})  # Latin-1 has no such letter
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["x"].attrs["units"] == "€".encode()


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_u40_references_engine_and_inspect_take_it(source: Path, tmp_path: Path) -> None:
    for kind in ("kerchunk", "zarr-manifest"):
        result = tamis.export(source, tmp_path / kind, kind, drop=["words"])
        assert sum("is not UTF-8" in note for note in result.notes) == 3 * len(OTHERS) + 1
    files = fsspec.filesystem("reference", fo=str(tmp_path / "kerchunk"))
    assert json.loads(files.cat("x/.zattrs"))["units"] == "°C"
    assert 'x:units = "\\260C"' in said_by_tamis("inspect", "--cdl", source)
    tamis.repack(source, tmp_path / "a.zarr", {})
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis") as dataset:
        assert dataset["x"].attrs["units"] == "°C"
        dataset[["x"]].to_zarr(tmp_path / "x.zarr")
    with xarray.open_zarr(tmp_path / "x.zarr") as dataset:
        assert dataset["x"].attrs["units"] == "°C"
    with xarray.open_dataset(source, engine="tamis") as dataset:
        assert dataset["x"].attrs["units"] == b"\xb0C"


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_u40_history_and_fill_of_characters(zarr_format: int, kind: Any, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=kind) as file:
        file.createDimension("n", 2)
        file.createVariable("c", "S1", ("n",), fill_value=b"\xff")[:] = np.array([b"\xe9", b"a"])
        file.createVariable("x", "f4", ("n",))[:] = 1, 2
    if kind == "NETCDF4":
        with h5py.File(tmp_path / "a.nc", "a") as raw:
            raw.attrs["history"] = np.bytes_(b"made \xe9")
    tamis.repack(tmp_path / "a.nc", tmp_path / "a.zarr", {"x": "deflate(1)"}, zarr_format=zarr_format)
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "a.zarr").ok
    group = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert group["c"][:].tolist() == [b"\xe9", b"a"]
    assert kind != "NETCDF4" or group.attrs["history"].endswith("\nmade é")
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.nc", {})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        file.set_auto_mask(False)
        assert file["c"][:].tolist() == [b"\xe9", b"a"]
    with h5py.File(tmp_path / "b.nc") as raw:
        assert raw["c"].attrs["_FillValue"] == b"\xff"


def test_u40_values_that_are_not_utf_8_are_refused_with_what_to_leave_out(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("words", data=np.array([b"a", b"\xb5m"], object), dtype=STRINGS)
        file["fixed"] = np.array([b"a", b"\xb5m"])
    refused = r"/words: expected texts in UTF-8 .*: it can be left out"
    with pytest.raises(tamis.FileError, match=refused) as error:
        tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {})
    assert error.value.dataset == "/words"
    tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {}, drop=["/words"])
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["fixed"][:].tolist() == [b"a", b"\xb5m"]
