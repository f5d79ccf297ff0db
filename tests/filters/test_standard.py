"""Shuffle, deflate and fletcher32 against libhdf5, which h5py runs."""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Deflate, Fletcher32, ParameterError, Shuffle, StreamError
from tamis.filters import ChunkType, Filter
from tamis.filters.standard import checksum

DTYPES = ["i1", "u2", "f4", "f8", "c16", "S3", "S7"]


def encoded(one: Filter, data: bytes, chunk: ChunkType) -> bytes:
    return bytes(one.encode(data, chunk, one.stored(chunk)))


def decoded(one: Filter, data: bytes, chunk: ChunkType) -> bytes:
    return bytes(one.decode(data, chunk, one.stored(chunk)))


def values_of(dtype: str, count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.frombuffer(np.random.default_rng(seed).bytes(count * np.dtype(dtype).itemsize), dtype)


def stored_by_hdf5(values: np.ndarray[Any, Any], **keywords: Any) -> bytes:
    """The one chunk of a dataset, as libhdf5 filters it."""
    with h5py.File.in_memory() as file:
        dataset = file.create_dataset("x", values.shape, values.dtype, chunks=values.shape, **keywords)
        # As bytes: HDF5 would end strings at a NUL.
        dataset.id.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=dataset.id.get_type())
        file.flush()
        mask, data = dataset.id.read_direct_chunk((0,) * values.ndim)
    assert mask == 0
    return data


@pytest.mark.parametrize("count", [1, 2, 3, 17, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shuffle_any_type_same_bytes_as_hdf5(dtype: str, count: int) -> None:
    values, chunk = values_of(dtype, count), ChunkType(np.dtype(dtype), (count,))
    stored = stored_by_hdf5(values, shuffle=True)
    assert encoded(Shuffle(), values.tobytes(), chunk) == stored
    assert decoded(Shuffle(), stored, chunk) == values.tobytes()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 1001, 66000, 140001])
@pytest.mark.parametrize("dtype", ["i1", "S3", "f8"])
def test_fletcher32_any_length_same_bytes_as_hdf5(dtype: str, count: int) -> None:
    values, chunk = values_of(dtype, count), ChunkType(np.dtype(dtype), (count,))
    stored = stored_by_hdf5(values, fletcher32=True)
    assert encoded(Fletcher32(), values.tobytes(), chunk) == stored
    assert decoded(Fletcher32(), stored, chunk) == values.tobytes()


@pytest.mark.parametrize("pattern", [b"\0", b"\xff", b"\xff\xff", b"\0\1", b"\xff\xfe"])
@pytest.mark.parametrize("count", [1, 4, 359, 360, 361, 65535, 65536, 131071])
def test_fletcher32_sums_at_their_modulus_same_bytes_as_hdf5(pattern: bytes, count: int) -> None:
    values = np.frombuffer(pattern * count, "i1")
    assert encoded(Fletcher32(), values.tobytes(), ChunkType(values.dtype, values.shape)) == stored_by_hdf5(
        values, fletcher32=True
    )


def test_fletcher32_longer_than_one_piece_same_as_sums_in_one() -> None:
    # The checksum is taken in pieces of 2^20 words: a zero piece before must not matter, one after must.
    data = values_of("u1", 3001).tobytes()
    low = high = 0
    for word in np.frombuffer(data + b"\0", ">u2").tolist() + [0] * (1 << 20):
        low += word
        high += low
    expected = (high % 65535 or 65535) << 16 | (low % 65535 or 65535)
    assert checksum(data + b"\0" + bytes(2 << 20)) == expected
    assert checksum(bytes(4 << 20) + data) == checksum(data)


@pytest.mark.parametrize("level", [0, 1, 4, 9])
def test_deflate_each_level_same_content_as_hdf5(level: int) -> None:
    values, chunk = np.arange(3000, dtype="i4") // 7, ChunkType(np.dtype("i4"), (3000,))
    stored = stored_by_hdf5(values, compression="gzip", compression_opts=level)
    assert decoded(Deflate(level), stored, chunk) == values.tobytes()
    ours = encoded(Deflate(level), values.tobytes(), chunk)
    assert zlib.decompress(ours) == values.tobytes()
    with h5py.File.in_memory() as file:
        dataset = file.create_dataset("x", (3000,), "i4", chunks=(3000,), compression="gzip", compression_opts=level)
        dataset.id.write_direct_chunk((0,), ours)
        np.testing.assert_array_equal(dataset[:], values)


@pytest.mark.parametrize("level", [-1, 10, 4.0, True, None, "4"])
def test_deflate_level_not_whole_of_0_to_9_refused(level: Any) -> None:
    with pytest.raises(ParameterError, match="expected level of 0 to 9, got level="):
        Deflate(level)


@given(
    st.sampled_from([Shuffle(), Deflate(1), Fletcher32()]),
    st.sampled_from(["i1", "i2", "f4", "f8", "S3"]),
    st.binary(max_size=200),
)
def test_filter_any_bytes_round_trip(one: Filter, dtype: str, data: bytes) -> None:
    # Any length: what comes before, as zfp, leaves no whole number of values.
    chunk = ChunkType(np.dtype(dtype), (len(data),))
    assert decoded(one, encoded(one, data, chunk), chunk) == data


def test_fletcher32_every_bit_flip_refused() -> None:
    data, chunk = values_of("u1", 41).tobytes(), ChunkType(np.dtype("u1"), (41,))
    stored = encoded(Fletcher32(), data, chunk)
    for bit in range(len(stored) * 8):
        damaged = bytearray(stored)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StreamError, match=r"fletcher32 checksum differs: stored 0x.*, data have 0x"):
            decoded(Fletcher32(), bytes(damaged), chunk)


def test_fletcher32_old_hdf5_order_read() -> None:
    # HDF5 before 1.6.3 stored each half of the checksum with its bytes exchanged.
    data, chunk = values_of("u1", 41).tobytes(), ChunkType(np.dtype("u1"), (41,))
    a, b, c, d = encoded(Fletcher32(), data, chunk)[-4:]
    assert decoded(Fletcher32(), data + bytes([b, a, d, c]), chunk) == data


@pytest.mark.parametrize("nbytes", [0, 1, 3])
def test_fletcher32_shorter_than_checksum_refused(nbytes: int) -> None:
    with pytest.raises(StreamError, match=f"expected a fletcher32 checksum of 4 bytes, got a chunk of {nbytes} bytes"):
        decoded(Fletcher32(), bytes(nbytes), ChunkType(np.dtype("u1"), (8,)))


def test_deflate_every_truncation_refused() -> None:
    data, chunk = values_of("u1", 60).tobytes(), ChunkType(np.dtype("u1"), (60,))
    stored = encoded(Deflate(4), data, chunk)
    for nbytes in range(len(stored)):
        with pytest.raises(StreamError, match="deflate stream is truncated"):
            decoded(Deflate(4), stored[:nbytes], chunk)


def test_deflate_damaged_refused() -> None:
    data, chunk = values_of("u1", 60).tobytes(), ChunkType(np.dtype("u1"), (60,))
    stored = bytearray(encoded(Deflate(4), data, chunk))
    stored[-1] ^= 1
    with pytest.raises(StreamError, match=r"deflate stream is damaged: .*incorrect data check"):
        decoded(Deflate(4), bytes(stored), chunk)
    with pytest.raises(StreamError, match=r"deflate stream is damaged: .*incorrect header check"):
        decoded(Deflate(4), b"not zlib", chunk)


def test_deflate_bomb_refused_at_the_size_of_a_chunk() -> None:
    with pytest.raises(StreamError, match="holds more than a chunk"):
        decoded(Deflate(9), zlib.compress(bytes(10 << 20), 9), ChunkType(np.dtype("u1"), (60,)))
