"""tamis.zfp on streams that are damaged or hostile, its `out` argument, and its headers."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest

from tamis import ParameterError, StreamError, zfp

pytestmark = pytest.mark.usefixtures("kernel")  # once for each

SHAPES = [(37,), (6, 11), (5, 4, 7), (3, 5, 2, 6)]
MODES = [zfp.Rate(9.3), zfp.Precision(13), zfp.Accuracy(4.0), zfp.Expert(70, 300, 64, -1074), zfp.Reversible()]


def sample(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(7).standard_normal(shape) * 1000).astype(dtype)


@pytest.mark.matrix
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_decode_every_truncation_refused_with_block(dtype: str, shape: tuple[int, ...], mode: zfp.Mode) -> None:
    stream = zfp.encode(sample(dtype, shape), mode)
    whole = zfp.decode(stream, shape, dtype, mode).tobytes()
    blocks = int(np.prod([-(-extent // 4) for extent in shape]))
    last = 0
    for nbytes in range(len(stream)):
        with pytest.raises(StreamError, match=r"truncated.* block \d") as caught:
            zfp.decode(stream[:nbytes], shape, dtype, mode)
        named = re.search(rf"ends in(side| or before) block (\d+) of shape {re.escape(str(shape))}", str(caught.value))
        assert named, str(caught.value)
        assert last <= int(named[2]) < blocks
        if named[1] == "side":
            last = int(named[2])
            assert not isinstance(mode, zfp.Rate) or last == nbytes * 8 // int(9.3 * 4 ** len(shape) + 0.5)
    assert int(named[2]) == blocks - 1
    for beyond in (b"", b"\0", b"\xff" * 100):
        assert zfp.decode(stream + beyond, shape, dtype, mode).tobytes() == whole


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_decode_every_bit_flip_array_or_stream_error(dtype: str, mode: zfp.Mode) -> None:
    shape = (5, 6)
    stream = zfp.encode(sample(dtype, shape), mode)
    different = 0
    for bit in range(len(stream) * 8):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            decoded = zfp.decode(damaged, shape, dtype, mode)
        except StreamError:
            different += 1
        else:
            assert decoded.shape == shape
            different += decoded.tobytes() != zfp.decode(stream, shape, dtype, mode).tobytes()
    assert different


@pytest.mark.parametrize("shape", [(1 << 60,), (1 << 40, 1 << 40), (1 << 62, 4, 4), (4095,) * 4], ids=str)
@pytest.mark.parametrize("mode", [zfp.Precision(16), zfp.Rate(8), zfp.Reversible()], ids=str)
def test_decode_huge_shape_short_stream_refused_without_memory(mode: zfp.Mode, shape: tuple[int, ...]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(StreamError, match="stream of 100 bytes is truncated"):
            zfp.decode(bytes(100), shape, "f8", mode)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(1 << 48,), (1 << 24, 1 << 24), (1 << 16,) * 3, (1 << 12,) * 4], ids=str)
def test_decode_with_header_huge_shape_short_stream_refused_without_memory(shape: tuple[int, ...]) -> None:
    header = zfp.Header(np.dtype("f8"), shape, zfp.Precision(16)).pack()
    tracemalloc.start()
    try:
        with pytest.raises(StreamError, match="is truncated"):
            zfp.decode_with_header(header + bytes(100))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_decode_any_buffer_taken(kind: Any) -> None:
    array = sample("f4", (5, 7))
    stream = zfp.encode(array, zfp.Reversible())
    buffer = np.frombuffer(stream, "u1") if kind is np.frombuffer else kind(stream)
    assert zfp.decode(buffer, (5, 7), "f4", zfp.Reversible()).tobytes() == array.tobytes()


def test_decode_out_given_filled_and_returned() -> None:
    array = sample("f8", (6, 7))
    stream, room = zfp.encode(array, zfp.Reversible()), np.full((12, 14), np.nan)
    for out in (np.empty((6, 7)), np.empty((7, 6)).T, room[::2, 1::2], room[::-2, ::-2]):
        assert zfp.decode(stream, (6, 7), "f8", zfp.Reversible(), out) is out
        np.testing.assert_array_equal(out, array)
    with_header = zfp.encode_with_header(array, zfp.Reversible())
    out = np.empty((6, 7))
    assert zfp.decode_with_header(with_header, out) is out
    np.testing.assert_array_equal(out, array)


@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_decode_unsigned_out_filled(dtype: str) -> None:
    array = np.arange(30, dtype=dtype) - np.array(7, dtype)
    out = np.zeros(30, dtype)
    assert zfp.decode(zfp.encode(array, zfp.Reversible()), (30,), dtype, zfp.Reversible(), out) is out
    np.testing.assert_array_equal(out, array)


@pytest.mark.parametrize(
    "out",
    [
        np.empty((7, 6)),
        np.empty(42),
        np.empty((6, 7), "f4"),
        np.empty((6, 7), "i8"),
        np.empty((6, 7), np.dtype("f8").newbyteorder("S")),
        np.empty((6, 7), "u1,f8")["f1"],
    ],
    ids=["shape", "rank", "f4", "i8", "byte order", "unaligned"],
)
def test_decode_out_that_does_not_fit_refused(out: np.ndarray[Any, Any]) -> None:
    stream = zfp.encode(sample("f8", (6, 7)), zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected out of shape \(6, 7\) and native, aligned float64, got "):
        zfp.decode(stream, (6, 7), "f8", zfp.Rate(8), out)


def test_decode_out_read_only_refused() -> None:
    out = np.zeros((6, 7))
    out.flags.writeable = False
    with pytest.raises(ParameterError, match="expected out to be writeable, got a read-only array"):
        zfp.decode(zfp.encode(sample("f8", (6, 7)), zfp.Rate(8)), (6, 7), "f8", zfp.Rate(8), out)
    assert not out.any()


def test_decode_other_type_or_shape_refused() -> None:
    with pytest.raises(ParameterError, match="expected int32, int64, float32 or float64 values, got int16"):
        zfp.decode(bytes(100), (4,), "i2", zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected 1 to 4 axes, got shape \(\)"):
        zfp.decode(bytes(100), (), "f4", zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected at least one value along each axis, got shape \(4, 0\)"):
        zfp.decode(bytes(100), (4, 0), "f4", zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected at least one value along each axis, got shape \(-4,\)"):
        zfp.decode(bytes(100), (-4,), "f4", zfp.Rate(8))


HEADER_MODES = [
    zfp.Rate(3.75),
    zfp.Rate(1000 / 64),
    zfp.Precision(1),
    zfp.Precision(63),
    zfp.Accuracy(2.0**-1073),
    zfp.Accuracy(0.125),
    zfp.Accuracy(2.0**843),
    zfp.Accuracy(2.0**844),
    zfp.Accuracy(2.0**1023),
    zfp.Reversible(),
    zfp.Expert(),
    zfp.Expert(100, 2000, 33, -20),
    zfp.Expert(32768, 32768, 64, 7),
    zfp.Expert(1, 16658, 13, -16495),
]


@pytest.mark.parametrize("mode", HEADER_MODES, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_header_pack_unpack_same(dtype: str, mode: zfp.Mode) -> None:
    if dtype.startswith("int") and isinstance(mode, zfp.Accuracy) and mode.tolerance < 1:
        mode = zfp.Accuracy(2.0)
    for shape in ((1 << 48,), (5, 1 << 24), (3, 9, 1 << 16), (1, 4096, 2, 7)):
        if isinstance(mode, zfp.Rate):
            mode = zfp.Rate(round(mode.rate * 4 ** len(shape)) / 4 ** len(shape))
        header = zfp.Header(np.dtype(dtype), shape, mode)
        packed = header.pack()
        assert zfp.Header.unpack(packed) == header
        assert zfp.Header.unpack(packed + b"\xff" * 50) == header


@pytest.mark.parametrize("tolerance", [1e-3, 0.1, 3, 1e10])
def test_header_unpack_accuracy_as_rounded(tolerance: float) -> None:
    mode = zfp.Accuracy(tolerance)
    assert zfp.Header.unpack(zfp.Header(np.dtype("f8"), (9,), mode).pack()).mode == zfp.Accuracy(mode.effective)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_header_unsigned_kept_as_signed(dtype: str) -> None:
    packed = zfp.Header(np.dtype(dtype), (9,), zfp.Reversible()).pack()
    assert zfp.Header.unpack(packed).dtype == np.dtype(dtype.removeprefix("u"))


@pytest.mark.parametrize("shape", [((1 << 48) + 1,), (3, (1 << 24) + 1), (65537, 4, 4), (2, 2, 2, 4097)], ids=str)
def test_header_extent_too_large_refused(shape: tuple[int, ...]) -> None:
    most = {1: 1 << 48, 2: 1 << 24, 3: 65536, 4: 4096}[len(shape)]
    with pytest.raises(ParameterError, match=f"expected extents of at most {most} with {len(shape)} axes, .*got shape"):
        zfp.Header(np.dtype("f4"), shape, zfp.Rate(8)).pack()


@pytest.mark.parametrize("shape", [(), (2,) * 5])
def test_header_other_rank_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="expected 1 to 4 axes"):
        zfp.Header(np.dtype("f4"), shape, zfp.Precision(8)).pack()


def test_encode_with_header_extent_too_large_refused() -> None:
    with pytest.raises(ParameterError, match="expected extents of at most 4096 with 4 axes"):
        zfp.encode_with_header(np.zeros((1, 1, 1, 4097), "f4"), zfp.Rate(8))
    zfp.encode(np.zeros((1, 1, 1, 4097), "f4"), zfp.Rate(8))  # no header, no limit


@pytest.mark.parametrize("buffer", [b"", b"zfp", b"ZFP\x05" + bytes(20), bytes(40), b"zf\x05p" + bytes(20)])
def test_header_unpack_no_header_refused(buffer: bytes) -> None:
    with pytest.raises(StreamError, match=r"expected a ZFP header .* at the start of the stream, found none"):
        zfp.Header.unpack(buffer)


@pytest.mark.parametrize("codec", [0, 4, 6, 255])
def test_header_unpack_other_codec_refused(codec: int) -> None:
    packed = bytearray(zfp.Header(np.dtype("f4"), (9,), zfp.Rate(8)).pack())
    packed[3] = codec
    with pytest.raises(StreamError, match=f"expected ZFP codec 5, got a header of codec {codec}"):
        zfp.Header.unpack(packed)


@pytest.mark.parametrize("mode", [zfp.Rate(8), zfp.Expert()], ids=str)
def test_header_unpack_every_truncation_refused(mode: zfp.Mode) -> None:
    packed = zfp.Header(np.dtype("f4"), (9,), mode).pack()
    for nbytes in range(len(packed)):
        with pytest.raises(StreamError, match="expected a ZFP header"):
            zfp.Header.unpack(packed[:nbytes])


def test_header_unpack_any_bytes_header_or_stream_error() -> None:
    rng = np.random.default_rng(3)
    taken = 0
    for _ in range(5000):
        try:
            header = zfp.Header.unpack(b"zfp\x05" + rng.bytes(16))
        except StreamError:
            continue
        taken += 1
        assert header.mode
        with pytest.raises(StreamError):
            zfp.decode_with_header(b"zfp\x05" + rng.bytes(16))
    assert taken > 1000


def long_header(shape_meta: int, minbits: int, maxbits: int, maxprec: int, minexp: int) -> bytes:
    """A header in the long form, whatever its numbers (the contract h5z-zfp.md, 1.4)."""
    mode = 0xFFF | (minbits - 1) << 12 | (maxbits - 1) << 27 | (maxprec - 1) << 42 | (minexp + 16495) << 49
    return (0x0570667A | shape_meta << 32 | mode << 84).to_bytes(19, "little")


@pytest.mark.parametrize(
    "numbers", [(1, 16658, 64, -1080), (1, 16658, 20, -1074), (80, 80, 64, -1074), (1, 16658, 64, -9)]
)
def test_decode_with_header_long_form_of_a_short_mode_read_from_its_end(numbers: tuple[int, int, int, int]) -> None:
    array, mode = sample("f8", (21,)), zfp.Expert(*numbers)
    header = int.from_bytes(long_header(20 << 4 | 3, *numbers), "little")
    stream = header | int.from_bytes(zfp.encode(array, mode), "little") << 148
    decoded = zfp.decode_with_header(stream.to_bytes(4096, "little"))
    assert decoded.tobytes() == zfp.decode(zfp.encode(array, mode), (21,), "f8", mode).tobytes()


@pytest.mark.parametrize("numbers", [(1, 5, 64, -1074), (1, 11, 64, -1074), (40, 20, 64, -1074), (1, 18, 64, -1075)])
def test_decode_with_header_parameters_that_cannot_be_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(StreamError):
        zfp.decode_with_header(long_header(20 << 4 | 3, *numbers) + bytes(1000))


def test_mode_of_every_short_header_same_numbers() -> None:
    for code, rank in itertools.product(range(0xFFF), (1, 4)):
        packed = (0x0570667A | ((rank - 1) << 2 | 3) << 32 | code << 84).to_bytes(12, "little")
        try:
            header = zfp.Header.unpack(packed)
        except StreamError:
            assert code < 11, "only rates below the header of a block may be refused"
        else:
            if code not in range(2112, 2176):  # precisions above 64 are 64
                assert header.pack() == packed or header.mode in (zfp.Expert(), zfp.Reversible())
