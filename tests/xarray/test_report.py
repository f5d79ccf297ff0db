"""``Dataset.tamis.report``: datasets in memory, and files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis

xarray = pytest.importorskip("xarray")


def dataset() -> Any:
    values = np.random.default_rng(1).normal(280, 9, (4, 24, 32)).astype("f4")
    values[0, 3, 4:9] = np.nan
    return xarray.Dataset(
        {"TS": (("time", "lat", "lon"), values, {"units": "K"})},
        coords={
            "time": np.array(["2001-01-01", "2001-01-02", "2001-01-03", "2001-01-05"], "M8[ns]"),
            "lat": ("lat", np.linspace(-80, 80, 24), {"units": "degrees_north"}),
            "lon": ("lon", np.arange(32) * 11.25, {"units": "degrees_east"}),
        },
    )


def test_report_of_two_datasets_has_the_statistics_of_their_values() -> None:
    before = dataset()
    after = before.copy()
    after["TS"] = before["TS"] + np.float32(0.25)
    after["TS"].attrs = before["TS"].attrs
    # Encodings of files do not count: values are compared as they are in memory.
    after["TS"].encoding = {"dtype": "i2", "scale_factor": 10.0, "_FillValue": -1}
    result = before.tamis.report(after, bounds={"TS": 0.3})
    assert result.ok
    assert result["TS"].statistics["bias"] == pytest.approx(0.25, abs=1e-4)
    assert result["TS"].compared.tally.missing == 5
    assert "biased: the mean error is +0.25 K" in result.verdict
    assert result["TS"].maps[0].box is not None
    assert result.source == "source: values in memory"
    assert "sha256 of source" not in result.provenance
    assert result._repr_html_().startswith('<div class="tamis"><iframe')


def test_report_of_a_dataset_and_a_file_has_filters_and_sizes(tmp_path: Path) -> None:
    before = dataset()
    filters = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
    # The chunk with missing values is stored without loss.
    before.tamis.to_netcdf(tmp_path / "small.nc", filters, chunks={"TS": (1, 24, 32)}, larger=True)
    result = before.tamis.report(tmp_path / "small.nc", variables=["TS"])
    assert result["TS"].outcome == "met"
    assert result["TS"].filters.startswith("zfp")
    assert result.target == str(tmp_path / "small.nc")
    assert "sha256 of target" in result.provenance


def test_report_refuses_what_is_neither_a_dataset_nor_a_file() -> None:
    with pytest.raises(tamis.ParameterError, match="expected a dataset or the path of a file to compare with, got int"):
        dataset().tamis.report(5)


def test_report_of_a_file_with_dates_of_another_calendar(tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
    tamis.repack(sample, tmp_path / "small.nc", {"TS": "zfp(accuracy=0.1)"})
    with xarray.open_dataset(sample) as dataset:
        result = dataset.tamis.report(tmp_path / "small.nc", variables=["TS"], time=(0,))
    assert result["TS"].outcome == "met"


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_times_are_compared_as_the_file_has_them(tmp_path: Path, ending: str) -> None:
    sample = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
    with xarray.open_dataset(sample) as opened:
        dataset = opened.isel(time=slice(0, 2)).load()
    other = dataset.copy()
    for name in ("time", "time_bnds"):
        other[name].encoding = {}
    path = tmp_path / f"small{ending}"
    filters = {"TS": "pack(bound=0.1)|shuffle|deflate(4)"}
    (dataset.tamis.to_netcdf if ending == ".nc" else dataset.tamis.to_zarr)(path, filters)
    for source in (dataset, other):
        result = source.tamis.report(path, bounds={"TS": 0.1})
        assert result.ok
        assert {result[name].outcome for name in ("time", "time_bnds")} == {"same bits"}
        assert f"ratio: bytes of the values in memory per byte stored in {path}" in str(result)
        assert result["TS"].source_nbytes == 0
    moved = other.assign_coords(time=other.time + timedelta(hours=1))
    assert moved.tamis.report(path, bounds={"TS": 0.1})["time"].outcome == "missed"


@pytest.mark.parametrize("is_lazy", [False, True])
def test_times_of_two_datasets_are_compared_in_one_type(is_lazy: bool) -> None:
    first = dataset()
    first["time"] = first.time + np.timedelta64(6, "h")
    second = first.copy()
    first["time"].encoding = {"units": "days since 2001-01-01", "dtype": np.dtype("f8")}
    second["time"].encoding = {"units": "hours since 1990-01-01", "calendar": "standard"}
    if is_lazy:
        second = second.chunk(time=1)
    result = first.tamis.report(second)
    assert {each.outcome for each in result.datasets} == {"same bits"}
    assert result.verdict == "the other dataset has the same values as its source, bit by bit."
    second = second.assign_coords(time=second.time + np.timedelta64(1, "m"))
    assert first.tamis.report(second)["time"].outcome == "missed"


def test_report_of_two_datasets_names_no_file_and_no_stored_bytes() -> None:
    before = dataset()
    after = before.copy()
    after["TS"] = (before["TS"].dims, (before["TS"] + np.float32(0.25)).values, before["TS"].attrs)
    result = before.tamis.report(after, bounds={"TS": 0.3}, also=["zfp(accuracy=0.5)"])
    assert "ratio: none, because no file with these values was compared" in str(result)
    for text in (str(result), result.html, result.to_json()):
        assert "target.nc" not in text
        assert "source.nc" not in text
        assert 'this file"' not in text
    assert (result["TS"].ratio, result["TS"].target_nbytes, result["TS"].filters) == (None, 0, "")
    assert "rates" in {chart.key for chart in result["TS"].charts}
