"""Attributes that Zarr's JSON has no place for: of C's long double, and lists without items."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis

TARGETS = [("repack", "--zarr-format", "2"), ("repack", "--zarr-format", "3"), ("export", "--to", "kerchunk")]


def run(path: Path, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    target = path.with_suffix(".zarr" if command == "repack" else ".json")
    where = [str(path), str(target)] if command == "repack" else [str(path), "-o", str(target)]
    return run_tamis(command, *where, *options)


def write(path: Path, attribute: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((4, 4), "f4")).attrs["a"] = attribute
    return path


@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize("value", [np.longdouble(0.5), np.array([0.5, np.inf], np.longdouble), np.longdouble("nan")])
def test_attribute_that_float64_has_is_kept(target: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    done = run(write(tmp_path / "a.h5", value), *target)
    assert done.returncode == 0, done.stderr
    if target[0] == "repack":
        assert tamis.verify(tmp_path / "a.h5", tmp_path / "a.zarr").ok
        with tamis.open(tmp_path / "a.zarr") as store:
            assert np.array_equal(store["x"].attrs["a"], value, equal_nan=True)


@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize(
    "value", [np.longdouble(1) / 10, np.clongdouble(np.longdouble(1) / 10)], ids=["tenth", "complex"]
)
def test_attribute_that_float64_lacks_is_refused_by_name(target: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    done = run(write(tmp_path / "a.h5", value), *target)
    assert done.returncode == 1
    assert "attribute 'a'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("version", ["2", "3"])
def test_lists_without_items_keep_their_types_there_and_back(version: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", np.array([], "f4"))
    with h5py.File(path, "a") as file:
        file["x"].attrs.create("fixed", np.array([], "S1"), dtype="S1")
        file["x"].attrs.create("varying", np.array([], object), dtype=h5py.string_dtype())
    done = run(path, "repack", "--zarr-format", version)
    assert done.returncode == 0, done.stderr
    assert tamis.verify(path, tmp_path / "a.zarr").ok
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "b.h5").ok
    with h5py.File(path) as before, h5py.File(tmp_path / "b.h5") as after:
        for name, value in before["x"].attrs.items():
            assert after["x"].attrs[name].dtype == value.dtype
            assert after["x"].attrs[name].shape == (0,)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("ending", ["nc", "h5"])
def test_text_with_a_zero_is_whole_in_hdf5(zarr_format: Any, ending: str, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    store, target, back = tmp_path / "s.zarr", tmp_path / f"t.{ending}", tmp_path / "back.zarr"
    group = zarr.create_group(store, zarr_format=zarr_format, attributes={"title": "a\0b"})
    group.create_array("x", shape=(4,), dtype="f4")[:] = 1
    tamis.repack(store, target, {})
    with h5py.File(target) as file:
        assert file.attrs["title"] == b"a\0b"
    tamis.repack(target, back, {})
    assert zarr.open_group(back).attrs["title"] == "a\0b"
