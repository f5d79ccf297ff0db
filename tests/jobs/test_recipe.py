"""Names, patterns and values of recipes."""

from __future__ import annotations

from functools import partial

import pytest

from tamis import Deflate, FileError, ParameterError, Pipeline, Shuffle, Zfp
from tamis.jobs.recipes import assigned, has_pattern_signs, split_recipe
from tamis.jobs.recipes.names import matching, parse_chunks, split_filters
from tamis.pipeline import as_pipeline

PATHS = {path: path for path in ("/TS", "/grp/T", "/grp/sub/T", "/lat", "/x1", "/x[1]")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TS:zfp(accuracy=0.1)", ("TS", "zfp(accuracy=0.1)")),
        ("TS:shuffle|deflate(4)", ("TS", "shuffle|deflate(4)")),
        ("a:b:zfp(rate=8)", ("a:b", "zfp(rate=8)")),
        ("/grp/*:shuffle|deflate", ("/grp/*", "shuffle|deflate")),
        ("sp ace:deflate", ("sp ace", "deflate")),
        ("x[1]:deflate", ("x[1]", "deflate")),
        ("T(K):zfp(rate=8)", ("T(K)", "zfp(rate=8)")),
        ("a:b:4x96x144", ("a:b", "4x96x144")),
        ("T(K):4x96", ("T(K)", "4x96")),
    ],
)
def test_split_recipe_name_before_last_colon_of_the_filters(text: str, expected: tuple[str, str]) -> None:
    assert split_recipe(text) == expected


@pytest.mark.parametrize("text", ["", "TS", ":", ":zfp(rate=8)", "TS:", "TS zfp(rate=8)"])
def test_split_recipe_without_name_or_value_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"expected NAME:.* such as 'TS:.*', got ") as refused:
        split_recipe(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(("text", "shape"), [("4x96x144", (4, 96, 144)), ("7", (7,)), ("1X2", (1, 2))])
def test_parse_chunks_numbers_with_x_read(text: str, shape: tuple[int, ...]) -> None:
    assert parse_chunks(text) == shape


@pytest.mark.parametrize("text", ["", "x", "4x", "0x4", "-1x4", "4,96", "4.5x2", "4x 96", "axb", "4×96", "²x1"])
def test_parse_chunks_other_text_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="expected a chunk shape such as 4x96x144, got ") as refused:
        parse_chunks(text)
    assert repr(text) in str(refused.value)


def test_as_pipeline_filter_text_and_pipeline_same() -> None:
    made = Pipeline((Zfp(accuracy=0.1),))
    assert as_pipeline(made) is made
    assert as_pipeline(Zfp(accuracy=0.1)) == made
    assert as_pipeline("zfp(accuracy=0.1)") == made
    assert as_pipeline("shuffle|deflate(4)") == Pipeline((Shuffle(), Deflate(4)))


@pytest.mark.parametrize("value", [5, None, {"compression": 32013}, ["shuffle"]], ids=repr)
def test_as_pipeline_other_object_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="expected "):
        as_pipeline(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["*", "T?", "[ab]"])
def test_has_pattern_signs_of_patterns_true(name: str) -> None:
    assert has_pattern_signs(name)
    assert not has_pattern_signs("/grp/TS")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("TS", ["/TS"]),
        ("/TS", ["/TS"]),
        ("grp/T", ["/grp/T"]),
        ("*", [*PATHS]),
        ("grp/*", ["/grp/T", "/grp/sub/T"]),
        ("*/T", ["/grp/T", "/grp/sub/T"]),
        ("?S", ["/TS"]),
        ("l[ao]t", ["/lat"]),
    ],
)
def test_matching_name_or_pattern_finds(name: str, found: list[str]) -> None:
    assert [*matching(name, PATHS).labels] == found


def test_matching_exact_name_with_pattern_signs_means_only_itself() -> None:
    """Otherwise a lossy filter would run over a dataset that nobody named."""
    assert matching("x[1]", PATHS) == ({"/x[1]": "/x[1]"}, True)


NEAREST = {"ts": "TS", "T": "T", "XX*": "", "/": "", "": "", "grp": "/grp/T"}


@pytest.mark.parametrize("name", NEAREST)
def test_matching_nothing_refused_with_what_is_there_and_the_nearest(name: str) -> None:
    with pytest.raises(FileError) as refused:
        matching(name, PATHS)
    question = f" (did you mean {NEAREST[name]}?)" if NEAREST[name] else ""
    known = "/TS, /grp/T, /grp/sub/T, /lat, /x1, /x[1]"
    assert str(refused.value) == f"expected a dataset named {name!r}, found only {known}{question}"


def test_matching_nothing_among_many_shortens_the_list() -> None:
    with pytest.raises(FileError, match=r"found only /v00, .*, /v11, …$"):
        matching("w", {f"/v{i:02}": f"/v{i:02}" for i in range(50)})


def test_matching_in_file_without_datasets_says_so() -> None:
    with pytest.raises(FileError, match=r"expected a dataset named 'TS', found .*no datasets"):
        matching("TS", {})


@pytest.mark.parametrize(
    ("text", "name", "filters"),
    [
        ("TS:zfp(accuracy=0.1)", "TS", "zfp(accuracy=0.1)"),
        ("TS:zfp: accuracy=0.1", "TS", "zfp(accuracy=0.1)"),
        ("TS:deflate:4", "TS", "deflate(4)"),
        ("a:b:zfp: mode=rate, rate=8 | deflate: 4", "a:b", "zfp(rate=8)|deflate(4)"),
        ("shuffle:shuffle", "shuffle", "shuffle"),
    ],
)
def test_split_filters_name_before_the_last_colon_that_leaves_filters(text: str, name: str, filters: str) -> None:
    assert split_filters(text) == (name, Pipeline.parse(filters))


@pytest.mark.parametrize(
    ("text", "said"),
    [("TS:zfpp(1)", "expected a filter"), ("TS", "expected NAME:FILTERS"), ("a:b:deflate(99)", "level of 0 to 9")],
)
def test_split_filters_none_there_refused(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        split_filters(text)


def test_assigned_two_names_of_one_dataset_refused_unless_alike() -> None:
    meant = partial(matching, paths={path: path for path in ("/TS", "/PS")})
    assert assigned({"/TS": "a", "*S": "b", "TS": "a"}, meant) == [
        ("/TS", "/TS", "/TS", "a", True),
        ("TS", "/TS", "/TS", "a", True),
        ("*S", "/TS", "/TS", "b", False),
        ("*S", "/PS", "/PS", "b", False),
    ]
    with pytest.raises(ParameterError, match="/TS: 'TS' and '/TS' name the same dataset, with 4x4 and 2x8: leave"):
        assigned({"TS": (4, 4), "/TS": (2, 8)}, meant)
