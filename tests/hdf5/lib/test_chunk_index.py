"""Chunks whose places HDF5 says wrong: one unlimited axis that is not the first, in the newest format."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis.errors import FileError
from tamis.hdf5.lib import calls, chunk_index
from tamis.hdf5.lib.chunk_index import chunk_info, stored_chunks

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
    assert "damaged: chunk at [9223372036854775812] of shape (8,)" in result.problems[0].text


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


def test_stored_chunks_that_are_others_than_hdf5_finds_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.h5", *CASES[1])
    monkeypatch.setattr(chunk_index, "_has_defect", lambda: True)
    monkeypatch.setattr(calls, "stored_nbytes", lambda dataset, origin: 5)
    with (
        h5py.File(tmp_path / "a.h5") as file,
        pytest.raises(FileError, match="expected HDF5 to list the chunks that it finds"),
    ):
        stored_chunks(file["d"].id)
