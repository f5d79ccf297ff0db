"""The witness xarray, where a dataset has several paths, or other files have what a path leads to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

pytest.importorskip("xarray")
pytest.importorskip("netCDF4")

from tamis import repack_many
from tamis.jobs.many import order
from tamis.jobs.witness import Witnessed

LOSSLESS = "shuffle|deflate(4)"
LOSSY = "absolute(0.1)|shuffle|deflate(4)"
CHANGING = [LOSSY, "pack(0.1)|shuffle|deflate(4)", "zfp(accuracy=0.1)|shuffle|deflate(4)"]


def values(seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(280, 5, (8, 40, 40)).astype("f4")


def part(path: Path, name: str = "T") -> Path:
    """Make a file with a dataset of several chunks."""
    path.parent.mkdir(exist_ok=True, parents=True)
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=values(), chunks=(2, 40, 40), compression="gzip")
    return path


def witnessed(source: Path, target: Path, recipe: str, **options: Any) -> Witnessed:
    found = tamis.repack(source, target, {"*T": recipe}, witness="xarray", **options).witness
    assert found is not None
    return found


def soft(file: h5py.File) -> None:
    file["s"] = h5py.SoftLink("/g1/T")


def hard(file: h5py.File) -> None:
    file["a"] = file["g1/T"]


def soft_group(file: h5py.File) -> None:
    file["g2"] = h5py.SoftLink("/g1")
    file["s"] = h5py.SoftLink("/g2/T")


def hard_group(file: h5py.File) -> None:
    file["g0"] = file["g1"]


LINKS = {soft: {"/s"}, hard: {"/a"}, soft_group: {"/s", "/g2/T"}, hard_group: {"/g0/T"}}


@pytest.mark.parametrize("recipe", CHANGING)
@pytest.mark.parametrize("link", LINKS)
def test_dataset_is_known_by_all_of_its_paths(tmp_path: Path, link: Any, recipe: str) -> None:
    with h5py.File(part(tmp_path / "a.h5", "g1/T"), "a") as file:
        link(file)
    found = witnessed(tmp_path / "a.h5", tmp_path / "b.h5", recipe)
    assert found.unread == ()
    assert {*found.chunks} == {"/g1/T", *LINKS[link]}
    assert found.variables == 1 + len(LINKS[link])


@pytest.mark.parametrize("link", [soft_group, hard_group])
def test_new_companion_is_known_by_all_of_its_paths(tmp_path: Path, link: Any) -> None:
    with h5py.File(part(tmp_path / "a.h5", "g1/T"), "a") as file:
        file["g1/T"][:, :3] = np.nan
        link(file)
    found = witnessed(tmp_path / "a.h5", tmp_path / "b.h5", "zfp(accuracy=0.1)", missing="companion")
    assert found.unread == ()


@pytest.mark.parametrize("link", [soft, soft_group])
def test_dataset_left_out_by_all_of_its_paths(tmp_path: Path, link: Any) -> None:
    with h5py.File(part(tmp_path / "a.h5", "g1/T"), "a") as file:
        file["kept"] = np.arange(10.0)
        link(file)
    found = witnessed(tmp_path / "a.h5", tmp_path / "b.h5", LOSSLESS, drop=["/g1/T"])
    assert found.chunks.keys() == {"/kept"}


def spoil(path: Path, name: str) -> None:
    """Overwrite the beginning of the first chunk of a dataset."""
    with h5py.File(path, "r") as file:
        chunk = file[name].id.get_chunk_info(0)
    with path.open("r+b") as stream:
        stream.seek(chunk.byte_offset)
        stream.write(b"\xff" * 100)


def damaged(path: Path, *names: str) -> Path:
    """Make a netCDF-4 file whose first dataset has a chunk that nobody can decode."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as ds:
        for axis, extent in zip("zyx", values().shape, strict=True):
            ds.createDimension(axis, extent)
        for name in names:
            ds.createVariable(name, "f4", ("z", "y", "x"), zlib=True, chunksizes=(2, 40, 40))[:] = values()
    spoil(path, names[0])
    return path


@pytest.mark.parametrize("recipe", [LOSSY, LOSSLESS, "shuffle|deflate(1)"])
@pytest.mark.parametrize("names", [("T", "S"), ("T",)])
def test_damaged_dataset_is_listed(tmp_path: Path, names: tuple[str, ...], recipe: str) -> None:
    source = damaged(tmp_path / "a.nc", *names)
    with h5py.File(source, "a") as file:
        file["other"] = h5py.SoftLink("/T")
    result = tamis.repack(source, tmp_path / "b.nc", {"*": recipe}, witness="xarray")
    assert [item.path for item in result.damaged] == ["/T"]
    assert result.witness is not None
    assert {item.path for item in result.witness.unread} == {"/T", "/other"}
    assert {item.reason.partition(": ")[0] for item in result.witness.unread} == {
        "damaged in the source and the target"
    }
    assert result.witness.chunks.keys() == {f"/{name}" for name in names[1:]}


def test_dataset_that_only_the_target_cannot_give_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.jobs.witness.look import XarrayWitness

    look = XarrayWitness.look

    def damage_and_look(self: XarrayWitness, target: Path, told: Any) -> Witnessed:
        spoil(target, "T")
        return look(self, target, told)

    monkeypatch.setattr(XarrayWitness, "look", damage_and_look)
    with pytest.raises(tamis.BoundError, match="/T: expected values that xarray reads, found RuntimeError"):
        witnessed(part(tmp_path / "a.h5"), tmp_path / "b.h5", LOSSLESS)
    assert not (tmp_path / "b.h5").exists()


def failed(status: Any) -> set[str]:
    """Return the targets that a run could not make."""
    return {item.path for item in status.failures}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """Make a folder where larger files, which a run begins with, lead to smaller ones."""
    folder = part(tmp_path / "in" / "part.h5", "data").parent
    with h5py.File(folder / "part.h5", "a") as file:
        file["g/T"] = values(2)
    with h5py.File(folder / "master.h5", "w") as file:
        file["link"] = h5py.ExternalLink("part.h5", "data")
        file["group"] = h5py.ExternalLink("part.h5", "/g")
        file["soft"] = h5py.SoftLink("/link")
        file["own"] = np.random.default_rng(3).random(100_000)
    (folder / "below").mkdir()
    with h5py.File(folder / "below" / "top.h5", "w") as file:
        file["link"] = h5py.ExternalLink("../master.h5", "link")
        file["own"] = np.random.default_rng(3).random(200_000)
    return folder


def records(folder: Path) -> dict[str, Any]:
    """Return what the witness of each file says, or why it failed."""
    from tamis.jobs.many.state import State

    state = State(folder)
    state.refresh()
    return {item.path: item.witness if item.error is None else item.error["message"] for item in state.records()}


@pytest.mark.matrix
@pytest.mark.parametrize("recipe", [LOSSLESS, *CHANGING])
def test_linked_files_are_made_before_those_that_lead_to_them(linked: Path, tmp_path: Path, recipe: str) -> None:
    out = tmp_path / "out"
    assert not failed(repack_many(linked, out, {"data": recipe, "g/T": recipe}, workers=2, witness="xarray"))
    found = records(out)
    unread = {item["path"]: item["reason"] for item in found["master.h5"]["unread"]}
    reason = f"a link to {out / 'part.h5'}, which this run makes and compares with its own source"
    assert unread == {"/link": reason, "/soft": reason, "/group/T": reason}
    assert found["master.h5"]["variables"] == 1
    assert found["part.h5"]["unread"] == []
    assert str(out / "master.h5") in found["below/top.h5"]["unread"][0]["reason"]
    with h5py.File(out / "below" / "top.h5", "r") as file:
        assert np.abs(file["own"][:] - np.random.default_rng(3).random(200_000)).max() == 0


def test_link_to_a_file_that_the_run_does_not_make_is_compared(linked: Path, tmp_path: Path) -> None:
    found = witnessed(linked / "master.h5", tmp_path / "b.h5", LOSSLESS)
    assert found.unread == ()
    assert found.chunks.keys() == {"/own", "/link", "/soft", "/group/T"}


def test_linked_file_that_fails_is_named(linked: Path, tmp_path: Path) -> None:
    spoil(linked / "part.h5", "data")
    status = repack_many(linked, tmp_path / "out", {"data": LOSSY}, workers=2, witness="xarray")
    found = records(tmp_path / "out")
    assert failed(status) == {"part.h5", "master.h5", "below/top.h5"}
    assert "part.h5: /data: chunk at" in found["part.h5"]
    assert f"an external link leads to {tmp_path / 'out' / 'part.h5'}, another target" in found["master.h5"]


@pytest.mark.check
@pytest.mark.parametrize("names_are_absolute", [False, True])
def test_files_that_lead_to_each_other_are_made_with_sources_in_place_of_targets(
    tmp_path: Path, names_are_absolute: bool
) -> None:
    places = {"a": "a.h5", "b": "deep/b.h5", "d": "deep/er/d.h5"}  # each leads to the next, the last one to the first
    for name, other in ("ab", "bd", "da"):
        path = part(tmp_path / "in" / places[name])
        link = str(tmp_path / "in" / places[other])
        link = link if names_are_absolute else os.path.relpath(link, path.parent)
        with h5py.File(path, "a") as file:
            file["link"], file["group"] = h5py.ExternalLink(link, "T"), h5py.ExternalLink(link, "inner")
            file["inner/value"] = values(ord(name))
    with h5py.File(tmp_path / "in" / "c.h5", "w") as file:
        file["link"] = h5py.ExternalLink("a.h5", "T")
    out = tmp_path / "out"
    assert not failed(repack_many(tmp_path / "in", out, {"*": LOSSLESS}, workers=2, witness="xarray"))
    reasons = {name: {item["reason"] for item in found["unread"]} for name, found in records(out).items()}
    other = {"a.h5": "deep/b.h5", "deep/b.h5": "deep/er/d.h5", "deep/er/d.h5": "a.h5", "c.h5": "a.h5"}
    for name, target in other.items():
        assert reasons[name] == {f"a link to {out / target}, which this run makes and compares with its own source"}
    for name, target in list(other.items())[:3]:
        with h5py.File(out / name) as file:
            assert os.path.normpath(file["link"].file.filename) == str(out / target)
            assert file["group/value"].shape == values().shape
    assert not list(tmp_path.glob("**/tamis-links-*"))


@pytest.mark.check
def test_files_of_two_parts_that_lead_to_each_other_say_so(tmp_path: Path) -> None:
    for name, other in ("ab", "ba"):
        with h5py.File(part(tmp_path / "in" / f"{name}.h5"), "a") as file:
            file["link"] = h5py.ExternalLink(f"{other}.h5", "T")
    given = tmp_path / "in", tmp_path / "out", {"*": LOSSLESS}
    assert failed(repack_many(*given, workers=1, shard=(1, 2), witness="xarray")) == {"a.h5"}
    text = records(tmp_path / "out")["a.h5"]
    assert f"an external link leads to {tmp_path / 'out' / 'b.h5'}, another target" in text
    assert "Files of different parts that lead to each other need a run without the witness first" in text
    assert not failed(repack_many(*given, workers=2))
    assert not failed(repack_many(*given, workers=1, shard=(1, 2), witness="xarray"))


@pytest.mark.check
def test_file_of_another_part_is_named(tmp_path: Path) -> None:
    part(tmp_path / "in" / "b.h5")
    with h5py.File(tmp_path / "in" / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink("b.h5", "T")
    given = tmp_path / "in", tmp_path / "out", {"*": LOSSLESS}
    assert failed(repack_many(*given, shard=(1, 2), witness="xarray")) == {"a.h5"}
    assert f"{tmp_path / 'out' / 'b.h5'}, another target of this run" in records(tmp_path / "out")["a.h5"]
    for shard in (2, 1):
        assert not failed(repack_many(*given, shard=(shard, 2), witness="xarray"))


def test_link_of_a_file_to_itself_is_named(tmp_path: Path) -> None:
    with h5py.File(part(tmp_path / "a.h5"), "a") as file:
        file["link"] = h5py.ExternalLink("a.h5", "T")
    with pytest.raises(tamis.FileError, match=r"b\.h5, the target itself.*by a soft link"):
        witnessed(tmp_path / "a.h5", tmp_path / "b.h5", LOSSLESS)


def virtual(path: Path, *sources: str, name: str = "v") -> None:
    """Add a virtual dataset of the dataset T in these files."""
    layout = h5py.VirtualLayout((len(sources), *values().shape), "f4")
    for number, source in enumerate(sources):
        layout[number] = h5py.VirtualSource(source, "T", values().shape)
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize(("recipe", "is_compared"), [(LOSSLESS, True), (LOSSY, False)])
def test_virtual_dataset_of_a_dataset_that_is_changed(tmp_path: Path, recipe: str, is_compared: bool) -> None:
    virtual(part(tmp_path / "a.h5"), ".")
    layout = h5py.VirtualLayout((1, *values().shape), "f4")
    layout[...] = h5py.VirtualSource(".", "v", (1, *values().shape))
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file.create_virtual_dataset("of_virtual", layout)
    found = witnessed(tmp_path / "a.h5", tmp_path / "b.h5", recipe)
    names = {"/v", "/of_virtual"}
    assert {item.path for item in found.unread} == (set() if is_compared else names)
    assert found.chunks.keys() == {"/T"} | (names if is_compared else set())
    assert all(item.reason.endswith("values of /T, which this run changes") for item in found.unread)
    assert found.variables == 3


def test_virtual_dataset_of_files_of_a_run(tmp_path: Path) -> None:
    parts = [part(tmp_path / "in" / name) for name in ("p0.h5", "p1.h5")]
    virtual(tmp_path / "in" / "a.h5", *(path.name for path in parts))
    assert not failed(repack_many(tmp_path / "in", tmp_path / "out", {"T": LOSSY}, workers=2, witness="xarray"))
    unread = records(tmp_path / "out")["a.h5"]["unread"]
    assert unread == [
        {
            "path": "/v",
            "reason": f"a virtual dataset, which has values of {tmp_path / 'out' / 'p0.h5'}, which this run makes and"
            " compares with its own source",
        }
    ]


@pytest.mark.matrix
@pytest.mark.parametrize("is_in_place", [True, False])
def test_no_file_is_opened_for_the_order_where_none_waits(
    linked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_in_place: bool
) -> None:
    def found(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(order.Order, "_found", found)
    if is_in_place:
        status = repack_many(linked, None, {"data": LOSSY}, replace=True, settle=0, workers=2, witness="xarray")
    else:
        status = repack_many(linked, tmp_path / "out", {"own": LOSSLESS}, workers=2)
    assert not failed(status)


@pytest.mark.check
def test_raw_file_of_another_part_is_named(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    values().tofile(folder / "values.raw")
    with h5py.File(folder / "a.h5", "w") as file:
        external = [(str(folder / "values.raw"), 0, values().nbytes)]
        file.create_dataset("raw", values().shape, "f4", external=external)
        file["own"] = np.random.default_rng(3).random(100_000)
    given = folder, out, {"own": LOSSLESS}
    assert failed(repack_many(*given, other="copy", shard=(1, 2), witness="xarray")) == {"a.h5"}
    assert f"its values are in {out / 'values.raw'}, another target" in records(out)["a.h5"]
    assert not failed(repack_many(*given, other="copy", workers=2, witness="xarray"))
    assert records(out)["a.h5"]["chunks"]["/raw"] >= 1
