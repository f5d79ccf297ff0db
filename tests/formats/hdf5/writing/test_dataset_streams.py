"""Streams that were encoded already, and the examples, read back by stock tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import FileError, ParameterError, StreamError, zfp
from tamis.hdf5 import create_dataset, write_stream

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def field(dtype: str = "f4", shape: tuple[int, ...] = (13, 21)) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


def masks(dataset: h5py.Dataset) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    dataset.id.chunk_iter(lambda each: found.update({each.chunk_offset: each.filter_mask}))
    return found


def stock(program: str, *arguments: object) -> str:
    """Run an HDF5 program of the system, which has nothing of tamis but the plugin."""
    needs.need(program)
    environment = os.environ | {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    command = [program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def test_write_stream_read_back_by_stock_tools(tmp_path: Path) -> None:
    values, mode = field("f8", (16, 24)), zfp.Rate(10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = create_dataset(file, "x", (16, 24), "f8", chunks=(8, 8), filters=f"zfp({mode})|fletcher32")
        for i in range(0, 16, 8):
            for j in range(0, 24, 8):
                stream = zfp.encode(values[i : i + 8, j : j + 8], mode)
                # libzfp's streams are whole words, which is as good.
                write_stream(made, (i, j), stream + bytes(-len(stream) % 8), mode)
        file.create_dataset("y", data=values, chunks=(8, 8), **tamis.Zfp(rate=10))
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], file["y"])
        assert 0 < np.abs(file["x"][()] - values).max() < 0.5
    assert "differences" not in stock("h5diff", tmp_path / "a.h5", tmp_path / "a.h5", "/x", "/y")


def test_write_stream_of_another_mode_or_place_refused(file: h5py.File) -> None:
    made = create_dataset(file, "x", (13, 21), "f4", chunks=(8, 8), filters="zfp(rate=8)")
    stream = zfp.encode(field(shape=(8, 8)), zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected a stream of rate=8, got one of rate=9"):
        write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), zfp.Rate(9)), zfp.Rate(9))
    with pytest.raises(ParameterError, match=r"expected a stream of 64 bytes .* got 56"):
        write_stream(made, (0, 0), stream[:-8], zfp.Rate(8))
    for origin in ((4, 0), (0,), (16, 0), (-8, 0)):
        with pytest.raises(ParameterError, match="expected an origin that is a multiple"):
            write_stream(made, origin, stream, zfp.Rate(8))
    write_stream(made, (0, 0), stream, zfp.Rate(8))
    with pytest.raises(FileError, match=r"has a chunk at \(0, 0\) already"):
        write_stream(made, (0, 0), stream, zfp.Rate(8))
    plain = create_dataset(file, "y", (8, 8), "f4", filters="deflate")
    with pytest.raises(ParameterError, match="expected zfp as the first filter, got deflate"):
        write_stream(plain, (0, 0), stream, zfp.Rate(8))
    assert list(masks(made)) == [(0, 0)]


def test_write_stream_cut_off_refused(file: h5py.File) -> None:
    made = create_dataset(file, "x", (8, 8), "f4", filters="zfp(accuracy=0.1)")
    mode = zfp.Accuracy(0.1)
    with pytest.raises(StreamError, match="truncated"):
        write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), mode)[:10], mode)
    assert masks(made) == {}
    write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), mode), mode)
    assert np.abs(made[()] - field(shape=(8, 8))).max() <= 0.1


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "datasets", "said"),
    [
        ("highd", ["across all axes", "along the smooth axes"], "largest error"),
        ("sixd", ["tensor"], "at the end 1 of 4 steps"),
        ("zfparr", ["tiled", "whole"], "tiled: 12 chunks"),
    ],
)
def test_example_read_back_by_h5dump(name: str, datasets: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(path)]
    assert said in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with h5py.File(path) as file:
        assert sorted(file) == datasets
        for each in datasets:
            raw = tmp_path / "raw.bin"
            stock("h5dump", "-d", f"/{each}", "-b", "NATIVE", "-o", raw, path)
            np.testing.assert_array_equal(np.fromfile(raw, "f8").reshape(file[each].shape), file[each])
