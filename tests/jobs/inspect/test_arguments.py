"""Arguments to paste: those of real tools give the same filters and chunks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import Inspection
from tamis.formats.hdf5.chunk_access import pipeline_of
from tamis.jobs.inspect.arguments import TARGETS, arguments

Run = Callable[..., str]
VALUES = np.sin(np.arange(64.0 * 96) / 90).reshape(64, 96)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The values without filters, in a group too."""
    path = tmp_path / "plain.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 64)
        file.createDimension("x", 96)
        for name in ("a b", "g/zfp", "zfp"):
            file.createVariable(name, "f8", ("y", "x"))[:] = VALUES
    return path


@pytest.fixture
def filtered(plain: Path, tmp_path: Path) -> Path:
    """The same with filters."""
    recipes = {"a b": "shuffle|deflate(4)", "/g/zfp": "zfp(rate=16)", "zfp": "zfp(accuracy=0.1)"}
    chunks = {"a b": (32, 48), "/g/zfp": (16, 96), "zfp": (64, 32)}
    tamis.repack(plain, tmp_path / "filtered.nc", recipes, chunks=chunks, checksum=False)
    return tmp_path / "filtered.nc"


def stored(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    with h5py.File(path) as file:
        return {name: (str(pipeline_of(file[name])).rstrip("!"), file[name].chunks) for name in ("a b", "g/zfp", "zfp")}


def options(path: Path, notation: str) -> list[str]:
    made = arguments(tamis.inspect(path), notation)
    assert made.problems == ()
    return shlex.split(made.text)


def test_arguments_of_h5repack_make_the_same_file(filtered: Path, plain: Path, tmp_path: Path, tool: Run) -> None:
    tool("h5repack", *options(filtered, "h5repack"), plain, tmp_path / "b.nc")
    assert stored(tmp_path / "b.nc") == stored(filtered)


def test_arguments_of_nccopy_make_the_same_file(filtered: Path, plain: Path, tmp_path: Path, tool: Run) -> None:
    tool("nccopy", "-4", *options(filtered, "nccopy"), plain, tmp_path / "b.nc")
    assert stored(tmp_path / "b.nc") == stored(filtered)


def test_arguments_of_tamis_make_the_same_file(filtered: Path, plain: Path, tmp_path: Path) -> None:
    given = options(filtered, "tamis")
    pairs = [text.rsplit(":", 1) for text in given if text not in ("-f", "-c")]
    recipes = dict(pairs[::2])
    chunks = {name: tuple(map(int, value.split("x"))) for name, value in pairs[1::2]}
    tamis.repack(plain, tmp_path / "b.nc", recipes, chunks=chunks, checksum=False)
    assert stored(tmp_path / "b.nc") == stored(filtered)


def test_arguments_of_ncgen_make_the_same_variable(filtered: Path, tmp_path: Path, tool: Run) -> None:
    made = arguments(tamis.inspect(filtered, "zfp"), "ncgen").text
    (tmp_path / "a.cdl").write_text(
        f"netcdf a {{ dimensions: y = 64 ; x = 96 ; variables: double zfp(y, x) ;\n{made}\n}}\n"
    )
    tool("ncgen", "-4", "-o", tmp_path / "b.nc", tmp_path / "a.cdl")
    with h5py.File(tmp_path / "b.nc") as file:
        assert (str(pipeline_of(file["zfp"])).rstrip("!"), file["zfp"].chunks) == stored(filtered)["zfp"]


def test_arguments_of_h5py_make_the_same_datasets(filtered: Path, tmp_path: Path) -> None:
    made = arguments(tamis.inspect(filtered), "h5py").text.splitlines()
    assert made[::2] == ["# /a b", "# /g/zfp", "# /zfp"]
    with h5py.File(tmp_path / "b.nc", "w") as file:
        for name, keywords in zip(made[::2], made[1::2], strict=True):
            given: dict[str, Any] = eval(f"dict({keywords})")
            file.create_dataset(name.removeprefix("# "), data=VALUES, **given)
    assert stored(tmp_path / "b.nc") == stored(filtered)


def test_arguments_of_zarr_are_json_by_path(filtered: Path) -> None:
    made = json.loads(arguments(tamis.inspect(filtered), "zarr").text)
    assert made["/zfp"] == [{"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 0.0625}}]
    assert [each["name"] for each in made["/a b"]] == ["bytes", "numcodecs.shuffle", "numcodecs.zlib"]


@pytest.mark.parametrize("notation", TARGETS)
def test_arguments_of_file_without_filters_are_empty(notation: str) -> None:
    assert arguments(Inspection("a.h5", 0, ()), notation).text == ""


def test_arguments_that_a_notation_cannot_say_are_problems_and_others_are_there(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("bad", data=VALUES, chunks=(64, 96), compression="lzf")
        file.create_dataset("good", data=VALUES, chunks=(64, 96), compression=4)
        file["plain"] = 1
    made = arguments(tamis.inspect(tmp_path / "a.h5"), "zarr")
    assert list(json.loads(made.text)) == ["/good"]
    (problem,) = made.problems
    assert problem.startswith(f"{tmp_path}/a.h5: /bad: ")


def test_arguments_of_order_that_netcdf_changes_are_refused(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"})
    (problem,) = arguments(tamis.inspect(tmp_path / "b.nc", "TS"), "nccopy").problems
    assert "fletcher32 first" in problem


def test_arguments_of_damaged_filters_and_of_names_with_control_characters_are_problems(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", data=np.ones((8, 8)), chunks=(8, 8), **tamis.Zfp(rate=8))
        words = made.id.get_create_plist().get_filter(0)[2]
        file.create_dataset("\x1b[31m\n", data=VALUES, chunks=(64, 96), compression=4)
    data = bytearray((tmp_path / "a.h5").read_bytes())
    start = data.index(b"".join(word.to_bytes(4, "little") for word in words))
    data[start + 4] ^= 0xFF  # the magic word of the ZFP header
    (tmp_path / "a.h5").write_bytes(data)
    for notation in TARGETS:
        made = arguments(tamis.inspect(tmp_path / "a.h5"), notation)
        assert any("expected filters that can be read" in problem for problem in made.problems)
        assert all(each.isprintable() for each in made.problems)
        if "zarr" in notation:
            assert list(json.loads(made.text)) == ["/\x1b[31m\n"]
        else:
            assert made.text == ""
            assert any("cannot be pasted" in problem for problem in made.problems)
