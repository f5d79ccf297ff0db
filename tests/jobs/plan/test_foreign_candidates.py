"""SPERR and SZ3 among plan's candidates, readers and risks, and chunk shapes for the best ratio."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import ParameterError
from tamis.cli import main
from tamis.jobs.plan.candidates import winner_of
from tamis.jobs.plan.chunk_shapes import shapes_of_kinds
from tamis.jobs.plan.planned import Candidate
from tamis.jobs.plan.planner import Settings

SPERR, SZ3 = "sperr(bound=0.1)|shuffle|deflate(4)", "sz3(mode=absolute,bound=0.1)|shuffle|deflate(4)"
SZIP = "pack(bound=0.1)|szip(coding=nn,pixels=16)"


def make(path: Path, chunks: tuple[int, ...] | None = (1, 96, 128)) -> Path:
    """A smooth field that moves: SPERR takes a fraction of what packing takes."""
    t, y, x = np.ogrid[:24, :96, :128]
    values = 20 * np.sin(t / 9 + y / 11) * np.cos(x / 13 - t / 7) + 280
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values.astype("f4"), chunks=chunks)
    return path


def candidate(filters: str, ratio: float, speed: float = 100.0) -> Candidate:
    return Candidate(filters, ratio, ratio, ratio, 0.1, speed, speed, "", 0.0)


def test_sperr_is_chosen_written_and_proven(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", (8, 96, 128))
    plan = tamis.plan(path, {"v": "abs=0.1"}, readers="hdf5plugin")
    planned = plan["v"]
    assert planned.filters == SPERR
    assert planned.chosen is not None
    assert 0 < planned.chosen.largest_error <= 0.1
    assert planned.chosen.read_by == "HDF5 with sperr"
    result = tamis.repack(path, tmp_path / "b.h5", plan.recipe)["v"]
    assert result.ratio == pytest.approx(planned.chosen.ratio, rel=0.05)
    assert tamis.verify(path, tmp_path / "b.h5", bounds={"v": 0.1}).ok


def test_sz3_is_listed_and_chosen_only_if_allowed(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", (8, 96, 128))
    plan = tamis.plan(path, {"v": "abs=0.1"}, readers="all")
    by_filters = {each.filters: each for each in plan["v"].candidates}
    assert by_filters[SZ3].is_unstable
    assert not by_filters[SPERR].is_unstable
    assert re.search(r"unstable +sz3\(mode=absolute,bound=0.1\)", str(plan))
    assert "/v: versions of SZ3 do not read each other's chunks: sz3 is chosen only with allow='unstable'" in str(plan)
    front = [candidate(SZ3, 40), candidate(SPERR, 30)]
    for allow, allowed in (((), front[1:]), (("unstable",), front)):
        settings = Settings("size", "all", 1_000_000, None, "disk", allow=allow)
        assert settings.eligible(front) == allowed


@pytest.mark.matrix
@pytest.mark.parametrize("readers", ["any", "netcdf", "zfp", "zarr"])
def test_other_readers_get_filters_of_hdf5plugin_as_offers_alone(readers: Any, tmp_path: Path) -> None:
    planned = tamis.plan(make(tmp_path / "a.h5", (8, 96, 128)), {"v": "abs=0.1"}, readers=readers)["v"]
    needs = "tamis" if readers == "zarr" else "the package hdf5plugin"
    assert {each.needs for each in planned.candidates if "sperr" in each.filters or "sz3" in each.filters} == {needs}
    assert planned.chosen is not None
    assert planned.chosen.needs == ""
    assert [offer.filters for offer in planned.offers][-1] == SPERR


def test_requirements_without_an_absolute_error_have_no_filter_of_hdf5plugin(tmp_path: Path) -> None:
    for requirement in ("rel=0.001", "psnr=60", "lossless"):
        planned = tamis.plan(make(tmp_path / "a.h5"), {"v": requirement})["v"]
        assert not [each for each in planned.candidates if "sperr" in each.filters or "sz3" in each.filters]


def test_a_filter_of_hdf5plugin_must_save_a_tenth_more() -> None:
    for ratio, winner in ((10.9, SZIP), (11.1, SPERR)):
        assert winner_of([candidate(SPERR, ratio), candidate(SZIP, 10)], "size")[0].filters == winner
        assert winner_of([candidate(SPERR, ratio), candidate(SZIP, 10)], "archive")[0].filters == SPERR
    assert winner_of([candidate(SPERR, 11.1, 10), candidate(SZIP, 10)], "speed")[0].filters == SZIP
    assert winner_of([candidate(SPERR, 10)], "size")[0].filters == SPERR


@pytest.mark.check
def test_best_shape_for_the_ratio_is_found_on_request_and_without_chunks(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5")
    kept, auto = (tamis.plan(path, {"v": "abs=0.1"}, readers="any", chunks=chunks)["v"] for chunks in ("keep", "auto"))
    assert kept.chunks is None
    assert auto.chunks is not None
    assert kept.chosen is not None
    assert auto.chosen is not None
    assert auto.chosen.ratio > 1.2 * kept.chosen.ratio
    assert "; its chunks are " in auto.reason
    assert f" instead of 1x96x128, where the ratio is {kept.chosen.ratio:.2f}" in auto.reason
    result = tamis.repack(
        path, tmp_path / "b.h5", tamis.plan(path, {"v": "abs=0.1"}, readers="any", chunks="auto").recipe
    )
    assert result["v"].ratio == pytest.approx(auto.chosen.ratio, rel=0.05)
    contiguous = tamis.plan(make(tmp_path / "c.h5", None), {"v": "abs=0.1"}, readers="any")["v"]
    assert contiguous.chosen is not None
    assert contiguous.chosen.ratio > 0.95 * auto.chosen.ratio


def test_shapes_are_a_map_columns_and_boxes_of_at_most_three_axes() -> None:
    assert [*shapes_of_kinds((100, 192, 288), 4)] == [(1, 192, 288), (100, 16, 20), (34, 64, 96), (50, 96, 144)]
    assert [*shapes_of_kinds((3, 30, 192, 288), 4)][2:] == [(1, 15, 96, 144)] * 2
    assert [*shapes_of_kinds((1000,), 8)] == [(1000,)]
    for shape in shapes_of_kinds((5, 1, 4000, 7000), 8):
        assert 1 <= np.prod(shape) * 8 <= 4 << 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow": "risky"}, "expected allow to be one of unstable, got 'risky'"),
        ({"chunks": "best"}, "expected chunks to be one of auto, keep, got 'best'"),
        (
            {"chunks": "keep", "access": "map"},
            "access and chunks cannot be combined, because each",
        ),
        (
            {"chunks": "auto", "ratio": 5},
            "ratio and size cannot be combined with chunks='auto', because they decide errors in the present chunks",
        ),
        ({"prefer": "best"}, "expected prefer to be one of size, speed, archive, got 'best'"),
    ],
)
def test_wrong_choices_are_refused(options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        tamis.plan(make(tmp_path / "a.h5"), {"v": "abs=0.1"}, **options)


@pytest.mark.check
def test_command_takes_the_new_choices(tmp_path: Path) -> None:
    path = str(make(tmp_path / "a.h5", (8, 96, 128)))
    arguments = ["plan", path, "-r", "v:abs=0.1", "--readers", "hdf5plugin", "--prefer", "archive"]
    done = CliRunner().invoke(main, [*arguments, "--allow", "unstable", "--chunks", "auto", "--json"])
    assert done.exit_code == 0
    (dataset,) = json.loads(done.stdout)["datasets"]
    assert dataset["filters"] in (SZ3, SPERR)
    assert CliRunner().invoke(main, [*arguments, "--allow", "risky"]).exit_code == 2


@pytest.mark.check
def test_filters_that_lose_in_small_chunks_are_tried_in_large_ones(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    time, lat, lon = np.ogrid[:48, :16, :96]
    values = 280 + 8 * np.sin(time * np.pi / 6) * np.cos(lat / 9) + 6 * np.sin(lon / 20)
    values = values + np.round(random.normal(size=(1, 16, 96))) + 0.02 * random.normal(size=(48, 16, 96))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values.astype("f4"), chunks=(1, 16, 96), compression="gzip")
    kept, free = (
        tamis.plan(path, {"v": "abs=0.02"}, readers="netcdf-plugins", chunks=chunks, prefer="archive")["v"]
        for chunks in ("keep", "auto")
    )
    assert not any("bzip2" in candidate.filters for candidate in kept.candidates)
    assert free.filters == "pack(bound=0.02)|bzip2(9)"
    assert free.chosen is not None
    assert kept.chosen is not None
    assert free.chosen.ratio > 1.1 * kept.chosen.ratio
