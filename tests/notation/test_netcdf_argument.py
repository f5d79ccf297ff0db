"""Arguments of nccopy's -F, parsed and printed; and given to nccopy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import h5py
import needs
import netCDF4
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.filters import Request
from tamis.notation import ALL, Compat, NccopyArgument, argument_text, parse_argument

DEFLATE = Request(1, (5,))
BZIP2 = Request(307, (9,))
FILTERED, UNFILTERED, NOTHING = (DEFLATE,), None, ()

# Text; what nccopy takes it for; what the strict reading does (None: refused).
ARGUMENTS: list[tuple[str, NccopyArgument | None, NccopyArgument | str | None]] = [
    ("none", NccopyArgument((ALL,), UNFILTERED), "same"),
    ("*,none", NccopyArgument((ALL,), UNFILTERED), "same"),
    ("*,NONE", NccopyArgument((ALL,), UNFILTERED), "same"),
    ("v1,None", NccopyArgument(("/v1",), UNFILTERED), "same"),
    ("NONE", NccopyArgument(("/NONE",), NOTHING), None),
    ("none,1,5", NccopyArgument(("/none",), FILTERED), "same"),
    ("v1,1,5", NccopyArgument(("/v1",), FILTERED), "same"),
    ("/v1,1,5", NccopyArgument(("/v1",), FILTERED), "same"),
    ("g/w,1,5", NccopyArgument(("/g/w",), FILTERED), "same"),
    ("*,1,5", NccopyArgument((ALL,), FILTERED), "same"),
    ("v*,1,5", NccopyArgument(("/v*",), FILTERED), "same"),
    (r"\*,1,5", NccopyArgument(("/*",), FILTERED), "same"),
    ("v1&/g/w,1,5|307,9", NccopyArgument(("/v1", "/g/w"), (DEFLATE, BZIP2)), "same"),
    (r"a\,b&c\&d\ e\\,1,5", NccopyArgument(("/a,b", "/c&d e\\"), FILTERED), "same"),
    (r"\1st,1,5", NccopyArgument(("/1st",), FILTERED), "same"),
    ("a\\\nb,1,5", NccopyArgument(("/a\nb",), FILTERED), "same"),
    ("v1|v2,1,5", NccopyArgument(("/v1|v2",), FILTERED), "same"),
    ("v1 & v2 , 1, 5", NccopyArgument(("/v1 ", "/ v2 "), FILTERED), NccopyArgument(("/v1", "/v2"), FILTERED)),
    (r"a\ ,1,5", NccopyArgument(("/a ",), FILTERED), "same"),
    (" none ", NccopyArgument(("/ none ",), NOTHING), NccopyArgument((ALL,), UNFILTERED)),
    ("v1, none", None, NccopyArgument(("/v1",), UNFILTERED)),
    ("*&v1,1,5", NccopyArgument((ALL, "/v1"), FILTERED), None),
    ("&v1,1,5", NccopyArgument(("/v1",), FILTERED), None),
    ("v1&,1,5", NccopyArgument(("/v1",), FILTERED), None),
    ("&,1,5", NccopyArgument((), FILTERED), None),
    ("/,1,5", NccopyArgument(("/",), FILTERED), None),
    (",1,5", None, None),
    ("", NccopyArgument((), NOTHING), None),
    ("v1", NccopyArgument(("/v1",), NOTHING), None),
    ("v1,", NccopyArgument(("/v1",), NOTHING), None),
    ("v1,1,5|", NccopyArgument(("/v1",), FILTERED), None),
    ("v1,none|1,5", None, None),
    ("v1,|1,5", None, None),
    ("v1,1,", None, None),
    ("v1\\", None, None),
    (r"v1\,1,5", NccopyArgument(("/v1,1",), (Request(5, ()),)), "same"),
]  # fmt: skip


def check(text: str, compat: Compat | None, argument: NccopyArgument | None) -> None:
    if argument is None:
        with pytest.raises(ParameterError, match=r"^expected .* at position [0-9]+, got "):
            parse_argument(text, compat=compat)
    else:
        assert parse_argument(text, compat=compat) == argument


@pytest.mark.parametrize(("text", "theirs", "strict"), ARGUMENTS)
def test_parse_argument_golden_table(
    text: str, theirs: NccopyArgument | None, strict: NccopyArgument | str | None
) -> None:
    wanted = theirs if isinstance(strict, str) else strict
    check(text, "netcdf-c", theirs)
    check(text, None, wanted)
    check(text, "doc", wanted)


def test_parse_argument_numbers_read_as_compat_says() -> None:
    assert parse_argument("v,307,-17b", compat="netcdf-c").chain == (Request(307, (239,)),)
    assert parse_argument("v,307,-17b", compat="doc").chain == (Request(307, (4294967279,)),)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("v1", "expected ',' and filters, or none alone at position 3, got the end"),
        ("v1&*,1", r"expected '\*' alone or names without it at position 1, got 'v1&\*,1'"),
        ("v1& ,1", "expected a variable's name at position 4, got ' ,1'"),
        ("v1,307,1.5", "expected 1.5f .* at position 8, got '1.5'"),
        ("v1,307,9\\", "expected a number, .* at position 8, got"),
        ("v1\\", r"expected a character after '\\' at position 3, got"),
    ],
)
def test_parse_argument_refused_says_place_and_what_to_write(text: str, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        parse_argument(text)


def test_argument_text_escapes_and_paths() -> None:
    assert argument_text("TS", [DEFLATE, BZIP2]) == "TS,1,5|307,9"
    assert argument_text(ALL, [DEFLATE]) == argument_text([ALL], [DEFLATE]) == "*,1,5"
    assert argument_text(["/g 1/1 a", "/*", "b"], []) == r"/g 1/\1\ a&\*&b,none"
    assert argument_text("v", [Request(32013, (3, 0, *(3539053052, 1062232653)))], doubles={0: {2}}) == (
        "v,32013,3,0,0.001d"
    )


@pytest.mark.parametrize(
    ("variables", "match"),
    [
        ([], "expected at least one variable, got none"),
        (["/g/"], "expected the path of a variable, got '/g/'"),
        (["/"], "expected the path of a variable, got '/'"),
        (["a\0"], "expected the path of a variable, got"),
        (["/a,b/v"], "expected groups without .* got '/a,b/v': nccopy has escapes for variables' names only"),
        (["/a\\b/v"], "expected groups without"),
    ],
)
def test_argument_text_what_nccopy_cannot_name_refused(variables: list[str], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        argument_text(variables, [DEFLATE])


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1).filter(
    lambda name: name.strip(" \t\r\n") == name
)
chains = st.lists(
    st.builds(Request, st.integers(1, 65535), st.lists(st.integers(0, 4294967295), max_size=3).map(tuple)), max_size=3
)


@pytest.mark.parametrize("compat", [None, "doc", "netcdf-c"])
@given(names=st.lists(names, min_size=1, max_size=3), chain=chains)
def test_argument_text_read_back_same_in_every_reading(
    compat: Compat | None, names: list[str], chain: list[Request]
) -> None:
    paths = [f"/g/{name}" if place else f"/{name}" for place, name in enumerate(names)]
    parsed = parse_argument(argument_text(paths, chain), compat=compat)
    assert parsed == NccopyArgument(tuple(paths), tuple(chain) or None)


NAMES = [
    "v",
    "other",
    "a b",
    "a,b",
    "a&b",
    "x*y",
    "w|z",
    "1st",
    "größe",
    "a(1)",
    "back\\slash",
    "none",
    "g/v",
    "g h/1 b",
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        for name in NAMES:
            group, _, variable = name.rpartition("/")
            (file.createGroup(group) if group else file).createVariable(variable, "f4", ("x",), chunksizes=(4,))[:] = 1
    return path


def filtered(source: Path, *arguments: str) -> dict[str, int | None]:
    """Deflate levels that nccopy gave the variables."""
    needs.need("nccopy")
    target = source.with_name("out.nc")
    options = [word for argument in arguments for word in ("-F", argument)]
    subprocess.run(["nccopy", "-M0", *options, source, target], check=True, capture_output=True)
    with h5py.File(target) as file:
        return {name: file[name].compression_opts for name in NAMES}


@pytest.mark.peer
def test_argument_text_each_name_is_the_one_that_nccopy_filters(source: Path) -> None:
    for level, name in enumerate(NAMES):
        argument = argument_text(name, [Request(1, (1 + level % 9,))])
        expected = dict.fromkeys(NAMES) | {name: 1 + level % 9}
        assert filtered(source, argument) == expected, argument


@pytest.mark.peer
def test_argument_text_several_names_all_and_none_as_nccopy_takes_them(source: Path) -> None:
    some = ["a b", "a&b", "g h/1 b"]
    assert filtered(source, argument_text(some, [DEFLATE])) == {name: 5 if name in some else None for name in NAMES}
    everywhere = argument_text(ALL, [DEFLATE])
    assert filtered(source, everywhere) == dict.fromkeys(NAMES, 5)
    taken = filtered(source, everywhere, argument_text(some, None))
    assert taken == {name: None if name in some else 5 for name in NAMES}


@pytest.mark.check
@pytest.mark.peer
def test_parse_argument_netcdf_c_takes_and_refuses_as_nccopy(source: Path) -> None:
    for text, theirs, _ in ARGUMENTS:
        if text in ("v1\\", "v1,1,"):
            continue  # nccopy reads on beyond the text: its answer is by chance
        if theirs is None:
            with pytest.raises(subprocess.CalledProcessError):
                filtered(source, text)
        else:
            filtered(source, text)
