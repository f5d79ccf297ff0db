"""8-byte parameters in words, on machines of either byte order."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.notation.netcdf_scanf import ByteOrder, double_words, fix8, words_double


def swap8(data: bytes) -> bytes:
    return data[::-1]


def swap4_each(data: bytes) -> bytes:
    return data[:4][::-1] + data[4:][::-1]


@given(st.binary(min_size=8, max_size=8))
def test_fix8_big_endian_swaps_8_then_4_and_back(data: bytes) -> None:
    encoded = fix8(data, decode=False, byteorder="big")
    assert encoded == swap4_each(swap8(data))
    assert fix8(data, decode=True, byteorder="big") == swap8(swap4_each(data))
    assert fix8(encoded, decode=True, byteorder="big") == data


@pytest.mark.parametrize("decode", [False, True])
def test_fix8_little_endian_nothing_changes(decode: bool) -> None:
    assert fix8(bytes(range(8)), decode=decode) == bytes(range(8))


@given(st.floats(allow_nan=False))
def test_fix8_double_in_memory_of_either_machine_same_words(value: float) -> None:
    """What reaches the file is the same: the words, each read in the machine's own order."""
    little = struct.unpack("<2I", fix8(struct.pack("<d", value), decode=False, byteorder="little"))
    big = struct.unpack(">2I", fix8(struct.pack(">d", value), decode=False, byteorder="big"))
    assert little == big == double_words(value)


@pytest.mark.parametrize("size", [0, 4, 7, 9])
def test_fix8_other_than_8_bytes_refused(size: int) -> None:
    with pytest.raises(ParameterError, match=f"expected the 8 bytes of a value, got {size}"):
        fix8(bytes(size), decode=False)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.001, (3539053052, 1062232653)), (16.0, (0, 1076887552)), (4.0, (0, 1074790400)), (-0.0, (0, 1 << 31))],
)
def test_double_words_known_values_low_first_and_big_endian_high_first(value: float, words: tuple[int, int]) -> None:
    assert double_words(value) == words
    assert double_words(value, "big") == words[::-1]


@pytest.mark.parametrize("byteorder", ["little", "big"])
@given(value=st.floats())
def test_words_double_of_double_words_same_bits(byteorder: ByteOrder, value: float) -> None:
    found = words_double(double_words(value, byteorder), byteorder)
    assert struct.pack("<d", found) == struct.pack("<d", value)


@pytest.mark.parametrize("words", [(-1, 0), (0, 1 << 32)])
def test_words_double_word_beyond_32_bits_refused(words: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match="expected two words of 0 to 4294967295, got"):
        words_double(words)
