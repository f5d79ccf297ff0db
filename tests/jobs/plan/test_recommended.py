"""Wants from the package compression-recommendations: by standard name, level and name."""

from __future__ import annotations

import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest

import tamis
from tamis.errors import ParameterError
from tamis.jobs.plan.wants import _want


def make(path: Path, name: str, units: str, **attributes: str) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for dimension, extent in zip(("lev", "lat", "lon"), (4, 60, 80), strict=True):
            file.createDimension(dimension, extent)
        file.createVariable("lev", "f8", ("lev",)).units = units
        variable = file.createVariable(name, "f4", ("lev", "lat", "lon"))
        variable.setncatts(attributes)
        variable[:] = 250 + np.cumsum(np.random.default_rng(0).standard_normal((4, 60, 80)), -1)
    return path


@pytest.mark.check
@pytest.mark.parametrize(("name", "attributes"), [("ta", {"standard_name": "air_temperature"}), ("T", {})])
def test_temperature_on_pressure_levels(name: str, attributes: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("compression_recommendations")
    plan = tamis.plan(make(tmp_path / "a.nc", name, "hPa", **attributes), {"*": "recommended"})
    planned = plan[name]
    assert planned.want == "abs=0.01,range=0.01"
    assert "recommended for " in planned.reason
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", plan.recipe)
    assert 0 < result[name].largest_error <= 0.01


@pytest.mark.check
def test_nothing_recommended_stays_without_loss(tmp_path: Path) -> None:
    pytest.importorskip("compression_recommendations")
    planned = tamis.plan(make(tmp_path / "a.nc", "TS", "1"), {"TS": "recommended"})["TS"]
    assert planned.want == "lossless"
    assert "nothing is recommended for TS, so it stays lossless" in planned.reason


def test_requirements_become_wants_that_imply_them() -> None:
    both = {"kind": "all", "requirements": [{"kind": "mean-absolute-error-bound", "value": 5.0}]}
    limits = [{"kind": "data-limits", "minimum": 0.0}, {"kind": "mean-range-relative-error-bound", "value": 0.01}]
    assert str(_want([both, *limits, {"kind": "missing-value", "value": 0}], "x")[0]) == "rmse=5.0,sign,psnr=40.0"
    assert _want([{"kind": "data-limits", "minimum": 0.0, "maximum": 1.0}], "x")[0].is_lossless
    assert _want([{"kind": "lossless"}], "x")[0].is_lossless


def test_absent_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "compression_recommendations", None)
    with pytest.raises(ParameterError, match=r"pip install 'tamis\[plan\]'"):
        tamis.plan(make(tmp_path / "a.nc", "T", "hPa"), {"T": "recommended"})
