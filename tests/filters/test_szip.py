"""szip against libaec, both ways and byte by byte: that of imagecodecs, of h5py's HDF5 and of h5repack."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import imagecodecs
import needs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tamis import DataError, ParameterError, StreamError, Szip, _native
from tamis.filters import ChunkType

SIZE = 4  # bytes that HDF5 puts in front of a stream
NN, EC, LSB, MSB = 32, 4, 8, 16
MOST = 20_000  # pixels of a chunk

Stored = tuple[int, int, int, int]


def pixel_nbytes(bits: int) -> int:
    return next(nbytes for nbytes in (1, 2, 4, 8) if bits <= 8 * nbytes)


@st.composite
def parameters(draw: st.DrawFn) -> Stored:
    """Mask, pixels of a block, bits of a pixel, pixels of a scan line: also lines that do not fill their blocks."""
    mask = draw(st.sampled_from([NN, EC])) | draw(st.sampled_from([LSB, MSB]))
    pixels = draw(st.sampled_from([8, 16, 32]) | st.integers(1, 16).map(lambda half: 2 * half))
    bits = draw(st.sampled_from([8, 16, 32, 64]) | st.integers(1, 32))
    line = draw(st.integers(1, 128).map(lambda blocks: blocks * pixels) | st.integers(pixels, 128 * pixels))
    return mask, pixels, bits, line


KINDS = ("any", "smooth", "constant in stretches", "ends of the range", "nearly zero", "slope with spikes")


def pixels_of(kind: str, stored: Stored, lines: float, seed: int) -> bytes:
    """Make pixels for each code option."""
    mask, _, bits, line = stored
    rng = np.random.default_rng(seed)
    count = min(MOST, max(1, round(lines * line)))
    most = (1 << bits) - 1
    noise = int(rng.integers(0, bits + 1))
    part = (
        rng.integers(0, 1 << noise, count, np.uint64, endpoint=True)
        if noise < 64
        else rng.integers(0, most, count, "u8")
    )
    match kind:
        case "any":
            values = part
        case "smooth":
            values = np.cumsum(part - np.uint64((1 << noise) // 2))
        case "constant in stretches":
            lengths = rng.integers(1, int(rng.integers(2, 4000)), count)
            values = np.repeat(rng.integers(0, most, count, np.uint64, endpoint=True), lengths)[:count]
        case "ends of the range":
            values = np.where(rng.random(count) < rng.random(), np.uint64(0), np.uint64(most))
        case "nearly zero":
            values = (rng.random(count) < rng.random() / 20).astype("u8") * rng.integers(0, 4, count, np.uint64)
        case _:
            values = np.arange(count, dtype="u8") * rng.integers(0, most, dtype="u8", endpoint=True)
            values[rng.random(count) < 0.01] = part[0]
    values = np.bitwise_and(values, np.uint64(most))
    return values.astype(f"{'>' if mask & MSB else '<'}u{pixel_nbytes(bits)}").tobytes()


def libaec_stream(data: bytes, stored: Stored) -> bytes:
    return bytes(imagecodecs.szip_encode(data, *stored, out=2 * len(data) + 1000))


@pytest.fixture(autouse=True)
def every_kernel() -> Iterator[None]:
    """Leave the kernel as it was."""
    before = _native.kernel()
    yield
    _native.use_kernel(before)


@pytest.mark.properties
@given(parameters(), st.sampled_from(KINDS), st.floats(0, 4) | st.floats(0, 100), st.integers(0, 1 << 32))
@example((NN | LSB, 2, 1, 2), "any", 1.0, 0)
@example((NN | MSB, 32, 31, 4096), "smooth", 3.5, 1)
def test_streams_those_of_libaec_and_read_back(stored: Stored, kind: str, lines: float, seed: int) -> None:
    data = pixels_of(kind, stored, lines, seed)
    stream = libaec_stream(data, stored)
    framed = len(data).to_bytes(SIZE, "little") + stream
    assert bytes(imagecodecs.szip_decode(stream, *stored, out=len(data))) == data, "libaec reads its own"
    for kernel in _native.kernels():
        _native.use_kernel(kernel)
        assert _native.szip_nbytes(data, [stored]) == [len(framed)], kernel
        assert _native.szip_decode(framed, stored, len(data)) == data, kernel
        ours = _native.szip_encode(data, stored)
        if len(stream) > len(data):
            assert isinstance(ours, _native.Failure)
            assert ours.code == "no_room"
        else:
            assert ours == framed, kernel


TYPES = ("u1", "i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8")


def smooth(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    return (
        (60 + 50 * np.sin(np.arange(int(np.prod(shape))) / 40) + rng.normal(0, 2, int(np.prod(shape))))
        .reshape(shape)
        .astype(dtype)
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(6, 288), (40, 7), (3, 5000)], ids=str)
@pytest.mark.parametrize("one", [Szip("nn", 16), Szip("ec", 8), Szip("nn", 32), Szip("nn", 10)], ids=str)
def test_chunks_those_of_libhdf5(tmp_path: Path, one: Szip, dtype: str, shape: tuple[int, ...]) -> None:
    values = smooth(dtype, shape)
    chunk = ChunkType(values.dtype, shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset(
            "a", data=values, chunks=shape, compression="szip", compression_opts=(one.coding, one.pixels)
        )
        words = stored.id.get_create_plist().get_filter(0)[2]
        mask, written = stored.id.read_direct_chunk((0,) * len(shape))
        assert words == one.stored(chunk)
        try:
            ours = one.encode(values.tobytes(), chunk, words)
        except DataError:
            assert mask == 1, "HDF5 leaves out what makes nothing smaller"
            return
        assert mask == 0
        assert ours == written
        assert one.decode(written, chunk, words) == values.tobytes()
        stored.id.write_direct_chunk((0,) * len(shape), ours)
        np.testing.assert_array_equal(stored[...], values)


@pytest.mark.peer
@pytest.mark.parametrize("coding", ["NN", "EC"])
def test_h5repack_reads_ours_and_we_read_its_chunks(tmp_path: Path, coding: str) -> None:
    needs.need("h5repack")
    values = smooth("<i2", (16, 300))
    one = Szip(coding.lower(), 16)
    source, plain, again = (tmp_path / name for name in ("a.h5", "plain.h5", "again.h5"))
    with h5py.File(source, "w") as file:
        stored = file.create_dataset(
            "a", values.shape, "<i2", chunks=(4, 300), compression="szip", compression_opts=(one.coding, 16)
        )
        words = stored.id.get_create_plist().get_filter(0)[2]
        for row in range(0, 16, 4):
            data = one.encode(values[row : row + 4].tobytes(), ChunkType("<i2", (4, 300)), words)
            stored.id.write_direct_chunk((row, 0), data)
    for options in (["-f", "NONE", str(source), str(plain)], ["-f", f"SZIP=16,{coding}", str(plain), str(again)]):
        subprocess.run(["h5repack", *options], check=True, capture_output=True)
    with h5py.File(plain) as file, h5py.File(again) as by_h5repack:
        np.testing.assert_array_equal(file["a"][...], values)
        stored = by_h5repack["a"]
        words = stored.id.get_create_plist().get_filter(0)[2]
        for number in range(stored.id.get_num_chunks()):
            info = stored.id.get_chunk_info(number)
            _, data = stored.id.read_direct_chunk(info.chunk_offset)
            rows = values[info.chunk_offset[0] :][: stored.chunks[0]]
            assert one.decode(data, ChunkType("<i2", stored.chunks), words) == rows.tobytes()


def bit_string(*parts: str) -> bytes:
    """Give the bytes of bits, the size of 32 bytes in front."""
    bits = "".join(parts)
    return (32).to_bytes(SIZE, "little") + int(bits.ljust(-len(bits) % 8 + len(bits), "0"), 2).to_bytes(
        (len(bits) + 7) // 8, "big"
    )


CHUNK = ChunkType("<u2", (2, 8))
WORDS = (EC | LSB, 8, 16, 8)
REST = "0000" + "0" + "00001"  # an id of 4 bits, the option, five: the rest of a segment


@pytest.mark.parametrize(
    ("stored", "data", "message"),
    [
        (WORDS, bit_string("0001" + "1" * 8), "szip stream is truncated, in the scan line of pixel 8"),
        (WORDS, bit_string("0001" + "1" * 7), "szip stream is truncated, in the scan line of pixel 0"),
        (WORDS, bit_string("0000" + "0" + "0" * 300), "szip stream is truncated, in the scan line of pixel 0"),
        (WORDS, bit_string("1111" + "0" * 80), "szip stream is truncated, in the scan line of pixel 0"),
        # A run of two blocks in a line of one, and of 7.
        (WORDS, bit_string("0000" + "0" + "01" + "0" * 200), "szip stream is damaged, in the scan line of pixel 0"),
        (WORDS, bit_string(REST, "0000" + "0" + "00000001" + "1" * 99), "damaged, in the scan line of pixel 8"),
        # A pair of the second extension beyond a sum of 12.
        (WORDS, bit_string("0000" + "1" + "0" * 91 + "1" * 80), "szip stream is damaged, in the scan line of pixel 0"),
        # 2^4 << 12, and values of 17 bits in unary alone.
        (WORDS, bit_string("1101" + "0" * 16 + "1" * 200), "szip stream is damaged, in the scan line of pixel 0"),
        ((EC | LSB, 8, 12, 8), bit_string("0001" + "0" * 4096 + "1" * 80), "szip stream is damaged"),
        # More bits split off than a pixel has.
        ((EC | LSB, 8, 9, 8), bit_string("1100" + "1" * 300), "szip stream is damaged, in the scan line of pixel 0"),
    ],
)  # fmt: skip
def test_damage_that_a_stream_shows_named(stored: Stored, data: bytes, message: str) -> None:
    for kernel in _native.kernels():
        _native.use_kernel(kernel)
        with pytest.raises(StreamError, match=message):
            Szip("ec", 8).decode(data, CHUNK, stored)


def test_rest_of_a_segment_and_a_pair_of_the_second_extension_read() -> None:
    pairs = bit_string(REST, "0000" + "1" + "0" * 90 + "1" + "1" * 3)
    assert Szip("ec", 8).decode(pairs, CHUNK, WORDS) == bytes(16 + 2) + b"\x0c\0" + bytes(12)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.9])
def test_truncated_stream_refused_by_every_kernel(share: float) -> None:
    values = smooth("<u2", (6, 288))
    chunk, one = ChunkType("<u2", (6, 288)), Szip("nn", 16)
    words = one.stored(chunk)
    data = bytes(one.encode(values.tobytes(), chunk, words))
    for kernel in _native.kernels():
        _native.use_kernel(kernel)
        with pytest.raises(StreamError, match="szip stream is truncated"):
            one.decode(data[:-1], chunk, words)
        with pytest.raises(StreamError, match=r"szip stream is (truncated|damaged)|szip header claims"):
            one.decode(data[: SIZE + int(share * len(data))], chunk, words)


def test_incompressible_and_too_wide_pixels_refused() -> None:
    chunk, one = ChunkType("<u2", (8, 32)), Szip("nn", 16)
    noise = np.random.default_rng(1).integers(0, 1 << 16, (8, 32)).astype("<u2")
    with pytest.raises(DataError, match="szip does not make these bytes smaller: 512 bytes"):
        one.encode(noise.tobytes(), chunk, one.stored(chunk))
    wide = np.zeros((8, 32), "<u2")
    wide[5, 3] = 1 << 12
    with pytest.raises(DataError, match="expected pixels of 12 bits for szip, got more in the scan line of pixel 160"):
        one.encode(wide.tobytes(), chunk, (NN | LSB, 16, 12, 32))


def test_encoded_nbytes_those_of_the_chunk_also_where_none_are_saved() -> None:
    chunk = ChunkType("<u2", (8, 320))
    candidates = [Szip(coding, pixels) for coding in ("nn", "ec") for pixels in (8, 16, 32)]
    values = smooth("<u2", (8, 320))
    sizes = Szip.encoded_nbytes(values.tobytes(), chunk, candidates)
    assert sizes == tuple(len(one.encode(values.tobytes(), chunk, one.stored(chunk))) for one in candidates)
    noise = np.random.default_rng(1).integers(0, 1 << 16, (8, 320)).astype("<u2")
    for one, nbytes in zip(candidates, Szip.encoded_nbytes(noise.tobytes(), chunk, candidates), strict=True):
        assert nbytes == SIZE + len(libaec_stream(noise.tobytes(), one.stored(chunk)))  # type: ignore[arg-type]


def test_encoded_nbytes_of_what_szip_does_not_take_refused() -> None:
    chunk = ChunkType("<u4", (8, 320))
    with pytest.raises(DataError, match="expected whole pixels of 4 bytes for szip, got 7 bytes"):
        Szip.encoded_nbytes(bytes(7), chunk, [Szip()])
    with pytest.raises(ParameterError, match="needs chunks of as many values or more"):
        Szip.encoded_nbytes(bytes(16), ChunkType("<u4", (4,)), [Szip()])
