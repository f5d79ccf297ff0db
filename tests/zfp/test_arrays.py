"""Arrays that are odd in memory, modes that only look lossless, and values that change under the encoder."""

from __future__ import annotations

import threading
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis import DataError, ParameterError, zfp

pytestmark = pytest.mark.usefixtures("kernel")  # once for each

VALUES = np.sin(np.arange(64.0) / 5)


def test_encode_unaligned_array_same_as_aligned() -> None:
    memory = bytearray(VALUES.nbytes + 1)
    unaligned = np.frombuffer(memory, "f8", 64, 1)
    unaligned[:] = VALUES
    assert not unaligned.flags.aligned
    assert zfp.encode(unaligned, zfp.Rate(8)) == zfp.encode(VALUES, zfp.Rate(8))


def test_decode_unaligned_out_refused_with_the_reason() -> None:
    out = np.frombuffer(bytearray(VALUES.nbytes + 1), "f8", 64, 1)
    with pytest.raises(ParameterError, match=r"native, aligned float64, got \(64,\) and unaligned [<>]f8"):
        zfp.decode(zfp.encode(VALUES, zfp.Rate(8)), (64,), "f8", zfp.Rate(8), out=out)


def test_decode_out_with_one_place_for_all_values_refused() -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(1), (64,), (0,))
    with pytest.raises(ParameterError, match=r"expected out without overlapping values, got strides \(0,\)"):
        zfp.decode(zfp.encode(VALUES, zfp.Rate(8)), (64,), "f8", zfp.Rate(8), out=out)


def test_decode_buffer_with_gaps_read_as_its_bytes() -> None:
    stream = zfp.encode(VALUES, zfp.Rate(8))
    spread = bytearray(2 * len(stream))
    spread[::2] = stream
    again = zfp.decode(memoryview(spread)[::2], (64,), "f8", zfp.Rate(8))
    assert again.tobytes() == zfp.decode(stream, (64,), "f8", zfp.Rate(8)).tobytes()


@pytest.mark.parametrize("cut", [{"maxprec": 8}, {"maxbits": 100}], ids=str)
def test_expert_reversible_but_cut_is_lossy(cut: dict[str, int], tmp_path: Path) -> None:
    mode = zfp.Expert(minexp=-2000, **cut)
    assert not zfp.is_lossless(mode)
    assert zfp.is_lossless(zfp.Expert(minexp=-2000))
    values = np.arange(256, dtype="u4") * 1_000_003
    with pytest.raises(ParameterError, match="expected signed integers or floats in a lossy mode, got uint32"):
        zfp.encode(values, mode)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match="lossy modes treat unsigned integers as signed"):
            file.create_dataset("v", data=values, chunks=(64,), **tamis.Zfp(minexp=-2000, **cut))
        file.create_dataset("v", data=values, chunks=(64,), **tamis.Zfp(minexp=-2000))
        assert np.array_equal(file["v"][...], values)


def test_encode_values_changed_by_another_thread_never_an_empty_stream() -> None:
    values = np.ones(1 << 18)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            values[-1] = np.nan
            values[-1] = 1.0

    thread = threading.Thread(target=change)
    thread.start()
    outcomes = set()
    try:
        for _ in range(60):
            try:
                outcomes.add(len(zfp.encode(values, zfp.Rate(8))))
            except DataError as error:
                outcomes.add(str(error)[:30])
    finally:
        stop.set()
        thread.join()
    assert outcomes <= {1 << 18, "expected finite values with ra", "another thread changed values "}
