"""Encodings and values: what a reader gets is what a dataset had, or the caller is told."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import cftime
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tamis
from tamis import DataError
from tamis.jobs.witness.loss import loss_between

PACKED = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": np.int16(-32768)}


def dataset(values: Any, encoding: dict[str, Any] | None = None, *, lazy: bool = False) -> xr.Dataset:
    ds = xr.Dataset({"v": ("x", np.asarray(values))})
    ds = ds.chunk(x=3) if lazy else ds
    ds["v"].encoding = encoding or {}
    return ds


def saved(ds: xr.Dataset, folder: Path, ending: str, **keywords: Any) -> tuple[Any, xr.Dataset]:
    """Return the result of saving a dataset, and what xarray's own engine reads."""
    path = folder / f"saved{ending}"
    result = (ds.tamis.to_netcdf if ending == ".nc" else ds.tamis.to_zarr)(path, overwrite=True, **keywords)
    engine = "netcdf4" if ending == ".nc" else "zarr"
    with xr.open_dataset(path, engine=engine) as found:
        return result, found.load()


def packed_files(folder: Path) -> list[Path]:
    """Return files with two packings, as a year of ERA5 has."""
    paths = []
    for number, (low, high) in enumerate([(240.0, 260.0), (250.0, 310.0)]):
        values = np.random.default_rng(number).uniform(low, high, (4, 30))
        ds = xr.Dataset({"t": (("time", "x"), values)}, {"time": np.arange(4) + 4 * number})
        packing = {"dtype": "i2", "scale_factor": (high - low) / 65532, "add_offset": (high + low) / 2}
        paths.append(folder / f"{number}.nc")
        ds.to_netcdf(paths[-1], encoding={"t": {**packing, "_FillValue": np.int16(-32767), "zlib": True}})
    return paths


@pytest.mark.matrix
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", "tamis"])
def test_u73_joined_files_of_two_packings_keep_values_without_them(
    tmp_path: Path, ending: str, lazy: bool, engine: str
) -> None:
    with xr.open_mfdataset(packed_files(tmp_path), engine=engine) as joined:
        ds = joined if lazy else joined.load()
        result, found = saved(ds, tmp_path, ending, recipes={"t": "shuffle|deflate(4)"}, require={"t": "abs=0.1"})
        np.testing.assert_array_equal(found["t"], ds["t"])
    (note,) = [note for note in result.notes if "is left out" in note]
    assert "scale_factor=0.000305" in note
    assert "at [4, 0], which reads as" in note


def test_u73_one_packed_file_keeps_its_packing(tmp_path: Path) -> None:
    path = packed_files(tmp_path)[0]
    for engine in ("netcdf4", "tamis"):
        with xr.open_dataset(path, engine=engine) as ds:
            result, found = saved(ds, tmp_path, ".nc")
            assert found["t"].encoding["dtype"] == np.int16
            np.testing.assert_array_equal(found["t"], ds["t"])
        assert not any("left out" in note or "changes values" in note for note in result.notes)


@pytest.mark.matrix
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        ([1.0, 70000.0], {"dtype": "i2"}),
        ([1.0, 0.4], {"dtype": "i2"}),
        ([1.0, -5.0], {"dtype": "u1"}),
        ([1.0, 1e300], {"dtype": "f4"}),
        ([1.0, np.nan], {"dtype": "i2"}),
        ([1.0, 1e20], {"_FillValue": 1e20}),
        ([1.0, 1e20], {"missing_value": 1e20}),
        ([300.0, 900.0], PACKED),
        (np.array([1, 2**40]), {"dtype": "i4"}),
        (np.array([1, 2**24 + 1]), {"dtype": "f4"}),
        (np.array([1, 2**53 + 1]), {"_FillValue": -1}),
        (np.array([1, -1]), {"_FillValue": -1}),
        (np.array(["2000-01-01", "2200-01-01"], "M8[ns]"), {"dtype": "i4", "units": "seconds since 2000-01-01"}),
        (np.array(["2000-01-01", "2000-01-01T00:00:01"], "M8[ns]"), {"dtype": "f4", "units": "days since 1900-01-01"}),
    ],
)
def test_u73_encoding_that_does_not_hold_a_value_is_left_out_or_refused(
    tmp_path: Path, values: Any, encoding: dict[str, Any], lazy: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match=r"^/v: its encoding.* does not (keep .*|hold .* at \[1\]), which reads as"):
            saved(dataset(values, lazy=lazy), tmp_path, ".nc", encoding={"v": encoding})
        assert not (tmp_path / "saved.nc").exists()
        only_fill = lazy and not {"dtype", "scale_factor"} & set(encoding)
        if only_fill:
            with pytest.raises(DataError, match=r"which reads as .*: delete _FillValue"):
                saved(dataset(values, encoding, lazy=True), tmp_path, ".nc")
            return
        result, found = saved(dataset(values, encoding, lazy=lazy), tmp_path, ".nc")
    np.testing.assert_array_equal(found["v"].values, np.asarray(values))
    assert any("is left out, because it does not keep" in note for note in result.notes)


@pytest.mark.parametrize(
    "recipe",
    [
        "absolute(bound=1e-3)|shuffle|deflate(4)",
        "zfp(accuracy=1e-3)",
        "zfp(bound=1e-3)",
        "pack(bound=1e-3)|deflate(4)",
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_u73_bound_is_that_of_the_whole_way(tmp_path: Path, recipe: str, dtype: str) -> None:
    values = 280 + 10 * np.random.default_rng(0).normal(size=4096)
    result, found = saved(dataset(values), tmp_path, ".nc", recipes={"v": recipe}, encoding={"v": {"dtype": dtype}})
    error = float(np.abs(found["v"].values.astype("f8") - values).max())
    assert error <= 1e-3
    assert error <= result["v"].largest_error <= 1e-3
    assert result["v"].lossless_chunks == 0


def test_u73_bound_below_that_of_the_type_is_refused_if_asked_and_keeps_the_type_otherwise(tmp_path: Path) -> None:
    values = 280 + 10 * np.random.default_rng(0).normal(size=4096)
    recipes = {"v": "absolute(bound=1e-5)|shuffle|deflate(4)"}
    with pytest.raises(DataError, match=r"its encoding, dtype=f4, changes values by .* but abs=1e-05 was asked for"):
        saved(dataset(values), tmp_path, ".nc", recipes=recipes, encoding={"v": {"dtype": "f4"}})
    _, found = saved(dataset(values, {"dtype": "f4"}), tmp_path, ".nc", recipes=recipes)
    assert found["v"].dtype == np.float64
    assert float(np.abs(found["v"] - values).max()) <= 1e-5


def test_u73_pack_after_packing_keeps_one_bound(tmp_path: Path) -> None:
    values = 280 + 10 * np.random.default_rng(0).normal(size=4096)
    recipes = {"v": "pack(bound=0.1)|deflate(4)"}
    for encoding in ({"encoding": {"v": PACKED}}, {}):
        result, found = saved(dataset(values, PACKED), tmp_path, ".nc", recipes=recipes, **encoding)
        error = float(np.abs(found["v"].values.astype("f8") - values).max())
        assert error <= 0.1
        assert error <= result["v"].largest_error <= 0.1


def test_u73_packing_that_is_asked_for_rounds_and_says_so(tmp_path: Path) -> None:
    values = np.linspace(270, 290, 50)
    result, found = saved(dataset(values), tmp_path, ".nc", encoding={"v": {**PACKED, "zlib": True}})
    error = float(np.abs(found["v"] - values).max())
    assert 0.001 < error <= 0.005 * 1.001
    assert "/v: its encoding, dtype=i2 scale_factor=0.01" in "\n".join(result.notes)


def test_u73_undecoded_variables_are_stored_as_they_are(tmp_path: Path) -> None:
    raw = xr.Dataset({"v": ("x", np.array([1, -9, 3], "i2"), {"_FillValue": np.int16(-9), "scale_factor": 0.5})})
    days = xr.Dataset({"v": ("x", np.array([1.5, 2.5]), {"units": "days since 2000-01-01"})})
    for ds in (raw, days):
        result, _ = saved(ds, tmp_path, ".nc")
        assert result.notes == ()
        with xr.open_dataset(tmp_path / "saved.nc", decode_cf=False) as found:
            np.testing.assert_array_equal(found["v"], ds["v"])


def test_u73_blocks_of_dask_are_computed_once_beside_their_comparison(tmp_path: Path) -> None:
    counts: dict[str, int] = {"blocks": 0}

    def block(block_info: Any = None) -> Any:
        counts["blocks"] += 1
        return np.full(4, 1.5)

    values = da.map_blocks(block, chunks=((4, 4, 4),), dtype="f8", meta=np.empty(0))
    ds = xr.Dataset({"v": ("x", values)})
    ds["v"].encoding = {"_FillValue": 1e20}
    saved(ds, tmp_path, ".nc")
    assert counts["blocks"] == 3


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_u73_encoding_leaves_out_packings_that_do_not_fit(tmp_path: Path, engine: str) -> None:
    with xr.open_mfdataset(packed_files(tmp_path), engine="netcdf4") as ds:
        for recipes in ({"t": "shuffle|deflate(4)"}, {}):
            with pytest.warns(UserWarning, match="t: its present encoding, .* is left out"):
                encoding = tamis.encoding(ds, recipes, engine=engine)
            ds.to_netcdf(tmp_path / "a.nc", engine=engine, encoding=encoding)
            with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as found:
                np.testing.assert_array_equal(found["t"], ds["t"])


@st.composite
def encoded_datasets(draw: st.DrawFn) -> xr.Dataset:
    """Return a dataset of one variable with any numbers and an encoding that may or may not fit."""
    dtype = draw(st.sampled_from(["f4", "f8", "i1", "u1", "i2", "i4", "i8"]))
    if dtype.startswith("f"):
        width = 8 * int(dtype[1])
        tame = st.floats(-1000, 1000, width=width)
        elements = st.one_of(tame, tame, st.floats(width=width), st.sampled_from([np.nan, -999.0, 0.0]))
    else:
        limits = np.iinfo(dtype)
        elements = st.one_of(st.integers(0, 100), st.integers(int(limits.min), int(limits.max)))
    values = draw(hnp.arrays(dtype, draw(st.integers(1, 12)), elements=elements))
    encoding: dict[str, Any] = {}
    if stored := draw(st.sampled_from(["", "", "i1", "u1", "i2", "i4", "i8", "f4", "f8"])):
        encoding["dtype"] = stored
    if draw(st.booleans()):
        encoding["scale_factor"] = draw(st.sampled_from([0.01, 0.1, 0.5, 1.0, np.float32(0.1)]))
    if draw(st.booleans()):
        encoding["add_offset"] = draw(st.sampled_from([0.0, 100.0, -3.5]))
    if draw(st.booleans()):
        encoding["_FillValue"] = draw(st.sampled_from([0, 1, 100, -1]))
        if np.dtype(stored or dtype).kind == "u":
            encoding["_FillValue"] = abs(encoding["_FillValue"])
    if draw(st.booleans()):
        encoding["source"] = "packed.nc"
    return dataset(values, encoding, lazy=draw(st.booleans()))


def shown(before: xr.DataArray, after: xr.DataArray) -> float:
    """Return the largest difference of values, in the type that was given; infinite if missing ones differ."""
    given = before.dtype if before.dtype.kind == "f" else np.longdouble
    one, other = (np.asarray(item.values).astype(given).astype(np.longdouble) for item in (before, after))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    error = np.where(same, 0, np.abs(one - other))
    return float(np.inf if np.isnan(error).any() else error.max(initial=0))


EXAMPLES = int(os.environ.get("TAMIS_EXAMPLES", "30"))


@pytest.mark.check
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ds=encoded_datasets(), bound=st.sampled_from([None, None, 0.1, 1e-3]))
def test_u73_any_encoding_keeps_values_or_the_bound_or_says_so(
    tmp_path: Path, ending: str, ds: xr.Dataset, bound: float | None
) -> None:
    """Without loss a reader gets the values as they were; with a bound, within it; what xarray rounds is in a note."""
    recipes = {"v": "shuffle|deflate(1)"}
    if bound is not None and ds["v"].dtype.kind == "f" and np.isfinite(ds["v"].values).all():
        recipes = {"v": f"absolute(bound={bound})|shuffle|deflate(1)"}
    else:
        bound = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result, found = saved(ds, tmp_path, ending, recipes=recipes)
        except (DataError, tamis.ParameterError):
            return  # nothing is written
    error = shown(ds["v"], found["v"])
    noise = 1e-6 * float(
        np.nanmax(np.abs(np.nan_to_num(found["v"].values.astype("f8"), posinf=0, neginf=0)), initial=1)
    )
    if bound is not None:
        assert error <= bound + noise
    if not any("changes values by up to" in note for note in result.notes) and bound is None:
        assert error <= (noise if ending == ".zarr" else 0)
    assert error <= result["v"].largest_error + noise


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("calendar", ["noleap", "standard"])
def test_u73_times_with_bounds_keep_their_encoding(tmp_path: Path, calendar: str, lazy: bool) -> None:
    times = xr.date_range("1920-01-06", periods=6, calendar=calendar, use_cftime=True)
    ds = xr.Dataset(
        {"v": ("time", np.arange(6.0)), "edges": (("time", "side"), np.stack([times, times], 1))}, {"time": times}
    )
    ds["time"].attrs["bounds"] = "edges"
    ds["time"].encoding = {"units": "days since 1900-01-01", "calendar": calendar, "dtype": "f8", "source": "a.nc"}
    ds["edges"].encoding = {"dtype": "f8"}
    ds = ds.chunk(time=2) if lazy else ds
    result, found = saved(ds, tmp_path, ".nc")
    assert result.notes == ()
    assert found["time"].encoding["units"] == "days since 1900-01-01"
    assert [str(time)[:10] for time in found["edges"].values[:, 0]] == [str(time)[:10] for time in times]


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_u73_target_that_xarray_reads_otherwise_gets_no_name(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.jobs.witness import process
    from tamis.xarray import last_witness

    def changed(*args: Any, **kwargs: Any) -> Any:
        found = process.read(*args, **kwargs)
        values = found.variables["/", "v"].samples[0][1]
        values[1] += 0.5
        return found

    monkeypatch.setattr(last_witness, "read", changed)
    with pytest.raises(tamis.BoundError, match=r"/v: expected 2.0, xarray reads 2.5"):
        saved(dataset([1.0, 2.0, 3.0]), tmp_path, ending)
    assert not (tmp_path / f"saved{ending}").exists()


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_u73_target_that_xarray_does_not_open_gets_no_name(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tamis.jobs.witness.process import UnopenedError
    from tamis.xarray import last_witness

    def refused(*_: Any, **__: Any) -> Any:
        raise UnopenedError("TypeError: Failed to decode fill_value")

    monkeypatch.setattr(last_witness, "read", refused)
    with pytest.raises(tamis.BoundError, match="xarray cannot open the target: TypeError: Failed to"):
        saved(dataset([1.0, 2.0, 3.0]), tmp_path, ending)
    assert not (tmp_path / f"saved{ending}").exists()


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_witness_compares_variables_with_units(tmp_path: Path, ending: str) -> None:
    ds = dataset([1.0, 2.0, 3.0])
    ds["v"].attrs["units"] = "K"
    result, _ = saved(ds, tmp_path, ending)
    assert result.witness is not None
    assert result.witness.chunks["/v"] == 1


FAR = ["1200-01-01", "1500-02-28", "1582-10-14", "1582-10-15", "2500-12-31", "0001-01-01", "9999-12-31"]


@pytest.mark.matrix
@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("part", ["T00:00:00", "T23:59:58"])
def test_dates_that_nanoseconds_do_not_have_are_saved(tmp_path: Path, ending: str, unit: Any, part: str) -> None:
    values = np.array([day + part for day in FAR], f"M8[{unit}]") + np.timedelta64(7 if unit == "us" else 0, unit)
    result, found = saved(dataset(values), tmp_path, ending)
    assert result.witness.chunks == {"/v": 1}
    assert found["v"].dtype == object  # dates of cftime, as xarray reads them by default
    coder = xr.coders.CFDatetimeCoder(time_unit=unit)
    with xr.open_dataset(tmp_path / f"saved{ending}", decode_times=coder, engine="tamis") as ds:
        np.testing.assert_array_equal(ds["v"].values, values)
        again = ds.load()
    result, _ = saved(again, tmp_path, ending)
    assert not any("left out" in note for note in result.notes)


def test_far_dates_beside_missing_ones_are_refused_because_xarray_cannot_read_them(tmp_path: Path) -> None:
    values = np.array(["1200-01-01", "NaT", "2500-01-01"], "M8[s]")
    with pytest.raises(DataError, match=r"/v: xarray cannot read its stored values: .* no dates outside 1678 to 2262"):
        saved(dataset(values), tmp_path, ".nc")
    assert os.listdir(tmp_path) == []


def test_dates_of_units_and_calendars_are_compared() -> None:
    def first(given: Any, found: Any) -> tuple[int, ...] | None:
        wrong = loss_between(given, found, 0.0, (0,)).first
        return None if wrong is None else wrong.index

    def objects(*values: Any) -> Any:
        return np.array([*values, None], object)[:-1]

    far = np.array(["2500-03-01T01:02:03", "NaT"], "M8[s]")
    wrapped = (far[:1].astype("i8") * 10**9).astype("M8[ns]")  # which NumPy before 2.5 takes for equal
    assert first(far[:1], wrapped) == (0,)
    assert first(wrapped, far[:1]) == (0,)
    durations = np.array([-1_500, 2_000], "m8[ms]")
    assert first(durations, np.array([-2, 2], "m8[s]")) == (0,)
    assert first(durations, durations.astype("m8[ns]")) is None
    assert first(np.array(["2000-01-01"], "M8[s]"), np.array(["2000-01-01"], "M8[ns]")) is None
    for kind in (cftime.DatetimeProlepticGregorian, cftime.DatetimeGregorian):
        assert first(far, objects(kind(2500, 3, 1, 1, 2, 3), None)) is None
        assert first(objects(kind(2500, 3, 1, 1, 2, 3), np.nan), far) is None
        assert first(far, objects(kind(2500, 3, 1, 1, 2, 4), None)) == (0,)
        assert first(far, objects(kind(2500, 3, 1, 1, 2, 3), kind(2500, 3, 1))) == (1,)
    assert first(far, objects(cftime.DatetimeNoLeap(2500, 3, 1, 1, 2, 3), None)) == (0,)
    early = np.array(["1500-01-01"], "M8[s]")
    assert first(early, objects(cftime.DatetimeProlepticGregorian(1500, 1, 1))) is None
    assert first(early, objects(cftime.DatetimeGregorian(1500, 1, 1))) == (0,)  # a Julian day
