"""Texts: valid ones stay, missing ones stay missing, or the caller is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask.array as da
import netCDF4
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import tamis
from tamis import BoundError, DataError

TARGETS = [("a.nc", {}), ("a.zarr", {"zarr_format": 2}), ("a.zarr", {"zarr_format": 3})]
StringDType: Any = getattr(np.dtypes, "StringDType", None)


def objects(*values: Any) -> Any:
    return np.array(values, object)


def dataset(values: Any, encoding: dict[str, Any] | None = None) -> xr.Dataset:
    ds = xr.Dataset({"station": ("x", values)})
    ds["station"].encoding = encoding or {}
    return ds


def saved(ds: xr.Dataset, folder: Path, name: str, **keywords: Any) -> tuple[Any, xr.Dataset]:
    """Return the result of saving a dataset, and what xarray's own engine reads."""
    path = folder / name
    result = (ds.tamis.to_netcdf if name.endswith(".nc") else ds.tamis.to_zarr)(path, **keywords)
    with xr.open_dataset(path, engine="netcdf4" if name.endswith(".nc") else "zarr") as found:
        return result, found.load()


def is_same(found: xr.DataArray, values: Any) -> bool:
    """Return whether texts are equal, or missing at the same places."""
    given = np.asarray(values).astype(object)
    missing = np.asarray(pd.isnull(given))
    return bool(
        np.array_equal(found.isnull().values, missing) and np.array_equal(found.values[~missing], given[~missing])
    )


VALUES = [
    objects("Mauna Loa", None, "Alert"),
    objects("Mauna Loa", np.nan, ""),
    objects("", "NA", "missing", "missing 1", None),
    objects("a", pd.NA),
    objects(None, np.nan),
    objects("ä", "b", None, "€"),
]


@pytest.mark.matrix
@pytest.mark.parametrize("values", VALUES, ids=repr)
@pytest.mark.parametrize(("name", "options"), TARGETS)
def test_missing_text_without_a_fill_value_stays_missing(
    tmp_path: Path, values: Any, name: str, options: dict[str, Any]
) -> None:
    result, found = saved(dataset(values), tmp_path, name, **options)
    assert is_same(found["station"], values)
    if any(isinstance(value, str) for value in values):
        assert any("/station: missing texts, the first at [" in note for note in result.notes)
    with xr.open_dataset(tmp_path / name, engine="tamis") as ds:
        assert is_same(ds["station"], values)


@pytest.mark.parametrize(("name", "options"), TARGETS)
def test_missing_text_of_coordinates_dask_and_string_types_stays_missing(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    texts = objects("a", None, "b")
    ds = xr.Dataset({"lazy": ("x", da.from_array(texts, chunks=2))}, {"x": texts, "c": ("x", texts), "s": texts[0]})
    if StringDType is not None:
        ds["t"] = "x", np.array(["a", np.nan, "b"], StringDType(na_object=np.nan))
    _, found = saved(ds, tmp_path, name, **options)
    for variable in set(ds.variables) - {"s"}:
        assert is_same(found[variable], texts)
    assert found["s"].item() == "a"


FILLS: list[tuple[Any, dict[str, Any]]] = [
    (objects("a", "NA"), {"_FillValue": "NA"}),
    (objects("a", "NA", None), {"_FillValue": "NA"}),
    (objects("a", "NA", None), {"missing_value": "NA"}),
    (np.array(["a", "NA"]), {"_FillValue": "NA"}),
    (np.array([b"ab", b"X"]), {"_FillValue": b"X", "dtype": "S1"}),
    (da.from_array(np.array(["a", "b", "NA"]), chunks=2), {"missing_value": "NA"}),
    (objects("a", None), {"dtype": "S1"}),
    (da.from_array(np.array(["a", "bcd", "NA"]), chunks=2), {"dtype": "S1"}),
]


@pytest.mark.parametrize(("values", "encoding"), FILLS, ids=repr)
@pytest.mark.parametrize(("name", "options"), TARGETS)
def test_inherited_fill_value_that_is_a_valid_text_is_left_out(
    tmp_path: Path, values: Any, encoding: dict[str, Any], name: str, options: dict[str, Any]
) -> None:
    result, found = saved(dataset(values, encoding), tmp_path, name, **options)
    assert is_same(found["station"], values)
    lost = {"_FillValue", "missing_value"} & set(encoding)
    assert any(
        "of its present encoding is left out, because it does not keep" in note for note in result.notes
    ) == bool(lost)


def test_fill_value_of_an_opened_file_that_is_a_valid_text_is_left_out(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "s.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("station", str, ("x",), fill_value="NA")[:] = objects("a", "NA", "b")
    for engine in ("tamis", "netcdf4", "h5netcdf"):
        with xr.open_dataset(tmp_path / "s.nc", engine=engine) as ds:
            same, found = saved(ds, tmp_path, f"{engine}-same.nc")
            assert same.notes == ()
            assert found["station"].encoding["_FillValue"] == "NA"
            assert is_same(found["station"], objects("a", None, "b"))
            filled = ds.fillna("NA")
            filled["station"].encoding = ds["station"].encoding
            result, found = saved(filled, tmp_path, f"{engine}.nc")
        assert is_same(found["station"], objects("a", "NA", "b"))
        assert any("_FillValue='NA' of its present encoding is left out" in note for note in result.notes)


@pytest.mark.parametrize(("name", "options"), TARGETS)
@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        (objects("a", "NA", None), {"_FillValue": "NA"}),
        (objects("a", "NA", None), {"_FillValue": None}),
        (objects("a", "NA", None), {"dtype": "S1"}),
    ],
)
def test_given_encoding_that_does_not_keep_texts_is_refused(
    tmp_path: Path, values: Any, encoding: dict[str, Any], name: str, options: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match=r"/station: its encoding does not hold .* at \[\d\], which reads as") as caught:
        saved(dataset(values), tmp_path, name, encoding={"station": encoding}, **options)
    if encoding != {"_FillValue": "NA"}:
        assert "encoding={'station': {'_FillValue': '…'}}" in str(caught.value)
    assert os.listdir(tmp_path) == []
    result, found = saved(dataset(values), tmp_path, name, encoding={"station": {"_FillValue": "none"}}, **options)
    assert is_same(found["station"], values)
    assert not any("left out" in note for note in result.notes)


def test_missing_bytes_need_a_fill_value(tmp_path: Path) -> None:
    values = objects(b"ab", np.nan)
    for name, options in TARGETS:
        with pytest.raises(DataError, match=r"/station: .*encoding=\{'station': \{'_FillValue': b'…'\}\}"):
            saved(dataset(values), tmp_path, name, **options)
    for name, options in TARGETS[:2]:  # Zarr 3 has no fill value of characters, which a note says
        _, found = saved(dataset(values, {"_FillValue": b"X", "dtype": "S1"}), tmp_path, name, **options)
        assert is_same(found["station"], values)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_encoding_for_other_engines_keeps_texts(tmp_path: Path, engine: Any) -> None:
    for number, (values, encoding) in enumerate([*FILLS[:5], (VALUES[0], {}), (VALUES[1], {})]):
        ds = dataset(values, encoding)
        with pytest.warns(UserWarning, match="^station: "):
            new = tamis.encoding(ds, engine=engine)
        ds.to_netcdf(tmp_path / f"{number}.nc", engine=engine, encoding=new)
        with xr.open_dataset(tmp_path / f"{number}.nc", engine=engine) as found:
            assert is_same(found["station"], values)


@pytest.mark.parametrize("text", ["b\0c", "b\0", "\0"])
def test_text_with_a_zero_is_refused_by_hdf5_and_kept_by_zarr(tmp_path: Path, text: str) -> None:
    ds = dataset(np.array([["a", "b"], ["c", text]], object)[:, 1])
    with pytest.raises(DataError, match=r"/station: expected texts without zeros.* at \[1\]: remove"):
        ds.tamis.to_netcdf(tmp_path / "a.nc")
    assert os.listdir(tmp_path) == []
    for zarr_format in (2, 3):
        _, found = saved(ds, tmp_path, f"{zarr_format}.zarr", zarr_format=zarr_format)
        assert found["station"].values.tolist() == ["b", text]
        with pytest.raises(DataError, match=r"/station: expected texts without zeros.* at \[1\]: remove"):
            tamis.repack(tmp_path / f"{zarr_format}.zarr", tmp_path / "a.nc", {})
    with pytest.raises(DataError, match=r"attribute 'names': expected texts without zeros.* at \[1\]"):
        xr.Dataset({"x": ("x", [1], {"names": ["a", text]})}).tamis.to_netcdf(tmp_path / "a.nc")
    assert sorted(os.listdir(tmp_path)) == ["2.zarr", "3.zarr"]


def test_last_witness_compares_texts_and_durations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.jobs.witness import process

    read = process.read

    def wrong(*arguments: Any, **keywords: Any) -> Any:
        opened = read(*arguments, **keywords)
        for item in opened.variables.values():
            for _, values in item.samples:
                values[0] = values[1]
        return opened

    monkeypatch.setattr("tamis.xarray.last_witness.read", wrong)
    for values in (objects("a", "b"), np.array(["a", "b"]), np.array([b"a", b"b"]), np.array([1, 2], "m8[s]")):
        for name in ("a.nc", "a.zarr"):
            with pytest.raises(BoundError, match=r"/station: expected .*, xarray reads"):
                saved(dataset(values), tmp_path, name)
            assert os.listdir(tmp_path) == []


def test_text_with_a_fill_value_from_netcdf_to_zarr_and_back(tmp_path: Path) -> None:
    values = objects("a", None, "b")
    _, found = saved(dataset(values, {"_FillValue": "NA"}), tmp_path, "a.zarr", zarr_format=3)
    assert is_same(found["station"], values)
    assert zarr.open_array(tmp_path / "a.zarr" / "station").attrs["missing_value"] == "NA"
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["station"].__dict__ == {"_FillValue": "NA"}


def test_categories_of_pandas_are_refused_in_words(tmp_path: Path) -> None:
    ds = xr.Dataset({"c": ("x", pd.Categorical(["a", "b", "a"]))})
    for name in ("a.nc", "a.zarr"):
        save = ds.tamis.to_netcdf if name == "a.nc" else ds.tamis.to_zarr
        with pytest.raises(tamis.ParameterError, match=r"c: expected numbers, .* got category: convert it first"):
            save(tmp_path / name)
        assert not (tmp_path / name).exists()
