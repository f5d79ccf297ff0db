"""U101: chunks much larger than all of their array are named by every command, and plan proposes smaller ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import tamis

SAID = "chunks of 524288 are much larger than all of 12: 4.19 MB are stored, and 4.19 MB decoded, for 96 B of values"
NAMES = ("time", "a", "b", "c")


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """Write four variables of 12 steps in the chunks that netCDF-C gave them: 16.8 MB."""
    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3000)
        for name in NAMES:
            file.createVariable(name, "f8", ("time",), chunksizes=(524288,))[:] = np.arange(12)
        field = file.createVariable("ts", "f4", ("time", "x"), chunksizes=(1, 3000))
        field[:] = np.cumsum(np.random.default_rng(0).standard_normal((12, 3000)), -1)
    assert path.stat().st_size > 16_800_000
    return path


def test_u101_inspect_names_oversized_chunks_without_filters(steps: Path) -> None:
    notes = {each.path: [(note.code, note.text) for note in each.notes] for each in tamis.inspect(steps).datasets}
    for name in NAMES:
        assert notes[f"/{name}"] == [("oversized-chunks", f"{SAID}; use chunks such as 2048")]
    assert not notes["/ts"]


def test_u101_repack_and_its_preview_name_chunks_that_are_copied(steps: Path, tmp_path: Path) -> None:
    for result in (
        tamis.preview_repack(steps, tmp_path / "out.nc", {"ts": "zfp(bound=0.1)"}),
        tamis.repack(steps, tmp_path / "out.nc", {"ts": "zfp(bound=0.1)"}),
    ):
        assert [note for note in result.notes if "much larger" in note] == [
            f"/{name}: {SAID}; -c '/{name}:2048' makes smaller ones" for name in sorted(NAMES)
        ]


def test_u101_repack_names_chunks_that_are_written_anew(steps: Path, tmp_path: Path) -> None:
    result = tamis.repack(steps, tmp_path / "out.nc", {"a": "shuffle|deflate(4)"})
    assert "chunks of 524288 are much larger than all of 12" in " ".join(result["a"].notes)
    assert "4.19 MB decoded, for 96 B of values; -c '/a:2048' makes smaller ones" in " ".join(result["a"].notes)


def test_u101_to_netcdf_names_chunks_of_the_encoding(steps: Path, tmp_path: Path) -> None:
    with xr.open_dataset(steps) as dataset:
        result = dataset.tamis.to_netcdf(tmp_path / "out.nc", {"ts": "zfp(bound=0.1)"})
        assert "-c '/a:2048' makes smaller ones" in " ".join(result["a"].notes)
        for variable in dataset.variables.values():
            variable.encoding.pop("chunksizes", None)
        again = dataset.tamis.to_netcdf(tmp_path / "small.nc", {"ts": "zfp(bound=0.1)"})
    assert "much larger" not in str(again)
    assert (tmp_path / "small.nc").stat().st_size < 1_000_000


def test_u101_plan_proposes_chunks_for_what_it_is_asked_about(steps: Path, tmp_path: Path) -> None:
    plan = tamis.plan(steps)
    assert plan.chunks.items() >= {f"/{name}": (2048,) for name in NAMES}.items()
    assert "-c /time:2048" in plan.options
    tamis.repack(steps, tmp_path / "out.nc", plan.recipe)
    assert (tmp_path / "out.nc").stat().st_size < 500_000
    assert tamis.verify(steps, tmp_path / "out.nc").ok
    assert "much larger" not in str(tamis.inspect(tmp_path / "out.nc"))
    assert {other.path for other in plan.rechunked} == {f"/{name}" for name in NAMES}
    assert not tamis.plan(steps, chunks="keep").chunks


def test_u101_plan_only_notes_what_no_want_names(steps: Path) -> None:
    plan = tamis.plan(steps, {"ts": "abs=0.1"})
    assert [*plan.chunks] == []
    assert f"/time: {SAID}; -c '/time:2048' makes smaller ones" in str(plan)
    assert {(each["path"], each["asked"]) for each in plan.to_dict()["rechunked"]} == {
        (f"/{name}", False) for name in NAMES
    }
    named = tamis.plan(steps, {"time": "lossless"})
    assert named["time"].chunks == (2048,)
    assert SAID in named["time"].reason


def test_u101_pasted_line_of_plan_makes_the_file_small(steps: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tamis", "plan", steps], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    line = [line for line in done.stdout.splitlines() if line.startswith("tamis repack")][-1]
    line = line.replace("tamis repack", f"{sys.executable} -m tamis repack", 1).replace("OUT", "out.nc")
    subprocess.run(line, shell=True, check=True, capture_output=True, cwd=tmp_path)
    assert (tmp_path / "out.nc").stat().st_size < 500_000


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u101_compressed_chunks_of_zarr_are_named_by_what_they_decode_to(zarr_format: int, tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    array = group.create_array("v", shape=(12, 2), chunks=(2048, 512), dtype="f4")
    array[:] = 1
    (info,) = tamis.inspect(tmp_path / "a.zarr").datasets
    assert [note.code for note in info.notes] == ["oversized-chunks"]
    assert "4.19 MB decoded, for 96 B of values" in info.notes[0].text
    plan = tamis.plan(tmp_path / "a.zarr")
    assert plan.chunks == {"/v": (12, 2)}


def test_u101_growing_arrays_of_ordinary_chunks_are_not_named(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 200)
        file.createVariable("t", "f8", ("time",), chunksizes=(512,))[:] = np.arange(3)
        file.createVariable("v", "f4", ("time", "x"), chunksizes=(64, 200))[:] = np.zeros((3, 200))
    assert not any(each.notes for each in tamis.inspect(tmp_path / "a.nc").datasets)
