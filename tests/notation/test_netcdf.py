"""netCDF filter text: numbers, filters, chains, in the strict reading, netcdf-c's and its documentation's."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.filters import Request
from tamis.formatting import printable
from tamis.notation import Compat, chain_text
from tamis.notation.netcdf import parse_chain, parse_filterspec, parse_parameter

Words = tuple[int, ...]
REFUSED = None
SAME = "same"
BIG = 4294967295

# Text; words of netcdf-c; words of its documentation; words of the strict reading. All of netcdf-c's were measured.
PARAMETERS: list[tuple[str, Words | None, Any, Any]] = [
    ("-17b", (239,), (4294967279,), REFUSED),
    ("-128b", (128,), (4294967168,), REFUSED),
    ("-129b", (127,), SAME, REFUSED),
    ("23ub", (23,), SAME, SAME),
    ("100b", (100,), SAME, SAME),
    ("200b", (200,), (4294967240,), REFUSED),
    ("300b", (44,), SAME, REFUSED),
    ("300ub", (44,), SAME, REFUSED),
    ("-25S", (65511,), (4294967271,), REFUSED),
    ("27US", (27,), SAME, SAME),
    ("70000s", (4464,), SAME, REFUSED),
    ("70000us", (4464,), SAME, REFUSED),
    ("77", (77,), SAME, SAME),
    ("+5", (5,), SAME, SAME),
    ("010", (10,), SAME, SAME),
    ("-77", (4294967219,), SAME, SAME),
    ("-77U", (4294967219,), REFUSED, REFUSED),
    ("93U", (93,), SAME, SAME),
    ("4294967295", (BIG,), SAME, SAME),
    ("4294967296", (0,), (0, 1), REFUSED),
    ("5000000000", (705032704,), (705032704, 1), REFUSED),
    ("18446744073709551616", (BIG,), REFUSED, REFUSED),
    ("-2147483648", (1 << 31,), SAME, SAME),
    ("-2147483649", (2147483647,), REFUSED, REFUSED),
    ("5L", (5, 0), SAME, SAME),
    ("5UL", (5, 0), SAME, SAME),
    ("5LL", (5, 0), REFUSED, REFUSED),
    ("5LU", (5,), REFUSED, REFUSED),
    ("-1L", (BIG, BIG), SAME, SAME),
    ("-1UL", (BIG, BIG), REFUSED, REFUSED),
    ("-9223372036854775807L", (1, 1 << 31), SAME, SAME),
    ("9223372036854775808L", (BIG, 2147483647), REFUSED, REFUSED),
    ("18446744073709551615UL", (BIG, BIG), SAME, SAME),
    ("789f", (0x44454000,), SAME, SAME),
    ("-789f", (3292872704,), SAME, SAME),
    ("1.5f", (1069547520,), SAME, SAME),
    (".5f", (1056964608,), SAME, SAME),
    ("1.f", (1065353216,), SAME, SAME),
    ("1.", (1065353216,), REFUSED, REFUSED),
    ("1.5", (1,), REFUSED, REFUSED),
    (".5", REFUSED, REFUSED, REFUSED),
    ("1e3", (1,), REFUSED, REFUSED),
    ("1e3f", (1148846080,), SAME, SAME),
    ("1e3d", (0, 1083129856), SAME, SAME),
    ("1d", (0, 1072693248), SAME, SAME),
    ("12345678.12345678d", (3287505826, 1097305129), SAME, SAME),
    ("0.001d", (3539053052, 1062232653), SAME, SAME),
    ("16.0d", (0, 1076887552), SAME, SAME),
    ("4.0D", (0, 1074790400), SAME, SAME),
    ("-0d", (0, 1 << 31), SAME, SAME),
    ("5e-324d", (1, 0), SAME, SAME),
    ("0x10", (0,), REFUSED, REFUSED),
    ("0xff", (0x437F0000,), REFUSED, REFUSED),
    ("0x1p3f", (0x41000000,), REFUSED, REFUSED),
    ("nanf", (0x7FC00000,), REFUSED, REFUSED),
    ("-nand", (0, 0xFFF80000), REFUSED, REFUSED),
    ("inff", (0x7F800000,), REFUSED, REFUSED),
    ("infinityd", (0, 0x7FF00000), REFUSED, REFUSED),
    ("infid", REFUSED, REFUSED, REFUSED),
    ("1e39f", (0x7F800000,), REFUSED, REFUSED),
    ("1e400d", (0, 0x7FF00000), REFUSED, REFUSED),
    ("1e-46f", (0,), REFUSED, REFUSED),
    ("1e-400d", (0, 0), REFUSED, REFUSED),
    ("0e-400d", (0, 0), SAME, SAME),
    ("12abb", (12,), REFUSED, REFUSED),
    ("1.5b", (1,), REFUSED, REFUSED),
    ("1,2", (1,), REFUSED, REFUSED),
    ("5 u", (5,), REFUSED, REFUSED),
    (" \t5", (5,), SAME, SAME),
    ("\n5", (5,), SAME, SAME),
    ("5 ", REFUSED, (5,), (5,)),
    ("5\n", REFUSED, (5,), (5,)),
    ("", REFUSED, REFUSED, REFUSED),
    (" ", REFUSED, REFUSED, REFUSED),
    ("u", REFUSED, REFUSED, REFUSED),
    ("b", REFUSED, REFUSED, REFUSED),
    ("f", REFUSED, REFUSED, REFUSED),
    ("-", REFUSED, REFUSED, REFUSED),
    ("x", REFUSED, REFUSED, REFUSED),
    ("9x", REFUSED, REFUSED, REFUSED),
    ("--5", REFUSED, REFUSED, REFUSED),
    ("٣", REFUSED, REFUSED, REFUSED),
    ("5ſ", REFUSED, REFUSED, REFUSED),
    ("ınff", REFUSED, REFUSED, REFUSED),
    ("9" * 5000, (BIG,), REFUSED, REFUSED),
    ("0" * 5000 + "7", (7,), SAME, SAME),
]

# The same of a chain. The first is the vector of netcdf-c's own tests.
MISC = "32768,-17b,23ub,-25S,27US,77,93U,789f,12345678.12345678d,-9223372036854775807L,18446744073709551615UL"
COMMON = (27, 77, 93, 1145389056, 3287505826, 1097305129, 1, 2147483648, BIG, BIG)
Chain = list[tuple[int, Words]]
CHAINS: list[tuple[str, Chain | None, Any, Any]] = [
    (MISC, [(32768, (239, 23, 65511, *COMMON))], [(32768, (4294967279, 23, 4294967271, *COMMON))], REFUSED),
    ("32013,1,0,4.0d", [(32013, (1, 0, 0, 1074790400))], SAME, SAME),
    ("307,9|4,32,32", [(307, (9,)), (4, (32, 32))], SAME, SAME),
    ("2|1,6|3", [(2, ()), (1, (6,)), (3, ())], SAME, SAME),
    (" 307,9", [(307, (9,))], SAME, SAME),
    ("\n307 , 9 |\t4,32,32", REFUSED, [(307, (9,)), (4, (32, 32))], [(307, (9,)), (4, (32, 32))]),
    (" 307,9 | 4,32", REFUSED, [(307, (9,)), (4, (32,))], [(307, (9,)), (4, (32,))]),
    ("307,9 ", REFUSED, [(307, (9,))], [(307, (9,))]),
    ("307,9|", [(307, (9,))], REFUSED, REFUSED),
    ("|307,9", REFUSED, REFUSED, REFUSED),
    ("307,9||4", REFUSED, REFUSED, REFUSED),
    ("|", REFUSED, REFUSED, REFUSED),
    ("", [], REFUSED, REFUSED),
    ("abc", REFUSED, REFUSED, REFUSED),
    ("307,", REFUSED, REFUSED, REFUSED),
    ("307,,9", REFUSED, REFUSED, REFUSED),
    ("307,x", REFUSED, REFUSED, REFUSED),
    ("307abc", [(307, ())], REFUSED, REFUSED),
    ("+307", [(307, ())], SAME, SAME),
    ("-1", [(BIG, ())], REFUSED, REFUSED),
    ("0,5", [(0, (5,))], REFUSED, REFUSED),
    ("65536", [(65536, ())], REFUSED, REFUSED),
    ("4294967296", [(0, ())], REFUSED, REFUSED),
    ("18446744073709551616", [(BIG, ())], REFUSED, REFUSED),
    ("[0]307,9", [(307, (9,))], REFUSED, REFUSED),
    ("[0]", [], REFUSED, REFUSED),
    ("[x]307,9", REFUSED, REFUSED, REFUSED),
    ("[]307,9", REFUSED, REFUSED, REFUSED),
    ("[0", REFUSED, REFUSED, REFUSED),
    ("none", REFUSED, REFUSED, REFUSED),
]


def three(cases: list[Any]) -> list[Any]:
    """One case for each reading."""
    made = []
    for text, library, documented, strict in cases:
        short = text if len(text) < 40 else f"{text[:8]}…{len(text)}"
        for compat, words in (("netcdf-c", library), ("doc", documented), (None, strict)):
            made.append(pytest.param(text, compat, library if words == SAME else words, id=f"{short!r}-{compat}"))
    return made


@pytest.mark.parametrize(("text", "compat", "words"), three(PARAMETERS))
def test_parse_parameter_golden_table(text: str, compat: Compat | None, words: Words | None) -> None:
    if words is REFUSED:
        with pytest.raises(ParameterError, match=r"^(line [12]: )?expected .* at position [0-9]+, got "):
            parse_parameter(text, compat=compat)
    else:
        assert parse_parameter(text, compat=compat) == words


@pytest.mark.parametrize(("text", "compat", "chain"), three(CHAINS))
def test_parse_chain_golden_table(text: str, compat: Compat | None, chain: Chain | None) -> None:
    if chain is REFUSED:
        with pytest.raises(ParameterError, match=r"^(line [12]: )?expected .* at position [0-9]+, got "):
            parse_chain(text, compat=compat)
    else:
        assert parse_chain(text, compat=compat) == chain


def test_parse_filterspec_bar_part_of_number_for_netcdf_c_and_refused_else() -> None:
    assert parse_filterspec("1,2|3,4", compat="netcdf-c") == Request(1, (2, 4))
    for compat in (None, "doc"):
        with pytest.raises(ParameterError, match="at position 3, got '2'"):
            parse_filterspec("1,2|3,4", compat=compat)  # type: ignore[arg-type]
    assert parse_filterspec("32013, 3,0,0.001d") == Request(32013, (3, 0, 3539053052, 1062232653))


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("307,1.5", 5, "1.5f (float, one word) or 1.5d (double, two words)"),
        ("307,9|4, 1e3", 10, "1e3f (float, one word) or 1e3d (double, two words), or 1000"),
        ("307,1e400", 5, "1e400f (float, one word) or 1e400d (double, two words)"),
        ("307,0xff", 5, "255, in decimal"),
        ("307,-0x10", 5, "-16, in decimal"),
        ("307,5LU", 5, "5UL"),
        ("307,5ll", 5, "5L"),
        ("307,5ull", 5, "5UL"),
        ("307,5bu", 5, "5UB"),
        ("307,4294967296", 5, "-2147483648 to 4294967295 without a tag, or 4294967296UL"),
        ("307,-5000000000", 5, "-2147483648 to 4294967295 without a tag, or -5000000000L"),
        ("307,99999999999999999999", 5, "-2147483648 to 4294967295 without a tag"),
        ("307,-77U", 5, "0 to 4294967295 with tag U, or -77"),
        ("307,-1ul", 5, "0 to 18446744073709551615 with tag ul, or -1L"),
        ("9,9223372036854775808L", 3, f"{-(1 << 63)} to {(1 << 63) - 1} with tag L, or 9223372036854775808UL"),
        ("307,18446744073709551616ul", 5, "0 to 18446744073709551615 with tag ul"),
        ("307,300b", 5, "0 to 127 with tag b, or 300"),
        ("307,-300b", 5, "0 to 127 with tag b, or -300"),
        ("307,70000us", 5, "0 to 65535 with tag us, or 70000"),
        ("307,-17b", 5, "239 (netcdf-c's reading) or -17 (its documentation's)"),
        ("307,-128b", 5, "128 (netcdf-c's reading) or -128 (its documentation's)"),
        ("307,-129b", 5, "0 to 127 with tag b, or -129"),
        ("307,-25S", 5, "65511 (netcdf-c's reading) or -25 (its documentation's)"),
        ("307,1e39f", 5, "a number that fits a float, or tag d"),
        ("307,1e400d", 5, "a number that fits a double"),
        ("307,1e-46f", 5, "0 or a number that fits a float, or tag d"),
        ("307,1e-400d", 5, "0 or a number that fits a double"),
        ("307,nanf", 5, "a finite number"),
        ("307,-inf", 5, "a finite number"),
        ("307,5 u", 5, "a number, with a tag of b ub s us u l ul f d or without"),
        ("307,,9", 5, "a parameter"),
        ("307,", 5, "a parameter"),
        ("307,9|", 7, "a filter id of 1 to 65535"),
        ("307abc,9", 1, "a filter id of 1 to 65535"),
        ("307,9|65536", 7, "a filter id of 1 to 65535"),
        ("[0]307,9", 1, "a filter id (netcdf-c crashes at a format number in brackets)"),
        ("307,9\0", 6, "text without NUL"),
    ],
)  # fmt: skip
def test_parse_chain_refused_says_place_and_what_to_write(text: str, position: int, expected: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_chain(text)
    first, shown, marked = str(caught.value).rsplit("\n", 2)
    assert first.startswith(f"expected {expected} at position {position}, got ")
    assert (shown, marked) == (f"  {printable(text)}", f"  {' ' * (position - 1)}^")


@pytest.mark.parametrize(
    "text", ["307,1.5", "307,0xff", "307,5LU", "307,4294967296", "307,-77U", "307,-300b", "307,5bu"]
)
def test_parse_chain_what_the_refusal_says_to_write_is_taken(text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_chain(text)
    said = str(caught.value).split(" at position")[0].removeprefix("expected ").removesuffix(", in decimal")
    parse_chain("307," + re.sub(r".*, or | \(float.*", "", said))


@pytest.mark.parametrize("compat", ["strict", "netCDF-C", ""])
def test_parse_unknown_compat_refused(compat: Any) -> None:
    for parse in (parse_chain, parse_filterspec, parse_parameter):
        with pytest.raises(ParameterError, match="expected compat of 'netcdf-c', 'doc' or None, got"):
            parse("307", compat=compat)


def test_parse_chain_start_places_count_from_the_beginning() -> None:
    assert parse_chain("v1,307,9", start=3) == [(307, (9,))]
    with pytest.raises(ParameterError, match="at position 8, got 'x'"):
        parse_chain("v1,307,x", start=3)


words = st.integers(0, BIG)
requests = st.builds(Request, st.integers(1, 65535), st.lists(words, max_size=8).map(tuple))
readings = pytest.mark.parametrize("compat", [None, "doc", "netcdf-c"])


@readings
@given(chain=st.lists(requests, min_size=1, max_size=4))
def test_chain_text_read_back_same_in_every_reading(compat: Compat | None, chain: list[Request]) -> None:
    assert parse_chain(chain_text(chain), compat=compat) == chain


@readings
@given(
    before=st.lists(words, max_size=3),
    values=st.lists(st.floats(), min_size=1, max_size=3),
    after=st.lists(words, max_size=3),
)
def test_chain_text_doubles_read_back_same_in_every_reading(
    compat: Compat | None, before: list[int], values: list[float], after: list[int]
) -> None:
    pairs = [word for value in values for word in struct.unpack("<2I", struct.pack("<d", value))]
    chain = [Request(1, (4,)), Request(32013, (*before, *pairs, *after))]
    at = range(len(before), len(before) + len(pairs), 2)
    assert parse_chain(chain_text(chain, doubles={1: at}), compat=compat) == chain


def test_chain_text_doubles_shortest_text_and_numbers_where_not_finite() -> None:
    zfp = Request(32013, (3, 0, 3539053052, 1062232653))
    assert chain_text([zfp, Request(3, ())]) == "32013,3,0,3539053052,1062232653|3"
    assert chain_text([zfp, Request(3, ())], doubles={0: {2}}) == "32013,3,0,0.001d|3"
    assert chain_text([Request(9, (0, 0x7FF00000))], doubles={0: {0}}) == "9,0,2146435072"


@pytest.mark.parametrize(
    ("chain", "doubles", "match"),
    [
        ([], {}, "expected at least one filter, got none"),
        ([Request(0, ())], {}, "expected a filter id of 1 to 65535, got 0"),
        ([Request(65536, ())], {}, "expected a filter id of 1 to 65535, got 65536"),
        ([Request(1, (2, -1))], {}, "expected words of 0 to 4294967295, got -1 for filter 1"),
        ([Request(1, (1 << 32,))], {}, "expected words of 0 to 4294967295, got 4294967296 for filter 1"),
        ([Request(1, (1, 2))], {0: {1}}, "expected two words for each double"),
        ([Request(1, (1, 2, 3))], {0: {0, 1}}, "expected two words for each double"),
        ([Request(1, (1, 2))], {0: {-1}}, "expected two words for each double"),
    ],
)
def test_chain_text_what_no_reader_takes_refused(chain: list[Request], doubles: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        chain_text(chain, doubles=doubles)


@readings
@given(text=st.text(st.sampled_from("0123456789-+.eExXbsuUlLfdnaN ,|[]\\éſ"), max_size=12))
def test_parse_chain_any_text_words_or_refusal(compat: Compat | None, text: str) -> None:
    try:
        found = parse_chain(text, compat=compat)
    except ParameterError:
        return
    assert all(0 <= word <= BIG for each in found for word in (each.id, *each.values))


READ_OTHERWISE = {
    "307,1.5": 1,
    "307,0xff": struct.unpack("<I", struct.pack("<f", 255))[0],
    "307,4294967296": 0,
    "307,5LU": 5,
}


@pytest.mark.parametrize("text", [*READ_OTHERWISE, "[0]307,9"])
def test_d25_strict_parser_refuses_with_the_position(text: str) -> None:
    with pytest.raises(ParameterError, match=r"at position [0-9]+"):
        parse_chain(text)


@pytest.mark.parametrize(("text", "word"), READ_OTHERWISE.items())
def test_d25_compat_reads_as_netcdf_c_does(text: str, word: int) -> None:
    (found,) = parse_chain(text, compat="netcdf-c")
    assert found.values[0] == word
