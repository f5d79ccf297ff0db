"""What a killed run left is taken over where it is of the same run, and never anything else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis import FileError
from tamis.cli import main
from tamis.safety import find_leftovers

RECIPES = {"x": "zfp(accuracy=0.01)|shuffle|deflate(4)", "y": "shuffle|deflate(4)", "z": "deflate(1)"}
CHUNKS = {"x": (4, 32, 32)}
OPTIONS = [word for name, text in RECIPES.items() for word in ("-f", f"{name}:{text}")] + ["-c", "x:4x32x32"]

KILLED = """
import json, os, signal, sys, tamis
source, target, recipes, chunks, dataset, after, resume = map(json.loads, sys.argv[1:])
def progress(what, done, total):
    if what == dataset and done == after:
        os.kill(os.getpid(), signal.SIGKILL)
chunks = {name: tuple(shape) for name, shape in chunks.items()}
tamis.repack(source, target, recipes, chunks=chunks, overwrite=True, resume=resume, progress=progress)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.h5"
    values = np.random.default_rng(0).standard_normal((16, 128, 128)).cumsum(axis=1).cumsum(axis=2).astype("f4")
    values[:4, :32, :32] = np.nan
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1, 128, 128), compression="gzip")
        file["y"] = np.arange(400_000, dtype="i4").reshape(400, 1000)
        file.create_dataset("z", data=np.arange(20_000.0), chunks=(1000,), compression="gzip", compression_opts=1)
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target.h5"


@pytest.fixture
def complete(source: Path, tmp_path: Path) -> bytes:
    """What a run makes that is not interrupted."""
    tamis.repack(source, tmp_path / "complete.h5", RECIPES, chunks=CHUNKS)
    found = (tmp_path / "complete.h5").read_bytes()
    (tmp_path / "complete.h5").unlink()
    return found


def kill(source: Path, target: Path, what: str = "writing /y", after: int = 1, *, resume: bool = False) -> None:
    arguments = [str(source), str(target), RECIPES, CHUNKS, what, after, resume]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *map(json.dumps, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def resume(source: Path, target: Path, recipes: dict[str, str] = RECIPES) -> tamis.jobs.repack.job.RepackResult:
    return tamis.repack(source, target, recipes, chunks=CHUNKS, overwrite=True, resume=True)


def reused(found: tamis.jobs.repack.job.RepackResult) -> dict[str, int]:
    return {each.path: each.reused_chunks for each in found.datasets}


def temporary(target: Path) -> Path:
    (found,) = (target.with_name(name) for name in os.listdir(target.parent) if name.endswith(".tamis"))
    return found


def assert_nothing_left(target: Path) -> None:
    assert sorted(os.listdir(target.parent)) == ["source.h5", "target.h5"]


def tamis_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="tamis")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("what", "after", "expected"),
    [
        ("writing /x", 0, (0, 0)),
        ("writing /x", 40, (40, 0)),
        ("writing /y", 0, (64, 0)),
        ("verifying /y", 1, (64, 2)),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_resume_killed_at_a_chunk_gives_the_bytes_of_a_whole_run(
    what: str, after: int, expected: tuple[int, int], threads: int, source: Path, target: Path, complete: bytes
) -> None:
    kill(source, target, what, after)
    assert not target.exists()
    found = tamis.repack(source, target, RECIPES, chunks=CHUNKS, resume=True, threads=threads)
    assert target.read_bytes() == complete
    assert_nothing_left(target)
    for (path, count), most in zip(reused(found).items(), (*expected, 0), strict=True):
        # Chunks of 16 kB are noted four at a time; those of /z are copied as they are.
        assert most - 4 < count <= most, path
    assert found.notes == (
        () if expected[0] else ("nothing to resume: no interrupted run for this target left chunks; started over",)
    )


def test_resume_counts_what_an_uninterrupted_run_counts(source: Path, target: Path, tmp_path: Path) -> None:
    whole = tamis.repack(source, tmp_path / "whole.h5", RECIPES, chunks=CHUNKS)
    kill(source, target, "verifying /x", 1)
    found = resume(source, target)
    assert reused(found)["/x"] == 64
    for one, other in zip(whole.datasets, found.datasets, strict=True):
        first, second = one.to_dict(), other.to_dict()
        del first["reused_chunks"], second["reused_chunks"]
        assert first == second
    assert found.datasets[0].missing_values == 4 * 32 * 32


def test_resume_of_a_resumed_run_that_was_killed_early_loses_nothing(
    source: Path, target: Path, complete: bytes
) -> None:
    kill(source, target, "verifying /x", 1)
    kill(source, target, "writing /x", 8, resume=True)
    assert reused(resume(source, target))["/x"] == 64
    assert target.read_bytes() == complete
    assert_nothing_left(target)


def test_resume_that_fails_leaves_what_there_was_to_resume(source: Path, target: Path, complete: bytes) -> None:
    kill(source, target)
    before = sorted(os.listdir(target.parent))

    def progress(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tamis.repack(source, target, RECIPES, chunks=CHUNKS, resume=True, progress=progress)
    assert sorted(os.listdir(target.parent)) == before
    assert reused(resume(source, target))["/x"] == 64
    assert target.read_bytes() == complete


def test_run_without_resume_takes_nothing_over_and_removes_what_was_left(
    source: Path, target: Path, complete: bytes
) -> None:
    kill(source, target)
    left = temporary(target)
    found = tamis.repack(source, target, RECIPES, chunks=CHUNKS)
    assert not any(reused(found).values())
    assert found.notes == (f"{left}: left by an interrupted run; removed",)
    assert target.read_bytes() == complete
    assert_nothing_left(target)


def test_resume_with_a_changed_source_starts_anew_and_says_so(source: Path, target: Path) -> None:
    kill(source, target)
    with h5py.File(source, "r+") as file:
        file["x"][5] += 1
    found = resume(source, target)
    assert not any(reused(found).values())
    assert found.notes[0] == f"nothing to resume: {source} has changed since a run was interrupted; started over"
    assert tamis.verify(source, target, bounds={"x": 0.01}).ok
    assert_nothing_left(target)


def test_resume_with_another_recipe_takes_over_the_other_datasets(source: Path, target: Path, tmp_path: Path) -> None:
    kill(source, target, "verifying /x", 0)
    recipes = RECIPES | {"x": "zfp(accuracy=0.02)"}
    whole = tamis.repack(source, tmp_path / "whole.h5", recipes, chunks=CHUNKS)
    found = resume(source, target, recipes)
    assert reused(found)["/x"] == 0
    assert reused(found)["/y"] == whole.datasets[1].chunks > 0
    (note,) = found.notes
    assert note.startswith("/x: encoded again: filters zfp(accuracy=0.02)|fletcher32, and zfp(accuracy=0.01)|")
    assert target.read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_resume_of_a_live_run_is_refused(source: Path, target: Path) -> None:
    def progress(what: str, done: int, total: int) -> None:
        if (what, done) == ("writing /y", 1):
            with pytest.raises(FileError, match=r"\.tamis: a run is still writing it"):
                resume(source, target)
            # Another run for the same target may, as ever; it takes and removes nothing.
            assert tamis.repack(source, target, RECIPES, chunks=CHUNKS, overwrite=True).notes == ()
            assert temporary(target).exists()

    tamis.repack(source, target, RECIPES, chunks=CHUNKS, overwrite=True, progress=progress)
    assert_nothing_left(target)


@pytest.mark.check
def test_resume_with_any_damage_to_what_was_left_gives_the_same_bytes(
    source: Path, target: Path, complete: bytes
) -> None:
    kill(source, target, "verifying /x", 0)
    left = temporary(target)
    journal = left.with_name(left.name + "-journal")
    kept = {path: path.read_bytes() for path in (left, journal)}
    chance = random.Random(0)
    fewest = 64
    for number in range(24):
        for path, data in kept.items():
            path.write_bytes(data)
            path.chmod(0o600)
        path = (left, journal)[number % 2]
        data = bytearray(kept[path])
        if number % 3 == 0:
            del data[chance.randrange(len(data)) :]
        elif number % 3 == 1:
            for _ in range(20):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            begin = chance.randrange(len(data))
            data[begin : begin + 4096] = bytes(len(data[begin : begin + 4096]))
        path.write_bytes(data)
        target.unlink(missing_ok=True)
        found = resume(source, target)
        fewest = min(fewest, reused(found)["/x"])
        assert target.read_bytes() == complete
    assert fewest < 64


def test_resume_without_the_temporary_or_the_journal_starts_anew(source: Path, target: Path, complete: bytes) -> None:
    for ending in ("", "-journal"):
        kill(source, target)
        left = temporary(target)
        left.with_name(left.name + ending).unlink()
        target.unlink(missing_ok=True)
        found = resume(source, target)
        assert not any(reused(found).values())
        assert target.read_bytes() == complete
        if ending:
            # It could be another run's, on a file system without locks.
            assert found.notes[1].startswith(f"{left}: it has no journal that can be read and locked, so a run may")
            assert left.exists()
            left.unlink()
        assert_nothing_left(target)


def test_leftover_of_a_commit_without_overwriting_does_not_harm_the_target(
    source: Path, target: Path, complete: bytes
) -> None:
    """Killed between the two steps in which it takes a free name, a run leaves two names of one file."""
    kill(source, target, "verifying /x", 0)
    os.link(temporary(target), target)
    resume(source, target)
    assert target.read_bytes() == complete
    assert_nothing_left(target)


def test_resume_dry_run_says_what_can_be_taken_over_and_leaves_it(source: Path, target: Path) -> None:
    kill(source, target, "verifying /x", 0)
    before = sorted(os.listdir(target.parent))
    preview = tamis.preview_repack(source, target, RECIPES, chunks=CHUNKS, resume=True)
    assert [each.reusable_chunks for each in preview.datasets] == [64, preview.datasets[1].reusable_chunks, 0]
    assert preview.notes == ()
    result = tamis_("repack", source, target, *OPTIONS, "--resume", "--dry-run")
    assert "/x: 64 chunks can be reused from an interrupted run\n" in result.stdout
    result = tamis_("repack", source, target, *OPTIONS, "--dry-run")
    assert f"an interrupted run left {temporary(target)} (" in result.stdout
    assert sorted(os.listdir(target.parent)) == before
    assert find_leftovers(target).busy == ()


def test_resume_command_says_what_was_taken_over(source: Path, target: Path, complete: bytes) -> None:
    kill(source, target, "verifying /x", 0)
    result = tamis_("repack", source, target, *OPTIONS, "--resume")
    assert result.exit_code == 0
    with h5py.File(target) as file:
        total = 64 + file["y"].id.get_num_chunks()
    assert f"\n{total} of {total} chunks were reused from an interrupted run\n" in result.stdout
    assert target.read_bytes() == complete
    target.unlink()
    result = tamis_("repack", source, target, *OPTIONS, "--resume", "--json")
    found = json.loads(result.stdout)
    assert found["notes"] == ["nothing to resume: no interrupted run for this target left chunks; started over"]
    assert found["datasets"][0]["reused_chunks"] == 0


def test_command_without_resume_names_what_was_left(source: Path, target: Path) -> None:
    kill(source, target)
    left = temporary(target)
    result = tamis_("repack", source, target, *OPTIONS)
    assert result.stderr.startswith(f"tamis repack: an interrupted run left {left} (6")
    assert result.stderr.splitlines()[0].endswith("): removed, since --resume is not given")
    assert f"{left}: left by an interrupted run; removed\n" in result.stdout
    assert_nothing_left(target)


def test_resume_of_files_as_climate_models_write_them_gives_the_same_bytes(
    sample: Path, tmp_path: Path, python: Callable[..., str]
) -> None:
    recipes = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)", "l*": "deflate(2)"}
    target, whole = tmp_path / "out" / "target.nc", tmp_path / "whole.nc"
    target.parent.mkdir()
    tamis.repack(sample, whole, recipes)
    arguments = [str(sample), str(target), recipes, {}, "writing /TS", 20, False]
    python(KILLED, *map(json.dumps, arguments), exit_code=-signal.SIGKILL)
    found = tamis.repack(sample, target, recipes, resume=True)
    assert reused(found)["/TS"] == 20
    assert target.read_bytes() == whole.read_bytes()
    assert os.listdir(target.parent) == ["target.nc"]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "settings",
    [{}, {"libver": "latest"}, {"userblock_size": 512}, {"fs_strategy": "page", "fs_page_size": 4096}],
    ids=lambda each: next(iter(each), "plain"),
)
@pytest.mark.parametrize("chunk", [100, 2000])
def test_resume_takes_over_every_chunk_wherever_hdf5_put_it(
    settings: dict[str, Any], chunk: int, tmp_path: Path
) -> None:
    """Small chunks go into gaps that something else left, too."""
    source, target, whole = (tmp_path / name for name in ("source.h5", "target.h5", "whole.h5"))
    with h5py.File(source, "w", **settings) as file:
        file["x"] = np.random.default_rng(0).standard_normal(200_000).astype("f4").cumsum()
    recipes, chunks = {"x": "shuffle|deflate(1)"}, {"x": (chunk,)}
    arguments = [str(source), str(target), recipes, chunks, "verifying /x", 0, False]
    subprocess.run([sys.executable, "-c", KILLED, *map(json.dumps, arguments)], check=False)
    found = tamis.repack(source, target, recipes, chunks=chunks, resume=True)
    assert reused(found) == {"/x": 200_000 // chunk}
    if "fs_strategy" not in settings:  # HDF5 then notes times by itself
        tamis.repack(source, whole, recipes, chunks=chunks)
        assert target.read_bytes() == whole.read_bytes()
