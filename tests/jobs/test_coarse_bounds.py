"""Known defect U79: a bound larger than the values wiped a variable, and no command said so."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from inprocess import said_by_workers

import tamis

WIPED = "makes 100 % of the values other than 0 to 0"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Precipitation, temperature and wind."""
    random = np.random.default_rng(0)
    path = tmp_path / "in" / "a.nc"
    path.parent.mkdir()
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in (("time", 6), ("lat", 48), ("lon", 64)):
            file.createDimension(name, extent)
        for name, values, units in (
            ("PRECT", random.gamma(0.3, 1e-7, (6, 48, 64)), "m/s"),
            ("TS", random.normal(280, 20, (6, 48, 64)), "K"),
            ("U", random.normal(0, 10, (6, 48, 64)), "m/s"),
        ):
            made = file.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, chunksizes=(1, 48, 64))
            made[:] = values
            made.units = units
    return path


@pytest.mark.matrix
@pytest.mark.parametrize(
    "filters", ["zfp(accuracy=0.1)", "pack(bound=0.1)|deflate(4)", "absolute(bound=0.1)|deflate(4)"]
)
def test_u79_one_file_is_warned_about_before_it_is_written(source: Path, tmp_path: Path, filters: str) -> None:
    words = ("repack", source, tmp_path / "b.nc", "-f", f"*:{filters}")
    for said in (said_by_workers(*words, "--dry-run"), said_by_workers(*words, "-q")):
        assert "times the standard deviation" in said
        assert WIPED in said
        assert "to unlike variables, with standard deviations such as /PRECT" in said
        assert "/TS: the bound" not in said
        assert "/U: the bound" not in said
    found = tamis.repack(source, tmp_path / "c.nc", {"*": filters})
    assert [item.path for item in found.warnings] == ["/PRECT", "*"]
    assert [item["path"] for item in json.loads(found.to_json())["warnings"]] == ["/PRECT", "*"]


def test_u79_a_warning_comes_before_the_target(source: Path, tmp_path: Path) -> None:
    def warn(warning: object) -> None:
        assert not list(tmp_path.glob("*.nc"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tamis.repack(source, tmp_path / "b.nc", {"PRECT": "zfp(accuracy=0.1)"}, warn=warn)
    with pytest.raises(KeyboardInterrupt):
        tamis.repack_many(source.parent, tmp_path / "out", {"PRECT": "zfp(accuracy=0.1)"}, warn=warn)
    assert not (tmp_path / "out").exists()


def test_u79_folders_say_as_much(source: Path, tmp_path: Path) -> None:
    (source.parent / "b.nc").write_bytes(source.read_bytes())
    words = ("repack", source.parent, tmp_path / "out", "-f", "*:zfp(accuracy=0.1)", "--workers", "1")
    assert WIPED in said_by_workers(*words, "--dry-run")
    assert WIPED in said_by_workers(*words, "-q")
    said = said_by_workers("status", tmp_path / "out")
    assert WIPED in said
    assert "(2 files; these are the numbers of " in said
    found = json.loads(said_by_workers("status", tmp_path / "out", "--json"))["warnings"]
    assert [(item["dataset"], item["files"]) for item in found] == [("/PRECT", 2), ("*", 2)]
    said = said_by_workers("verify", source.parent, tmp_path / "out", "--bound", "*:0.1")
    assert WIPED in said
    assert "(in 2 files, the first a.nc)" in said


def test_u79_verify_and_plan_warn(source: Path, tmp_path: Path) -> None:
    said_by_workers("repack", source, tmp_path / "b.nc", "-f", "*:zfp(accuracy=0.1)", "-q")
    for bound in ("*:0.1", "recorded"):
        assert "note: /PRECT: the bound 0." in said_by_workers("verify", source, tmp_path / "b.nc", "--bound", bound)
    said = said_by_workers("plan", source, "-r", "*:abs=0.1")
    assert WIPED in said
    assert "*: gives the bound 0.1 to unlike variables" in said
    assert not tamis.plan(source, {"TS": "abs=0.1"}).warnings


@pytest.mark.parametrize(("share", "is_said"), [(0.5, True), (0.2, True), (0.09, False)])
def test_u79_a_tenth_of_the_deviation_is_the_limit(tmp_path: Path, share: float, is_said: bool) -> None:
    values = np.random.default_rng(0).normal(1000, 1, (64, 64)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = values
    found = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": f"absolute(bound={share})|deflate(4)"})
    assert bool(found.warnings) == is_said


def test_u79_values_that_become_zero_are_counted_beside_missing_ones(tmp_path: Path) -> None:
    values = np.where(np.arange(4096) % 20 == 0, 0.01, 100.0 * np.sin(np.arange(4096))).astype("f4")
    values[::7] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = values.reshape(64, 64)
        file["x"].attrs["_FillValue"] = np.float32(-999)
        file.create_dataset("constant", data=np.full((64, 64), 5.0))
    (warning,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "absolute(bound=0.5)|deflate(4)"}).warnings
    assert warning.path == "/x"
    assert warning.text.startswith("the bound 0.5 makes ")


@pytest.mark.parametrize(("rate", "stored"), [(0.05, 0.5625), (0.5, 0.5625)])
def test_zfp_without_a_bound_that_levels_values_is_warned_about(tmp_path: Path, rate: float, stored: float) -> None:
    values = np.random.default_rng(0).normal(0, 10, (64, 64)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["u"] = values
        file["same"] = np.zeros((64, 64), "f4")
    found = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": f"zfp(rate={rate})"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert len(np.unique(file["u"][()])) == 1
    (warning,) = found.warnings
    assert warning.path == "/u"
    assert f"zfp(rate={rate}) makes all values 0, judging by a sample in which they differ" in warning.text
    notes = next(item.notes for item in found.datasets if item.path == "/u")
    told = f"zfp(rate={rate}) stores {stored:g} bits per value, the least for float32 chunks with 2 axes"
    assert told in notes
    assert not tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", {"*": "zfp(rate=8)"}).warnings
