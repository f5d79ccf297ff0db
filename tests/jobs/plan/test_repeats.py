"""U111: a plan is a function of its input: equal runs give equal recipes, whatever the load, threads and hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import netCDF4
import numpy as np
import pytest

import tamis
from tamis.formats import open_store
from tamis.jobs.plan import sample_of
from tamis.jobs.plan.candidates import Candidates
from tamis.jobs.plan.choices import PREFERENCES, READERS
from tamis.jobs.plan.costs import COSTS, cost_class, kind_of
from tamis.jobs.plan.planner import variables_of
from tamis.jobs.plan.requirements import as_plan_requirement
from tamis.jobs.plan.sample import ALL

RUNS = 4
"""Runs of a case: with one to four threads, both kernels, and half of them under load."""
CASES = [
    ["-r", "ts:abs=0.1", "-r", "*:lossless"],
    ["-r", "ts:abs=0.1", "--readers", "all", "--prefer", "speed"],
    [],
    ["-r", "ts:psnr=70", "--readers", "zfp", "--access", "series=0.7,map=0.3"],
]


def make(path: Path) -> Path:
    random = np.random.default_rng(3)
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in (("time", 12), ("lat", 60), ("lon", 80)):
            file.createDimension(name, extent)
        for name in ("ts", "pr"):
            variable = file.createVariable(name, "f4", ("time", "lat", "lon"), chunksizes=(6, 60, 80))
            variable[:] = 280 + np.cumsum(random.standard_normal((12, 60, 80)), -1)
    return path


@contextmanager
def load() -> Iterator[None]:
    """Keep the processors busy, so that times differ between runs."""
    burn = "while True: sum(range(10000))"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(3)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.check
@pytest.mark.parametrize("options", CASES, ids=" ".join)
def test_u111_equal_runs_under_any_load_write_the_same_recipe(options: list[str], tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc")

    def run(number: int) -> str:
        recipe = tmp_path / f"{number}.toml"
        threads = str(1 + number % 4)
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(number),
            "OMP_NUM_THREADS": threads,
            "TAMIS_KERNEL": "" if number % 2 else "portable",
        }
        command = [sys.executable, "-m", "tamis", "plan", str(path), *options, "-o", str(recipe), "--json"]
        done = subprocess.run(command, check=True, capture_output=True, env=environment, text=True)
        recipe.with_suffix(".json").write_text(done.stdout)
        dictionary = json.loads(recipe.with_suffix(".json").read_text())
        for variable in dictionary["datasets"]:
            for candidate in variable["candidates"]:
                del candidate["write_mbs"], candidate["read_mbs"]  # measured, and shown
        return f"{recipe.read_text()}\n{dictionary['datasets']}"

    recipes = [run(number) for number in range(RUNS // 2)]
    with load():
        recipes += [run(number) for number in range(RUNS // 2, RUNS)]
    assert set(recipes) == {recipes[0]}
    assert "reason" in recipes[0]


@pytest.mark.check
def test_u111_measured_speeds_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.nc")
    requirements = {"ts": "abs=0.1", "pr": "rel=0.001"}
    expected = [(each.filters, each.reason) for each in tamis.plan(path, requirements).datasets]
    random = np.random.default_rng(0)
    clock = iter(np.cumsum(random.exponential(size=1_000_000)).tolist())
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    for _ in range(3):
        assert [(each.filters, each.reason) for each in tamis.plan(path, requirements).datasets] == expected


@pytest.mark.matrix
@pytest.mark.parametrize("readers", READERS)
@pytest.mark.parametrize("prefer", PREFERENCES)
def test_u111_every_candidate_has_a_class_of_cost(prefer: str, readers: str, tmp_path: Path) -> None:
    with open_store(str(make(tmp_path / "a.nc"))) as store:
        for requirement in ("abs=0.1", "rel=0.001", "psnr=70", "lossless"):
            variable = variables_of([store], {"ts": as_plan_requirement(requirement)}, "exact")[0][0]
            sample = sample_of(variable.arrays, variable.chunk_shape, ALL)
            for filters in Candidates(variable, sample, prefer, readers).pipelines():  # type: ignore[arg-type]
                assert kind_of(filters) in COSTS
                assert cost_class(filters).effort > 0
