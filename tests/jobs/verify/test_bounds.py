"""Known defect U6: without a bound, verify called any values "ok" and ended with 0."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

import tamis
from tamis.cli import main

Pair = Callable[..., tuple[Path, Path]]
VALUES = (280 + 10 * np.sin(np.arange(16 * 64) / 11)).reshape(16, 64).astype("f4")


def verify(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)], prog_name="tamis")


def last_line(result: Result) -> str:
    return result.stdout.splitlines()[-1]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Write two files with a dataset ``x`` of these values."""

    def write(before: Any, after: Any) -> tuple[Path, Path]:
        for name, values in (("a.h5", before), ("b.h5", after)):
            with h5py.File(tmp_path / name, "w") as file:
                file["x"] = values
        return tmp_path / "a.h5", tmp_path / "b.h5"

    return write


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """Repack one dataset within 0.1, of which the file records 2^-4, one at a fixed rate, and one without loss."""
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        for name in ("bound", "rate", "lossless"):
            file.create_dataset(name, data=VALUES, chunks=(8, 32))
        file["names"] = ["some", "text"]
    recipes = {"bound": "zfp(accuracy=0.1)", "rate": "zfp(rate=8)", "lossless": "shuffle|deflate(1)"}
    tamis.repack(source, target, recipes)
    return source, target


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (VALUES, np.full_like(VALUES, -1)),
        (VALUES, np.full_like(VALUES, np.nan)),
        (np.float64(1), np.nextafter(1, 2)),
        (np.zeros(3), np.array([0, -0.0, 0])),
        (np.array([np.nan]), -np.array([np.nan])),
        (np.arange(3), np.arange(3) + 1),
        (np.arange(3, dtype="f4"), np.arange(3, dtype="f8")),
        (np.zeros((2, 3)), np.zeros((3, 2))),
    ],
    ids=["garbage", "nan", "last bit", "negative zero", "bits of nan", "integers", "type", "shape"],
)
def test_u06_verify_without_a_bound_finds_any_difference(before: Any, after: Any, pair: Pair) -> None:
    source, target = pair(before, after)
    result = verify(source, target)
    assert result.exit_code == 3
    assert last_line(result).startswith("1 dataset differs: 1 dataset compared, ")
    assert tamis.verify(source, target)["x"].status == "different"
    assert verify(source, source).exit_code == 0


def test_u06_equal_values_say_so_whatever_the_storage(pair: Pair) -> None:
    values: NDArray[Any] = np.array([1, -0.0, np.nan, np.inf, 9.97e36])
    source, target = pair(values, values.astype(">f8"))
    result = verify(source, target)
    assert (result.exit_code, last_line(result)) == (0, "equal: 1 dataset compared")
    found = tamis.verify(source, target)["x"]
    assert (found.status, found.equal, found.bound) == ("equal", True, None)


def test_u06_bounds_loosen_what_they_name_and_nothing_else(small: tuple[Path, Path]) -> None:
    result = verify(*small, "--bound", "bound:0.1")
    assert (result.exit_code, last_line(result)) == (3, "1 dataset differs: 4 datasets compared, 1 violation")
    result = verify(*small, "--bound", "bound:0.1", "--bound", "r*:50")
    assert (result.exit_code, last_line(result)) == (0, "within bounds: 4 datasets compared, 2 equal")


def test_u06_status_of_each_dataset_is_in_the_json(small: tuple[Path, Path]) -> None:
    made = json.loads(verify(*small, "--bound", "bound:0.1", "--json").stdout)
    assert (made["schema"], made["ok"]) == (2, False)
    assert {each["path"]: each["status"] for each in made["datasets"]} == {
        "/bound": "within-bound",
        "/lossless": "equal",
        "/names": "equal",
        "/rate": "different",
    }


def test_u06_values_that_cannot_be_read_have_no_status(small: tuple[Path, Path]) -> None:
    with h5py.File(small[1]) as file:
        chunk = file["bound"].id.get_chunk_info(1)
    data = bytearray(small[1].read_bytes())
    data[chunk.byte_offset + 10] ^= 1
    small[1].write_bytes(data)
    result = verify(*small, "--json")
    assert result.exit_code == 3  # since /rate is no equal copy, which damage elsewhere does not hide
    (found,) = (each for each in json.loads(result.stdout)["datasets"] if each["path"] == "/bound")
    assert found["status"] is None
    assert "cannot be decoded" in found["problem"]


def test_u06_recorded_bound_is_that_of_the_filters_in_the_target(small: tuple[Path, Path]) -> None:
    found = tamis.verify(*small, bounds="recorded")
    assert {each.path: (each.bound, each.recorded) for each in found.datasets} == {
        "/bound": (0.0625, True),
        "/lossless": (0, True),
        "/names": (0, True),
        "/rate": (None, True),
    }
    (violation,) = found.violations
    assert (violation.path, violation.code) == ("/rate", "bits")
    assert "expected the same bits (zfp(rate=8)|fletcher32 records no bound), found" in violation.text
    assert verify(*small, "--bound", "recorded", "--bound", "rate:50").exit_code == 0
    assert verify(*small, "--bound", "*:recorded", "--bound", "rate:50").exit_code == 0
    assert verify(*small, "--bound", "bound:recorded", "-v", "bound").exit_code == 0
    assert "0.0625 recorded" in verify(*small, "--bound", "recorded").stdout
    assert json.loads(verify(*small, "--bound", "recorded", "--json").stdout)["datasets"][0]["recorded"] is True


def test_u06_recorded_bound_that_is_not_kept_is_a_violation(small: tuple[Path, Path]) -> None:
    shifted = small[0].with_name("c.h5")
    with h5py.File(shifted, "w") as file:
        for name in ("bound", "rate", "lossless"):
            file[name] = VALUES + np.float32(0.2)
        file["names"] = ["some", "text"]
    found = tamis.verify(shifted, small[1], bounds="recorded", variables="bound")
    assert found["bound"].status == "different"
    assert "expected an error of at most 0.0625, found 0." in found.violations[0].text


@pytest.mark.parametrize(("digits", "bound"), [(1, 0.1), (0, 1.0)])
def test_u06_recorded_bound_of_scaleoffset_is_its_last_digit(digits: int, bound: float, pair: Pair) -> None:
    source, target = pair(VALUES, VALUES)
    other = target.with_name("c.h5")
    with h5py.File(other, "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(8, 32), scaleoffset=digits)
    found = tamis.verify(source, other, bounds={"x": "recorded"})
    assert (found.ok, found["x"].bound, found["x"].status) == (True, bound, "within-bound")


def test_u06_recorded_bounds_of_a_file_without_datasets_are_kept(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("empty")
    result = verify(tmp_path / "a.h5", tmp_path / "a.h5", "--bound", "recorded")
    assert (result.exit_code, last_line(result)) == (0, "equal: 0 datasets compared")


def test_u06_links_alone_that_differ_are_said(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = VALUES
            if name == "a.h5":
                file["soft"] = h5py.SoftLink("/x")
    result = verify(tmp_path / "a.h5", tmp_path / "b.h5")
    assert (result.exit_code, last_line(result)) == (3, "groups or links differ: 1 dataset compared, 1 violation")


@pytest.mark.parametrize("last", ["zz", "x0"])
def test_u06_pattern_leaves_out_what_is_no_numbers(last: str, tmp_path: Path) -> None:
    for name, added in (("a.h5", 0), ("b.h5", 0.05)):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = VALUES + np.float32(added)
            file["aa"] = file[last] = ["some", "text"]
            file["record"] = np.zeros(3, [("i", "i4")])
    pair = tmp_path / "a.h5", tmp_path / "b.h5"
    for pattern in ("*", "/*", "?*"):
        result = verify(*pair, "--bound", f"{pattern}:0.1")
        assert (result.exit_code, last_line(result)) == (0, "within bounds: 4 datasets compared, 3 equal")
    assert verify(*pair, "--bound", "*:0.01").exit_code == 3
    for name in ("aa", "[ra]*"):
        result = verify(*pair, "--bound", f"{name}:0.1", "--bound", "x:0.1")
        assert result.exit_code == 2
        assert "a bound of 0.1 applies only to numbers, got /" in result.stderr


def test_virtual_dataset_of_its_own_file_has_the_bound_of_its_sources(tmp_path: Path) -> None:
    """NeXus files have views of their datasets; repack stored these with loss, and verify said they differ."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        layout = h5py.VirtualLayout((2, 1024), "f4")
        for row, name in enumerate("pq"):
            file[name] = VALUES.reshape(-1) + row / 3
            layout[row] = h5py.VirtualSource(".", name, (1024,))
        file.create_virtual_dataset("view", layout)
    recipes = {"p": "zfp(accuracy=0.1)", "q": "absolute(0.01)|shuffle|deflate"}
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes)
    result = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds="recorded")
    assert result.ok, str(result)
    assert result["/view"].bound == result["/p"].bound
    assert not tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").ok
    with h5py.File(tmp_path / "b.h5", "a") as file:
        file["q"][5] += 1
    assert not tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds="recorded", variables=["view"]).ok
