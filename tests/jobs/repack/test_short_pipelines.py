"""U38: a target records the filters for chunks without zfp only where a chunk goes through them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis
from numpy.typing import NDArray

import tamis

Run = Callable[..., str]

RECIPE = {"v": "zfp(accuracy=0.01)|shuffle|deflate(4)"}
COMMAND = ("-f", f"v:{RECIPE['v']}")
SHORT, LONG = [32013, 3], [32013, 2, 1, 3]
SHAPE, CHUNK = (40, 64, 64), (4, 32, 32)

KILLED = """
import os, signal, sys, tamis, tamis.rewrite.write
source, target, kept, after = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tamis.rewrite.write._KEPT_NBYTES = kept
calls = 0
def progress(step, done, total):
    global calls
    calls += str(step).startswith("writing")
    if calls == after:
        os.kill(os.getpid(), signal.SIGKILL)
tamis.repack(source, target, {"v": "zfp(accuracy=0.01)|shuffle|deflate(4)"}, resume=True, progress=progress)
"""


def values(*gaps: tuple[int, int, int]) -> NDArray[np.float32]:
    field = np.random.default_rng(38).standard_normal(SHAPE).cumsum(axis=0).astype("f4")
    for gap in gaps:
        field[gap] = np.nan
    return field


def make(path: Path, *gaps: tuple[int, int, int]) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values(*gaps), chunks=CHUNK)
        file["w"] = np.arange(1000)
    return path


def filters(path: Path, name: str = "v") -> list[int]:
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        return [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]


def chunks(path: Path) -> dict[tuple[int, ...], tuple[bytes, int]]:
    with h5py.File(path) as file:
        dataset = file["v"].id
        infos = [dataset.get_chunk_info(at) for at in range(dataset.get_num_chunks())]
        return {
            each.chunk_offset: (dataset.read_direct_chunk(each.chunk_offset)[1], each.filter_mask) for each in infos
        }


def test_u38_no_chunk_needs_the_fallback_it_is_not_recorded_and_nccopy_keeps_zfp(tmp_path: Path, tool: Run) -> None:
    source, gap = make(tmp_path / "a.h5"), make(tmp_path / "gap.h5", (0, 0, 0))
    for each in (source, gap):
        done = run_tamis("repack", each, each.with_suffix(".nc"), *COMMAND)
        assert done.returncode == 0, done.stderr
    assert "recorded without" not in done.stdout
    short, full = chunks(tmp_path / "a.nc"), chunks(tmp_path / "gap.nc")
    assert (filters(tmp_path / "a.nc"), filters(tmp_path / "gap.nc")) == (SHORT, LONG)
    assert {mask for _, mask in short.values()} == {0}
    assert {mask for _, mask in full.values()} == {0b110, 0b001}
    # The same bytes, whatever is recorded.
    assert [origin for origin in short if short[origin][0] != full[origin][0]] == [(0, 0, 0)]
    tool("nccopy", tmp_path / "a.nc", tmp_path / "copy.nc")
    assert filters(tmp_path / "copy.nc") == SHORT
    assert tamis.verify(source, tmp_path / "copy.nc", bounds={"v": 0.02}).ok


@pytest.mark.parametrize("kept_nbytes", [0, 16 << 20], ids=["encoded again", "kept"])
@pytest.mark.parametrize("gap", [(0, 0, 0), (20, 0, 0), (39, 63, 63)], ids=["first", "middle", "last"])
def test_u38_a_late_chunk_needs_the_fallback_the_dataset_is_created_again(
    gap: tuple[int, int, int], kept_nbytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.rewrite.write._KEPT_NBYTES", kept_nbytes)
    source = make(tmp_path / "a.h5", gap)
    outputs = []
    for threads in (1, 3):
        target = tmp_path / f"b{threads}.h5"
        (result,) = tamis.repack(source, target, RECIPE, threads=threads).datasets
        outputs.append(target.read_bytes())
    assert outputs[0] == outputs[1]
    assert filters(target) == LONG
    assert (result.chunks, result.lossless_chunks, result.missing_values) == (40, 1, 1)
    assert (result.pipeline, result.left_out) == ("zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32", "")
    assert not tamis.verify(source, target, bounds={"v": 0.01}).violations
    # The room of the dataset that was created first is used again.
    tamis.repack(make(tmp_path / "c.h5"), tmp_path / "short.h5", RECIPE)
    with h5py.File(target) as file:
        longest = max(len(data) for data, _ in chunks(target).values())
        others = len(outputs[0]) - file["v"].id.get_storage_size()
    with h5py.File(tmp_path / "short.h5") as file:
        assert others < (tmp_path / "short.h5").stat().st_size - file["v"].id.get_storage_size() + 2 * longest


@pytest.mark.matrix
@pytest.mark.parametrize("kept_nbytes", [0, 16 << 20], ids=["encoded again", "kept"])
@pytest.mark.parametrize("after", [5, 39, 50, 70])
def test_u38_a_run_killed_before_or_after_that_resumes_to_the_same_bytes(
    after: int, kept_nbytes: int, tmp_path: Path, python: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kept_nbytes and after > 40:
        after -= 30  # nothing is encoded twice
    monkeypatch.setattr("tamis.rewrite.write._KEPT_NBYTES", kept_nbytes)
    source = make(tmp_path / "a.h5", (39, 63, 63))
    tamis.repack(source, tmp_path / "complete.h5", RECIPE)
    python(KILLED, source, tmp_path / "b.h5", str(kept_nbytes), str(after), exit_code=-9)
    result = tamis.repack(source, tmp_path / "b.h5", RECIPE, resume=True)
    assert 0 < result.datasets[0].reused_chunks <= 40
    assert (tmp_path / "b.h5").read_bytes() == (tmp_path / "complete.h5").read_bytes()


def test_u38_what_is_recorded_already_is_copied_whatever_the_fallback(tmp_path: Path) -> None:
    tamis.repack(make(tmp_path / "a.h5"), tmp_path / "b.h5", RECIPE)
    for text in (RECIPE["v"], "zfp(accuracy=0.01)|shuffle|deflate(9)", "zfp(accuracy=0.01)"):
        (result,) = tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"v": text}, overwrite=True).datasets
        assert result.copied, text
        assert chunks(tmp_path / "b.h5") == chunks(tmp_path / "c.h5")
    # Chunks that are stored as they are get the fallback that is now asked for.
    tamis.repack(make(tmp_path / "gap.h5", (0, 0, 0)), tmp_path / "raw.h5", {"v": "zfp(accuracy=0.01)"})
    assert filters(tmp_path / "raw.h5") == SHORT
    (result,) = tamis.repack(tmp_path / "raw.h5", tmp_path / "d.h5", RECIPE).datasets
    assert not result.copied
    assert filters(tmp_path / "d.h5") == LONG
    assert {mask for _, mask in chunks(tmp_path / "d.h5").values()} == {0b110, 0b001}


def test_u38_a_dataset_without_chunks_keeps_all_filters(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (0, 64, 64), "f4", chunks=CHUNK, maxshape=(None, 64, 64))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", RECIPE)
    assert filters(tmp_path / "b.h5") == LONG


def test_u38_required_filters_are_recorded_and_applied(tmp_path: Path) -> None:
    tamis.repack(make(tmp_path / "a.h5"), tmp_path / "b.h5", {"v": "zfp(accuracy=0.01)|shuffle!|deflate(4)!"})
    assert filters(tmp_path / "b.h5") == LONG
    assert {mask for _, mask in chunks(tmp_path / "b.h5").values()} == {0}


def results(source: Path, target: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """Return what the command prints as text, and as JSON."""
    command = ["repack", source, target, *COMMAND, *options]
    again = ["--json", *([] if "--dry-run" in options else ["--overwrite"])]
    runs = [run_tamis(*command), run_tamis(*command, *again)]
    assert [run.returncode for run in runs] == [0, 0]
    return runs[0].stdout, json.loads(runs[1].stdout)["datasets"][0]


@pytest.mark.parametrize("ending", ["h5", "zarr"])
def test_u38_the_result_says_what_is_recorded(ending: str, tmp_path: Path) -> None:
    source, target = make(tmp_path / "a.h5"), tmp_path / f"b.{ending}"
    text, fields = results(source, target, "--dry-run")
    note = "shuffle|deflate(4) is recorded only if a chunk is stored without zfp"
    assert note in text
    assert note in fields["notes"]
    text, fields = results(source, target)
    assert "recorded without shuffle|deflate(4), which no chunk needs" in text
    assert (fields["pipeline"], fields["left_out"]) == ("zfp(accuracy=0.01)|fletcher32", "shuffle|deflate(4)")
    stored = next(dataset for dataset in tamis.inspect(target).datasets if dataset.path == "/v")
    assert [stage.filter.name for stage in stored.pipeline.stages] == ["zfp", "fletcher32"]


def test_u38_xarray_saves_short_pipelines_too(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("tamis_xarray.accessor")
    for name, gaps, expected in (("full", (), SHORT), ("gap", ((0, 0, 0),), LONG)):
        path = tmp_path / f"{name}.nc"
        ds = xr.Dataset({"v": (("t", "y", "x"), values(*gaps))})
        ds.tamis.to_netcdf(path, RECIPE, chunks={"v": CHUNK})
        assert filters(path) == expected
        assert not np.isnan(values(*gaps)[~np.isnan(xr.open_dataset(path, engine="tamis")["v"].values)]).any()
