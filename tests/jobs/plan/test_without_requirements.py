"""U112: plan says what is there now, where to begin without a requirement, and which bounds are too large."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from inprocess import run_tamis

import tamis
from tamis.jobs.plan.ladder import rounded_bound

NOISE = 0.2
SHAPE = (24, 60, 80)


def temperature(noise: float = NOISE, seed: int = 0) -> Any:
    """Return smooth waves around 280 K with independent errors."""
    time, rows, columns = np.ogrid[0:24, 0:60, 0:80]
    waves = 20 * np.sin(rows / 15) * np.cos(columns / 20 + time / 8)
    return (280 + waves + np.random.default_rng(seed).normal(0, noise, SHAPE)).astype("f4")


def rain() -> Any:
    """Return precipitation in kg m-2 s-1: mostly zero, of many magnitudes."""
    return np.maximum(np.random.default_rng(1).gamma(0.2, 2e-4, SHAPE) - 1e-5, 0).astype("f4")


def make(path: Path, **fields: Any) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "lat", "lon"), SHAPE, strict=True):
            file.createDimension(name, extent)
        for name, values in fields.items():
            options = {"chunksizes": (1, 60, 80), "zlib": True, "complevel": 2, "fill_value": False}
            variable = file.createVariable(name, values.dtype, ("time", "lat", "lon"), **options)
            variable[:] = values
    return path


def test_u112_plan_has_a_row_for_what_is_stored_now(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", tas=temperature())
    plan = tamis.plan(path, {"tas": "abs=0.1"})
    stored = plan["tas"].stored
    assert stored is not None
    assert stored.filters == "shuffle|deflate(2)"
    assert stored.ratio == plan["tas"].source_ratio
    assert stored.read_by == "any HDF5"
    assert re.search(rf"/tas +as stored +shuffle\|deflate\(2\) +{stored.ratio:.2f} +0 +any HDF5", str(plan))
    assert plan.to_dict()["datasets"][0]["stored"]["nbytes"] == stored.nbytes > 0
    unfiltered = tmp_path / "b.h5"
    with h5py.File(unfiltered, "w") as file:
        file["v"] = temperature()
    assert re.search(r"/v +as stored +none +1\.00", str(tamis.plan(unfiltered)))


def test_u112_row_of_what_stays_as_it_is_is_the_chosen_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.zeros((400, 400), "i4"), chunks=(400, 400), compression=9)
    best = tamis.plan(tmp_path / "a.h5")["v"].candidates[0]
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": best.filters})
    plan = tamis.plan(tmp_path / "b.h5")
    assert plan["v"].filters is None
    assert re.search(r"/v +\* as stored", str(plan))


@pytest.mark.parametrize("noise", [0.02, 0.2, 2.0])
def test_u112_ladder_finds_the_noise_level_of_a_variable(noise: float, tmp_path: Path) -> None:
    planned = tamis.plan(make(tmp_path / "a.nc", tas=temperature(noise)))["tas"]
    assert planned.noise == pytest.approx(noise, rel=0.15)
    bounds = [
        float(rung.requirement.partition("=")[2]) for rung in planned.ladder if rung.requirement.startswith("abs=")
    ]
    assert bounds == sorted(bounds)
    assert 0.04 <= bounds[0] / noise <= 0.115
    assert 0.4 <= bounds[-1] / noise <= 1.15


def test_u112_noise_in_time_is_found_in_chunks_of_one_step(tmp_path: Path) -> None:
    """Each map is rough, but all are nearly the same: the noise is that between steps."""
    rough = np.random.default_rng(0).normal(280, 5, SHAPE[1:])
    values = (rough + np.random.default_rng(1).normal(0, 0.01, SHAPE)).astype("f4")
    assert tamis.plan(make(tmp_path / "a.nc", tas=values))["tas"].noise == pytest.approx(0.01, rel=0.15)


def test_u112_ladder_of_packed_integers_is_in_units_of_the_variable(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        codes = np.rint((temperature().astype("f8") - 280) / 0.01).astype("i2")
        dataset = file.create_dataset("v", data=codes, chunks=(1, 60, 80))
        dataset.attrs["scale_factor"], dataset.attrs["add_offset"] = 0.01, 280.0
    planned = tamis.plan(tmp_path / "a.h5")["v"]
    assert planned.noise == pytest.approx(NOISE, rel=0.15)
    requirements = [rung.requirement for rung in planned.ladder]
    assert requirements in (["abs=0.01", "abs=0.05", "abs=0.1"], ["abs=0.02", "abs=0.05", "abs=0.2"])


def test_u112_rungs_say_what_repack_then_does(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", tas=temperature())
    before = temperature().astype("f8")
    for rung in tamis.plan(path)["tas"].ladder:
        words = shlex.split(rung.options)
        assert run_tamis("repack", path, tmp_path / "b.nc", "--overwrite", *words).returncode == 0
        with tamis.open(tmp_path / "b.nc", unpack=True) as file:
            after = file["tas"][:].astype("f8")
        assert np.abs(after - before).max() == pytest.approx(rung.largest_error, rel=0.3)
        assert after.mean() - before.mean() == pytest.approx(rung.mean, abs=rung.largest_error / 20)
        assert after.min() - before.min() == pytest.approx(rung.low, abs=2 * rung.largest_error)
        assert after.max() - before.max() == pytest.approx(rung.high, abs=2 * rung.largest_error)
        steps = np.diff(before)
        gradient = np.sqrt(np.square(np.diff(after) - steps).sum() / np.square(steps).sum())
        assert gradient == pytest.approx(rung.gradient, rel=0.1)


def test_u112_ladder_is_only_for_data_without_any_want(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", tas=temperature(), count=rain().astype("i4"))
    plan = tamis.plan(path)
    assert plan["tas"].ladder
    assert not plan["count"].ladder
    assert plan.filters == tamis.plan(path, {"*": "lossless"}).filters
    assert not any(each.ladder for each in tamis.plan(path, {"*": "lossless"}).datasets)
    assert "Error bounds from the noise of each variable" in str(plan)
    ladders = {each["path"]: each["ladder"] for each in json.loads(plan.to_json())["datasets"]}
    assert ladders["/tas"][0].keys() >= {
        "requirement",
        "about",
        "mean",
        "low",
        "high",
        "gradient",
        "warnings",
        "options",
    }
    assert not ladders["/count"]


def test_u112_bounds_beyond_the_values_are_marked_and_said(tmp_path: Path) -> None:
    plan = tamis.plan(make(tmp_path / "a.nc", tas=temperature(), pr=rain()), {"*": "abs=0.1"})
    chosen = plan["pr"].chosen
    assert chosen is not None
    deviation = float(rain().astype("f8").std())
    assert chosen.warnings[0] == f"the bound 0.1 is {0.1 / deviation:.0f} times the standard deviation, {deviation:.3g}"
    assert chosen.warnings[1] == "100 % of the values that are not zero become zero"
    assert re.search(r"/pr: the bound 0\.1 is \d+ times the standard deviation, ", str(plan))
    assert "/pr: marked !" not in str(plan)  # it is said once
    assert re.search(r"/pr +\* +pack\(bound=0\.1\)\S+ +\S+ +\S+ +\S+ !", str(plan))
    assert plan["tas"].chosen is not None
    assert plan["tas"].chosen.warnings == ()
    assert not any(each.warnings for each in plan["pr"].candidates if not each.largest_error)


@pytest.mark.parametrize("readers", ["hdf5plugin", "zfp", "all"])
def test_u112_other_kinds_of_filters_are_marked_too(readers: Any, tmp_path: Path) -> None:
    plan = tamis.plan(make(tmp_path / "a.nc", pr=rain()), {"pr": "abs=0.001"}, readers=readers)
    lossy = [each for each in plan["pr"].candidates if each.largest_error]
    assert lossy
    assert all("times the standard deviation" in each.warnings[0] for each in lossy)


def test_u112_relative_bounds_of_many_magnitudes_are_not_marked(tmp_path: Path) -> None:
    plan = tamis.plan(make(tmp_path / "a.nc", pr=rain()), {"pr": "rel=0.01"})
    assert plan["pr"].chosen is not None
    assert plan["pr"].chosen.largest_error > 0
    assert not any(each.warnings for each in plan["pr"].candidates)


def test_u112_ladder_of_precipitation_marks_bounds_and_offers_digits(tmp_path: Path) -> None:
    ladder = tamis.plan(make(tmp_path / "a.nc", pr=rain()))["pr"].ladder
    absolute = [rung for rung in ladder if rung.requirement.startswith("abs=")]
    assert any("become zero" in text for text in absolute[-1].warnings)
    digits = next(rung for rung in ladder if rung.requirement == "digits=3")
    assert not digits.warnings
    assert "bitround" in digits.filters


@pytest.mark.parametrize(("bound", "rounded"), [(0.1, 0.1), (0.0999, 0.05), (7.0, 5.0), (2.5e-9, 2e-9), (1e30, 1e30)])
def test_u112_rounded_bound_is_one_two_or_five_below(bound: float, rounded: float) -> None:
    assert rounded_bound(bound) == rounded
