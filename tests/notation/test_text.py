"""tamis text: what it takes, and the place it names where it does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Deflate, Fletcher32, ParameterError, Pipeline, Shuffle, UnknownFilter, Zfp
from tamis.filters import Filter, Stage
from tamis.notation.text import parse_filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("zfp(accuracy=0.1)", [Zfp(accuracy=0.1)]),
        ("zfp(accuracy=1e-3)", [Zfp(accuracy=1e-3)]),
        ("zfp(accuracy=.5)", [Zfp(accuracy=0.5)]),
        ("zfp(accuracy=1E+5)", [Zfp(accuracy=1e5)]),
        ("zfp(rate=+4.5)", [Zfp(rate=4.5)]),
        ("zfp(precision=16)", [Zfp(precision=16)]),
        ("zfp(reversible=true)", [Zfp(reversible=True)]),
        ("zfp(reversible=True)", [Zfp(reversible=True)]),
        ("zfp(reversible=false, rate=8)", [Zfp(rate=8)]),
        ("zfp(minbits=1,maxbits=2000,maxprec=30,minexp=-20)", [Zfp(minbits=1, maxbits=2000, maxprec=30, minexp=-20)]),
        ("shuffle", [Shuffle()]),
        ("shuffle()", [Shuffle()]),
        ("deflate", [Deflate(4)]),
        ("deflate()", [Deflate(4)]),
        ("deflate(9)", [Deflate(9)]),
        ("deflate(level=0)", [Deflate(0)]),
        ("  deflate ( level = 7 )\t|\nfletcher32 ", [Deflate(7), Fletcher32()]),
        ("zfp(rate=8)|shuffle|deflate(4)|fletcher32", [Zfp(rate=8), Shuffle(), Deflate(4), Fletcher32()]),
        ("shuffle|shuffle", [Shuffle(), Shuffle()]),
    ],
)
def test_parse_filters_good_text_filters(text: str, filters: list[Filter]) -> None:
    assert [each.filter for each in parse_filters(text)] == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ('zfp: mode="accuracy", accuracy=1e-3', [Zfp(accuracy=1e-3)]),
        ("zfp: mode=rate, rate=3.5", [Zfp(rate=3.5)]),
        ("zfp: reversible=true", [Zfp(reversible=True)]),
        ("zfp: mode='precision', precision=9 | deflate: level=3", [Zfp(precision=9), Deflate(3)]),
        ("zfp: rate=8 | shuffle | deflate(1)", [Zfp(rate=8), Shuffle(), Deflate(1)]),
        ("deflate: 3", [Deflate(3)]),
        ("gzip(3)|zlib", [Deflate(3), Deflate(4)]),
    ],
)
def test_parse_filters_key_value_form_of_the_rfc(text: str, filters: list[Filter]) -> None:
    assert [each.filter for each in parse_filters(text)] == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("filter(400)", [UnknownFilter(400)]),
        ("filter(400,1,2)|deflate", [UnknownFilter(400, (1, 2)), Deflate(4)]),
        ("filter( 400 , -1 )", [UnknownFilter(400, (0xFFFFFFFF,))]),
        ("filter(1,6)", [Deflate(6)]),
        ("filter(32013,3,0,0,1074790400)", [Zfp(accuracy=4)]),
    ],
)
def test_parse_filters_by_number_typed_where_known(text: str, filters: list[Filter]) -> None:
    assert [each.filter for each in parse_filters(text)] == filters


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("deflate", [True]),
        ("deflate!", [False]),
        ("fletcher32", [False]),
        ("fletcher32?", [True]),
        ("zfp(rate=8)!|shuffle?|filter(400,1)! | fletcher32 !", [False, True, False, False]),
        ("zfp: rate=8 !", [False]),
    ],
)
def test_parse_pipeline_flags_required_or_optional(text: str, flags: list[bool]) -> None:
    pipeline = Pipeline.parse(text)
    assert [stage.optional for stage in pipeline.stages] == flags
    assert Pipeline.parse(str(pipeline)) == pipeline


A_FILTER = r"a filter \(.*deflate, .*shuffle, .*zfp.*\)"


@pytest.mark.parametrize(
    ("text", "expected", "position", "found"),
    [
        ("", A_FILTER, 1, "the end"),
        ("   ", A_FILTER, 4, "the end"),
        ("|", A_FILTER, 1, r"'\|'"),
        ("shuffle|", A_FILTER, 9, "the end"),
        ("shuffle||deflate", A_FILTER, 9, r"'\|'"),
        ("lzma(4)", A_FILTER, 1, r"'lzma\(4\)'"),
        ("shuffle|Zfp(rate=8)", A_FILTER, 9, r"'Zfp\(rate=8\)'"),
        ("4", A_FILTER, 1, "'4'"),
        ("shuffle deflate", r"'\|' or the end", 9, "'deflate'"),
        ("deflate(4)deflate", r"'\|' or the end", 11, "'deflate'"),
        ("deflate(4))", r"'\|' or the end", 11, r"'\)'"),
        ("deflate(4", r"',' or '\)'", 10, "the end"),
        ("deflate(4 5)", r"',' or '\)'", 11, r"'5\)'"),
        ("deflate(4|shuffle", r"',' or '\)'", 10, r"'\|'"),
        ("deflate(1_000)", r"',' or '\)'", 10, r"'_000\)'"),
        ("deflate(4, 5)", r"the name of a parameter.* and '='", 12, r"'5\)'"),
        ("deflate(,4)", "a number, a word, true or false", 9, r"',4\)'"),
        ("zfp(8)", r"the name of a parameter.* and '='", 5, r"'8\)'"),
        ("zfp(", r"the name of a parameter.* and '='", 5, "the end"),
        ("zfp(accuracy)", "'=' and a value after accuracy", 13, r"'\)'"),
        ("zfp(accuracy 0.1)", "'=' and a value after accuracy", 14, r"'0.1\)'"),
        ("zfp(accuracy=)", "a number, a word, true or false", 14, r"'\)'"),
        ("zfp(accuracy=0.1.2)", "a number", 14, r"'0.1.2\)'"),
        ("zfp(accuracy=1e)", "a number", 14, r"'1e\)'"),
        ("zfp(rate=0x8)", "a number", 10, r"'0x8\)'"),
        ("deflate(4LU)", "a number", 9, r"'4LU\)'"),
        ("shuffle|zfp(acc=0.1)", "one of the parameters rate, precision, accuracy, .* of zfp", 13, r"'acc=0.1\)'"),
        ("deflate(lev=4)", "one of the parameters level of deflate", 9, r"'lev=4\)'"),
        ("shuffle(4)", r"the name of a parameter.* and '='", 9, r"'4\)'"),
        ("fletcher32(level=4)", "no parameters of fletcher32", 12, r"'level=4\)'"),
        ("#", "a filter name, a number or one of", 1, "'#'"),
        ("zfp(accuracy='0.1)", "a filter name, a number or one of", 14, ".*"),
        ("filter", r"'\(' and the number of a filter", 7, "the end"),
        ("filter()", "a whole number of 32 bits", 8, r"'\)'"),
        ("filter(400,1.5)", "a whole number of 32 bits", 12, r"'1.5\)'"),
        ("filter(400,4294967296)", "a whole number of 32 bits", 12, ".*"),
        ("filter(400 1)", r"',' or '\)'", 12, r"'1\)'"),
        ("deflate!!", r"'\|' or the end", 9, "'!'"),
        ("zfp:", r"the name of a parameter.* and '='", 5, "the end"),
        ("shuffle → deflate", "a filter name, a number or one of", 9, "'→ deflate'"),
    ],
)
def test_parse_filters_bad_text_refused_with_place(text: str, expected: str, position: int, found: str) -> None:
    with pytest.raises(ParameterError, match=f"expected {expected}") as caught:
        parse_filters(text)
    head, shown, caret = str(caught.value).splitlines() if text.strip() else (*str(caught.value).split("\n"), "")[:3]
    assert caught.match(f"at position {position}, got {found}:")
    assert head.startswith("expected ")
    assert shown == f"  {text}"
    assert caret == " " * (position + 1) + "^"


def test_parse_filters_parameter_twice_refused() -> None:
    with pytest.raises(ParameterError, match="expected parameters of deflate once each at position"):
        parse_filters("deflate(level=4, level=5)")
    with pytest.raises(ParameterError, match="expected parameters of deflate once each at position"):
        parse_filters("deflate(4, level=5)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zfp", "expected exactly one ZFP mode, got none"),
        ("zfp()", "expected exactly one ZFP mode, got none"),
        ("zfp(rate=8,accuracy=1)", "expected exactly one ZFP mode, got rate and accuracy"),
        ("zfp(accuracy=0)", "use reversible=True"),
        ("zfp(accuracy=-1e-3)", "expected a finite accuracy above 0, got accuracy=-0.001"),
        ("zfp(accuracy=nan)", "expected a finite accuracy above 0, got accuracy='nan'"),
        ("zfp(accuracy='0.1')", "expected a finite accuracy above 0, got accuracy='0.1'"),
        ("zfp(mode=rate, accuracy=1)", "expected the parameters of mode 'rate', got those of mode 'accuracy'"),
        ("filter(1,10)", r"filter 1 \(deflate\): expected level of 0 to 9, got level=10"),
        ("filter(65536)", "expected a filter id of 0 to 65535, got 65536"),
        (f"zfp(accuracy={10**400})", "expected a finite accuracy above 0, got accuracy=1000"),
        ("zfp(accuracy=1e999)", "expected a finite accuracy above 0, got accuracy=inf"),
        ("zfp(rate=true)", "expected a finite rate above 0 bits per value, got rate=True"),
        ("zfp(precision=16.5)", "expected a precision of 1 to 64 bit planes, got precision=16.5"),
        ("zfp(minbits=1.5)", "expected whole numbers in expert mode"),
        ("deflate(10)", "expected level of 0 to 9, got level=10"),
        ("deflate(true)", "expected level of 0 to 9, got level=True"),
        ("deflate(4.0)", "expected level of 0 to 9, got level=4.0"),
    ],
)
def test_parse_filters_bad_parameter_refused_by_filter(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        parse_filters(text)
    assert str(caught.value).endswith(f":\n  {text}\n  ^" if len(text) < 200 else "…\n   ^")


POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@st.composite
def experts(draw: st.DrawFn) -> Zfp:
    minbits = draw(st.integers(0, 32768))
    return Zfp(
        minbits=minbits,
        maxbits=draw(st.integers(max(minbits, 1), (1 << 32) - 1)),
        maxprec=draw(st.integers(1, 64)),
        minexp=draw(st.integers(-(1 << 31), (1 << 31) - 1)),
    )


ZFPS = st.one_of(
    POSITIVE.map(lambda rate: Zfp(rate=rate)),
    st.integers(1, 64).map(lambda precision: Zfp(precision=precision)),
    POSITIVE.map(lambda accuracy: Zfp(accuracy=accuracy)),
    st.integers(1, 10**30).map(lambda accuracy: Zfp(accuracy=accuracy)),
    st.just(Zfp(reversible=True)),
    experts(),
)
UNKNOWN = st.builds(UnknownFilter, st.integers(40000, 65535), st.lists(st.integers(0, (1 << 32) - 1)).map(tuple))
LOSSLESS = st.one_of(st.just(Shuffle()), st.just(Fletcher32()), st.integers(0, 9).map(Deflate), UNKNOWN)
PIPELINES = (
    st.tuples(
        st.lists(st.builds(Stage, ZFPS, st.booleans()), max_size=1),
        st.lists(st.builds(Stage, LOSSLESS, st.booleans()), max_size=4),
    )
    .filter(any)
    .map(lambda parts: Pipeline((*parts[0], *parts[1])))
)


@given(PIPELINES)
def test_parse_text_of_any_pipeline_equal(pipeline: Pipeline) -> None:
    assert Pipeline.parse(str(pipeline)) == pipeline
    assert eval(repr(pipeline), {"Pipeline": Pipeline}) == pipeline
    assert str(Pipeline.parse(str(pipeline))) == str(pipeline)


@given(st.text("zfpdeflat(|)=,. 0123456789e-+#_:!?\"'", max_size=30) | st.text(max_size=20))
def test_parse_filters_any_text_filters_or_parameter_error(text: str) -> None:
    try:
        filters = [each.filter for each in parse_filters(text)]
    except ParameterError:
        return
    assert filters
    assert all(not isinstance(one, Zfp) or math.isfinite(one.requested[0]) for one in filters)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("bitround(keepbits=7)|shuffle|deflate(4)", "bitround(keepbits=7)|shuffle|deflate(4)"),
        ("bitround(7)|gzip(4)", "bitround(keepbits=7)|deflate(4)"),
        ("granular: digits=3 | zfp(reversible=true)", "granular(digits=3)|zfp(reversible=True)"),
        ("bitgroom(3)", "bitgroom(digits=3)"),
    ],
)
def test_text_of_a_rounding_read_and_written(text: str, written: str) -> None:
    pipeline = Pipeline.parse(text)
    assert str(pipeline) == written
    assert Pipeline.parse(written) == pipeline != pipeline.without_rounding
    assert pipeline.rounding is not None
    assert hash(Pipeline([pipeline.rounding, *pipeline.stages])) == hash(pipeline)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shuffle|bitround(7)|deflate", "expected bitround.* before all filters, got shuffle.* write bitround"),
        ("bitround(7)|granular(3)", "expected one rounding, got bitround.* and granular"),
        ("bitround(7)|zfp(accuracy=0.1)", "expected lossless filters after bitround.*, got zfp"),
        ("bitround(7)|zfp(rate=8)", "expected lossless filters after"),
        ("bitround(7)|scaleoffset(decimal,2)", "expected lossless filters after"),
        ("bitround(7)?|deflate", "expected no flag, .* at position 12, got '[?]"),
        ("bitround", "expected bitround with keepbits at position 1"),
        ("bitround(digits=3)", "expected one of the parameters keepbits of bitround at position 10"),
        ("bitround(0)", "expected keepbits of 1 to 52, got keepbits=0"),
        ("bitrond(7)", "did you mean bitround"),
    ],
)
def test_text_of_a_rounding_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Pipeline.parse(text)


def test_pipeline_with_a_rounding_does_not_encode_alone() -> None:
    pipeline = Pipeline.parse("bitround(7)|deflate(4)")
    assert pipeline.error_bound is None
    with pytest.raises(ParameterError, match="expected filters alone, got bitround"):
        pipeline.encode(np.ones(8, "f4"))
    assert pipeline.without_rounding.encode(np.ones(8, "f4"))
