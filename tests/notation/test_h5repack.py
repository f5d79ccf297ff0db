"""h5repack's -f and -l: what is taken, what is refused, and where."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Deflate, Fletcher32, ParameterError, Shuffle, UnknownFilter, Zfp
from tamis.filters import Filter, Stage
from tamis.notation import Reading, command_text
from tamis.notation.h5repack import filter_arguments, layout_argument, parse_command, parse_filter, parse_layout


@pytest.mark.parametrize(
    ("text", "objects", "made", "optional"),
    [
        ("GZIP=6", (), Deflate(6), True),
        ("GZIP=0", (), Deflate(0), True),
        ("v:GZIP=6", ("v",), Deflate(6), True),
        ("v,/g/w,x y:SHUF", ("v", "/g/w", "x y"), Shuffle(), True),
        ("FLET", (), Fletcher32(), False),
        ("UD=32013,0,4,1,0,0,1074790400", (), Zfp(rate=4), False),
        ("UD=32013,1,4,1,0,0,1074790400", (), Zfp(rate=4), True),
        ("UD=32013,0,1,5", (), Zfp(reversible=True), False),
        ("UD=1,1,1,4", (), Deflate(4), True),
        ("UD=300,1,0", (), UnknownFilter(300), True),
        ("UD=300,1,3,-1,4294967295,0x10", (), UnknownFilter(300, (0xFFFFFFFF, 0xFFFFFFFF, 16)), True),
        ("UD=300,0,1,-2147483648", (), UnknownFilter(300, (1 << 31,)), False),
    ],
)
def test_parse_filter_good_text_filter_with_flag(
    text: str, objects: tuple[str, ...], made: Filter, optional: bool
) -> None:
    assert parse_filter(text) == (objects, Stage(made, optional))


def test_parse_filter_none_no_filter() -> None:
    assert parse_filter("v:NONE") == (("v",), None)


@pytest.mark.parametrize(
    ("text", "expected", "position"),
    [
        ("", "a filter", 1),
        ("v", "a filter", 1),
        ("gzip=4", "a filter", 1),
        (" GZIP=4", "a filter", 1),
        (":GZIP=4", "a name of a dataset, or no ':'", 1),
        ("v,:GZIP=4", "a name of a dataset, or no ':'", 3),
        ("a:b:GZIP=4", "a filter", 3),
        ("GZIP", "'=' and parameters", 5),
        ("GZIP=", "a level of 0 to 9", 6),
        ("GZIP=10", "a level of 0 to 9", 6),
        ("v:GZIP=+6", "a level of 0 to 9", 8),
        ("GZIP=4 ", "the end", 7),
        ("GZIP=6,1", "the end", 7),
        ("SHUF=1", "no parameters of SHUF", 5),
        ("NONE=1", "no parameters of NONE", 5),
        ("SZIP=9,NN", "an even number of pixels per block, 2 to 32", 6),
        ("SZIP=34,NN", "an even number of pixels per block, 2 to 32", 6),
        ("SZIP=8", "',' and NN or EC", 7),
        ("SZIP=8,nn", "NN or EC", 8),
        ("SOFF=-3,DS", "a factor of 0 or more", 6),
        ("SOFF=3,XX", "IN or DS", 8),
        # These h5repack 1.10.8 takes, and does nothing or something else.
        ("UD", "'=' and parameters", 3),
        ("UD=300", "',' and a flag", 7),
        ("UD=300,1", "',' and the number of parameters", 9),
        ("UD=0,1,1,4", "a filter id of 1 to 65535", 4),
        ("UD=300,2,1,9", "a flag, 0 required or 1 optional", 8),
        ("UD=300,1,1,010", "a whole number of 32 bits", 12),
        ("UD=300,1,1,1.5", "a whole number of 32 bits", 12),
        ("UD=300,1,1,abc", "a whole number of 32 bits", 12),
        ("UD=300,1,1,4294967296", "a whole number of 32 bits", 12),
        ("UD=300,1,1,", "a whole number of 32 bits", 12),
        ("UD=300,1,2,,1", "a whole number of 32 bits", 12),
        ("v:UD=1,0,1,4", "flag 1", 3),
        ("UD=3,1,0", "flag 0", 1),
    ],
)
def test_parse_filter_bad_text_place_named(text: str, expected: str, position: int) -> None:
    with pytest.raises(ParameterError, match=f"^expected {re.escape(expected)}.* at position {position}, got"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("UD=32013,4,1,0,0,1074790400", "write UD=32013,0,4,1,0,0,1074790400"),
        ("v:UD=307,1,9", "write UD=307,0,1,9"),
        ("UD=307,0,2,9", "expected 1 as the number of parameters at position 10"),
    ],
)
def test_parse_filter_other_count_says_what_to_write(text: str, instead: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(instead)):
        parse_filter(text)


def test_parse_filter_refused_by_the_filter_place_named() -> None:
    with pytest.raises(ParameterError, match=r"(?s)expected ZFP parameters .*\n  v:UD=32013,0,1,9\n    \^$"):
        parse_filter("v:UD=32013,0,1,9")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("CHUNK=40x10", ((), (40, 10))),
        ("v,w:CHUNK=7", (("v", "w"), (7,))),
        ("v:CONTI", (("v",), None)),
        ("COMPA", ((), None)),
    ],
)
def test_parse_layout_good_text_layout(text: str, layout: tuple[tuple[str, ...], tuple[int, ...] | None]) -> None:
    assert parse_layout(text) == layout


@pytest.mark.parametrize(
    ("text", "expected", "position"),
    [
        ("", "a layout", 1),
        ("v:chunk=4", "a layout", 3),
        ("v:CHUNK", "'=' and a chunk shape", 8),
        ("CHUNK=", "an extent of 1 to 4294967295", 7),
        ("CHUNK=0x10", "an extent of 1 to 4294967295", 7),
        ("CHUNK=10x", "an extent of 1 to 4294967295", 10),
        ("CHUNK=4294967296", "an extent of 1 to 4294967295", 7),
        ("CHUNK=10X10", "'x' or the end", 9),
        ("CHUNK=10 x 10", "'x' or the end", 9),
        ("CHUNK=NONE", "an extent of 1 to 4294967295", 7),
        ("v:CONTI=3", "the end", 8),
    ],
)
def test_parse_layout_bad_text_place_named(text: str, expected: str, position: int) -> None:
    with pytest.raises(ParameterError, match=f"^expected {re.escape(expected)}.* at position {position}, got"):
        parse_layout(text)


SHUFFLE, DEFLATE = Stage(Shuffle(), True), Stage(Deflate(4), True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("-f SHUF -f GZIP=4", Reading("h5repack", (SHUFFLE, DEFLATE), ())),
        (
            "h5repack -f v:SHUF -l v:CHUNK=4x5 in.h5 out.h5",
            Reading("h5repack", (SHUFFLE,), ("v",), (4, 5)),
        ),
        ("-fSHUF --filter=GZIP=4", Reading("h5repack", (SHUFFLE, DEFLATE), ())),
        ("--filter SHUF --layout CHUNK=4", Reading("h5repack", (SHUFFLE,), (), (4,))),
        ("-f 'x y:SHUF'", Reading("h5repack", (SHUFFLE,), ("x y",))),
        ("-f NONE", Reading("h5repack", (), ())),
        ("-l CONTI", Reading("h5repack", ())),
        ("v:GZIP=4", Reading("h5repack", (DEFLATE,), ("v",))),
    ],
)
def test_parse_command_good_text_filters_and_layout(text: str, command: Reading) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-f v:SHUF -f w:GZIP=4", "expected -f and one -l for the same datasets"),
        ("-f v:SHUF -l CHUNK=4", "expected -f and one -l for the same datasets"),
        ("-f NONE -f SHUF", "expected NONE or filters, got both"),
        ("-f 'SHUF", "expected a closing quote (No closing quotation) at position 9"),
        ("-f", "expected an argument after -f at position 3"),
        ("-x SHUF", "expected -f or -l, the options that tamis reads at position 1"),
        ("h5repack in.h5 out.h5", "expected -f or -l and an argument at position 22"),
        ("-f SHUF " * 7, "expected at most 6 filters for h5repack, got 7"),
    ],
)
def test_parse_command_bad_text_refused(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        parse_command(text)


@pytest.mark.parametrize(
    ("chain", "objects", "said"),
    [
        (
            [Stage(Deflate(4), False)],
            (),
            "expected deflate(4) to be optional, got required: h5repack, for HDF5's",
        ),
        ([Stage(Fletcher32(), True)], (), "expected fletcher32 to be required, got optional"),
        ([SHUFFLE] * 7, (), "expected at most 6 filters, the limit of h5repack, got 7"),
        ([SHUFFLE], ("a:b",), "expected names without ':' and ',', which h5repack cannot take, got 'a:b'"),
        ([SHUFFLE], ("a,b",), "expected names without ':' and ',', which h5repack cannot take, got 'a,b'"),
        ([Stage(UnknownFilter(300, (1,) * 21), True)], (), "expected at most 20 parameters"),
        ([Stage(UnknownFilter(0), True)], (), "expected a filter that h5repack can set up, got filter(0)"),
    ],
)
def test_filter_arguments_what_h5repack_cannot_do_refused(
    chain: list[Stage], objects: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(said)):
        filter_arguments(chain, objects)


def sayable(chain: list[Stage]) -> bool:
    return len(chain) <= 6 and all(
        (each.filter.id > 6 or each.optional == each.filter.optional)
        and len(each.filter.requested) <= 20
        and not (each.filter.id == 6 and each.filter.requested[1] >> 31)  # SOFF takes no sign
        for each in chain
    )


@given(data=st.data())
def test_command_text_any_pipeline_read_again(
    data: st.DataObject, chains: st.SearchStrategy[list[Stage]], names: st.SearchStrategy[str]
) -> None:
    chain = data.draw(chains)
    objects = tuple(data.draw(st.lists(names, max_size=3)))
    chunks = data.draw(st.none() | st.lists(st.integers(1, 1 << 31), min_size=1, max_size=4))
    try:
        text = command_text(chain, objects, chunks)
    except ParameterError:
        assert not sayable(chain)
        return
    found = parse_command(text)
    assert (found.names, found.chain) == (objects, tuple(chain))
    assert found.chunk_shape == (tuple(chunks) if chunks else None)
    arguments = [f"-f{each}" for each in filter_arguments(chain, objects)]
    assert shlex.split(text)[1::2] == [each[2:] for each in arguments] + (
        [layout_argument(chunks, objects)] if chunks else []
    )


PIECES = ("GZIP=", "SHUF", "NONE", "SZIP=", "SOFF=", "UD=", "v:", ",", "NN", "DS", "CHUNK=", "x", "-f ", "-l ", "'")


@given(
    st.lists(st.sampled_from(PIECES) | st.integers(-9, 40000).map(str) | st.text(max_size=3), max_size=9).map("".join)
)
def test_parsers_any_text_filters_or_error_with_place(text: str) -> None:
    for parse in (parse_filter, parse_layout, parse_command):
        refusal = ""
        try:
            parse(text)
        except ParameterError as error:
            refusal = str(error)
        assert not refusal or refusal.endswith("^") or repr(text) in refusal
