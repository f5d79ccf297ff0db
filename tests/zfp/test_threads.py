"""One array in several threads: what one thread gives, for every type, number of axes and mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from tamis import DataError, ParameterError, StreamError, zfp

pytestmark = pytest.mark.usefixtures("kernel")  # once for each

# Large enough for threads, with blocks that are cut off at the ends of all axes.
SHAPES = {1: (1_050_003,), 2: (1026, 1023), 3: (102, 99, 105), 4: (34, 31, 33, 38)}
MODES = [zfp.Rate(9.3), zfp.Accuracy(4.0), zfp.Reversible()]


def sample(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Waves of different lengths and a bit of noise, up to 1000 or so."""
    rng = np.random.default_rng(7)
    values = rng.standard_normal(shape)
    for axis, extent in enumerate(shape):
        wave = 700 * np.sin(np.linspace(0, 20 + 9 * axis, extent) ** 2 / 9)
        values += wave.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return values.astype(dtype)


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_threads_any_type_rank_and_mode_same_as_one(dtype: str, rank: int, mode: zfp.Mode) -> None:
    array = sample(dtype, SHAPES[rank])
    stream = zfp.encode(array, mode)
    assert zfp.encode(array, mode, threads=2 + rank % 2) == stream
    one = zfp.decode(stream, array.shape, dtype, mode)
    assert zfp.decode(stream, array.shape, dtype, mode, threads=2).tobytes() == one.tobytes()


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [2, 3, 16, 10**30])
@pytest.mark.parametrize("mode", [zfp.Precision(13), zfp.Expert(70, 300, 64, -1074), zfp.Rate(3)], ids=str)
def test_threads_any_number_same_as_one(mode: zfp.Mode, threads: int) -> None:
    array = sample("f4", (1026, 1023))
    stream = zfp.encode_with_header(array, mode)
    assert zfp.encode_with_header(array, mode, threads=threads) == stream
    out = np.zeros_like(array)
    assert zfp.decode_with_header(stream, out, threads=threads) is out
    assert out.tobytes() == zfp.decode_with_header(stream).tobytes()


def test_threads_strided_and_unsigned_arrays_same_as_one() -> None:
    room = np.zeros((2052, 2046), "u4")
    array = room[::2, ::-2]
    array[...] = sample("i4", (1026, 1023)).astype("u4")
    stream = zfp.encode(array, zfp.Reversible(), threads=2)
    assert stream == zfp.encode(array, zfp.Reversible())
    back = np.zeros((2052, 2046), "u4")
    zfp.decode(stream, array.shape, "u4", zfp.Reversible(), back[::2, ::-2], threads=2)
    np.testing.assert_array_equal(back, room)


def test_threads_blocks_all_alike_same_as_one() -> None:
    array = np.full((1024, 2048), 1.37, "f4")
    for mode in (zfp.Accuracy(1e-3), zfp.Reversible()):
        stream = zfp.encode(array, mode)
        assert zfp.encode(array, mode, threads=2) == stream
        one = zfp.decode(stream, array.shape, "f4", mode)
        assert zfp.decode(stream, array.shape, "f4", mode, threads=2).tobytes() == one.tobytes()


def outcome(stream: bytes, shape: tuple[int, ...], mode: zfp.Mode, threads: int) -> bytes | str:
    try:
        return zfp.decode(stream, shape, "f4", mode, threads=threads).tobytes()
    except StreamError as error:
        return str(error)


@pytest.mark.matrix
@pytest.mark.parametrize("mode", [zfp.Accuracy(1e-2), zfp.Rate(5), zfp.Reversible()], ids=str)
def test_threads_stream_truncated_or_damaged_same_as_one(mode: zfp.Mode) -> None:
    shape = (1026, 1023)
    stream = zfp.encode(sample("f4", shape), mode)
    rng = np.random.default_rng(3)
    for share in (0.02, 0.3, 0.6, 0.97):
        cut = stream[: int(share * len(stream))]
        expected = outcome(cut, shape, mode, 1)
        assert re.search(r"truncated.* block \d+ of shape", str(expected))
        assert outcome(cut, shape, mode, 3) == expected
        damaged = bytearray(stream)
        damaged[len(cut) : len(cut) + 40] = rng.bytes(40)
        assert outcome(bytes(damaged), shape, mode, 3) == outcome(bytes(damaged), shape, mode, 1)
    assert outcome(stream + bytes(1 << 20), shape, mode, 2) == outcome(stream, shape, mode, 1)


def test_encode_threads_value_refused_first_one_named() -> None:
    array = sample("f4", (1026, 1023))
    array[1000, 5] = np.nan
    array[900, 7] = np.inf
    with pytest.raises(DataError, match=r"found NaN or infinity at index \(900, 7\)"):
        zfp.encode(array, zfp.Rate(8), threads=2)


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2", None])
def test_threads_not_a_number_of_threads_refused(threads: Any) -> None:
    array = np.zeros(8, "f4")
    stream = zfp.encode(array, zfp.Rate(8))
    message = re.escape(f"expected 1 or more threads, got threads={threads!r}")
    with pytest.raises(ParameterError, match=message):
        zfp.encode(array, zfp.Rate(8), threads=threads)
    with pytest.raises(ParameterError, match=message):
        zfp.encode_with_header(array, zfp.Rate(8), threads=threads)
    with pytest.raises(ParameterError, match=message):
        zfp.decode(stream, (8,), "f4", zfp.Rate(8), threads=threads)
    with pytest.raises(ParameterError, match=message):
        zfp.decode_with_header(zfp.encode_with_header(array, zfp.Rate(8)), threads=threads)


@pytest.mark.check
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts the threads of the process as Linux does")
def test_threads_run_without_the_lock_and_are_gone_afterwards() -> None:
    array = sample("f4", (1026, 1023))
    before = min(len(os.listdir("/proc/self/task")) for _ in range(1000))  # those of other tests may be ending
    most, done = 0, threading.Event()

    def code() -> None:
        for _ in range(20):
            stream = zfp.encode(array, zfp.Accuracy(1e-3), threads=5)
            zfp.decode(stream, array.shape, "f4", zfp.Accuracy(1e-3), threads=5)
        done.set()

    thread = threading.Thread(target=code)
    thread.start()
    while not done.is_set():
        most = max(most, len(os.listdir("/proc/self/task")))
    thread.join()
    assert most >= before + 5  # Python's own, and four more; the system lists some a while after they were joined
    for _ in range(10_000):
        if len(os.listdir("/proc/self/task")) <= before:
            break
        time.sleep(0.001)
    else:
        pytest.fail("expected threads to end with their call")


SCARCE = """
import resource, numpy as np
from tamis import zfp, _native
_native.use_kernel({kernel!r})

array = np.random.default_rng(1).standard_normal((1024, 4096))
stream = zfp.encode(array, zfp.Reversible())
used = 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (used + {room}, resource.RLIM_INFINITY))
try:
    print(zfp.encode(array, zfp.Reversible(), threads=40) == stream)
except MemoryError as error:
    print("no memory", error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(zfp.encode(array, zfp.Reversible(), threads=2) == stream)
"""


@pytest.mark.matrix
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize(
    ("room", "printed"), [(1 << 28, ["True", "True"]), (1 << 24, ["no memory std::bad_alloc", "True"])], ids=str
)
def test_encode_threads_or_memory_scarce_fewer_threads_or_error(room: int, printed: list[str], kernel: str) -> None:
    # A thread takes 64 MiB of addresses for its stack: there are never 40.
    command = ["sh", "-c", f"ulimit -s 65536; exec {sys.executable} -"]
    script = SCARCE.format(room=room, kernel=kernel)
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (printed, "")
