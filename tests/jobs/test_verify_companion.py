"""`tamis verify` of files with companions: restored values are compared, and nothing real is hidden."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def ocean(make_ocean: Make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("ocean")
    make_ocean(folder / "a.nc")
    recipes = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
    tamis.repack(folder / "a.nc", folder / "b.nc", recipes, chunks={"TS": (30, 32, 32)}, missing="mask", history=False)
    return folder / "a.nc", folder / "b.nc"


@pytest.fixture
def copy(ocean: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(ocean[1], tmp_path / "copy.nc"))


def codes(found: Any) -> list[tuple[str, str]]:
    return [(each.path, each.code) for each in found.violations]


def test_verify_restores_and_says_so(ocean: tuple[Path, Path]) -> None:
    source, target = ocean
    found = tamis.verify(source, target, bounds={"TS": 0.1})
    assert found.ok
    assert found["TS"].tally is not None
    assert 0 < found["TS"].tally.error <= 0.1
    assert found["TS"].tally.missing > 1000
    said = [(each.path, each.text) for each in found.notes if each.code == "companion"]
    assert ("/TS", "missing values of the target are restored from its missing-value mask") in said
    assert ("/TS_missing", "the missing-value mask of /TS: compared as its missing values") in said
    assert not [each for each in found.notes if each.code == "new-dataset"]
    assert tamis.verify(target, source, bounds={"TS": 0.1}).ok, "the other way round too"
    assert tamis.verify(target, target, bounds={"*": 0}).ok


def test_verify_finds_a_wrong_flag(ocean: tuple[Path, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        at = np.argwhere(file["TS_missing"][0] == 0)[500]
        file["TS_missing"][0, at[0], at[1]] = 1
    found = tamis.verify(ocean[0], copy, bounds={"TS": 0.1})
    assert codes(found) == [("/TS", "missing-values")]
    assert "1 valid value became missing" in found.violations[0].text


def test_verify_finds_a_wrong_table(ocean: tuple[Path, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        table = file["TS_missing"].attrs["flag_missing_values"]
        table[0] = 1e36
        file["TS_missing"].attrs["flag_missing_values"] = table
    assert ("/TS", "missing-values") in codes(tamis.verify(ocean[0], copy, bounds={"TS": 0.1}))


def test_verify_finds_other_ancillary_variables(ocean: tuple[Path, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["TS"].attrs["ancillary_variables"] = "TS_missing"
    assert codes(tamis.verify(ocean[0], copy, bounds={"TS": 0.1})) == [("/TS", "attribute")]
    with h5py.File(copy, "r+") as file:
        file["TS"].attrs["ancillary_variables"] = "TS_quality TS_missing other"
    assert codes(tamis.verify(ocean[0], copy, bounds={"TS": 0.1})) == [("/TS", "attribute")]


def test_verify_finds_a_lost_member_of_a_dimension(ocean: tuple[Path, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["TS"].dims[1].detach_scale(file["lat"])
    assert ("/lat", "attribute") in codes(tamis.verify(ocean[0], copy, bounds={"TS": 0.1}))


def test_verify_mark_without_the_companion_hides_nothing(ocean: tuple[Path, Path], tmp_path: Path) -> None:
    """A dataset of the source that the target only calls a companion is compared as any other."""
    shutil.copy(ocean[1], tmp_path / "b.nc")
    shutil.copy(ocean[0], tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc", "r+") as file:
        file["TS_missing"] = np.zeros((30, 192, 288), "u1")
    found = tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds={"*": 0.1})
    assert ("/TS_missing", "bound") in codes(found)


def test_verify_of_the_companion_alone_compares_its_flags(ocean: tuple[Path, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["TS_missing"][0, 0, 0] = 3
    assert codes(tamis.verify(ocean[1], copy, bounds={"*": 0}, variables=["TS_missing"])) == [("/TS_missing", "bits")]
    assert ("/TS", "bits") in codes(tamis.verify(ocean[1], copy, bounds={"*": 0}))
