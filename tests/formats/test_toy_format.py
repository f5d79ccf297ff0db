"""A format that a stranger adds: one module of a hundred lines, and a line in the registry."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from inprocess import run_tamis
from numpy.typing import NDArray
from toy_format import FORMAT, ToySource, is_toy

import tamis
from tamis.arrays import Region
from tamis.formats import registry
from tamis.rewrite.plain_target import PlainForm, PlainTarget
from tamis.rewrite.transfer import Changes
from tamis.stores import StoredArray, first_bytes
from tamis.stores.data_model import NamedArray, NamedGroup

VALUES = np.linspace(250, 300, 3 * 20 * 30, dtype="f4").reshape(3, 20, 30)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FORMATS", (FORMAT, *registry.FORMATS))
    monkeypatch.setitem(first_bytes.FOLDERS, "toy", is_toy)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.title = "for the toy"
        for name, length in (("t", None), ("y", 20), ("x", 30)):
            file.createDimension(name, length)
        file.createVariable("t", "f8", ("t",))[:] = np.arange(3.0)
        file.createVariable("y", "f8", ("y",))[:] = np.arange(20.0)
        variable = file.createVariable("v", "f4", ("t", "y", "x"), zlib=True)
        variable[:], variable.units, variable.levels = VALUES, "K", np.array([1, 2], "i4")
        inner = file.createGroup("inner")
        inner.createVariable("n", "i2", ("x",))[:] = np.arange(30)
    return tmp_path / "a.nc"


def test_format_is_written_read_and_verified(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "b.toy", {})
    assert result.to_dict()["target"].endswith("b.toy")
    assert tamis.verify(source, tmp_path / "b.toy").ok
    with tamis.open(tmp_path / "b.toy") as file:
        assert np.array_equal(file["v"][...], VALUES)
        assert np.array_equal(file["v"][1, 3:5, ::7], VALUES[1, 3:5, ::7])
        assert file["v"].attrs["units"] == "K"
        assert file.attrs["title"] == "for the toy"
        assert np.array_equal(file["inner/n"][...], np.arange(30))


@pytest.mark.parametrize("target", ["c.nc", "c.zarr"])
def test_format_becomes_another_one_with_filters(source: Path, target: str, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.toy", {})
    tamis.repack(tmp_path / "b.toy", tmp_path / target, {"v": "zfp(accuracy=0.01)"})
    found = tamis.verify(source, tmp_path / target, bounds={"v": 0.01})
    assert found.ok, found
    with tamis.open(tmp_path / target) as file:
        assert 0 < np.abs(file["v"][...] - VALUES).max() <= 0.01


def test_format_is_inspected_planned_and_printed_as_cdl(source: Path, tmp_path: Path) -> None:
    tamis.repack(source, tmp_path / "b.toy", {})
    assert [item.path for item in tamis.inspect(tmp_path / "b.toy").datasets] == ["/t", "/y", "/v", "/inner/n"]
    assert "v" in str(tamis.plan(tmp_path / "b.toy", {"v": "abs=0.01"}, sample=1_000_000))


def test_folder_of_the_format_is_one_file_for_commands_and_in_folders(source: Path, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    tamis.repack(source, tmp_path / "all" / "b.toy", {})
    toy = tmp_path / "all" / "b.toy"
    for arguments in (("inspect", toy), ("verify", source, toy), ("repack", toy, tmp_path / "c.nc")):
        done = run_tamis(*arguments)
        assert done.returncode == 0, done.stderr
    found = tamis.preview_repack_many(tmp_path / "all", tmp_path / "out", {"v": "deflate"}, to="nc")
    assert [(file.path, file.action, file.format) for file in found.files] == [("b.toy.nc", "repack", "toy")]


def test_one_variable_of_a_format_without_types_is_no_store_of_one_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 30)
        file.createVariable("v", "f4", ("x",))[:] = np.arange(30)
    monkeypatch.setattr(ToySource, "is_loose", True)
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.toy", {})
    assert not [note for note in tamis.repack(tmp_path / "b.toy", tmp_path / "c.nc", {}).notes if "array" in note]


def test_filters_and_other_types_are_refused_in_words(source: Path, tmp_path: Path) -> None:
    with pytest.raises(tamis.TamisError, match="has no filters"):
        tamis.repack(source, tmp_path / "b.toy", {"v": "deflate"})
    with netCDF4.Dataset(source, "a") as file:
        file.createVariable("name", str, ("y",))[:] = np.array(["a"] * 20, object)
    with pytest.raises(tamis.FileError, match="/name: expected numbers"):
        tamis.repack(source, tmp_path / "b.toy", {})
    assert not (tmp_path / "b.toy").exists()


class NamesTarget(PlainTarget):
    """One file with the names of variables."""

    def __init__(self, path: Path) -> None:
        self._path, self._names = path, list[str]()

    def create_group(self, group: NamedGroup) -> None:
        pass

    def put_variable(self, variable: NamedArray, values: Iterable[tuple[Region, NDArray[Any]]]) -> None:
        self._names.append(variable.path)

    def set_history(self, text: str) -> None:
        pass

    def complete(self) -> None:
        self._path.write_text("\n".join(self._names))


class NamesForm(PlainForm):
    def target(self, path: Path) -> NamesTarget:
        return NamesTarget(path)

    def check(self, variable: NamedArray, array: StoredArray) -> None:
        pass


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_file_of_a_plain_format_has_the_mode_of_a_new_one(
    source: Path, tmp_path: Path, private: bool, mode: int
) -> None:
    before = os.umask(0o027)
    try:
        form = NamesForm()
        with registry.open_store(source) as store, form.begin(tmp_path / "names", private=private) as transaction:
            with form.copying(store, transaction, Changes()) as new:
                assert not [*new.slots()]
                new.finish({}, "")
            transaction.commit()
    finally:
        os.umask(before)
    assert (tmp_path / "names").read_text().split() == ["/t", "/y", "/v", "/inner/n"]
    assert (tmp_path / "names").stat().st_mode & 0o777 == mode
