"""Budgets and confirmation: the smallest error that fits, and what repack makes of a plan, with nothing left behind."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import ParameterError
from tamis.cli import main
from tamis.jobs.plan.job import confirmed as confirm
from tamis.jobs.plan.requirements import as_plan_requirement


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("budget") / "a.h5"
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for name, scale in (("a", 1.0), ("b", 1e-6)):
            values = np.cumsum(np.cumsum(random.standard_normal((12, 60, 80)), -1), -2) * scale
            file.create_dataset(name, data=values.astype("f4"), chunks=(3, 60, 80))
        file.create_dataset("c", data=random.standard_normal((12, 60, 80)).astype("f4"), chunks=(3, 60, 80))
        file["count"] = np.arange(20_000)
    return path


@pytest.mark.check
@pytest.mark.parametrize("ratio", [3.0, 8.0])
def test_ratio_gives_all_variables_the_same_error_of_their_range(ratio: float, path: Path, tmp_path: Path) -> None:
    plan = tamis.plan(path, ratio=ratio)
    free = {name: plan[name] for name in "abc"}
    assert len({planned.requirement for planned in free.values()}) == 1
    assert "count" not in [planned.path for planned in plan.datasets if planned.require]
    result = tamis.repack(path, tmp_path / "b.h5", plan.recipe)
    values = sum(each.nbytes for each in result.datasets)
    assert ratio * 0.9 < values / sum(each.target_nbytes for each in result.datasets) < 3 * ratio
    share = float(free["a"].requirement.partition("=")[2])
    with h5py.File(path) as before, tamis.open(tmp_path / "b.h5", unpack=True) as after:
        for name in free:
            assert np.abs(before[name][:] - after[name][:]).max() <= share * np.ptp(before[name][:])


@pytest.mark.check
def test_size_beside_a_want_and_without_loss_where_that_fits(path: Path) -> None:
    plan = tamis.plan(path, {"a": "abs=0.5"}, size=400_000)
    assert plan["a"].requirement == "abs=0.5"
    assert plan["b"].requirement == plan["c"].requirement != "lossless"
    assert "all variables without a requirement take" in plan["b"].reason
    assert tamis.plan(path, size=10_000_000)["b"].requirement == "lossless"


@pytest.mark.check
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": 2.0, "size": 100}, "ratio and size cannot be combined"),
        ({"ratio": 0}, "expected a ratio above 0, got 0"),
        ({"size": -1}, "expected a size above 0, got -1"),
        ({"ratio": 2.0, "require": {"*": "abs=1"}}, r"expected either a requirement for '\*', or a ratio or size"),
        ({"size": 50}, r"expected a budget that can be met: .* take .* even with errors of half their ranges"),
    ],
)
def test_budget_that_cannot_be_is_refused(options: dict[str, Any], message: str, path: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        tamis.plan(path, **options)


def test_confirmed_plan_is_what_repack_makes(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    plan = tamis.plan(path, {"a": "abs=0.5,psnr=40", "c": "abs=0.1"}, confirm=True)
    result = tamis.repack(path, tmp_path / "b.h5", plan.recipe)
    for name in "ac":
        confirmed = plan[name].confirmed
        assert confirmed is not None
        assert confirmed.ok
        assert confirmed.ratio == pytest.approx(result[name].ratio)
        assert confirmed.largest_error == result[name].largest_error
        assert f"/{name}: confirmed on all values: ratio " in str(plan)
    assert dict(plan["a"].confirmed.measures)["psnr"] > 40  # type: ignore[union-attr, operator]
    assert not os.listdir(tmp_path / "temporary")
    assert tamis.plan(path, {"a": "abs=0.5"})["a"].confirmed is None


def test_measure_that_is_missed_on_all_values_is_told(path: Path) -> None:
    plan = tamis.plan(path, {"a": "abs=0.5"})
    confirmed = confirm(plan, {"/a": as_plan_requirement("abs=0.5,psnr=300")}, None)["a"].confirmed
    assert confirmed is not None
    assert not confirmed.ok
    assert confirmed.ratio > 1
    assert "/a: expected psnr of at least 300" in str(confirmed.missed)


def test_measures_of_several_variables_that_miss_are_told(path: Path) -> None:
    plan = tamis.plan(path, {"a": "abs=0.5", "c": "abs=0.1"})
    confirmed = confirm(plan, {"/a": as_plan_requirement("psnr=300"), "/c": as_plan_requirement("rmse=1e-9")}, None)
    assert [
        ("expected psnr" in str(confirmed[name].confirmed), "expected rmse" in str(confirmed[name].confirmed))
        for name in "ac"
    ] == [(True, False), (False, True)]


def test_miss_of_a_variable_is_not_that_of_one_whose_path_ends_alike(path: Path, tmp_path: Path) -> None:
    with h5py.File(path) as source, h5py.File(tmp_path / "groups.h5", "w") as file:
        source.copy("a", file)
        source.copy("a", file.create_group("g"))
    plan = tamis.plan(tmp_path / "groups.h5", {"a": "abs=0.5", "g/a": "abs=0.5"})
    confirmed = confirm(plan, {"/a": as_plan_requirement("psnr=20"), "/g/a": as_plan_requirement("psnr=300")}, None)
    assert [confirmed[name].confirmed.missed is None for name in ("/a", "/g/a")] == [True, False]  # type: ignore[union-attr]


def test_all_values_are_the_sample(path: Path) -> None:
    planned = tamis.plan(path, {"a": "abs=0.5"}, sample=None)["a"]
    assert planned.sampled_nbytes == planned.nbytes
    assert planned.chosen is not None
    assert planned.chosen.ratio_low == planned.chosen.ratio == planned.chosen.ratio_high


@pytest.mark.check
def test_command_takes_budgets(path: Path) -> None:
    run = CliRunner().invoke(main, ["plan", str(path), "--ratio", "4", "--confirm", "--json", "-q"])
    assert run.exit_code == 0
    assert '"confirmed": {' in run.stdout
    run = CliRunner().invoke(main, ["plan", str(path), "--size", "50B"])
    assert run.exit_code == 2
    assert "expected a budget that can be met" in run.stderr


def test_confirmed_ratio_counts_the_companion(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    steps = np.random.default_rng(0).standard_normal((12, 60, 80))
    values = np.cumsum(np.cumsum(np.cumsum(steps, 0), 1), 2).astype("f4")
    values[np.random.default_rng(1).random(values.shape) < 0.3] = -999
    with h5py.File(path, "w") as file:
        data = file.create_dataset("a", data=values, chunks=(3, 60, 80))
        data.attrs["_FillValue"] = np.float32(-999)
    plan = tamis.plan(path, {"a": "abs=0.1"}, missing="mask", readers="zfp")
    filters = "zfp(bound=0.1)|shuffle|deflate(4)"
    plan = replace(plan, datasets=(replace(plan["a"], filters=filters),))
    confirmed = confirm(plan, {"/a": as_plan_requirement("abs=0.1")}, None)["a"].confirmed
    repacked = tamis.repack(path, tmp_path / "b.h5", {"a": filters}, missing="mask")["a"]
    assert confirmed is not None
    assert repacked.companion_nbytes > 0
    assert confirmed.ratio == pytest.approx(repacked.ratio)


def test_confirmed_measures_of_several_files_are_the_worst(path: Path, tmp_path: Path) -> None:
    with h5py.File(path) as source, h5py.File(tmp_path / "b.h5", "w") as file:
        source.copy("a", file)
        file["a"][...] = 280 + (file["a"][...] - 280) / 1000

    def psnr(*files: Path) -> float:
        plan = tamis.plan(files, {"a": "abs=0.05"})
        confirmed = confirm(plan, {"/a": as_plan_requirement("psnr=1")}, None)["a"].confirmed
        assert confirmed is not None
        return dict(confirmed.measures)["psnr"] or 0.0

    both = psnr(path, tmp_path / "b.h5")
    assert both == psnr(tmp_path / "b.h5", path)
    assert 0 < both < psnr(path) - 10


@pytest.mark.check
def test_packing_of_several_files_has_a_range_so_that_all_get_the_same_attributes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name, offset in (("a", 280.0), ("b", 300.0)):
        values = np.cumsum(random.standard_normal((40, 60, 80)), -1) / 10 + offset
        values[0, 0, 0] = np.nan if name == "b" else offset
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("v", data=values.astype("f4"), chunks=(4, 60, 80))
    files = [tmp_path / "a.h5", tmp_path / "b.h5"]
    plan = tamis.plan(files, {"v": "abs=0.1"}, readers="any", prefer="size")
    packing = tamis.Pipeline.parse(plan.filters["/v"]).rounding
    assert isinstance(packing, tamis.Pack)
    assert packing.range is not None
    low, high = packing.range
    with h5py.File(files[0]) as first, h5py.File(files[1]) as second:
        ends = first["v"][()].min(), np.nanmax(second["v"][()])
    margins = ends[0] - low, high - ends[1]
    assert all(0.1 <= margin / (ends[1] - ends[0]) < 0.15 for margin in margins)
    assert f"the same in all files while values are from {low:g} to {high:g}, the range of the sample and 10%" in str(
        plan
    )
    plan.dump(tmp_path / "r.toml")
    attributes = []
    for path in files:
        result = tamis.repack(path, path.with_suffix(".nc"), tamis.Recipe.load(tmp_path / "r.toml"))
        assert (result["v"].largest_error or 0) <= 0.1
        with h5py.File(path.with_suffix(".nc")) as file:
            attributes.append((file["v"].dtype, {name: str(value) for name, value in file["v"].attrs.items()}))
    assert attributes[0] == attributes[1]
    single = tamis.Pipeline.parse(tamis.plan(files[0], {"v": "abs=0.1"}, readers="any", prefer="size").filters["/v"])
    assert isinstance(single.rounding, tamis.Pack)
    assert single.rounding.range is None
