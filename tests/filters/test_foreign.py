"""SZ3 and SPERR, that a process beside ours decodes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest

from tamis import DataError, MissingFilterError, ParameterError, Pipeline, Sperr, StreamError, Sz3
from tamis.filters import ChunkType, Filter, Request, from_values, plugin_client

FLOATS = ChunkType(np.dtype("f4"), (20, 30))
Stored = tuple[Filter, tuple[int, ...], ChunkType, bytes, bytes]


@pytest.fixture(scope="module")
def stored(foreign_file: Path) -> list[Stored]:
    found = []
    with h5py.File(foreign_file) as file:
        for name, expected in file["expected"].items():
            dataset = file[name]
            id_, _, words, label = dataset.id.get_create_plist().get_filter(0)
            words = tuple(word & 0xFFFFFFFF for word in words)
            mask, data = dataset.id.read_direct_chunk((0,) * dataset.ndim)
            if mask:
                continue
            one = from_values(Request(id_, words), label.decode())
            asked = tuple(dataset.attrs["asked"].tolist())
            assert one == from_values(Request(id_, asked))
            assert one.requested == asked
            found.append((one, words, ChunkType(dataset.dtype, dataset.chunks), data, expected[...].tobytes()))
    return found


def worker_pid() -> int:
    (worker,) = plugin_client._WORKERS._idle[-1:]
    assert worker._process is not None
    return worker._process.pid


def test_foreign_chunks_of_hdf5plugin_decoded_as_it_reads_them(stored: list[Stored]) -> None:
    assert {one.name for one, *_ in stored} == {"sz3", "sperr"}
    assert len(stored) == 148
    assert not [(one, words) for one, words, chunk, data, plain in stored if one.decode(data, chunk, words) != plain]


def test_foreign_stored_parameters_as_hdf5plugin_leaves_them(stored: list[Stored]) -> None:
    assert not [(one, words, chunk) for one, words, chunk, *_ in stored if one.stored(chunk) != words]


def test_foreign_from_threads_each_gets_its_own_chunk(stored: list[Stored]) -> None:
    with ThreadPoolExecutor(4) as pool:
        decoded = list(pool.map(lambda each: each[0].decode(each[3], each[2], each[1]), stored))
    assert decoded == [plain for *_, plain in stored]


def test_foreign_from_a_fork_gets_a_worker_of_its_own(stored: list[Stored]) -> None:
    needs.need_shared_memory()
    one, words, chunk, data, plain = stored[0]
    assert one.decode(data, chunk, words) == plain
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(one.decode, (data, chunk, words)) == plain
    assert one.decode(data, chunk, words) == plain


def test_foreign_damaged_chunks_refused_and_the_next_one_decoded(stored: list[Stored]) -> None:
    random_ = random.Random(1)
    errors = []
    for one, words, chunk, data, plain in random_.sample(stored, 40):
        damaged = bytearray(data[: random_.randrange(9, len(data) + 1)])
        damaged[random_.randrange(len(damaged))] ^= 1 << random_.randrange(8)
        try:
            assert len(one.decode(bytes(damaged), chunk, words)) == len(plain)
        except StreamError as error:
            errors.append(str(error))
        assert one.decode(data, chunk, words) == plain
    assert errors
    assert not [error for error in errors if "damaged" not in error]


def test_foreign_worker_killed_error_and_a_new_one(stored: list[Stored]) -> None:
    one, words, chunk, data, plain = stored[0]
    assert one.decode(data, chunk, words) == plain
    before = worker_pid()
    os.kill(before, signal.SIGSTOP)  # so that it gets the chunk, and ends with it
    threading.Timer(0.2, os.kill, (before, signal.SIGKILL)).start()
    with pytest.raises(StreamError, match=r"the process that decodes with libh5sz3.so was ended by SIGKILL: the chunk"):
        one.decode(data, chunk, words)
    assert one.decode(data, chunk, words) == plain
    assert worker_pid() != before


def test_foreign_worker_silent_error_and_a_new_one(stored: list[Stored], monkeypatch: pytest.MonkeyPatch) -> None:
    one, words, chunk, data, plain = stored[0]
    assert one.decode(data, chunk, words) == plain
    monkeypatch.setattr(plugin_client, "_SECONDS", 0.2)
    before = worker_pid()
    os.kill(before, signal.SIGSTOP)
    with pytest.raises(StreamError, match=r"did not answer within 0 s"):
        one.decode(data, chunk, words)
    assert one.decode(data, chunk, words) == plain


def test_foreign_parameters_of_another_chunk_refused(stored: list[Stored]) -> None:
    for one, words, chunk, data, _ in stored[:1] + stored[-1:]:
        other = ChunkType(chunk.dtype, (*chunk.shape[:-1], chunk.shape[-1] + 1))
        with pytest.raises(StreamError, match=f"parameters of {one.name} describe chunks of {chunk.nbytes} bytes, but"):
            one.decode(data, other, words)


@pytest.mark.parametrize("one", [Sz3("absolute", 0.1), Sperr("rate", 8)], ids=str)
def test_foreign_without_hdf5plugin_names_the_extra(one: Filter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingFilterError, match=rf"^{one.name} needs hdf5plugin.*pip install 'tamis\[hdf5plugin\]'"):
        one.encode(bytes(2400), FLOATS, one.stored(FLOATS))


FILTERS = [Sz3("absolute", 0.1), Sperr("absolute", 0.1, "none", "swapped"), Sperr("absolute", 0.1, "1e35", "swapped")]


@pytest.mark.parametrize("one", FILTERS, ids=str)
def test_foreign_encodes_within_its_bound(one: Filter) -> None:
    chunk = ChunkType(np.dtype("f8"), (4, 1, 20, 30))
    values = np.cumsum(np.random.default_rng(0).normal(0, 1, chunk.shape), -1)
    data = one.encode(values.tobytes(), chunk, one.stored(chunk))
    decoded = np.frombuffer(one.decode(data, chunk, one.stored(chunk)), "f8").reshape(values.shape)
    assert len(data) < values.nbytes / 4
    assert 0.05 < np.abs(decoded - values).max() <= 0.1


def test_sperr_keeps_its_markers_of_missing_values_exactly() -> None:
    one, values = FILTERS[-1], np.cumsum(np.random.default_rng(0).normal(0, 1, FLOATS.shape), -1).astype("f4")
    values[3:9, 4:20] = fill = np.float32(9.96921e36)
    decoded = one.decode(one.encode(values.tobytes(), FLOATS, one.stored(FLOATS)), FLOATS, one.stored(FLOATS))
    assert ((np.frombuffer(decoded, "f4").reshape(values.shape) == fill) == (values == fill)).all()


@pytest.mark.parametrize(
    ("one", "value", "message"),
    [
        (Sz3("absolute", 0.1), np.nan, "sz3 takes minutes for a chunk with NaN or infinity"),
        (Sz3("absolute", 0.1), np.inf, "sz3 takes minutes for a chunk with NaN"),
        (FILTERS[1], np.nan, r"sperr takes chunks with some valid values, all of them below 1\.15292e\+17 in size"),
        (FILTERS[1], np.float32(1e36), "all of them below"),
        (FILTERS[2], np.float32(1e34), "all of them below"),
        (FILTERS[2], np.nan, "all of them below"),
        (Sperr("absolute", 0.1, "nan", "swapped"), np.inf, "all of them below"),
    ],
    ids=str,
)
def test_foreign_refuses_values_that_end_its_process(one: Filter, value: Any, message: str) -> None:
    values = np.ones(FLOATS.shape, "f4")
    values[2, 3] = value
    with pytest.raises(DataError, match=message):
        one.encode(values.tobytes(), FLOATS, one.stored(FLOATS))
    values[...] = value
    with pytest.raises(DataError, match=message):
        one.encode(values.tobytes(), FLOATS, one.stored(FLOATS))


def test_sz3_refuses_uint32_which_it_may_never_finish() -> None:
    with pytest.raises(ParameterError, match="expected other values than uint32 for sz3"):
        Sz3("absolute", 2).check(ChunkType(np.dtype("u4"), (8, 32, 32)))
    Sz3("absolute", 2).check(ChunkType(np.dtype("u2"), (8, 32, 32)))


def test_foreign_swapped_bytes_refused() -> None:
    chunk = ChunkType(np.dtype("f4").newbyteorder(), FLOATS.shape)
    for one in FILTERS:
        with pytest.raises(DataError, match=f"expected native byte order for {one.name}"):
            one.encode(bytes(chunk.nbytes), chunk, one.stored(chunk))


def test_sperr_bound_is_alone_and_stands_for_no_parameters() -> None:
    one = Sperr(bound=0.25)
    assert str(one) == "sperr(bound=0.25)"
    assert Pipeline.parse("sperr(bound=0.25)|deflate(4)").stages[0].filter == one
    assert one.in_words() == "sperr, largest error 0.25"
    with pytest.raises(ParameterError, match=r"sperr\(bound=0.25\) cannot be recorded as it is: only"):
        one.requested  # noqa: B018
    with pytest.raises(ParameterError, match="bound of sperr cannot be combined with quality and order"):
        Sperr("rate", 8, order="swapped", bound=0.25)
    for bound in (0, -1, float("nan"), float("inf"), "x", True):
        with pytest.raises(ParameterError, match="expected bound above 0, got bound="):
            Sperr(bound=bound)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="expected float32 or float64 for sperr, got int32: use zfp or sz3"):
        Sperr("absolute", 0.25).check(ChunkType(np.dtype("i4"), (8, 8)))


def test_sperr_text_of_every_parameter_is_read_again() -> None:
    for one in (*FILTERS, Sperr("psnr", 80, "nan"), Sperr(bound=1e-3)):
        assert Pipeline.parse(str(one)).filters == (one,)


def test_foreign_threads_are_answered_by_several_processes() -> None:
    one = FILTERS[1]
    chunk = ChunkType(np.dtype("f4"), (64, 64, 32))
    values = np.cumsum(np.random.default_rng(0).normal(0, 1, chunk.shape), -1).astype("f4").tobytes()
    with ThreadPoolExecutor(2) as pool:
        encoded = list(pool.map(lambda _: one.encode(values, chunk, one.stored(chunk)), range(8)))
    assert len(set(encoded)) == 1
    most = os.cpu_count() or 1
    assert min(2, most) <= len(plugin_client._WORKERS._idle) <= most


@pytest.mark.parametrize("bound", [-1.0, float("nan"), float("inf"), "foo", True, None, np.float32("nan")])
def test_sz3_bound_out_of_range_refused(bound: Any) -> None:
    with pytest.raises(ParameterError, match="expected bound of 0 or more, got bound="):
        Sz3("absolute", bound)


@pytest.mark.parametrize("quality", [-1.0, 0.0, float("nan"), float("inf"), True, "foo", None, 10**400])
def test_sperr_quality_out_of_range_refused(quality: Any) -> None:
    with pytest.raises(ParameterError, match="expected quality above 0; below 2048 except for absolute, got quality="):
        Sperr("rate", quality)


@pytest.mark.parametrize("mode", ["rate", "psnr"])
@pytest.mark.parametrize("quality", [2048, 2048 - 2**-18, 2.0**-17, 2.0**1023])
def test_sperr_quality_that_its_bits_cannot_hold_refused(mode: str, quality: float) -> None:
    with pytest.raises(
        ParameterError, match=f"expected quality of 2\\^-16 to below 2048 for {mode} of sperr, got quality"
    ):
        Sperr(mode, quality)


@pytest.mark.parametrize("quality", [2.0**-16, 2048 - 2**-16])
@pytest.mark.parametrize("mode", ["rate", "psnr"])
def test_sperr_quality_at_its_bounds_read_back(mode: str, quality: float) -> None:
    assert Sperr.from_values(Sperr(mode, quality).requested) == Sperr(mode, quality)


@pytest.mark.parametrize("quality", [sys.float_info.min, 2.0**1023, 2.0**-1000, 1e-3, 5000])
def test_sperr_absolute_quality_read_back(quality: float) -> None:
    again = Sperr.from_values(Sperr("absolute", quality).requested)
    assert again.quality == pytest.approx(quality, rel=2e-5)
    assert Sperr.from_values(again.requested) == again


@pytest.mark.parametrize("exponent", [1024 << 16, 1 << 27 | 1023 << 16])
def test_sperr_absolute_beyond_float64_refused(exponent: int) -> None:
    word = 3 << 28 | exponent
    if word >> 27 & 1:  # 2^-1023
        word |= 1 << 16
    with pytest.raises(ParameterError, match="expected an error of sperr that fits a float64, got 2\\^"):
        Sperr.from_values((word, 0))


@pytest.mark.parametrize("bound", [np.float32(0.5), np.float64(0.5), 0.5])
def test_sz3_bound_numpy_floats_taken_as_float(bound: Any) -> None:
    one = Sz3("absolute", bound)
    assert type(one.bound) is float
    assert str(one) == "sz3(mode=absolute,bound=0.5)"
    assert type(Sz3("absolute", np.int64(2)).bound) is float  # type: ignore[arg-type]


def run_limited(code: str, limit: str = "") -> str:
    """Run code in a process with an address space of so many bytes."""
    before = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n" if limit else ""
    done = subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


DECODE = """
import h5py, numpy as np
from tamis.errors import MissingFilterError
from tamis.filters import *
with h5py.File({path!r}) as file:
    dataset = file["0"]
    request = dataset.id.get_create_plist().get_filter(0)
    data = dataset.id.read_direct_chunk((0,) * dataset.ndim)[1]
    chunk, expected = ChunkType(dataset.dtype, dataset.chunks), file["expected/0"][...].tobytes()
{before}
one = from_values(Request(request[0], request[2]))
try:
    print(one.decode(data, chunk, request[2]) == expected)
except MissingFilterError as error:
    print(error)
"""


def test_foreign_under_a_limit_of_addresses_sound_chunk_decoded(foreign_file: Path) -> None:
    assert run_limited(DECODE.format(path=str(foreign_file), before=""), str(3 << 30)) == "True"


def test_foreign_process_that_does_not_start_missing_not_damaged(foreign_file: Path) -> None:
    before = "import os, shutil, sys; sys.executable = shutil.which('false', path=os.defpath)"
    found = run_limited(DECODE.format(path=str(foreign_file), before=before))
    assert found.startswith("/")
    assert found.endswith(
        "could not start the process that runs plugins (exit code 1): it may lack memory, see ulimit -v"
    )


def test_foreign_plugin_file_absent_or_of_another_machine_missing_not_damaged(
    foreign_file: Path, tmp_path: Path
) -> None:
    before = (
        "from tamis.filters import plugin_client\n"
        f"plugin_client.hdf5plugin_folder = lambda: __import__('pathlib').Path({str(tmp_path)!r})"
    )
    code = DECODE.format(path=str(foreign_file), before=before)
    assert run_limited(code).startswith("this hdf5plugin does not have libh5sz3.so (no ")
    (tmp_path / "libh5sz3.so").write_bytes(b"no library")
    assert run_limited(code) == f"{tmp_path}/libh5sz3.so cannot be loaded here: it is built for other machines"


@pytest.mark.parametrize(
    "values", [(1,), (5, 0, 1, 2, 3, 4, 5), (2, 0, 30), (2, 10, 30, 20), (2, 0, 30, 20, 0, 1), (9, *[0] * 8)]
)
def test_sz3_words_of_no_version_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="of sz3"):
        Sz3.from_values(values)


@pytest.mark.parametrize("values", [(), (0,), (0, 0), (1042, 0, 128, 256), (1042 | 5 << 6, 1 << 28, 128, 256)])
def test_sperr_words_of_no_version_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="expected quality and missing values of sperr"):
        Sperr.from_values(values)


@pytest.mark.parametrize(
    ("one", "dtype", "shape"),
    [(Sz3(), "f2", (20, 30)), (Sz3(), "f4", (2, 3, 4, 5, 6)), (Sperr(), "i2", (20, 30)), (Sperr(), "f4", (600,))],
)
def test_foreign_chunks_that_it_cannot_take_refused(one: Filter, dtype: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match=f"for {one.name}, got {np.dtype(dtype)} of shape "):
        one.stored(ChunkType(np.dtype(dtype), shape))
