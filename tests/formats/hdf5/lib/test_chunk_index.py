"""Chunks whose places HDF5 says wrong: one unlimited axis that is not the first, in the newest format."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from inprocess import run_tamis
from numpy.typing import NDArray

import tamis
from tamis.arrays import UnsureIndexError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.chunks import chunk_info, stored_chunks

CASES = [
    ((3, 4), (2, 3), (4, None)),
    ((6, 9), (2, 3), (6, None)),
    ((5, 9), (2, 3), (8, None)),
    ((4, 6, 10), (2, 3, 5), (4, 6, None)),
    ((4, 6, 10), (2, 3, 5), (4, None, 12)),
    ((4, 6), (2, 3), (None, 6)),
    ((4, 6), (2, 3), (None, None)),
]


def make(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], maxshape: Any, **options: Any) -> NDArray[Any]:
    """Write every other chunk, and give what HDF5 reads."""
    values = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    with h5py.File(path, "w", **{"libver": "latest"} | options) as file:
        made = file.create_dataset("d", shape, "f4", chunks=chunks, maxshape=maxshape, fillvalue=-7, compression=4)
        for number, part in enumerate(np.ndindex(*(-(-n // step) for n, step in zip(shape, chunks, strict=True)))):
            if number % 3 != 1:
                at = tuple(slice(i * step, (i + 1) * step) for i, step in zip(part, chunks, strict=True))
                made[at] = values[at]
    with h5py.File(path) as file:
        return np.asarray(file["d"][...])


@pytest.mark.parametrize(("shape", "chunks", "maxshape"), CASES, ids=str)
@pytest.mark.parametrize("libver", ["latest", "earliest"])
def test_stored_chunks_are_where_hdf5_finds_them(
    shape: tuple[int, ...], chunks: tuple[int, ...], maxshape: Any, libver: str, tmp_path: Path
) -> None:
    expected = make(tmp_path / "a.h5", shape, chunks, maxshape, libver=libver)
    with h5py.File(tmp_path / "a.h5") as file:
        dataset = file["d"]
        found = stored_chunks(dataset.id)
        assert found
        for each in found:
            assert calls.stored_nbytes(dataset.id, each.chunk_offset) == each.size
            assert chunk_info(dataset.id, each.chunk_offset) == each
            whole = tamis.hdf5.read_chunk(dataset, each.chunk_offset)
            part = tuple(slice(at, at + step) for at, step in zip(each.chunk_offset, chunks, strict=True))
            inside = tuple(slice(extent) for extent in expected[part].shape)
            assert np.array_equal(whole[inside], expected[part])
        absent = {at for at in np.ndindex(*shape) if all(i % step == 0 for i, step in zip(at, chunks, strict=True))}
        absent -= {each.chunk_offset for each in found}
        assert absent
        assert not any(chunk_info(dataset.id, at).size for at in absent)


@pytest.mark.parametrize(("shape", "chunks", "maxshape"), CASES, ids=str)
def test_read_repack_and_verify_of_such_files_are_right(
    shape: tuple[int, ...], chunks: tuple[int, ...], maxshape: Any, tmp_path: Path
) -> None:
    expected = make(tmp_path / "a.h5", shape, chunks, maxshape)
    with tamis.open(tmp_path / "a.h5") as file:
        assert np.array_equal(file["d"][...], expected)
    for name, shapes in (("b.h5", None), ("c.h5", {"d": tuple(step + 1 for step in chunks)})):
        tamis.repack(tmp_path / "a.h5", tmp_path / name, {"d": "shuffle|deflate(1)"}, chunks=shapes, threads=2)
        with h5py.File(tmp_path / name) as file:
            assert np.array_equal(file["d"][...], expected)
        assert tamis.verify(tmp_path / "a.h5", tmp_path / name, bounds={"d": 0}).ok


def test_an_origin_that_no_array_has_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(8, dtype="f4"), chunks=(4,), fletcher32=True)
    key, damaged = (struct.pack("<IIQQ", 20, 0, origin, 0) for origin in (4, (1 << 63) + 4))
    assert path.read_bytes().count(key) == 1
    path.write_bytes(path.read_bytes().replace(key, damaged))
    result = tamis.verify(path, path)
    assert [problem.code for problem in result.problems] == ["unreadable"]
    assert "damaged: chunk at [9223372036854775812], outside of shape (8,)" in result.problems[0].text


def test_appender_along_an_axis_that_is_not_the_first(tmp_path: Path) -> None:
    steps = np.random.default_rng(0).standard_normal((6, 11, 8)).cumsum(axis=1).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        made = file.create_dataset(
            "d", (6, 0, 8), "f4", chunks=(3, 4, 4), maxshape=(6, None, 8), **tamis.Zfp(accuracy=1e-3)
        )
        with tamis.hdf5.Appender(made, axis=1) as appender:
            for step in range(11):
                appender.append(steps[:, step])
    with h5py.File(tmp_path / "a.h5") as file, tamis.open(tmp_path / "a.h5") as again:
        assert np.abs(file["d"][...] - steps).max() <= 1e-3
        assert np.array_equal(again["d"][...], file["d"][...])


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """A dataset of four chunks, of which HDF5 lists four and finds two, as in its own test file ``h5fc_ext1_i.h5``.

    The place of a chunk in the index follows from the largest extents; those in the header are exchanged.
    """
    values = np.arange(24).reshape(4, 6)
    for name, rows, origins in (("a.h5", 4, [(0, 0), (2, 0), (0, 3), (2, 3)]), ("b.h5", 10, [(0, 0), (2, 0)])):
        with h5py.File(tmp_path / name, "w", libver="latest") as file:
            made = file.create_dataset("d", (4, 6), "i4", chunks=(2, 3), maxshape=(rows, None))
            for row, column in origins:
                part = slice(row, row + 2), slice(column, column + 3)
                made[part] = values[part]
    data, other = ((tmp_path / name).read_bytes() for name in ("a.h5", "b.h5"))
    start, end = (data.index(signature, data.index(b"OHDR") + 4) for signature in (b"OHDR", b"EAHD"))
    (tmp_path / "d.h5").write_bytes(data[:start] + other[start:end] + data[end:])
    return tmp_path / "d.h5"


def test_chunks_that_hdf5_lists_and_does_not_find_have_its_values(doubtful: Path) -> None:
    with h5py.File(doubtful) as file:
        assert file["d"].id.get_num_chunks() == 4
        expected = file["d"][...]
        assert expected.any()
        assert not expected[:, 3:].any()
        with pytest.raises(UnsureIndexError, match="HDF5 lists 4 chunks, but finds 2"):
            stored_chunks(file["d"].id)
    with tamis.open(doubtful) as file:
        assert np.array_equal(file["d"][...], expected)
        assert np.array_equal(file["d"].read(), expected)
        assert file["d"][3, 1:5].tolist() == expected[3, 1:5].tolist()
    with xarray.open_dataset(doubtful, engine="tamis") as dataset:
        assert np.array_equal(dataset["d"].values, expected)


@pytest.mark.parametrize(
    "arguments", [["-f", "d:shuffle|deflate(4)"], ["-f", "d:deflate(1)", "-c", "d:4x6"], []], ids=str
)
@pytest.mark.parametrize("name", ["out.h5", "out.zarr"])
def test_commands_take_the_values_of_hdf5_where_it_does_not_find_chunks(
    doubtful: Path, arguments: list[str], name: str
) -> None:
    with h5py.File(doubtful) as file:
        expected = file["d"][...]
    target = doubtful.parent / name
    for command in (["repack", doubtful, target, *arguments], ["verify", doubtful, target]):
        done = run_tamis(*command)
        assert done.returncode == 0, done.stderr
    with tamis.open(target) as file:
        assert np.array_equal(file["d"][...], expected)


@pytest.mark.parametrize("notation", [[], ["--as", "h5py"], ["--json"]], ids=str)
def test_inspect_says_that_hdf5_does_not_find_chunks(doubtful: Path, notation: list[str]) -> None:
    done = run_tamis("inspect", str(doubtful), *notation)
    assert done.returncode == 1
    text = "damaged chunk index: HDF5 lists 4 chunks, but finds 2; it reads the fill value for"
    assert text in done.stdout + done.stderr
