"""Units and calendars of times: equal meaning, however it is written."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import cftime
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis.meaning import same_times

ALIKE = [
    [
        "days since 1920-01-01",
        "day since 1920-1-1 0:0:0",
        "d since 1920-01-01T00:00Z",
        "days since 1920-01-01 00:00:0.0",
    ],
    ["hours since 1920-01-01 06:00", "hr since 1920-01-01 6:00:00 UTC", "h since 1920-01-01 06:00 -0000"],
    ["hours since 1920-01-01 06:00 +05:30", "hours since 1920-01-01 06:00:00 +0530"],
    ["seconds since 1920-01-01 06:00:01.5", "secs since 1920-01-01T06:00:01.50"],
    ["days since 0001-01-01", "days since 1-1-1"],
    ["days since 1920-01-02"],
    ["minutes since 1920-01-01"],
]
OTHERS = [
    "days",
    "K",
    "",
    "months since 1920-01-01",
    "days since yesterday",
    "days after 1920-01-01",
    "h since 1920-01-01 06",
    None,
    3.0,
]


def of(units: Any, *calendar: Any) -> dict[str, Any]:
    return {"units": units} | ({"calendar": calendar[0]} if calendar else {})


def test_same_however_they_are_written() -> None:
    for group in ALIKE:
        for one, other in product(group, group):
            assert same_times(of(one), of(other)), (one, other)
    for first, second in combinations(ALIKE, 2):
        for one, other in product(first, second):
            assert not same_times(of(one), of(other)), (one, other)
    for text in OTHERS:
        assert not same_times(of(text), of(text))
    assert not same_times({}, {})


def test_cftime_reads_the_same_dates() -> None:
    for group in ALIKE[:3]:
        dates = [cftime.num2date([0, 7.5], units, calendar="noleap").tolist() for units in group]
        assert all(each == dates[0] for each in dates)


def test_calendars_have_two_names_and_a_usual_one() -> None:
    units = "days since 1920-01-01"
    for group in ((("standard",), ("Gregorian",), ()), (("noleap",), ("365_day",)), (("all_leap",), ("366_day",))):
        for one, other in product(group, group):
            assert same_times(of(units, *one), of(units, *other))
    for one, other in combinations(["standard", "noleap", "all_leap", "360_day", "proleptic_gregorian", "julian"], 2):
        assert not same_times(of(units, one), of(units, other))
    assert not same_times(of(units, 3), of(units, 3))
    pair = of(units), of(units, "proleptic_gregorian")
    assert same_times(*pair, are_late=True)
    assert same_times(*pair[::-1], are_late=True)
    early = "days since 1500-01-01"
    assert not same_times(of(early), of(early, "proleptic_gregorian"), are_late=True)
    assert not same_times(of(units), of(units, "noleap"), are_late=True)


@pytest.mark.parametrize(("first", "second"), [("a.nc", "b.nc"), ("a.nc", "b.zarr"), ("a.zarr", "b.zarr")])
def test_verify_notes_what_means_the_same_and_finds_what_does_not(tmp_path: Path, first: str, second: str) -> None:
    def saved(name: str, units: str, calendar: str) -> Path:
        path = tmp_path / name
        attributes = {"units": units, "calendar": calendar}
        ds = xr.Dataset({"time": ("time", np.arange(3.0), attributes)})
        (ds.to_netcdf if path.suffix == ".nc" else ds.to_zarr)(path, mode="w")
        return path

    source = saved(first, "days since 1920-01-01 00:00:00", "noleap")
    result = tamis.verify(source, saved(second, "days since 1920-01-01", "365_day"))
    assert result.ok
    notes = [str(note) for note in result.notes if "means the same times" in str(note)]
    assert len(notes) == 2
    result = tamis.verify(source, saved(second, "days since 1920-01-02", "noleap"))
    assert not result.ok
    assert not [note for note in result.notes if "means the same times" in str(note)]
