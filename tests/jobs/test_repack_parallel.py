"""The same bytes for any number of threads, every way to read a source, and a clean end in the middle of the work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError, ParameterError
from tamis.arrays import ContiguousReader, read_many
from tamis.arrays.chunk_reader import ChunkedReader, ChunkReader
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.virtual_reader import VirtualReader

Real = Callable[[str], Path]

FIELD = (100 * np.sin(np.arange(24 * 40 * 50) / 17)).reshape(24, 40, 50).astype("f4")
SHAPES = [None, (24, 8, 8), (5, 7, 50), (24, 40, 50), (1, 1, 50), (3, 40, 9)]


def make(path: Path, **options: Any) -> Path:
    with h5py.File(path, "w", userblock_size=options.pop("userblock", 0)) as file:
        file.create_dataset("v", **{"data": FIELD} | options)
    return path


def values(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["v"][()]


@pytest.mark.matrix
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "stored", [{}, {"chunks": (1, 40, 50), "compression": "gzip"}, {"chunks": (6, 13, 11), "shuffle": True}], ids=str
)
def test_repack_jobs_give_the_same_bytes(
    stored: dict[str, Any], shape: tuple[int, ...] | None, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    source = make(tmp_path / "a.h5", **stored)
    chunks = {} if shape is None else {"v": shape}
    for threads in (1, 2, 8):
        tamis.repack(
            source,
            tmp_path / f"{threads}.h5",
            {"v": "zfp(accuracy=0.1)|shuffle|deflate"},
            chunks=chunks,
            threads=threads,
        )
    assert len({sha256(tmp_path / f"{threads}.h5") for threads in (1, 2, 8)}) == 1
    assert 0 < np.abs(values(tmp_path / "8.h5").astype("f8") - FIELD).max() <= 0.1


def test_repack_jobs_give_the_same_bytes_of_a_real_file(
    real: Real, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    recipes = {"SST": "zfp(accuracy=0.1)|shuffle|deflate(1)", "*": "shuffle|deflate(1)"}
    for threads in (1, 2, 8):
        chunks = {"SST": (60, 32, 32)}
        tamis.repack(real("pop_sst_60days.nc"), tmp_path / f"{threads}.nc", recipes, chunks=chunks, threads=threads)
    assert len({sha256(tmp_path / f"{threads}.nc") for threads in (1, 2, 8)}) == 1


def test_repack_default_threads_write_what_one_writes(
    sample: Path, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    tamis.repack(sample, tmp_path / "a.nc", {"TS": "zfp(rate=8)"})
    tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(rate=8)"}, threads=1)
    assert sha256(tmp_path / "a.nc") == sha256(tmp_path / "b.nc")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"], ids=repr)
def test_repack_threads_that_are_no_number_refused(threads: Any, sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="expected 1 or more threads, got threads="):
        tamis.repack(sample, tmp_path / "b.nc", {"TS": "deflate"}, threads=threads)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        ({"chunks": (4, 40, 50), "compression": "lzf"}, ChunkedReader),
        ({"chunks": (4, 40, 50), "userblock": 2048}, ChunkedReader),
        ({}, ContiguousReader),
        ({"userblock": 2048}, ContiguousReader),
        ({"data": FIELD.astype(">f4")}, ContiguousReader),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "part", [np.s_[0:24, 0:40, 0:50], np.s_[3:9, 10:20, 0:50], np.s_[23:24, 39:40, 49:50]], ids=str
)
def test_open_values_reads_what_hdf5_reads(stored: dict[str, Any], kind: type, part: Any, tmp_path: Path) -> None:
    with h5py.File(make(tmp_path / "a.h5", **stored)) as file:
        source = Hdf5Array.of(file["v"]).open_reader()
        assert isinstance(source, kind)
        assert np.array_equal(source.read(part), file["v"][part])
        source.close()


def test_open_values_of_long_rows_reads_what_hdf5_reads(tmp_path: Path) -> None:
    """Rows of so many bytes are read past HDF5 even where a part has not all of one."""
    data = np.arange(8 * 3 * 4096, dtype="f4").reshape(8, 3, 4096)
    with h5py.File(make(tmp_path / "a.h5", data=data)) as file:
        source = Hdf5Array.of(file["v"]).open_reader()
        for part in (np.s_[2:5, 1:3, 1000:3000], np.s_[0:8, 2:3, 0:4096], np.s_[1:2, 0:3, 4000:4096]):
            assert np.array_equal(source.read(part), data[part])
        source.close()


def test_open_values_of_virtual_dataset_reads_its_sources(tmp_path: Path) -> None:
    make(tmp_path / "part.h5")
    layout = h5py.VirtualLayout(FIELD.shape, "f4")
    layout[...] = h5py.VirtualSource(tmp_path / "part.h5", "v", FIELD.shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with h5py.File(tmp_path / "a.h5") as file:
        source = Hdf5Array.of(file["v"]).open_reader()
        assert isinstance(source, VirtualReader)
        assert np.array_equal(source.read(np.s_[3:9, 0:40, 1:2]), FIELD[3:9, :, 1:2])


def test_repack_truncated_contiguous_source_is_a_file_error(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5")
    with h5py.File(source) as file:
        end = file["v"].id.get_offset() + FIELD.nbytes
    with source.open("r+b") as stream:
        stream.truncate(end - 100)
    with pytest.raises(FileError, match=r"a\.h5"):
        tamis.repack(source, tmp_path / "b.h5", {"v": "deflate"})
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("shape", [(16, 16, 16), (24, 5, 50), (1, 40, 50)], ids=str)
def test_repack_source_chunk_decoded_once_whatever_the_new_chunks(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is compared at once; the file through which HDF5 checks some is not counted."""
    source = make(tmp_path / "a.h5", chunks=(1, 40, 50), compression="gzip")
    decoded: list[tuple[int, ...]] = []
    read = ChunkReader.values

    def counted(self: ChunkReader, origin: tuple[int, ...], out: Any = None) -> Any:
        if "a.h5" in self.label:
            decoded.append(origin)
        return read(self, origin, out)

    monkeypatch.setattr(ChunkReader, "values", counted)
    monkeypatch.setattr(read_many, "SMALL_NBYTES", 0)  # one by one, so that they can be counted
    tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, chunks={"v": shape}, threads=2)
    sampled = 8  # before anything is written, to warn of a bound that is too large for the values
    assert len(decoded) == 24 + sampled
    assert len(set(decoded)) == 24


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("shape", [(1, 40, 50), (24, 8, 8)], ids=str)
def test_repack_source_damaged_in_the_middle_ends_all_threads(
    shape: tuple[int, ...], threads: int, tmp_path: Path
) -> None:
    source = make(tmp_path / "a.h5", chunks=(1, 40, 50), fletcher32=True)
    with h5py.File(source) as file:
        offset = file["v"].id.get_chunk_info(11).byte_offset
    with source.open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\xff\x00\xff")
    with pytest.raises(FileError, match=r"a\.h5: /v: chunk at \(11, 0, 0\) cannot be decoded: filter 1, fletcher32"):
        tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, chunks={"v": shape}, threads=threads)
    assert os.listdir(tmp_path) == ["a.h5"]
    assert not [each for each in threading.enumerate() if each.name.startswith("tamis_")]  # of a map, not of a pool


@pytest.mark.parametrize("what", ["writing", "verifying"])
def test_repack_error_in_progress_ends_all_threads(what: str, tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", chunks=(1, 40, 50))

    def progress(said: str, done: int, total: int) -> None:
        if said.startswith(what) and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, threads=4, progress=progress)
    assert interrupted.traceback  # which holds on to the frames, and what they work with
    assert os.listdir(tmp_path) == ["a.h5"]
    assert not [each for each in threading.enumerate() if each.name.startswith("tamis_")]  # of a map, not of a pool


# The first run imports what is imported late: Python 3.11 makes a RuntimeError of an interrupt while a class is made.
INTERRUPTED = """
import os, signal, sys, threading, tamis
tamis.repack(sys.argv[1], sys.argv[2], {"TS": "zfp(accuracy=0.001)"}, threads=4)
sys.unraisablehook = lambda _: os._exit(77)
threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGINT)).start()
while True:
    tamis.repack(sys.argv[1], sys.argv[2], {"TS": "zfp(accuracy=0.001)"}, overwrite=True, threads=4)
"""


@pytest.mark.matrix
@pytest.mark.parametrize("delay", ["0.05", "0.11", "0.2", "0.31"])
def test_repack_interrupted_at_any_moment_leaves_no_temporary(delay: str, sample: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, sample, tmp_path / "b.nc", delay]
    for _ in range(5):
        code = subprocess.run(command, capture_output=True, check=False).returncode
        if code != 77:  # now and then Python drops the interrupt, in a weak reference, and the loop would have no end
            break
        for path in tmp_path.iterdir():
            path.unlink()
    assert code == -signal.SIGINT
    assert set(os.listdir(tmp_path)) <= {"b.nc"}
    if (tmp_path / "b.nc").exists():
        with h5py.File(tmp_path / "b.nc") as file:
            assert file["TS"][-1].min() > 100
