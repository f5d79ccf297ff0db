"""The witness xarray, where a dataset has several paths, or other files have what a path leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

pytest.importorskip("xarray")
pytest.importorskip("netCDF4")

from tamis.jobs.witness.look import Witnessed

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
