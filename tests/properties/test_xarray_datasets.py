"""Any dataset of xarray is saved as xarray saves it where that loses nothing; judged by xarray's own engines.

Where xarray itself loses values, as by an integer encoding that came with a file, the values must be kept, or refused.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tamis
from tamis.rewrite.transfer import UnstorableError

xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
pytest.importorskip("zarr")
own = pytest.importorskip("xarray.testing.strategies")
pytestmark = [
    pytest.mark.properties,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning", "ignore::FutureWarning"),
]

EXAMPLES = settings(max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "25")))
"""Each is a whole file or store, written and read several times."""

DTYPES = st.one_of(
    arrays.integer_dtypes(endianness="="),
    arrays.unsigned_integer_dtypes(endianness="="),
    arrays.floating_dtypes(endianness="=", sizes=(32, 64)),
    st.sampled_from([np.dtype("M8[ns]"), np.dtype("m8[s]"), np.dtype(bool), np.dtype("U3")]),
)
TEXTS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=5)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["units_of_old", "comment", "flag", "numbers", "long_name", "Ärger"]),
    st.one_of(
        TEXTS,
        st.integers(-(2**31), 2**31 - 1),
        st.floats(allow_nan=False, width=32),
        st.lists(st.integers(0, 9), min_size=2),
    ),
    max_size=3,
)
ENCODINGS: list[dict[str, Any]] = [
    {},
    {"dtype": "int16", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": np.int16(-999)},
    {"dtype": "int8", "_FillValue": np.int8(-1)},
    {"dtype": "float32"},
]
"""Of files, which must keep every value, and of a user, who may round to a type."""
TEXT_ENCODINGS: list[dict[str, Any]] = [
    {},
    {"_FillValue": "NA"},
    {"missing_value": "NA"},
    {"_FillValue": ""},
    {"dtype": str},
    {"dtype": "S1"},
]
FIRST, LAST = np.array(["0001-01-01", "9999-12-31T23:59:59"], "M8[s]").astype("i8")
"""Seconds of dates, most of which nanoseconds do not have."""


@st.composite
def texts(draw: st.DrawFn, sizes: Mapping[str, int]) -> Any:
    """Draw texts of which some are missing, with an encoding that may hide valid ones."""
    values = np.empty([*sizes.values()], object)
    values.reshape(-1)[:] = [draw(st.sampled_from([None, np.nan, "", "NA", "a", "Ärger"])) for _ in range(values.size)]
    if draw(st.booleans()) and not pd.isnull(values).any():
        values = values.astype("U5")
    return xarray.Variable([*sizes], values, draw(ATTRIBUTES), dict(draw(st.sampled_from(TEXT_ENCODINGS))))


@st.composite
def far_dates(draw: st.DrawFn, sizes: Mapping[str, int]) -> Any:
    """Draw dates in seconds or microseconds."""
    seconds = draw(arrays.arrays("i8", tuple(sizes.values()), elements=st.integers(int(FIRST), int(LAST))))
    return xarray.Variable([*sizes], seconds.astype("M8[s]").astype(draw(st.sampled_from(["M8[s]", "M8[us]"]))))


@st.composite
def datasets(draw: st.DrawFn) -> Any:
    """Draw a dataset: variables of all types that files have, with attributes, and encodings as files leave them."""
    sizes = draw(own.dimension_sizes(dim_names=st.sampled_from(["x", "y", "time"]), min_dims=1, max_dims=3, max_side=4))
    made: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)):
        dims = draw(own.unique_subset_of(sizes, min_size=0))
        if other := draw(st.sampled_from([None, None, texts, far_dates])):
            made[name] = draw(other({name: sizes[name] for name in dims}))
            continue
        variable = draw(
            own.variables(
                array_strategy_fn=lambda *, shape, dtype: arrays.arrays(dtype, shape),
                dims=st.just({name: sizes[name] for name in dims}),
                dtype=DTYPES,
                attrs=ATTRIBUTES,
            )
        )
        if variable.dtype.kind == "f":
            encoding = draw(st.sampled_from(ENCODINGS))
            variable.encoding = encoding | ({"source": "/a.nc"} if draw(st.booleans()) else {})
        made[name] = variable
    return xarray.Dataset(made, attrs=draw(ATTRIBUTES))


def opened(path: Path) -> Any:
    """Open what was saved by xarray's own engine for it."""
    engine = "zarr" if path.suffix == ".zarr" else "h5netcdf"
    with xarray.open_dataset(path, engine=engine) as dataset:
        return dataset.load()


def by_xarray(dataset: Any, path: Path) -> Any:
    """Return what a reader sees of a dataset that xarray has saved; None if xarray refuses it."""
    try:
        if path.suffix == ".zarr":
            dataset.to_zarr(path)
        else:
            dataset.to_netcdf(path, engine="h5netcdf")
        return opened(path)
    except Exception:  # xarray and h5netcdf have many ways to refuse
        return None


def by_tamis(dataset: Any, path: Path, recipes: Mapping[Hashable, str]) -> Any:
    """Return what a reader sees of a dataset that tamis has saved; None if tamis refuses it in words."""
    save: Callable[..., Any] = dataset.tamis.to_zarr if path.suffix == ".zarr" else dataset.tamis.to_netcdf
    try:
        save(path, recipes)
    except tamis.TamisError:
        assert not path.exists()
        return None
    return opened(path)


def has_values_of(found: Any, dataset: Any, bounds: Mapping[Hashable, float]) -> bool:
    """Return whether a reader sees the values of a dataset, within bounds where there are some."""
    return all(
        is_alike(found[name].values, variable.values, bounds.get(name, rounding_of(variable)))
        for name, variable in dataset.variables.items()
    )


def rounding_of(variable: Any) -> Any:
    """Return what rounding to the type in the encoding of a user changes; 0 for an encoding of a file."""
    encoding = variable.encoding
    if "dtype" not in encoding or "source" in encoding:
        return 0.0
    if encoding["dtype"] == "float32":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(np.abs(variable.values.astype("f4").astype("f8") - variable.values))
    return encoding.get("scale_factor", 1.0) / 2


def is_alike(found: Any, given: Any, bound: Any) -> bool:
    """Return whether arrays have the same values, or such within a bound, and missing ones at the same places."""
    if found.shape != given.shape:
        return False
    if given.dtype.kind in "OU":
        missing = np.asarray(pd.isnull(given))
        same = np.asarray(found, object)[~missing] == np.asarray(given, object)[~missing]
        return bool(np.array_equal(pd.isnull(found), missing) and np.all(same))
    if given.dtype.kind == "M" and found.dtype.kind == "O":  # of cftime
        found = np.array([date.isoformat() for date in found.flat], "M8[us]").reshape(found.shape)
    if given.dtype.kind not in "fMm":
        return bool(np.array_equal(found, given))
    if given.dtype.kind in "Mm":
        return bool(np.array_equal(found.astype(given.dtype), given, equal_nan=True))
    missing = np.isnan(given)
    if not np.array_equal(np.isnan(found), missing):
        return False
    finite = np.isfinite(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = np.abs(found[finite].astype("f8") - given[finite].astype("f8"))
    same = np.array_equal(found[~finite & ~missing], given[~finite & ~missing])
    return bool(same and (errors <= np.broadcast_to(bound, given.shape)[finite]).all())


TARGETS = st.sampled_from(["a.nc", "a.zarr"])


@pytest.mark.check
@EXAMPLES
@given(dataset=datasets(), name=TARGETS)
def test_saved_dataset_is_what_xarray_saves_without_loss(dataset: Any, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stock = by_xarray(dataset.copy(deep=True), Path(folder, f"stock-{name}"))
        found = by_tamis(dataset, Path(folder, name), {})
        if stock is not None and has_values_of(stock, dataset, dict.fromkeys(dataset.variables, 0.0)):
            assert found is not None, dataset
            xarray.testing.assert_identical(found, stock)
        elif found is not None:
            assert has_values_of(found, dataset, {}), (dataset, found)


@EXAMPLES
@given(dataset=datasets(), name=TARGETS, bound=st.sampled_from([1e-3, 0.5, 1e6]), data=st.data())
def test_saved_dataset_keeps_its_bounds(dataset: Any, name: str, bound: float, data: st.DataObject) -> None:
    floats = [key for key, variable in dataset.variables.items() if variable.dtype.kind == "f" and variable.ndim]
    filters = st.sampled_from(["zfp(accuracy={})|shuffle|deflate(4)", "pack(bound={})|shuffle|deflate(4)"])
    recipes = {key: data.draw(filters).format(bound) for key in floats}
    with tempfile.TemporaryDirectory() as folder:
        found = by_tamis(dataset, Path(folder, name), recipes)
        if found is not None:
            assert has_values_of(found, dataset, dict.fromkeys(floats, bound)), (dataset, found)


KINDS = st.sampled_from(["nc", "2.zarr", "3.zarr"])


@pytest.mark.check
@EXAMPLES
@given(dataset=datasets(), before=KINDS, after=KINDS)
def test_what_xarray_saved_reads_the_same_for_xarray_in_each_format(dataset: Any, before: str, after: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, f"a.{before}"), Path(folder, f"b.{after}")
        try:
            if before == "nc":
                dataset.to_netcdf(source, engine="h5netcdf")
            else:
                dataset.to_zarr(source, zarr_format=int(before[0]))
            stock = opened(source)
        except Exception:  # xarray refuses it, or cannot read it again
            return
        if after == "nc" and any("_Encoding" in variable.encoding for variable in stock.variables.values()):
            return  # characters of Zarr become texts, for which xarray does not know this attribute
        try:
            tamis.repack(source, target, {}, zarr_format=None if after == "nc" else int(after[0]))
        except UnstorableError:
            return
        xarray.testing.assert_equal(opened(target), stock)
        assert tamis.verify(source, target).ok
