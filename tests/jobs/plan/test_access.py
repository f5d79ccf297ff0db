"""Chunk shapes for how values are read: what can be said, what the model costs, and what plan makes of it."""

from __future__ import annotations

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import ParameterError
from tamis.jobs.plan.chunk_shapes import MODELS, Access, Axes, Reads, _best, _shapes, as_access, read_seconds

AXES = Axes.of(("time", "lat", "lon"), 3)


def test_access_prints_what_it_reads() -> None:
    for text in ("series", "map", "whole", "series=0.75,map=0.25", "box:time=10,lat=96"):
        assert str(as_access(text)) == text
        assert as_access(str(as_access(text))) == as_access(text)
    assert as_access({"series": 3, "map": 1}) == as_access("series=0.75,map=0.25")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("serie", "expected access as series, map, whole, .*got 'serie'"),
        ("serie=1", r"got 'serie' \(did you mean series\?\)"),
        ("series=0,map=1", "expected a share above 0 for series"),
        ("series=a", "expected access as series"),
        ("box:time", "expected a box such as box:time=10,lat=96"),
        ("box:time=0", "expected a box such as"),
        ({}, "expected access as"),
        ({"map": True}, "expected a share above 0 for map"),
        (3, "expected access as"),
    ],
)
def test_wrong_access_is_refused(value: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_access(value)


def test_reads_by_the_names_of_dimensions() -> None:
    def extents(access: Access, *names: str, times: tuple[str, ...] = ()) -> tuple[int, ...]:
        shape = (100, 7, 50, 60)[-len(names) :]
        ((_, _, selection),) = access.selections(shape, Axes.of(names, len(names), times))
        return selection

    assert extents(as_access("series"), "time", "lev", "lat", "lon") == (100, 1, 1, 1)
    assert extents(as_access("map"), "time", "lev", "lat", "lon") == (1, 1, 50, 60)
    assert extents(as_access("series"), "lat", "lon", "day", times=("day",)) == (1, 1, 60)
    assert extents(as_access("map"), "lat", "lon", "day", times=("day",)) == (7, 50, 1)
    assert extents(as_access("box:lat=10"), "time", "lev", "lat", "lon") == (100, 7, 10, 60)
    assert extents(as_access("box:lat=10"), "time", "lon") == (50, 60)
    with pytest.raises(ParameterError, match=r"expected a box along the dimensions time, lat, got lats \(did you mean"):
        as_access("box:lats=10").check(("time", "lat"))


def test_box_along_no_dimension_is_refused(sample: Path) -> None:
    with pytest.raises(ParameterError, match="expected a box along the dimensions time, lat, lon, got lev"):
        tamis.plan(sample, {"TS": "abs=0.1"}, access="box:time=1,lev=1")


def test_model_counts_chunks_bytes_and_decoding() -> None:
    disk = MODELS["disk"]

    def seconds(selection: tuple[int, ...], chunk: tuple[int, ...]) -> float:
        nbytes = int(np.prod(chunk)) * 4
        return read_seconds(selection, (100, 64, 64), chunk, nbytes, disk, ratio=4, read_mbs=500)

    one = 4096 * 4
    assert seconds((100, 1, 1), (1, 64, 64)) == pytest.approx(100 * (disk.latency + one / 4 / 500e6 + one / 500e6))
    assert seconds((1, 64, 64), (1, 64, 64)) == pytest.approx(disk.latency + one / 4 / 500e6 + one / 500e6)
    # Where a part begins is not known: on the mean it reaches into another chunk.
    assert seconds((1, 1, 9), (1, 64, 16)) == pytest.approx(2 * disk.latency + 1.5 * one / 4 * 1.25 / 500e6)


def test_shapes_suit_the_reads_and_have_a_sensible_size() -> None:
    extents = (600, 192, 288)
    assert all(16 << 10 <= np.prod(shape) * 4 <= 4 << 20 for shape in _shapes(extents, 4))

    def first(access: str) -> tuple[int, ...]:
        return _best(extents, 4, Reads(as_access(access), AXES, MODELS["disk"]))[0]

    assert first("map")[1:] == (192, 288)
    assert first("series")[0] == 600
    both = first("series=0.5,map=0.5")
    assert 4 < both[0] < 600
    assert np.prod(both[1:]) < 192 * 288


@pytest.mark.check
def test_plan_chooses_chunks_for_series_and_repack_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    steps = np.random.default_rng(0).standard_normal((200, 32, 48))
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("step", "lat", "lon"), steps.shape, strict=True):
            file.createDimension(name, extent)
        file.createVariable("step", "f8", ("step",)).units = "days since 2000-01-01"
        variable = file.createVariable("ts", "f4", ("step", "lat", "lon"), chunksizes=(1, 32, 48))
        variable[:] = np.cumsum(np.cumsum(np.cumsum(steps, 0), 1), 2) / 100
    plan = tamis.plan(path, {"ts": "abs=0.1"}, access="series", sample=2_000_000)
    planned = plan["ts"]
    assert planned.chunks is not None
    assert planned.chunks[0] > 50
    assert "instead of 1x32x48" in planned.reason
    assert "a series in " in planned.reason
    assert str(plan.recipe.chunks["/ts"]).startswith(f"step={planned.chunks[0]}, lat=")
    result = tamis.repack(path, tmp_path / "b.nc", plan.recipe)
    assert planned.chosen is not None
    assert result["ts"].ratio == pytest.approx(planned.chosen.ratio, rel=0.1)
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["ts"].chunks == planned.chunks
    for_maps = tamis.plan(path, {"ts": "abs=0.1"}, access="map", sample=2_000_000)["ts"].chunks or (1, 32, 48)
    assert for_maps[0] <= 4


def test_unknown_storage_is_refused(sample: Path) -> None:
    with pytest.raises(ParameterError, match="expected storage to be one of disk, lustre, s3, got 'tape'"):
        tamis.plan(sample, {"TS": "abs=0.1"}, access="map", storage="tape")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="storage 's3' needs access"):
        tamis.plan(sample, {"TS": "abs=0.1"}, storage="s3")
