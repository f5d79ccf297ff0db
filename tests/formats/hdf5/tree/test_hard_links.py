"""Known defect U3: names and patterns missed datasets whose alphabetically first hard link is elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis import FileError
from tamis.cli import main
from tamis.formats.hdf5.lib.files import open_source
from tamis.formats.hdf5.tree.walk import walk

VALUES = np.arange(64 * 64, dtype="f4").reshape(64, 64)
COUNTS = "/entry/instrument/detector/counts"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="tamis")


@pytest.fixture
def nexus(tmp_path: Path) -> Path:
    """Write a file as NeXus has it: the first path of ``counts`` is /entry/data/counts."""
    path = tmp_path / "n.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(COUNTS, data=VALUES, chunks=(16, 64))
        file.create_dataset("entry/instrument/detector/dead", data=VALUES, chunks=(16, 64))
        file.create_group("entry/data")["counts"] = file[COUNTS]
        file["entry/soft"] = h5py.SoftLink(COUNTS)
    return path


def filters_of(path: Path, name: str) -> str:
    with h5py.File(path) as file:
        return str(tamis.hdf5.pipeline_of(file[name]))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (COUNTS, COUNTS),
        (COUNTS[1:], COUNTS),
        ("/entry/data/counts", "/entry/data/counts"),
        ("*/detector/c*", COUNTS),
        ("*counts", "/entry/data/counts"),
        ("/entry/soft", "/entry/soft"),
    ],
)
def test_u03_any_path_names_a_dataset_in_every_command(name: str, label: str, nexus: Path, tmp_path: Path) -> None:
    assert [each.path for each in tamis.inspect(nexus, [name]).datasets] == [label]
    target = tmp_path / "o.h5"
    result = tamis.repack(nexus, target, {name: "deflate(4)"}, chunks={name: (8, 64)})
    assert [each.path for each in result.datasets] == [label]
    assert filters_of(target, COUNTS) == filters_of(target, "/entry/data/counts") == "deflate(4)"
    found = tamis.verify(nexus, target, bounds={name: 0.5}, variables=[name])
    assert [(each.path, each.bound, each.status) for each in found.datasets] == [(label, 0.5, "equal")]
    with tamis.open(target) as file:
        assert np.array_equal(file[label][...], VALUES)


def test_u03_pattern_reaches_every_dataset_below_a_group(nexus: Path, tmp_path: Path) -> None:
    target = tmp_path / "o.h5"
    result = run("repack", nexus, target, "-f", "/entry/instrument/*:deflate(4)", "--json")
    assert result.exit_code == 0
    assert [each["path"] for each in json.loads(result.stdout)["datasets"]] == [
        COUNTS,
        "/entry/instrument/detector/dead",
    ]
    plan = run("repack", nexus, tmp_path / "p.h5", "-f", "/entry/instrument/*:deflate(4)", "--dry-run", "--json")
    assert [each["action"] for each in json.loads(plan.stdout)["datasets"]] == ["store", "store"]
    with h5py.File(target, "r+") as file:
        file[COUNTS][...] = 12345
    for name in ("/entry/instrument/*", COUNTS, "/entry/soft"):
        checked = run("verify", nexus, target, "--bound", f"{name}:0", "-v", name)
        assert checked.exit_code == 3
        assert f"violation: {'/entry/soft' if 'soft' in name else COUNTS}: 4096 of 4096" in checked.stdout


def test_u03_resume_takes_chunks_over_by_another_path(nexus: Path, tmp_path: Path) -> None:
    """The path that was asked for is the same in both runs, and the target has the same bytes."""
    for name in ("a.h5", "b.h5"):
        tamis.repack(nexus, tmp_path / name, {COUNTS: "deflate(4)"}, resume=name == "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_u03_names_of_one_dataset_that_want_different_things_are_refused(nexus: Path, tmp_path: Path) -> None:
    recipes = {COUNTS: "deflate(4)", "/entry/data/counts": "lzf"}
    with pytest.raises(tamis.ParameterError, match="name the same dataset, with"):
        tamis.repack(nexus, tmp_path / "o.h5", recipes)
    with pytest.raises(tamis.ParameterError, match="name the same dataset, with"):
        tamis.verify(nexus, nexus, bounds={COUNTS: 1, "/entry/soft": 2})
    tamis.repack(nexus, tmp_path / "o.h5", {**recipes, COUNTS: "lzf"})


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "--bound", "/entry/instruments/*:0"),
        ("verify", "-v", "/entry/instruments/*"),
        ("inspect", "-v", "/entry/instruments/*"),
    ],
)
def test_u03_pattern_that_matches_nothing_is_an_error(arguments: tuple[str, ...], nexus: Path) -> None:
    command, *options = arguments
    files = {"verify": [nexus, nexus], "inspect": [nexus]}[command]
    result = run(command, *files, *options)
    assert result.exit_code == 1
    assert "expected a dataset named '/entry/instruments/*', found only /entry/data/counts" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("-f", "/entry/instruments/*:deflate(4)"),
        ("-f", "*:deflate(4)", "-c", "/entry/instruments/*:4x4"),
    ],
)
def test_u41_pattern_of_repack_that_matches_nothing_is_a_note(
    options: tuple[str, ...], nexus: Path, tmp_path: Path
) -> None:
    result = run("repack", nexus, tmp_path / "o.h5", *options)
    assert result.exit_code == 0
    assert "/entry/instruments/*: this pattern matches no dataset" in result.stdout + result.stderr


def test_u03_exact_name_with_signs_of_patterns_goes_before_the_pattern(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        for name in ("st*r", "star", "stir"):
            file.create_dataset(name, data=VALUES, chunks=(16, 64))
    result = tamis.repack(source, target, {"s*": "lzf", "st*r": "zfp(rate=8)"})
    assert {each.path: each.pipeline for each in result.datasets} == {
        "/st*r": "zfp(rate=8)|fletcher32",
        "/star": "lzf",
        "/stir": "lzf",
    }
    assert [each.path for each in tamis.inspect(source, ["st*r"]).datasets] == ["/st*r"]
    assert len(tamis.verify(source, target, variables=["st?r"]).datasets) == 3
    assert tamis.verify(source, target, bounds={"st*r": 1e9}).ok
    # What a name means cannot be passed over, as what a pattern matches can.
    with pytest.raises(tamis.ParameterError, match=r"/st\*r: "):
        tamis.repack(source, tmp_path / "c.h5", {"st*r": "zfp(accuracy=1)"}, chunks={"st*r": (1, 1)})


def test_u03_groups_with_several_links_and_loops_have_all_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a/b/v"] = 1
        file["a/b/loop"] = file["a"]
        file["other"] = file["a/b"]
        file["type"] = np.dtype("f4")
        file["z"] = file["type"]
    with open_source(path) as file:
        assert walk(file).paths() == {"/a/b/v": "/a/b/v", "/other/v": "/a/b/v"}
    assert [each.path for each in tamis.inspect(path, ["/other/v"]).datasets] == ["/other/v"]
    assert [each.path for each in tamis.inspect(path, ["/oth*/v"]).datasets] == ["/other/v"]
    assert [each.path for each in tamis.inspect(path, ["/a/b/loop/b/v"]).datasets] == ["/a/b/loop/b/v"]


def test_u03_very_many_paths_are_refused_for_patterns_and_not_for_names(tmp_path: Path) -> None:
    """Thirty groups with two links each make 2^30 paths."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        group = file["/"]
        for _ in range(30):
            inner = group.create_group("a")
            group["b"] = inner
            group = inner
        group["v"] = 1
    assert len(tamis.inspect(path).datasets) == 1
    assert len(tamis.inspect(path, ["b/" * 30 + "v"]).datasets) == 1
    with pytest.raises(FileError, match="expected at most 1000000 paths, found more: name datasets, without a pattern"):
        tamis.inspect(path, ["*v"])
