"""The command `tamis plan`, where it ends early or must not begin, and what it reads at most."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import Pipeline
from tamis.accuracy import dssim
from tamis.cli import main
from tamis.formats import open_store
from tamis.jobs.plan import VariableToPlan, cost_of, loss_of, planner, sample_of
from tamis.jobs.plan.requirements import as_plan_requirement
from tamis.jobs.plan.sample import ALL

TAMIS = Path(sys.executable).with_name("tamis")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "number"),
    [(["--all"], signal.SIGINT), (["--confirm"], signal.SIGINT), (["--confirm"], signal.SIGTERM)],
)
def test_interrupted_command_leaves_nothing(
    options: list[str], number: signal.Signals, sample: Path, tmp_path: Path
) -> None:
    temporary, log = tmp_path / "temporary", tmp_path / "log"
    temporary.mkdir()
    command = [TAMIS, "plan", sample, "-r", "TS:psnr=70", "-o", tmp_path / "r.toml", "--log", log, "-q", *options]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        while run.poll() is None and not (os.listdir(temporary) if options == ["--confirm"] else log.exists()):
            time.sleep(0.001)
        time.sleep(0.5 if options == ["--all"] else 0.02)
        run.send_signal(number)
        said, complained = run.communicate()
    assert run.returncode == 128 + number
    assert (said, complained) == ("", "\ntamis: interrupted\n" if number == signal.SIGINT else "")
    assert os.listdir(temporary) == []
    assert sorted(os.listdir(tmp_path)) == ["log", "temporary"]


def test_recipe_that_cannot_be_written_is_refused_before_the_work(sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.nc"
    copy.write_bytes(sample.read_bytes())
    there = tmp_path / "there.toml"
    there.write_text("schema = 1\n")
    for name, options, code, message in (
        (copy, ["--overwrite"], 2, "is an input or the target: choose another name for the recipe"),
        (there, [], 1, "File exists: choose another name"),
        (tmp_path / "none" / "r.toml", ["--overwrite"], 1, "cannot be written: there is no folder"),
    ):
        # The name is that of no variable: planning would fail.
        failed = CliRunner().invoke(main, ["plan", str(copy), "-r", "none:abs=1", "-o", str(name), *options])
        assert failed.exit_code == code
        assert message in failed.output
    failed = CliRunner().invoke(
        main,
        ["repack", str(copy), str(tmp_path / "b.nc"), "-f", "TS:deflate", "--recipe-out", str(copy), "--overwrite"],
    )
    assert failed.exit_code == 2
    assert copy.read_bytes() == sample.read_bytes()


@pytest.mark.check
def test_all_values_are_read_chunk_by_chunk(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = np.random.default_rng(1).standard_normal((256, 64, 64)).astype("f4").cumsum(2)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=(4, 64, 64))
    tamis.plan(path, {"a": "digits=3"})  # what is imported or cached stays
    tracemalloc.start()
    planned = tamis.plan(path, {"a": "digits=3"}, sample=None, readers="any")["a"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert planned.sampled_nbytes == values.nbytes
    assert peak < values.nbytes / 3


def test_all_fields_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    values = np.random.default_rng(1).standard_normal((6, 3, 20, 24)).astype("f4").cumsum(2)
    values[5, 1] += np.random.default_rng(2).standard_normal((20, 24)) * 1e-3 - values[5, 1]
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=(2, 3, 20, 24))
    requirement = as_plan_requirement("dssim=0.001")
    with open_store(path) as store:
        array = store.arrays["/a"]
        sample = sample_of([array], (2, 3, 20, 24), ALL, fields=True)
        variable = VariableToPlan("/a", requirement, [store], [array], (2, 3, 20, 24), "exact")
        loss = loss_of(variable.plans(Pipeline.parse("absolute(bound=0.001)|shuffle|deflate(4)")), sample, requirement)
        regions = [piece.region for piece in sample.tiles[0]]
    covered = np.zeros(values.shape, int)
    for region in regions:
        covered[region] += 1
    assert (covered == 1).all()
    after = np.round(values.astype("f8") * 512) / 512
    found = dssim(values[5, 1], after[5, 1].astype("f4"))
    assert found is not None
    assert loss.similarity == pytest.approx(found)
    assert found < 0.99


def test_ratio_of_chunks_that_are_copied_is_that_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Which candidates are beaten depends on measured speeds.
    monkeypatch.setattr(planner, "front_of", lambda candidates: sorted(candidates, key=lambda one: -one.ratio))
    path = tmp_path / "a.h5"
    values = np.random.default_rng(1).standard_normal((64, 64, 64)).astype("f4").cumsum(2)
    with h5py.File(path, "w") as file:
        # Whatever filters win here: the bytes of another deflate are kept.
        file.create_dataset("a", data=values, chunks=(16, 64, 64), shuffle=True, compression="gzip", compression_opts=4)
    planned = tamis.plan(path, {"a": "lossless"})["a"]
    (same,) = [each for each in planned.candidates if each.filters == "shuffle|deflate(4)"]
    assert same.ratio == same.ratio_low == same.ratio_high == planned.source_ratio
    result = tamis.repack(path, tmp_path / "b.h5", {"a": same.filters})
    assert result["a"].ratio == planned.source_ratio


def test_ratio_of_partly_written_values_in_other_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("a", (100, 64, 64), "f4", chunks=(10, 64, 64))
        data[:30] = np.random.default_rng(1).standard_normal((30, 64, 64)).cumsum(2)
    with open_store(path) as store:
        array = store.arrays["/a"]
        variable = VariableToPlan("/a", as_plan_requirement("lossless"), [store], [array], (52, 64, 64), "exact")
        sample = sample_of([array], (52, 64, 64), 16_000_000)
        cost = cost_of(variable.plans(Pipeline.parse("shuffle|deflate(4)")), sample, lambda nbytes: None)
    result = tamis.repack(path, tmp_path / "b.h5", {"a": "shuffle|deflate(4)"}, chunks={"a": (52, 64, 64)})
    assert cost.ratio == pytest.approx(result["a"].ratio, rel=0.001)


def test_constant_field_of_one_chunk_has_the_ratio_of_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.full((24, 4, 60, 80), 3.25, "f4"), chunks=(24, 4, 60, 80))
    plan = tamis.plan(path, {"a": "lossless"})
    assert plan["a"].chosen is not None
    assert tamis.repack(path, tmp_path / "b.h5", plan.recipe)["a"].ratio == pytest.approx(plan["a"].chosen.ratio)


def test_recipe_of_a_file_with_nothing_to_plan_says_so(tmp_path: Path) -> None:
    path, recipe = tmp_path / "a.h5", tmp_path / "r.toml"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(10.0)
    planned = CliRunner().invoke(main, ["plan", str(path), "-r", "*:abs=0.1", "-o", str(recipe)])
    assert planned.exit_code == 0
    assert "/a: not planned: less than 65.5 kB (name it exactly in a requirement to plan it)" in planned.output
    assert "nothing to change" in planned.output
    done = CliRunner().invoke(main, ["repack", str(path), str(tmp_path / "b.h5"), "--recipe", str(recipe)])
    assert done.exit_code == 0
    assert "no filters or chunks were requested: all datasets keep theirs" in done.output


def test_choice_is_between_candidates_on_the_same_values(tmp_path: Path) -> None:
    """Latitudes of corners as in NEMO: on the middle, which is measured first, lossless filters win by far."""
    path = tmp_path / "a.h5"
    y, x = np.mgrid[0:330, 0:360].astype("f8")
    latitude = -78 + 0.45 * y + np.maximum(y - 220, 0) ** 1.2 * 0.05 * np.sin(np.radians(x))
    values = np.stack([latitude, latitude, latitude + 0.45, latitude + 0.45], -1).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=values.shape)
    plan = tamis.plan(path, {"a": "digits=3"})
    assert plan["a"].chosen is not None
    assert plan["a"].chosen.ratio > 50
    assert tamis.repack(path, tmp_path / "b.h5", plan.recipe)["a"].ratio == pytest.approx(plan["a"].chosen.ratio)


def test_candidates_that_are_not_installed_are_named_with_the_extra(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name in ("zstandard", "imagecodecs") else found(name)
    )
    plan = tamis.plan(sample, {"TS": "lossless"}, readers="all")
    (line,) = [line for line in str(plan).splitlines() if "not installed" in line]
    absent = [filters for filters, reason in plan["TS"].refused if "not installed" in reason]
    assert absent
    assert line.endswith(": pip install 'tamis[codecs]'")
    assert all(name in line for name in ("zstd", "lz4"))
    assert "not installed" not in str(tamis.plan(sample, {"TS": "lossless"}, readers="any"))
