"""Wants from the package compression-recommendations: by standard name, level and name."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import MissingFilterError
from tamis.formats import open_store
from tamis.jobs.plan.recommended import recommended_requirement, requirement_of


def make(path: Path, name: str, level_units: str, **attributes: str) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for dimension, extent in zip(("lev", "lat", "lon"), (4, 60, 80), strict=True):
            file.createDimension(dimension, extent)
        file.createVariable("lev", "f8", ("lev",)).units = level_units
        variable = file.createVariable(name, "f4", ("lev", "lat", "lon"))
        variable.setncatts(attributes)
        variable[:] = 250 + np.cumsum(np.random.default_rng(0).standard_normal((4, 60, 80)), -1)
    return path


@pytest.mark.parametrize(("name", "attributes"), [("x", {"standard_name": "air_temperature"}), ("ta", {}), ("T", {})])
def test_u112_temperature_on_pressure_levels(name: str, attributes: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("compression_recommendations")
    path = make(tmp_path / "a.nc", name, "hPa", units="K", **attributes)
    plan = tamis.plan(path, {"*": "recommended"})
    planned = plan[name]
    assert planned.requirement == "abs=0.01,range=0.01"
    assert f"recommended for {name} (there t, pressure level) by compression-recommendations, doi:" in planned.reason
    result = tamis.repack(path, tmp_path / "b.nc", plan.recipe)
    assert 0 < result[name].largest_error <= 0.01  # type: ignore[operator]


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "attributes", "requirement"),
    [
        ("tas", {"standard_name": "air_temperature", "units": "K"}, "abs=0.01"),
        ("TREFHT", {"units": "K"}, "abs=0.01"),
        ("TS", {"units": "K"}, "abs=0.01"),
        ("tos", {"units": "degC"}, "abs=0.01"),
        ("SST", {"units": "degC"}, "abs=0.01"),
        ("psl", {"units": "Pa"}, "abs=1.0"),
        ("PSL", {"units": "hPa"}, "abs=0.01"),
        ("p", {"standard_name": "air_pressure_at_mean_sea_level", "units": "hPa"}, "abs=0.01"),
        ("uas", {"units": "m s-1"}, "rmse=0.001,rel=0.5"),
        ("pr", {"units": "kg m-2 s-1"}, "rel=0.01,sign"),
        ("PRECT", {"units": "m/s"}, "rel=0.01,sign"),
        ("rlut", {"units": "W m-2"}, "rmse=0.1"),
    ],
)
def test_u112_names_of_cf_cmip_and_cesm_are_known_with_their_units(
    name: str, attributes: dict[str, str], requirement: str, tmp_path: Path
) -> None:
    pytest.importorskip("compression_recommendations")
    path = make(tmp_path / "a.nc", name, "1", **attributes)
    with open_store(str(path)) as store:
        recommended, note = recommended_requirement(store, store.arrays[f"/{name}"], name)
    assert str(recommended) == requirement
    assert "doi:10.5281/zenodo.22761209" in note


@pytest.mark.parametrize(
    ("name", "attributes", "said"),
    [
        ("psl", {"units": "inHg"}, "for psl (there msl, single level) does not apply to values in inHg"),
        ("tas", {}, "for tas (there t2m, single level) does not apply to values in unknown units"),
        ("salinity", {"units": "1"}, "no figure is published for salinity"),
        ("so", {"standard_name": "sea_water_salinity"}, "no figure is published for sea_water_salinity"),
    ],
)
def test_u112_without_a_published_figure_the_own_noise_decides(
    name: str, attributes: dict[str, str], said: str, tmp_path: Path
) -> None:
    pytest.importorskip("compression_recommendations")
    path = make(tmp_path / "a.nc", name, "1", **attributes)
    plan = tamis.plan(path, {name: "recommended"})
    planned = plan[name]
    assert planned.requirement == "abs=0.05"  # the values are sums of steps with a standard deviation of 1
    assert said in planned.reason
    assert "so the bound is at most a tenth of its own noise level, " in planned.reason
    assert 0 < tamis.repack(path, tmp_path / "b.nc", plan.recipe)[name].largest_error <= 0.05  # type: ignore[operator]


def test_u112_values_without_noise_and_integers_stay_without_loss(tmp_path: Path) -> None:
    pytest.importorskip("compression_recommendations")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["flat"] = np.full((200, 200), 3.0)
        file["count"] = np.arange(40_000, dtype="i4").reshape(200, 200)
    plan = tamis.plan(tmp_path / "a.h5", {"flat": "recommended", "count": "recommended"})
    assert {each.requirement for each in plan.datasets} == {"lossless"}
    assert all("its values show no noise: it stays lossless" in each.reason for each in plan.datasets)


def test_u112_requirements_become_wants_that_imply_them() -> None:
    both = {"kind": "all", "requirements": [{"kind": "mean-absolute-error-bound", "value": 5.0}]}
    limits = [{"kind": "data-limits", "minimum": 0.0}, {"kind": "mean-range-relative-error-bound", "value": 0.01}]
    assert (
        str(requirement_of([both, *limits, {"kind": "missing-value", "value": 0}], "x")[0]) == "rmse=5.0,sign,psnr=40.0"
    )
    assert requirement_of([{"kind": "data-limits", "minimum": 0.0, "maximum": 1.0}], "x")[0].is_lossless
    assert requirement_of([{"kind": "lossless"}], "x")[0].is_lossless


def test_u112_absent_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "compression_recommendations", None)
    with pytest.raises(MissingFilterError, match=r"pip install 'tamis\[plan\]'"):
        tamis.plan(make(tmp_path / "a.nc", "T", "hPa"), {"T": "recommended"})
