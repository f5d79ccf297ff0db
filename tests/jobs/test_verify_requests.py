"""What verify is asked for, what it says, and what it cannot read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

Make = Callable[..., Path]


def field(shape: tuple[int, ...] = (12, 30, 40), dtype: str = "f4") -> NDArray[Any]:
    return (100 * np.sin(np.arange(np.prod(shape)) / 17)).reshape(shape).astype(dtype)


def test_verify_checksum_said_per_dataset_and_chunk(tmp_path: Path, make: Make) -> None:
    values = field()
    options = {"data": values, "chunks": (3, 30, 40)}
    target = make(
        tmp_path / "a.h5", none=options, all=options | {"fletcher32": True}, some=options | {"fletcher32": True}
    )
    with h5py.File(target, "r+") as file:
        file["some"].id.write_direct_chunk((3, 0, 0), values[3:6].tobytes(), 1)
    found = tamis.verify(target, target)
    assert [each.checksum for each in found.datasets] == [
        "fletcher32",
        "no checksum",
        "fletcher32 except for 1 of 4 chunks",
    ]


@pytest.mark.parametrize("chunks", [(3, 30, 40), (4, 8, 8)])
def test_verify_damaged_chunk_is_a_problem_and_the_rest_is_compared(chunks: Any, tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x=field(), y=field())
    target = tmp_path / "b.h5"
    tamis.repack(source, target, {"x": "zfp(accuracy=0.01)|fletcher32", "y": "deflate(1)"}, chunks={"x": chunks})
    with h5py.File(target) as file:
        chunk = file["x"].id.get_chunk_info(1)
    data = bytearray(target.read_bytes())
    data[chunk.byte_offset + chunk.size // 2] ^= 0x10
    target.write_bytes(data)
    found = tamis.verify(source, target, bounds={"*": 0.01})
    assert not found.ok
    assert not found.violations
    (problem,) = found.problems
    assert (problem.path, problem.code) == ("/x", "unreadable")
    assert f"chunk at {chunk.chunk_offset} cannot be decoded" in problem.text
    assert found["x"].problem == problem.text
    assert found["x"].tally is None
    assert found["y"].equal


def test_verify_truncated_file_is_an_error(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": field(), "chunks": (3, 30, 40), "compression": 1})
    (tmp_path / "b.h5").write_bytes(source.read_bytes()[:-2000])
    with pytest.raises(tamis.FileError, match=r"b\.h5: cannot be opened"):
        tamis.verify(source, tmp_path / "b.h5")
    with pytest.raises(tamis.FileError, match="No such file or directory"):
        tamis.verify(source, tmp_path / "none.h5")


def test_verify_filter_that_is_not_here_is_a_problem(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": field(), "chunks": (3, 30, 40)})
    target = tmp_path / "b.h5"
    with h5py.File(target, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((3, 30, 40))
        plist.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, ())
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((12, 30, 40)), plist)
        for at in range(0, 12, 3):
            made.write_direct_chunk((at, 0, 0), field()[at : at + 3].tobytes(), 0)
    found = tamis.verify(source, target)
    assert not found.ok
    assert "HDF5 lacks filter" in found.problems[0].text


def test_verify_bounds_names_go_before_patterns(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x=field(), xy=field(), names=["a"])
    target = make(tmp_path / "b.h5", x=field() + 1, xy=field() + 1, names=["a"])
    found = tamis.verify(source, target, bounds={"x*": 0.1, "*": 5, "x": 2})
    assert {each.path: each.bound for each in found.datasets} == {"/names": None, "/x": 2, "/xy": 0.1}
    assert {each.path for each in found.violations} == {"/xy"}
    assert tamis.verify(source, source, bounds={"names": 0}).ok


@pytest.mark.parametrize("bound", [-1, np.nan, np.inf, "0.1", None, True])
def test_verify_bound_that_is_none_is_refused(bound: Any, sample: Path) -> None:
    with pytest.raises(
        tamis.ParameterError, match="expected a bound of 0 or more for TS, in units of the variable, or 'r"
    ):
        tamis.verify(sample, sample, bounds={"TS": bound})


def test_verify_requests_that_cannot_be_are_refused(sample: Path, tmp_path: Path, make: Make) -> None:
    with pytest.raises(tamis.FileError, match="expected a dataset named 'PS', found only /TS"):
        tamis.verify(sample, sample, bounds={"PS": 1})
    with pytest.raises(tamis.FileError, match="expected a dataset named 'PS', found only /TS"):
        tamis.verify(sample, sample, variables=["PS"])
    with pytest.raises(tamis.FileError, match="expected a dataset named 'lat', found only /TS"):
        tamis.verify(sample, sample, variables="TS", bounds={"lat": 1})
    with pytest.raises(tamis.ParameterError, match="expected 1 or more threads, got threads=0"):
        tamis.verify(sample, sample, threads=0)
    with pytest.raises(tamis.ParameterError, match="expected names as text, got 5"):
        tamis.verify(sample, sample, bounds={5: 1})  # type: ignore[dict-item]
    names = make(tmp_path / "a.h5", names=["a"])
    for name in ("names", "n*"):
        with pytest.raises(
            tamis.ParameterError, match=r"a bound of 0\.5 applies only to numbers, got /names: string, UTF-8"
        ):
            tamis.verify(names, names, bounds={name: 0.5})
    with pytest.raises(tamis.ParameterError, match="expected bounds by name, or 'recorded', got 'all'"):
        tamis.verify(names, names, bounds="all")  # type: ignore[arg-type]


def test_verify_variables_leave_out_other_datasets_and_the_rest(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x=field(), y=field())
    target = make(tmp_path / "b.h5", x=field(), z=field())
    assert tamis.verify(source, target, variables=["x"]) == tamis.verify(source, target, variables="x*")
    found = tamis.verify(source, target, variables=["x"])
    assert found.ok
    assert not found.notes
    assert [each.path for each in found.datasets] == ["/x"]


def test_verify_progress_reaches_the_end_of_each_dataset(sample: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    tamis.verify(sample, sample, variables=["TS", "lat"], progress=lambda *each: steps.append(each))
    assert steps[0] == ("comparing /TS", 0, 30 * 192 * 288)
    assert ("comparing /TS", 30 * 192 * 288, 30 * 192 * 288) in steps
    assert steps[-1] == ("comparing /lat", 192, 192)


def test_verify_changes_neither_file(sample: Path, tmp_path: Path, sha256: Callable[[Path], str]) -> None:
    shutil.copy(sample, tmp_path / "a.nc")
    (tmp_path / "a.nc").chmod(0o444)
    before = sha256(tmp_path / "a.nc")
    assert tamis.verify(tmp_path / "a.nc", sample).ok
    assert sha256(tmp_path / "a.nc") == before


def test_verification_json_has_all_and_no_number_that_json_lacks(pair: Callable[..., tuple[Path, Path]]) -> None:
    before = np.array([0, 1e308, -1e308, np.inf, 2])
    found = tamis.verify(*pair(before, np.array([0, -1e308, -1e308, 5, np.nan])), bounds={"x": 1})
    made = json.loads(found.to_json(indent=2))
    assert made == found.to_dict()
    assert (made["schema"], made["ok"]) == (2, False)
    numbers = made["datasets"][0]["numbers"]
    assert numbers["largest_error"] == "inf"
    assert numbers["worst"] == {"index": [1], "source": 1e308, "target": -1e308}
    assert numbers["first_missing_changed"] == {"index": [3], "source": "inf", "target": 5.0}
    assert numbers["first_missing_new"] == {"index": [4], "source": 2.0, "target": "nan"}
    assert [each["code"] for each in made["violations"]] == ["bound", "missing-values", "missing-values"]


def test_verification_is_frozen_and_prints_what_it_found(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)"}, history=False)
    found = tamis.verify(sample, tmp_path / "b.nc", bounds={"TS": 0.1})
    with pytest.raises(FrozenInstanceError):
        found.target = "x"  # type: ignore[misc]
    with pytest.raises(KeyError):
        found["PS"]
    lines = str(found).splitlines()
    assert lines[0] == f"{sample} -> {tmp_path / 'b.nc'}"
    assert lines[1].split()[:4] == ["dataset", "bound", "largest", "error"]
    tally = found["/TS"].tally
    assert tally is not None
    assert lines[2].split()[:3] == ["/TS", "0.1", f"{tally.error:.4g}"]
    assert "fletcher32" in lines[2]
    assert lines[3] == "identical, no checksum: /lat, /lon, /nbnd, /time and 1 more"
    assert lines[4] == "within bounds: 6 datasets compared, 5 equal"
    assert str(tamis.verify(sample, sample)).endswith("equal: 6 datasets compared")


def test_verify_two_bounds_for_one_dataset_refused_unless_alike(sample: Path) -> None:
    with pytest.raises(tamis.ParameterError, match=r"/TS: 'TS' and '/TS' name the same dataset, with 0\.1 and 0\.2"):
        tamis.verify(sample, sample, bounds={"TS": 0.1, "/TS": 0.2})
    assert tamis.verify(sample, sample, bounds={"TS": 0.1, "/TS": 0.1}).ok
