"""The ZFP filter object: what it is as a value and as a mapping, requested and stored parameters."""

from __future__ import annotations

import copy
import pickle
import struct
from typing import Any

import h5py
import needs
import numpy as np
import pytest

import tamis
from tamis import DataError, ParameterError, StreamError, Zfp, zfp
from tamis.filters import ChunkType, StoredZfp
from tamis.filters.zfp import is_stored, squeezed

VERSION_WORD = 0x10105111  # zfp 1.0.1, codec 5, H5Z-ZFP 1.1.1

# Little-endian words, as the contract has them (h5z-zfp.md, 1.1).
REQUESTED = [
    (Zfp(rate=4.5), (1, 0, 0, 1074921472)),
    (Zfp(rate=3.5), (1, 0, 0, 1074528256)),
    (Zfp(precision=16), (2, 0, 16)),
    (Zfp(accuracy=0.001), (3, 0, 3539053052, 1062232653)),
    (Zfp(accuracy=0.075), (3, 0, 858993459, 1068708659)),
    (Zfp(accuracy=1.0), (3, 0, 0, 1072693248)),
    (Zfp(minbits=1, maxbits=2000, maxprec=30, minexp=-20), (4, 0, 1, 2000, 30, (1 << 32) - 20)),
    (Zfp(reversible=True), (5,)),
]
EACH = [filter_ for filter_, _ in REQUESTED]


@pytest.mark.parametrize(("zfp_filter", "words"), REQUESTED, ids=str)
def test_requested_words_as_contract_and_back(zfp_filter: Zfp, words: tuple[int, ...]) -> None:
    assert zfp_filter.requested == words
    assert all(type(word) is int for word in words)
    assert Zfp.from_requested(words) == zfp_filter
    assert Zfp.from_requested((*words, *[0] * (6 - len(words)))) == zfp_filter, "words beyond those needed are ignored"


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ((), zfp.Expert()),
        ((2, 0, 0), zfp.Precision(64)),
        ((2, 0, 99), zfp.Precision(64)),
        ((3, 0, 0, 0), zfp.Expert()),
        ((4, 0, 0, 16658, 64, (1 << 32) - 1074), zfp.Expert(0)),
    ],
    ids=str,
)
def test_from_requested_what_c_programs_pass_taken(words: tuple[int, ...], mode: zfp.Mode) -> None:
    assert Zfp.from_requested(words).mode == mode


@pytest.mark.parametrize("words", [(0,), (6, 0, 0, 0), (1,), (1, 0, 0), (2, 0), (3, 0, 1), (4, 0, 1, 2, 3)], ids=str)
def test_from_requested_bad_mode_or_count_refused(words: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match=r"expected ZFP parameters 1,0,A,B .* got \("):
        Zfp.from_requested(words)


@pytest.mark.parametrize(
    "words",
    [
        (1, 0, *struct.unpack("=II", struct.pack("=d", -8.0))),
        (1, 0, 0, 0),
        (3, 0, *struct.unpack("=II", struct.pack("=d", -1e-3))),
        (3, 0, *struct.unpack("=II", struct.pack("=d", float("nan")))),
        (4, 0, 20, 10, 64, 0),
        (4, 0, 1, 16658, 65, 0),
    ],
    ids=str,
)
def test_from_requested_bad_numbers_refused(words: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="expected "):
        Zfp.from_requested(words)


@pytest.mark.parametrize(("zfp_filter", "words"), REQUESTED, ids=str)
def test_zfp_as_mapping_gives_h5py_its_keywords(zfp_filter: Zfp, words: tuple[int, ...]) -> None:
    keywords = {"compression": 32013, "compression_opts": words}
    assert dict(zfp_filter) == keywords
    assert dict(**zfp_filter) == keywords
    assert len(zfp_filter) == 2
    assert list(zfp_filter) == list(keywords)
    assert zfp_filter["compression"] == 32013
    assert "shuffle" not in zfp_filter
    with pytest.raises(KeyError, match="shuffle"):
        zfp_filter["shuffle"]


@pytest.mark.parametrize("zfp_filter", EACH, ids=str)
def test_zfp_equal_values_equal_hash_repr_and_copies(zfp_filter: Zfp) -> None:
    twins = [
        eval(repr(zfp_filter), {"Zfp": Zfp}),
        pickle.loads(pickle.dumps(zfp_filter)),
        copy.copy(zfp_filter),
        copy.deepcopy(zfp_filter),
        tamis.Pipeline.parse(str(zfp_filter)).zfp,
    ]
    for twin in twins:
        assert twin == zfp_filter
        assert hash(twin) == hash(zfp_filter)
    assert len({*EACH, *twins}) == len(EACH)
    assert zfp_filter != zfp_filter.mode
    assert zfp_filter != dict(zfp_filter)


@pytest.mark.parametrize("number", [np.float64(0.25), np.float32(0.25), np.int64(2)], ids=repr)
@pytest.mark.parametrize("name", ["accuracy", "rate"])
def test_zfp_numpy_number_same_as_python_number(name: str, number: Any) -> None:
    given, plain = Zfp(**{name: number}), Zfp(**{name: number.item()})
    assert given == plain
    assert (repr(given), str(given)) == (repr(plain), str(plain))
    assert given.requested == plain.requested


@pytest.mark.parametrize("name", ["rate", "accuracy"])
def test_zfp_whole_number_same_text_as_float(name: str) -> None:
    assert str(Zfp(**{name: 16})) == str(Zfp(**{name: 16.0})) == f"zfp({name}=16)"
    assert eval(repr(Zfp(**{name: 16.0}))) == Zfp(**{name: 16})


def test_zfp_numpy_integers_same_as_python_integers() -> None:
    assert str(Zfp(precision=np.uint8(16))) == "zfp(precision=16)"
    assert str(Zfp(minbits=np.int64(5), minexp=np.int32(-3))) == str(Zfp(minbits=5, minexp=-3))


@pytest.mark.parametrize("name", ["_mode", "mode", "rate", "id", "anything"])
def test_zfp_set_attribute_refused(name: str) -> None:
    with pytest.raises(AttributeError, match="Zfp is immutable"):
        setattr(Zfp(rate=8), name, 1)


def test_zfp_delete_mode_refused() -> None:
    zfp_filter = Zfp(rate=8)
    with pytest.raises(AttributeError):
        del zfp_filter._mode
    assert zfp_filter == Zfp(rate=8)


def test_zfp_positional_argument_refused() -> None:
    with pytest.raises(TypeError, match="positional"):
        Zfp(8)  # type: ignore[misc]


# The contract h5z-zfp.md, 1.4.
STORED = [
    (Zfp(rate=16), "f8", (256,), "10105111 0570667a 00000ff3 03f00000"),
    (Zfp(accuracy=1e-3), "f8", (256,), "10105111 0570667a 00000ff3 ca900000"),
    (Zfp(precision=20), "f8", (256,), "10105111 0570667a 00000ff3 81300000"),
    (Zfp(reversible=True), "f8", (256,), "10105111 0570667a 00000ff3 88000000"),
    (Zfp(minbits=1), "f8", (256,), "10105111 0570667a 00000ff3 fff00000 e0888000 000787af"),
    (Zfp(accuracy=2.0**843), "f8", (256,), "10105111 0570667a 00000ff3 ffe00000"),
    (Zfp(accuracy=1e-3), "f4", (10, 20, 5), "10105111 0570667a 0130004a ca900090"),
    (Zfp(accuracy=1e-3), "f4", (1, 10, 1, 20, 5), "10105111 0570667a 0130004a ca900090"),
]


@pytest.mark.parametrize(("zfp_filter", "dtype", "shape", "words"), STORED, ids=str)
def test_stored_words_as_contract_and_parsed(zfp_filter: Zfp, dtype: str, shape: tuple[int, ...], words: str) -> None:
    expected = tuple(int(word, 16) for word in words.split())
    stored = zfp_filter.stored(ChunkType(np.dtype(dtype), shape))
    assert stored == expected
    assert is_stored(stored)
    parsed = StoredZfp.parse(stored)
    assert (parsed.dtype, parsed.shape) == (np.dtype(dtype), tuple(extent for extent in shape if extent > 1))
    assert (parsed.swapped, parsed.version_word) == (False, VERSION_WORD)
    assert parsed.versions == "H5Z-ZFP 1.1.1, zfp 1.0.1"
    if not isinstance(zfp_filter.mode, zfp.Accuracy):
        assert parsed.filter == zfp_filter
    else:
        assert parsed.filter.mode == zfp.Accuracy(zfp_filter.mode.effective)


@pytest.mark.parametrize(
    ("dtype", "zfp_filter"),
    [(t, each) for t in ("f4", "f8", "i4", "i8") for each in EACH if t[0] == "f" or each.requested[0] != 3],
    ids=str,
)
def test_stored_words_same_as_the_plugin_leaves_in_a_file(dtype: str, zfp_filter: Zfp) -> None:
    with h5py.File.in_memory() as file:
        dataset = file.create_dataset("x", (4, 9, 30), dtype, chunks=(1, 6, 10), **zfp_filter)
        _, _, left, _ = dataset.id.get_create_plist().get_filter(0)
    assert zfp_filter.stored(ChunkType(np.dtype(dtype), (1, 6, 10))) == left


@pytest.mark.parametrize(
    ("file_name", "versions", "mode", "swapped"),
    [
        ("test_zfp_be.h5", "H5Z-ZFP 0.2.0, zfp 0.5.0", zfp.Expert(), True),
        ("test_zfp_le.h5", "H5Z-ZFP 0.2.0, zfp 0.5.0", zfp.Expert(), False),
        ("test_zfp_030040.h5", "H5Z-ZFP 0.3.0, zfp 0.4.0", zfp.Rate(12), False),
        ("test_zfp_110050.h5", "H5Z-ZFP 1.1.0, zfp 0.5.0", zfp.Rate(12), False),
    ],
)
def test_stored_parse_files_of_other_versions_said(
    file_name: str, versions: str, mode: zfp.Mode, swapped: bool
) -> None:
    found = []
    with h5py.File(needs.real(f"h5zzfp/{file_name}")) as file:
        for dataset in file.values():
            plist = dataset.id.get_create_plist()
            if plist.get_nfilters():
                found.append(StoredZfp.parse(plist.get_filter(0)[2]))
    assert {(each.versions, each.swapped, each.shape, each.dtype) for each in found} == {
        (versions, swapped, (256,), np.dtype("f8"))
    }
    assert mode in {each.filter.mode for each in found}


def test_stored_parse_swapped_words_same() -> None:
    # From test_zfp_be.h5: all words but the first come back with their bytes turned.
    parsed = StoredZfp.parse((0x00500020, 0x7A667005, 0xF30F0000, 0x0000F083))
    assert parsed.swapped
    native = StoredZfp.parse((0x00500020, 0x0570667A, 0x00000FF3, 0x83F00000))
    assert not native.swapped
    assert (parsed.filter, parsed.dtype, parsed.shape) == (native.filter, native.dtype, native.shape)


def test_stored_parse_undefined_top_byte_ignored() -> None:
    words = (0x10105111, 0x0570667A, 0x00000FF3, 0xFFF00000, 0xE0888000, 0x000787AF)
    assert StoredZfp.parse((*words[:5], words[5] | 0xAB000000)) == StoredZfp.parse(words)
    assert StoredZfp.parse((*words[:4], -0x1F778000, words[5])) == StoredZfp.parse(words), "h5py gives signed words too"


@pytest.mark.parametrize("word", [0x05007110, 0x10106111])
def test_stored_parse_codec_of_version_word_beyond_5_refused(word: int) -> None:
    with pytest.raises(StreamError, match=f"expected ZFP codec 5, got parameters of codec {word >> 12 & 15}"):
        StoredZfp.parse((word, 0x0570667A, 0x00000FF3, 0x83F00000))


@pytest.mark.parametrize("words", [(), (VERSION_WORD,), (5, 0, 0, 0), (VERSION_WORD, 1, 2, 3), (3, 0, 1, 2)], ids=str)
def test_stored_parse_no_header_refused(words: tuple[int, ...]) -> None:
    with pytest.raises(StreamError, match=r"expected stored ZFP parameters, got \("):
        StoredZfp.parse(words)
    assert not is_stored(words)


def test_stored_parse_maxbits_below_block_header_refused() -> None:
    # D7: libzfp corrupts memory on it. 1-D float64, rate code 7: 8 bits per block.
    with pytest.raises(StreamError, match=r"expected stored ZFP parameters, got .*maxbits_small"):
        StoredZfp.parse((VERSION_WORD, 0x0570667A, 0x00000FF3, 0x00700000))


@pytest.mark.parametrize("zfp_filter", EACH, ids=str)
def test_is_stored_requested_words_no(zfp_filter: Zfp) -> None:
    assert not is_stored(zfp_filter.requested)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">i8"])
def test_check_other_byte_order_refused_with_native_type(dtype: str) -> None:
    native = np.dtype(dtype).newbyteorder("=").str
    with pytest.raises(ParameterError, match=f"expected native byte order, got '{dtype}': .* use '{native}'"):
        Zfp(rate=8).check(ChunkType(np.dtype(dtype), (8, 8)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((), r"expected a chunk of more than one value, got \(\)"),
        ((1, 1), r"expected a chunk of more than one value, got \(1, 1\): use chunks of at least 4 values"),
        ((2, 3, 4, 5, 6), r"1 to 4 axes longer than 1, got .* with 5: use \(1, 3, 4, 5, 6\)"),
        ((2, 1, 3, 4, 5, 6, 7), r"1 to 4 axes longer than 1, got .* with 6: use \(1, 1, 1, 4, 5, 6, 7\)"),
        ((4097, 4, 4, 4), "expected extents of at most 4096 with 4 axes, .*got shape"),
        ((65537, 4, 4), "expected extents of at most 65536 with 3 axes"),
        (((1 << 24) + 1, 4), "expected extents of at most 16777216 with 2 axes"),
    ],
    ids=str,
)
def test_check_chunk_shape_that_cannot_be_refused(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Zfp(rate=8).check(ChunkType(np.dtype("f4"), shape))


def test_check_suggested_chunk_shape_taken() -> None:
    Zfp(rate=8).check(ChunkType(np.dtype("f4"), (1, 1, 1, 4, 5, 6, 7)))


@pytest.mark.parametrize(
    ("zfp_filter", "dtype", "message"),
    [
        (Zfp(rate=8), "u4", "expected signed integers or floats in a lossy mode, got uint32"),
        (Zfp(rate=8), "i2", "expected int32, int64, float32 or float64 values, got int16"),
        (Zfp(reversible=True), "bool", "expected int32, int64, float32 or float64 values, got bool"),
        (Zfp(accuracy=0.5), "i4", "expected an accuracy of 1 or more for int32"),
        (Zfp(maxbits=11), "f8", "expected maxbits of at least 12 for float64, got minbits=1, maxbits=11"),
        (Zfp(rate=10000), "f8", "expected parameters that give 1 to 32768 bits per block, got rate=10000"),
    ],
    ids=str,
)
def test_check_type_and_mode_that_cannot_be_refused(zfp_filter: Zfp, dtype: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        zfp_filter.check(ChunkType(np.dtype(dtype), (8, 8)))


@pytest.mark.parametrize("shape", [(1, 7, 1, 9), (30,), (1, 2), (3, 4, 5, 6, 1)])
def test_zfp_encode_decode_unit_axes_left_out(shape: tuple[int, ...]) -> None:
    values, chunk = np.random.default_rng(1).standard_normal(shape), ChunkType(np.dtype("f8"), shape)
    zfp_filter = Zfp(reversible=True)
    encoded = zfp_filter.encode(values.tobytes(), chunk, zfp_filter.stored(chunk))
    assert encoded == zfp.encode(values.reshape(squeezed(chunk)), zfp.Reversible())
    assert zfp_filter.decode(encoded, chunk, zfp_filter.stored(chunk)) == values.tobytes()


def test_zfp_encode_non_finite_refused() -> None:
    values = np.array([1, 2, np.nan, 4])
    with pytest.raises(DataError, match=r"expected finite values with rate=8, found NaN or infinity at index \(2,\)"):
        Zfp(rate=8).encode(values.tobytes(), ChunkType(values.dtype, (4,)), ())
