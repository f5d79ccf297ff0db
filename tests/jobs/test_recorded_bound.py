"""The bound that was asked for is in the file, whatever tolerance keeps it, and verify and report test that one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis import ParameterError
from tamis.rounding import ERROR_BOUND

SMOOTH = np.cumsum(np.random.default_rng(0).normal(size=(8, 32, 32)), axis=2).astype("f4")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    ds = xr.Dataset({"t": (("z", "y", "x"), SMOOTH, {"units": "K"})})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": {"chunksizes": (4, 32, 32), "zlib": True}})
    return tmp_path / "a.nc"


def recorded(path: Path) -> Any:
    with tamis.open(path) as file:
        value = file["t"].attrs.get(ERROR_BOUND)
        return None if value is None else float(np.ravel(value)[0])


@pytest.mark.parametrize("target", ["b.nc", "b.zarr"])
@pytest.mark.parametrize("recipe", ["zfp(bound=0.1)|shuffle|deflate(4)", "zfp(accuracy=0.2)|shuffle|deflate(4)"])
def test_u91_repack_records_the_asked_bound(source: Path, tmp_path: Path, target: str, recipe: str) -> None:
    asked = {"t": "abs=0.1"} if "accuracy" in recipe else None
    tamis.repack(source, tmp_path / target, {"t": recipe}, require=asked)
    assert recorded(tmp_path / target) == 0.1
    result = tamis.verify(source, tmp_path / target, bounds="recorded")
    assert result.ok
    assert [item.bound for item in result.datasets if item.path == "/t"] == [0.1]
    report = tamis.report(source, tmp_path / target)
    assert "0.125" not in str(report)


def test_u91_verify_tests_the_asked_bound_not_the_tolerance(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    with h5py.File(source, "r+") as file:
        with tamis.open(tmp_path / "b.nc") as other:
            values = other["t"][...]
        values[0, 0, 0] += 0.11  # beyond what was asked, within the tolerance
        file["t"][...] = values
    assert not tamis.verify(source, tmp_path / "b.nc", bounds="recorded").ok


def test_u91_losses_of_filters_add_up(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    steps = [("zfp(bound=0.5)", 0.6), ("zfp(accuracy=0.5)", 1.1), ("zfp(bound=1)", 2.1), ("shuffle|deflate(4)", 2.1)]
    before = tmp_path / "b.nc"
    for number, (recipe, bound) in enumerate(steps):
        for ending in ("nc", "zarr"):
            tamis.repack(before, tmp_path / f"{number}.{ending}", {"t": recipe})
            assert recorded(tmp_path / f"{number}.{ending}") == pytest.approx(bound), (recipe, ending)
            assert tamis.verify(source, tmp_path / f"{number}.{ending}", bounds="recorded").ok
        before = tmp_path / f"{number}.nc"
    same = tamis.verify(tmp_path / "2.nc", tmp_path / "3.nc", bounds="recorded")
    assert same.ok
    assert same["t"].bound == 0  # both record the same loss: it happened before


BOUND, ACCURACY = "zfp(bound=0.1)|shuffle|deflate(4)", "zfp(accuracy=0.0625)|shuffle|deflate(4)"
KINDS = {
    "pack(bound=0.1)|shuffle|deflate(4)": 0.1,
    "absolute(bound=0.1)|shuffle|deflate(4)": 0.0625,
    BOUND: 0.1,
    ACCURACY: 0.0625,
    "shuffle|deflate(4)": 0.0,
}


def whole_bound(source: Path, target: Path) -> float:
    result = tamis.verify(source, target, bounds="recorded")
    assert result.ok, str(result)
    bound = result["t"].bound
    assert bound is not None
    return bound


@pytest.mark.parametrize(("first", "second"), itertools.permutations(KINDS, 2))
def test_u91_each_pair_of_losses_is_recorded_as_their_sum(
    first: str, second: str, source: Path, tmp_path: Path
) -> None:
    before, after = tmp_path / "b.nc", tmp_path / "c.nc"
    tamis.repack(source, before, {"t": first})
    if first.startswith("pack") and not second.startswith("shuffle"):
        with pytest.raises(ParameterError, match=r"pack it anew, pack\(bound="):  # integers keep no such bound
            tamis.repack(before, after, {"t": second})
        return
    tamis.repack(before, after, {"t": second})
    if (first, second) == (ACCURACY, BOUND):  # whose chunks are copied, since they keep the second bound already
        assert whole_bound(source, after) == KINDS[ACCURACY]
        return
    assert whole_bound(source, after) == pytest.approx(KINDS[first] + KINDS[second])
    tamis.repack(after, tmp_path / "d.nc", {"t": "shuffle|deflate(1)"})
    assert whole_bound(source, tmp_path / "d.nc") == whole_bound(source, after)


@pytest.mark.parametrize("second", [BOUND, "pack(bound=0.1)|deflate(4)"])
def test_u91_a_relative_bound_is_not_added_to_an_absolute_one(source: Path, tmp_path: Path, second: str) -> None:
    before, after = tmp_path / "b.nc", tmp_path / "c.nc"
    tamis.repack(source, before, {"t": "bitround(keepbits=6)|deflate(4)"})
    result = tamis.repack(before, after, {"t": second})
    assert any("no bound of both is recorded" in note for note in result["t"].notes)
    found = tamis.verify(source, after, bounds="recorded")
    assert "a relative and an absolute bound cannot be added" in found.violations[0].text
    step = tamis.verify(before, after, bounds="recorded")
    assert step.ok
    assert step["t"].bound == 0.1  # of what the rounded values lost


@pytest.mark.check
def test_u91_written_dataset_and_saved_one_record_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.write(file, "t", SMOOTH, filters="zfp(bound=0.1)", chunks=(4, 32, 32))
    assert recorded(tmp_path / "a.h5") == 0.1
    ds = xr.Dataset({"t": (("z", "y", "x"), SMOOTH)})
    ds.tamis.to_netcdf(tmp_path / "b.nc", {"t": "zfp(bound=0.1)"})
    ds.tamis.to_zarr(tmp_path / "b.zarr", {"t": "zfp(bound=0.1)"})
    assert recorded(tmp_path / "b.nc") == recorded(tmp_path / "b.zarr") == 0.1


def test_u91_a_dataset_that_was_read_carries_its_bound(source: Path, tmp_path: Path) -> None:
    for number, first in enumerate((BOUND, ACCURACY)):
        before = tmp_path / f"{number}.nc"
        tamis.repack(source, before, {"t": first})
        for name, second, own in (("pack", "pack(bound=0.1)|deflate(4)", 0.1), ("plain", "shuffle|deflate(4)", 0.0)):
            after = tmp_path / f"{name}{number}.nc"
            with xr.open_dataset(before, engine="tamis") as ds:
                ds.isel(z=slice(0, 8)).tamis.to_netcdf(after, {"t": second})
                assert "tamis_error_bound" not in ds.t.attrs or first == BOUND  # the dataset stays as it was
            result = tamis.verify(source, after, bounds="recorded")
            assert result["t"].bound == pytest.approx(KINDS[first] + own)
            assert not [found for found in result.violations if found.code in ("bound", "bits")]


@pytest.mark.parametrize("first", ["pack(bound=0.1)", "absolute(bound=0.1)", BOUND, "bitround(keepbits=6)"])
def test_u91_computed_values_carry_no_bound(source: Path, tmp_path: Path, first: str) -> None:
    before = tmp_path / "b.nc"
    tamis.repack(source, before, {"t": first})
    with xr.set_options(keep_attrs=True), xr.open_dataset(before, engine="tamis") as ds:
        computed = ds[["t"]] * 1000
        stale = {*computed.t.attrs} - {"units"}
        assert stale
        plain = computed.tamis.to_netcdf(tmp_path / "plain.nc", {"t": "shuffle|deflate(4)"})
        packed = computed.tamis.to_netcdf(tmp_path / "packed.nc", {"t": "pack(bound=50)|deflate(4)"})
        assert {*computed.t.attrs} > stale
    for result in (plain, packed):
        assert any("is left out: it is about values of a file, and these are computed" in each for each in result.notes)
    with tamis.open(tmp_path / "plain.nc") as file:
        assert not stale & {*file["t"].attrs}
    with tamis.open(tmp_path / "packed.nc") as file:
        assert file["t"].attrs["quantization_bound"] == 50  # against the values as given
