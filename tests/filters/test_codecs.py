"""Parameters of the filters beyond HDF5's own: words, ranges, in words, and what is refused."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import (
    Bitshuffle,
    Blosc,
    Blosc2,
    Bzip2,
    DataError,
    Lz4,
    Lzf,
    Nbit,
    ParameterError,
    Scaleoffset,
    Shuffle,
    Sperr,
    StreamError,
    Sz3,
    Szip,
    UnknownFilter,
    Zstd,
)
from tamis.filters import ChunkType, Filter, Request, from_values, requested_filter

# Of x86-64, whose long double has 80 bits in 16 bytes; elsewhere it has as many bits as bytes hold.
LONG_DOUBLE = (8, 0, 12, 1, 16, 0, 80, 0) if np.finfo("g").nmant == 63 else (8, 1, 12, 1, 16, 0, 128, 0)

FLOATS = ChunkType(np.dtype("f4"), (128, 256))
INTEGERS = ChunkType(np.dtype(">i4"), (128, 256), np.array(-99, ">i4").tobytes())

# As shared contract and HDF5 1.14 have them.
STORED = [
    (Szip("nn", 16), FLOATS, (169, 16, 32, 256)),
    (Szip("ec", 32), INTEGERS, (149, 32, 32, 256)),
    (Szip("nn", 8), ChunkType(np.dtype("u1"), (900, 3)), (169, 8, 8, 1024)),
    (Szip("nn", 32), ChunkType(np.dtype("f8"), (9, 5000)), (169, 32, 64, 4096)),
    (Szip("nn", 16), ChunkType(np.dtype("?"), (9, 5000)), (169, 16, 8, 2048)),
    (Nbit(), FLOATS, (8, 1, 32768, 1, 4, 0, 32, 0)),
    (Nbit(), ChunkType(np.dtype(">c16"), (3, 4)), (18, 1, 12, 3, 16, 2, 0, 1, 8, 1, 64, 0, 8, 1, 8, 1, 64, 0)),
    (Nbit(), ChunkType(np.dtype("S5"), (3, 4)), (3, 1, 12)),
    (
        Nbit(),
        ChunkType(np.dtype([("a", "<c8"), ("b", "S3"), ("c", "?")]), (3, 4)),
        (28, 1, 12, 3, 12, 3, 0, 3, 8, 2, 0, 1, 4, 0, 32, 0, 4, 1, 4, 0, 32, 0, 8, 4, 3, 11, 4, 1),
    ),
    (Nbit(), ChunkType(np.dtype(("<i4", (2, 3))), (3, 4)), (10, 1, 12, 2, 24, 1, 4, 0, 32, 0)),
    (Nbit(), ChunkType(np.dtype("f16"), (3, 4)), LONG_DOUBLE),
    (Scaleoffset("decimal", 3), FLOATS, (0, 3, 32768, 1, 4, 0, 0, 1, *[0] * 12)),
    (Scaleoffset("integer", 0), INTEGERS, (2, 0, 32768, 0, 4, 1, 1, 1, 4294967197, *[0] * 11)),
    (Scaleoffset("decimal", -1), ChunkType(np.dtype("f8"), (3,)), (0, 4294967295, 3, 1, 8, 0, 0, 1, *[0] * 12)),
    (Lzf(), FLOATS, (4, 261, 131072)),
    (Bzip2(), FLOATS, (9,)),
    (Zstd(), FLOATS, (3,)),
    (Zstd(-5), FLOATS, (4294967291,)),
    (Lz4(), FLOATS, (0,)),
    (Blosc("zstd"), FLOATS, (2, 2, 4, 131072, 5, 1, 5)),
    (Blosc("lz4", 1, "bit"), ChunkType(np.dtype("V300"), (5, 3)), (2, 2, 1, 4500, 1, 2, 1)),
    (Blosc2("zstd"), FLOATS, (1, 0, 4, 131072, 5, 1, 5, 2, 128, 256)),
    (Blosc2(), ChunkType(np.dtype("f8"), (7,)), (1, 0, 8, 56, 5, 1, 0)),
    (Bitshuffle("lz4"), FLOATS, (0, 4, 4, 0, 2)),
    (Bitshuffle("zstd", 3), FLOATS, (0, 4, 4, 0, 3, 3)),
    (Sz3("absolute", 0.1), FLOATS, (2, 0, 256, 128, 0, 1069128089, 2576980378, 0, 0, 0, 0, 0, 0)),
    (Sperr("absolute", 0.1), FLOATS, (1042, 939741802, 128, 256)),
]

IN_WORDS = {
    Szip("nn", 32): "szip nearest neighbour, 32 pixels per block",
    Szip("ec", 8): "szip entropy coding, 8 pixels per block",
    Nbit(): "nbit",
    Scaleoffset("integer", 7): "scaleoffset, integers, 7 bits",
    Scaleoffset("integer", 0): "scaleoffset, integers, bits as needed",
    Scaleoffset("decimal", 3): "scaleoffset, 3 decimal digits",
    Lzf(): "lzf",
    Bzip2(5): "bzip2 level 5",
    Zstd(-7): "zstd level -7",
    Lz4(): "lz4, the chunk in one block",
    Lz4(4096): "lz4, blocks of 4096 bytes",
    Blosc("zstd", 5, "byte"): "blosc zstd, level 5, byte shuffle",
    Blosc("lz4", 5, "none"): "blosc lz4, level 5, no shuffle",
    Blosc2("zstd", 9, "bit"): "blosc2 zstd, level 9, bit shuffle",
    Bitshuffle("none"): "bitshuffle",
    Bitshuffle("lz4", block=64): "bitshuffle, lz4, blocks of 64 elements",
    Bitshuffle("zstd", 9): "bitshuffle, zstd level 9",
    Sz3("relative", 0.01): "sz3, largest error 0.01 of the range of a chunk",
    Sz3("psnr", 40): "sz3, peak signal-to-noise ratio 40 dB",
    Sz3(bound=0): "sz3, its own bound",
    Sperr("rate", 8): "sperr, 8 bits per value",
    Sperr("absolute", 0.25, "nan"): "sperr, largest error 0.25, missing values nan",
}


def words_of(one: Filter, words: tuple[int, ...]) -> Filter:
    return from_values(Request(one.id, words))


@pytest.mark.parametrize(("one", "chunk", "words"), STORED, ids=lambda value: str(value)[:50])
def test_stored_as_hdf5_and_its_filters_leave_it(one: Filter, chunk: ChunkType, words: tuple[int, ...]) -> None:
    assert one.stored(chunk) == words


@pytest.mark.parametrize(("one", "chunk"), [case[:2] for case in STORED], ids=lambda value: str(value)[:50])
def test_filter_read_back_from_requested_and_stored_words(one: Filter, chunk: ChunkType) -> None:
    for words in (one.requested, one.stored(chunk)):
        found = words_of(one, words)
        if isinstance(found, Sperr):  # which keeps a number of 28 bits
            assert found.requested == one.requested
        else:
            assert found == one
        assert hash(found) == hash(words_of(one, words))


@pytest.mark.parametrize(("one", "words"), IN_WORDS.items(), ids=str)
def test_in_words_as_a_person_would_say_it(one: Filter, words: str) -> None:
    assert one.in_words() == words


def test_nbit_in_words_bits_of_the_type() -> None:
    assert Nbit().in_words((8, 0, 12, 1, 4, 0, 17, 3)) == "nbit, 17 of 32 bits"
    assert Nbit().in_words((8, 1, 12, 1, 4, 0, 32, 0)) == "nbit, all bits"


@pytest.mark.parametrize(
    ("id_", "words", "expected"),
    [
        (307, (), Bzip2(9)),
        (32015, (), Zstd(3)),
        (32004, (), Lz4(0)),
        # The filters' own defaults, where words are missing: not those of hdf5plugin's classes.
        (32001, (), Blosc("blosclz", 5, "byte")),
        (32001, (2, 2, 4, 2400), Blosc("blosclz", 5, "byte")),
        (32001, (2, 2, 4, 2400, 3), Blosc("blosclz", 3, "byte")),
        (32026, (), Blosc2("blosclz", 5, "byte")),
        # netCDF's form of a request, with a block size, that the filter does not look at.
        (32001, (0, 0, 0, 4096, 5, 2, 5), Blosc("zstd", 5, "bit")),
        (32008, (), Bitshuffle("none")),
        (32008, (0, 4, 4), Bitshuffle("none")),
        (32008, (0, 4, 4, 8), Bitshuffle("none", block=8)),
        (32008, (0, 3, 8, 0, 2), Bitshuffle("lz4")),
        (32008, (64, 2), Bitshuffle("lz4", block=64)),
        (32008, (0, 3), Bitshuffle("zstd", 3)),
        (32008, (0, 3, 9), Bitshuffle("zstd", 9)),
        # What decoding does not need: words of PyTables, levels that are none, words too many.
        (307, (5, 11, 4), Bzip2(5)),
        (307, (10,), Bzip2(9)),
        (32015, (100,), Zstd(22)),
        (32015, (0xFFFFFFFF,), Zstd(-1)),
        (32015, (3, 0), Zstd(3)),
        (32004, (0xFFFFFFFF,), Lz4(0x7E000000)),
        (32004, (0, 1), Lz4(0)),
        (32008, (0, 4, 4, 0, 3, 30), Bitshuffle("zstd", 22)),
        (32008, (0, 4, 4, 0, 3, 0xFFFFFFFF), Bitshuffle("zstd", 0)),
        (32008, (0, 4, 4, 0, 2, 5, 6), Bitshuffle("lz4")),
        (32001, (2, 2, 4, 0, 10, 3, 1, 9), Blosc("lz4", 9, "bit")),
        (32026, (1, 0, 4, 2400, 12, 7, 1), Blosc2("lz4", 9, "truncate")),
        (32026, (1, 0, 4, 2400, 9, 35, 5), Blosc2("zstd", 9, "bytedelta")),
        # H5Pset_filter with the mask as netCDF and h5repack users write it.
        (4, (32, 8), Szip("nn", 8)),
        (4, (4, 8), Szip("ec", 8)),
        (4, (141, 8, 32, 256), Szip("ec", 8)),
        (32024, (2, 0, 256, 128), Sz3(bound=0)),
    ],
)
def test_from_values_of_older_and_shorter_forms(id_: int, words: tuple[int, ...], expected: Filter) -> None:
    assert from_values(Request(id_, words)) == expected


@pytest.mark.parametrize(
    ("id_", "words", "reason"),
    [
        (32001, (2, 2, 4, 0, 5, 1, 6), "expected the compressor of blosc to be one of"),
        (32026, (2, 2, 4, 0, 5, 1, 3), "expected the compressor of blosc2 to be one of"),
        (32008, (0, 4, 4, 7, 2), "expected block of bitshuffle to be a multiple of 8, got block=7"),
        (32008, (0, 4, 4, 0, 1), "expected the compressor of bitshuffle to be one of"),
        (4, (32,), "expected mask and pixels per block of szip"),
        (4, (128, 8), r"expected 4 \(ec\) or 32 \(nn\) in the mask of szip, got 128"),
        (4, (32, 7), "expected an even number of pixels of szip"),
        (4, (32, 34), "expected pixels of 2 to 32"),
        (6, (2,), "expected kind and factor of scaleoffset, or 20 parameters as stored"),
        (6, (1, 3), r"expected 0 \(decimal\) or 2 \(integer\) as the kind of scaleoffset, got 1"),
        (6, (2, 65), "expected 0 to 64 bits of an integer in scaleoffset"),
    ],
)
def test_from_values_that_cannot_be_unknown_with_the_reason(id_: int, words: tuple[int, ...], reason: str) -> None:
    found = from_values(Request(id_, words))
    assert isinstance(found, UnknownFilter)
    with pytest.raises(ParameterError, match=reason):
        raise ParameterError(found.reason)


@pytest.mark.parametrize(
    ("id_", "words", "reason"),
    [
        (1, (), "expected one parameter of deflate"),
        (1, (4, 5), "expected one parameter of deflate"),
        (307, (10,), "expected level of 1 to 9, got level=10"),
        (307, (1, 2), "expected one parameter of bzip2"),
        (32015, (23,), "expected level of -131072 to 22, got level=23"),
        (32004, (0x7E000001,), "expected block of 0 to 2113929216"),
        (32001, (0, 0, 0, 0, 10, 1, 1), "expected level of 0 to 9"),
        (32001, (0, 0, 0, 0, 5, 3, 1), r"expected the shuffle of blosc to be one of 0 \(none\), 1 \(byte\)"),
        (32026, (0, 0, 0, 0, 5, 5, 1), "expected the shuffle of blosc2 to be one of 0"),
        (32008, (0, 3, 30), "expected level of 0 to 22, got level=30"),
        (32008, (0, 3, 0xFFFFFFFF), "expected level of 0 to 22, got level=-1"),
    ],
)
def test_requested_filter_that_would_not_be_encoded_refused(id_: int, words: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ParameterError, match=rf"filter {id_} \(\w+\): {reason}"):
        requested_filter(Request(id_, words))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((0, 3, 8), Bitshuffle("none")),  # of version 0.3
        ((0, 2, 8), Bitshuffle("none")),
        ((0, 2, 8, 0, 2), Bitshuffle("lz4")),
        ((64, 2), Bitshuffle("lz4", block=64)),  # no chunk could be filtered
    ],
)
def test_bitshuffle_stored_words_of_old_versions_no_request(words: tuple[int, ...], expected: Filter) -> None:
    assert from_values(Request(32008, words), stored=True) == expected


def test_chunk_without_words_that_matter_decoded() -> None:
    chunk = ChunkType("i4", [600])
    data = (np.arange(600, dtype="i4") // 3).tobytes()
    for one, words in [
        (Bzip2(5), (5, 11, 4)),
        (Zstd(), (100,)),
        (Zstd(), (3, 0)),
        (Lz4(), (0xFFFFFFFF,)),
        (Lz4(), (0, 1)),
        (Bitshuffle("zstd"), (0, 4, 4, 0, 3, 30)),
        (Bitshuffle("zstd"), (0, 4, 4, 0, 3, 0xFFFFFFFF)),
    ]:
        packed = one.encode(data, chunk, one.stored(chunk))
        found = from_values(Request(one.id, words), stored=True)
        assert bytes(found.decode(packed, chunk, words)) == data


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (Zstd(), ""),
        (Bitshuffle("none"), ""),
        (Blosc2(), ""),
        (Blosc2(shuffle="delta"), "tamis can decode blosc2 with shuffle=delta but not encode it"),
        (Blosc2(shuffle="truncate"), "tamis can decode blosc2 with shuffle=truncate but not encode it"),
        (Sz3(), ""),
        (UnknownFilter(400), "tamis does not know filter 400: a package can add it (entry points tamis.filters)"),
        (UnknownFilter(1, (77,), "deflate", "no level"), "filter 1 (deflate): no level"),
    ],
    ids=str,
)
def test_unencodable_says_why(one: Filter, reason: str) -> None:
    assert one.unencodable() == reason


def test_error_bound_only_where_there_is_one() -> None:
    assert Blosc2(shuffle="delta").error_bound == 0
    assert Blosc2(shuffle="truncate").error_bound is None
    assert Sz3().error_bound == 1e-4
    assert Sz3("psnr", 80).error_bound is None
    assert Sperr("absolute", 0.5).error_bound == 0.5
    assert Sperr(bound=0.5).error_bound == Sperr(bound=0.5).open_bound == 0.5
    assert Sperr("rate", 8).error_bound is None
    assert Scaleoffset("integer", 3).error_bound == 0
    assert Scaleoffset("decimal", 3).error_bound == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("one", "dtype", "shape", "message"),
    [
        (Scaleoffset("integer"), h5py.enum_dtype({"a": 0}, "i4"), (4,), "scaleoffset.*got an enumeration of int32"),
        (Scaleoffset("integer"), "f4", (4,), r"got float32: use scaleoffset\(decimal,N\), of N digits"),
        (Szip(), "f16", (40,), "expected integers or floats of 1, 2, 4 or 8 bytes for szip, got float128"),
        (Szip(), "c8", (40,), "expected integers or floats of 1, 2, 4 or 8 bytes for szip, got complex64"),
        (Szip(), "S8", (40,), "expected integers or floats"),
        (
            Szip("nn", 32),
            "f4",
            (4, 7),
            "szip with 32 pixels per block needs chunks of as many values or more, got 28: use fewer",
        ),
        (Nbit(), "O", (4,), "expected values of a fixed size for nbit"),
        (Scaleoffset("integer"), "f4", (4,), "expected integers of 1, 2, 4 or 8 bytes for scaleoffset"),
        (Scaleoffset("integer"), "?", (4,), "expected integers of 1, 2, 4 or 8 bytes for scaleoffset"),
        (Scaleoffset("decimal", 2), "i4", (4,), "expected float32 or float64 for scaleoffset"),
        (Scaleoffset("decimal", 2), "f2", (4,), "expected float32 or float64 for scaleoffset"),
        (Scaleoffset("integer", 9), "i1", (4,), "expected at most 8 bits of int8, got scaleoffset"),
    ],
    ids=str,
)
def test_stored_for_chunks_that_it_cannot_take_refused(one: Filter, dtype: str, shape: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        one.check(ChunkType(np.dtype(dtype), shape))


@pytest.mark.parametrize(
    "one", [Bzip2(), Zstd(), Lz4(), Blosc2(), Lzf(), Blosc(), Bitshuffle(), Szip(), Nbit()], ids=str
)
def test_group_safe_only_without_type_and_chunk_shape(one: Filter) -> None:
    assert one.group_safe == (one.name in ("bzip2", "zstd", "lz4"))


@pytest.mark.parametrize("one", [Lzf(), Blosc("lz4", 9), Blosc("zstd", 0), Szip("nn", 8)], ids=str)
def test_encode_where_it_does_not_shrink_refused_as_hdf5_does(one: Filter) -> None:
    chunk = ChunkType(np.dtype("f4"), (250,))
    with pytest.raises(DataError, match=f"{one.name} does not make these bytes smaller"):
        one.encode(np.random.default_rng(0).bytes(1000), chunk, one.stored(chunk))


def test_scaleoffset_nan_refused() -> None:
    chunk = ChunkType(np.dtype("f4"), (3,))
    one = Scaleoffset("decimal", 2)
    with pytest.raises(DataError, match="scaleoffset cannot take these values: non finite, at 1"):
        one.encode(np.array([1, np.nan, 2], "f4").tobytes(), chunk, one.stored(chunk))


ANY_BYTES = [
    Bzip2(1),
    Zstd(-3),
    Zstd(1),
    Lz4(),
    Lz4(17),
    Lzf(),
    *[Blosc(each, 5, shuffle) for each in ("blosclz", "lz4", "snappy", "zlib", "zstd") for shuffle in ("none", "bit")],
    *[
        Blosc2(each, 5, shuffle)
        for each in ("blosclz", "lz4", "zlib", "zstd")
        for shuffle in ("byte", "bit", "bytedelta")
    ],
]


@given(st.sampled_from(ANY_BYTES), st.sampled_from(["i1", "f4", "S7", "V300"]), st.binary(min_size=1, max_size=400))
def test_filter_of_bytes_any_bytes_round_trip(one: Filter, dtype: str, data: bytes) -> None:
    # Any length: what comes before, as zfp, leaves no whole number of values.
    chunk = ChunkType(np.dtype(dtype), (len(data),))
    stored = one.stored(chunk)
    try:
        encoded = one.encode(data, chunk, stored)
    except DataError:
        assert one.name in ("lzf", "blosc")
        return
    assert bytes(one.decode(encoded, chunk, stored)) == data


@given(
    st.sampled_from(["none", "lz4", "zstd"]),
    st.sampled_from([0, 8, 24]),
    st.integers(1, 12),
    st.integers(1, 200),
    st.binary(min_size=64, max_size=64),
)
def test_bitshuffle_any_elements_round_trip(name: str, block: int, itemsize: int, count: int, seed: bytes) -> None:
    one, chunk = Bitshuffle(name, block=block), ChunkType(np.dtype(f"V{itemsize}"), (count,))
    data = (seed * 40)[: itemsize * count]
    stored = one.stored(chunk)
    assert bytes(one.decode(one.encode(data, chunk, stored), chunk, stored)) == data


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from([1, 3, 8]), st.sampled_from([1, 64, 1 << 18])
)
def test_blosc2_any_shape_in_blocks_round_trip(shape: list[int], itemsize: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tamis.filters.blosc._BLOCK", block)
        chunk = ChunkType(np.dtype(f"V{itemsize}"), tuple(shape))
        one, data = Blosc2("lz4"), np.random.default_rng(0).integers(0, 9, chunk.nbytes, "u1").tobytes()
        stored = one.stored(chunk)
        assert one.decode(one.encode(data, chunk, stored), chunk, stored) == data


def test_shuffle_element_size_0_as_nczarr_writes_it_that_of_the_type() -> None:
    one, data = Shuffle(), bytes(range(40))
    shuffled = one.encode(data, ChunkType(np.dtype("f4"), (10,)), (4,))
    assert shuffled != data
    assert one.decode(shuffled, ChunkType(np.dtype("f4"), (10,)), (0,)) == data


def test_blosc2_bytedelta_takes_fewer_bytes_and_filters_of_other_plugins_are_named() -> None:
    values = np.random.default_rng(0).integers(-2, 3, (30, 40, 50)).cumsum(axis=2).astype("i2")
    chunk = ChunkType(values.dtype, values.shape)
    plain, delta = (
        bytes(one.encode(values.tobytes(), chunk, ())) for one in (Blosc2("zstd"), Blosc2("zstd", 5, "bytedelta"))
    )
    assert len(delta) < 0.9 * len(plain)
    codes = bytes([0, 0, 0, 0, 1, 35])
    at = delta.rindex(codes)  # behind those of the frame
    other = delta[:at] + bytes([0, 0, 0, 0, 1, 34]) + delta[at + len(codes) :]
    with pytest.raises(StreamError, match="went through filter 34 of Blosc2's plugins, which tamis lacks"):
        Blosc2().decode(other, chunk, ())
