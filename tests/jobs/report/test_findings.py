"""Planted defects are named in the verdict, and a good file has none."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

SHAPE = (8, 48, 64)
FILL = np.float32(1e20)


def field() -> np.ndarray:
    rng = np.random.default_rng(5)
    time, lat, lon = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
    smooth = 280 + 20 * np.cos(lat / 12) + 5 * np.sin(lon / 9 + time) + rng.normal(0, 1, SHAPE)
    return smooth.astype("f4")


def write(path: Path, values: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("T", data=values, chunks=(1, *SHAPE[1:]), fillvalue=FILL)
        file["T"].attrs["units"] = "K"
        file["T"].attrs["_FillValue"] = FILL
    return path


def noisy(values: np.ndarray) -> np.ndarray:
    """Values with errors as of a rounding: uniform, not correlated, without a mean."""
    rng = np.random.default_rng(6)
    return values + rng.uniform(-0.05, 0.05, values.shape).astype("f4")


def planted(kind: str, values: np.ndarray) -> np.ndarray:
    changed = noisy(values)
    if kind == "bias":
        changed += np.float32(0.03)
    elif kind == "clipped":
        changed = np.minimum(changed, np.quantile(values, 0.995).astype("f4"))
    elif kind == "shifted":
        changed[5] = values[4]
    elif kind == "missing":
        changed[2, 10:14, 10:20] = FILL
    elif kind == "pattern":
        row, column = np.meshgrid(*map(np.arange, SHAPE[1:]), indexing="ij")
        changed += np.where((row % 4 == 0) & (column % 4 == 0), np.float32(0.2), np.float32(0))
    return changed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("bias", "biased: the mean error is +0.0299 K"),
        ("clipped", "the upper tail is clipped"),
        ("shifted", "shifted: axis 0 5 has the values of axis 0 4"),
        ("missing", "the mask changed: 40 valid values became missing"),
        ("pattern", "the error has a pattern of 4x4 values"),
    ],
)
def test_planted_defect_is_named_in_the_verdict(kind: str, words: str, tmp_path: Path) -> None:
    values = field()
    source, target = write(tmp_path / "a.nc", values), write(tmp_path / "b.nc", planted(kind, values))
    result = tamis.report(source, target, threads=1)
    assert words in result.verdict
    assert kind in {finding.code for finding in result["T"].findings}
    assert words.partition(":")[0] in result.html


def test_errors_without_a_defect_have_no_findings(tmp_path: Path) -> None:
    values = field()
    source, target = write(tmp_path / "a.nc", values), write(tmp_path / "b.nc", noisy(values))
    result = tamis.report(source, target, threads=1)
    assert not result["T"].findings
    assert result.ok
    assert result["T"].outcome == "nothing asked"


def test_bound_that_is_missed_is_said_with_its_place(tmp_path: Path) -> None:
    values = field()
    source, target = write(tmp_path / "a.nc", values), write(tmp_path / "b.nc", noisy(values))
    result = tamis.report(source, target, bounds={"T": 0.01}, threads=1)
    assert not result.ok
    assert result["T"].outcome == "missed"
    assert "expected an error of at most 0.01" in result.verdict
    assert tamis.report(source, target, bounds={"T": 0.1}, threads=1)["T"].outcome == "met"


@pytest.mark.parametrize(
    ("require", "missed"),
    [
        ("abs=0.1,rmse=0.1,psnr=40,corr=0.9", ()),
        ("psnr=90", ("expected psnr=90",)),
        ("dssim=0.99999999", ("expected dssim=1",)),
        ("rmse=0.001,corr=0.9999999", ("expected rmse=0.001", "expected corr=1")),
        ("range=0.0001", ("expected range of at most 0.0001",)),
        ("rel=0.000001", ("expected rel of at most 1e-06",)),
        ("ks=0.999", ()),
    ],
)
def test_requirements_of_the_recipe_are_checked(require: str, missed: tuple[str, ...], tmp_path: Path) -> None:
    values = field()
    source, target = write(tmp_path / "a.nc", values), write(tmp_path / "b.nc", noisy(values))
    recipe = tmp_path / "recipe.toml"
    tamis.Recipe({"T": "deflate(1)"}, require={"T": require}).dump(recipe)
    result = tamis.report(source, target, recipe=recipe, threads=1)
    assert result["T"].requirement == str(tamis.Recipe(require={"T": require}).require["T"])
    assert len(result["T"].missed) == len(missed)
    assert all(text.startswith(start) for text, start in zip(result["T"].missed, missed, strict=True))
    assert result.ok is not bool(missed)
