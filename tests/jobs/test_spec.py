"""tamis spec: any notation in, every notation out."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError, Pipeline, Zfp, spec
from tamis.cli import main
from tamis.filters import ChunkType, Request
from tamis.jobs.spec import FilterSpec, signed
from tamis.notation import argument_text
from tamis.notation.detect import NOTATIONS, notation_of

READABLE = {
    "tamis": "tamis",
    "netcdf": "netcdf",
    "nccopy": "netcdf",
    "h5repack": "h5repack",
    "h5py": "h5py",
    "cdl": "cdl",
    "zarr2": "zarr",
    "zarr3": "zarr",
    "nczarr": "zarr",
}


@pytest.mark.parametrize(
    ("text", "notation", "pipeline"),
    [
        ("zfp(accuracy=0.1)|shuffle", "tamis", "zfp(accuracy=0.1)|shuffle"),
        ('zfp: mode="accuracy", accuracy=0.1', "tamis", "zfp(accuracy=0.1)"),
        ("filter(300,1,2)", "tamis", "filter(300,1,2)"),
        ("none", "tamis", "none"),
        ("32013,3,0,0.1d", "netcdf", "zfp(accuracy=0.1)"),
        (" 3|2|1,4", "netcdf", "fletcher32|shuffle|deflate(4)"),
        ("1,4|2", "netcdf", "shuffle|deflate(4)"),
        ("TS&/g/PS,32013,3,0,0.1d", "netcdf", "zfp(accuracy=0.1)"),
        ("*,1,4", "netcdf", "deflate(4)"),
        (r"a\(b\)\:c,1,4", "netcdf", "deflate(4)"),
        ("TS,none", "netcdf", "none"),
        ("-F 'TS,1,4|300'", "netcdf", "deflate(4)|filter(300)"),
        ("nccopy -F '*,none' in.nc out.nc", "netcdf", "none"),
        ("-FTS,1,4", "netcdf", "deflate(4)"),
        ("UD=32013,1,4,1,0,0,1074790400", "h5repack", "zfp(rate=4)"),
        ("v:GZIP=6", "h5repack", "deflate(6)"),
        ("-f SHUF -f GZIP=6", "h5repack", "shuffle|deflate(6)"),
        ("h5repack -f FLET a.h5 b.h5", "h5repack", "fletcher32"),
        ("SHUF", "h5repack", "shuffle"),
        ("compression='gzip', compression_opts=4, shuffle=True", "h5py", "shuffle|deflate(4)"),
        ("{'compression': 32013, 'compression_opts': (5,)}", "h5py", "zfp(reversible=true)"),
        ('{"compression": "gzip"}', "h5py", "deflate(4)"),
        ("dcpl.set_filter(1, 0, (4,))", "h5py", "deflate(4)!"),
        ('TS:_Filter = "32013,3,0,0.1d" ;', "cdl", "zfp(accuracy=0.1)"),
        ('TS:units = "K" ; TS:_DeflateLevel = 3 ;', "cdl", "deflate(3)"),
        ('{"filters": null, "compressor": {"id": "zlib", "level": 3}}', "zarr", "deflate(3)"),
        ('[{"id": "zlib", "level": 3}]', "zarr", "deflate(3)"),
        ('{"id": "zlib", "level": 3}', "zarr", "deflate(3)"),
        ('[{"name": "zfp", "configuration": {"mode": "reversible"}}]', "zarr", "zfp(reversible=true)"),
    ],
)
def test_spec_text_read_in_its_notation(text: str, notation: str, pipeline: str) -> None:
    found = spec(text)
    assert (found.read_as, str(found.pipeline)) == (notation, str(Pipeline.parse(pipeline)))
    assert str(spec(text, notation=notation).pipeline) == str(found.pipeline)


@pytest.mark.parametrize(
    ("pipeline", "notation", "text"),
    [
        ("zfp(accuracy=0.1)", "netcdf", "32013,3,0,0.1d"),
        ("zfp(accuracy=0.1)", "nccopy", "-F TS,32013,3,0,0.1d -M 0 -c TS:4,96,144"),
        ("zfp(accuracy=0.1)", "h5repack", "-f TS:UD=32013,1,4,3,0,2576980378,1069128089 -l TS:CHUNK=4x96x144"),
        (
            "zfp(accuracy=0.1)",
            "h5py",
            "chunks=(4, 96, 144), compression=32013, compression_opts=(3, 0, 2576980378, 1069128089)",
        ),
        (
            "zfp(accuracy=0.1)",
            "cdl",
            'TS:_Storage = "chunked" ;\nTS:_ChunkSizes = 4, 96, 144 ;\nTS:_Filter = "32013,3,0,0.1d" ;',
        ),
        ("zfp(accuracy=0.1)", "tamis", "zfp(accuracy=0.1)"),
        ("zfp(rate=4)|deflate(4)", "netcdf", "32013,1,0,4.0d|1,4"),
        ("zfp(precision=16)", "netcdf", "32013,2,0,16"),
        ("none", "h5repack", "-f TS:NONE -l TS:CHUNK=4x96x144"),
    ],
)
def test_spec_notation_ready_to_paste(pipeline: str, notation: str, text: str) -> None:
    assert spec(pipeline, variable="TS", chunks=(4, 96, 144))[notation] == text


@pytest.mark.parametrize(
    ("pipeline", "notation", "said"),
    [
        ("zfp(rate=8)|fletcher32", "netcdf", r"netCDF would make it fletcher32\|zfp"),
        ("zfp(rate=8)|fletcher32", "cdl", r"netCDF would make it fletcher32\|zfp"),
        ("deflate(4)!", "h5repack", "h5repack, for HDF5's own filters, cannot express flags"),
        ("filter(300)", "zarr2", "Zarr has none"),
        ("shuffle", "zarr3", "say f4"),
        ("none", "cdl", "CDL cannot express that"),
        ("none", "h5py", "h5py has no keywords for that"),
        (
            "shuffle",
            "hdf4",
            "expected one of the notations tamis, netcdf, nccopy, h5repack, h5py, cdl, zarr2, zarr3",
        ),
    ],
)
def test_spec_notation_that_cannot_say_it_says_why(pipeline: str, notation: str, said: str) -> None:
    found = spec(pipeline)
    with pytest.raises(ParameterError, match=said):
        found[notation]
    if notation in found.notations:
        assert f"{notation}: not possible: " in str(found)
        assert json.loads(found.to_json())["notations"][notation]["text"] is None


def test_spec_h5py_without_keywords_gives_code() -> None:
    assert spec("shuffle|fletcher32", chunks=(4, 5))["h5py"] == "chunks=(4, 5), shuffle=True, fletcher32=True"
    text = spec("fletcher32|shuffle", chunks=(4, 5), variable="TS")["h5py"]
    assert text.splitlines()[2:] == [
        "dcpl.set_chunk((4, 5))",
        "dcpl.set_filter(3, 0, ())",
        "dcpl.set_filter(2, 1, ())",
        "file.create_dataset('TS', data=values, dcpl=dcpl)",
    ]


def test_spec_chunks_and_type_stored_parameters_too() -> None:
    found = spec("zfp(accuracy=0.1)|shuffle", chunks=(4, 96, 144), dtype="f4")
    words = Zfp(accuracy=0.1).stored(ChunkType(np.dtype("f4"), (4, 96, 144)))
    assert [each.stored for each in found.filters] == [words, (4,)]
    assert f"stored: {','.join(map(str, words))}" in str(found)
    assert spec("shuffle", dtype="f4").filters == (FilterSpec(2, "shuffle", True, "shuffle", (), None),)


def test_spec_chunks_and_names_of_the_text_kept() -> None:
    found = spec("-f g/TS:GZIP=4 -l g/TS:CHUNK=4x5")
    assert found["nccopy"] == "-F /g/TS,1,4 -M 0 -c g/TS:4,5"
    assert found["cdl"].startswith('TS:_Storage = "chunked" ;\nTS:_ChunkSizes = 4, 5 ;')
    assert spec(found["nccopy"])["h5repack"] == "-f g/TS:GZIP=4 -l g/TS:CHUNK=4x5"
    assert spec("TS&PS,1,4")["h5repack"] == "-f TS,PS:GZIP=4"


@pytest.mark.parametrize(
    ("pipeline", "chunks", "notation", "note"),
    [
        ("zfp(rate=8)", (4, 8), "netcdf", "netCDF sets flags itself: deflate, shuffle and szip optional"),
        (
            "zfp(rate=8)",
            (4, 8),
            "nccopy",
            "nccopy ignores -F for variables that are deflated in its input; netCDF sets flags",
        ),
        ("deflate(4)", (4, 8), "cdl", ""),
        ("zfp(rate=8)", (4, 8), "zarr2", "gives the same values, not the same bytes"),
        ("zfp(rate=8)", (4, 8), "zarr3", ""),
        ("zfp(rate=8)", (1, 4, 8), "zarr3", "zarr-python has no reshape of its own: readers need tamis"),
    ],
)
def test_spec_note_says_what_a_text_leaves_open(
    pipeline: str, chunks: tuple[int, ...], notation: str, note: str
) -> None:
    found = spec(pipeline, chunks=chunks)
    assert found.notations[notation].note.startswith(note)
    assert bool(found.notations[notation].note) == bool(note)
    assert not note or f"{notation}: ({note}" in str(found)


def test_spec_names_quoted_for_the_shell() -> None:
    found = spec("deflate(4)", variable="a b'c", chunks=(4, 5))
    assert shlex.split(found["h5repack"]) == ["-f", "a b'c:GZIP=4", "-l", "a b'c:CHUNK=4x5"]
    argument = argument_text("a b'c", [Request(1, (4,))])
    assert shlex.split(found["nccopy"]) == ["-F", argument, "-M", "0", "-c", "a b'c:4,5"]


@pytest.mark.parametrize("given", [Pipeline.parse("zfp(rate=8)"), Zfp(rate=8)], ids=["pipeline", "filter"])
def test_spec_pipeline_or_filter_taken(given: Pipeline | Zfp) -> None:
    found = spec(given)
    assert (found.read_as, str(found.pipeline)) == ("", str(Pipeline([Zfp(rate=8)])))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo(rate)", r"(?s)at position 1.*Other notations:\n  cdl: .* at position 1.*\n  netcdf: .*\n  zarr: "),
        ("", r"(?s)at position 1, got the end.*Other notations:"),
        ("?", r"(?s)expected a filter .* at position 1.*Other notations:"),
        ("32013,9", "read as netcdf text: filter 32013 .*expected ZFP parameters"),
        ("307,,9", "read as netcdf text: expected .* at position 5"),
        ("v:GZIP=12", "read as h5repack text: expected a level of 0 to 9 at position 8"),
        ("-F 'x", "read as netcdf text: expected a closing quote"),
        ("-F", "read as netcdf text: expected -F once, with an argument at position 1"),
        ("shuffle=Maybe", "read as h5py text: expected a number, text, .* at position 9"),
        ('{"id": 3}', "read as zarr text: expected an object with id or name"),
        ("v:_Shuffle = 7 ;", "read as cdl text: expected _Shuffle of"),
        ("32013,3,0,0.1d|3", "expected zfp first .*; netCDF runs fletcher32 first and shuffle next, wherever"),
        ('v:_Filter = "300|32013,5" ;', "expected zfp first"),
        ("-f SHUF -f UD=32013,1,1,5", "expected zfp first"),
    ],
)
def test_spec_bad_text_says_how_it_was_read(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        spec(text)


@pytest.mark.parametrize(
    "text", ["zpf(accuracy=0.1)", "TS:zpf(accuracy=0.1)", "*:zpf", "-f '*:zpf(accuracy=0.1)'", "zfpp(rate)"]
)
def test_spec_misspelt_filter_asks_for_the_nearest_and_says_no_more(text: str) -> None:
    with pytest.raises(ParameterError, match=r"\(did you mean zfp\?\) at position 1, got 'zf?pf?p?") as error:
        spec(text)
    assert "ther notations" not in str(error.value)


@pytest.mark.parametrize("text", ["-f '*:zfp(accuracy=0.1)'", "-f *:zfp(accuracy=0.1)", "*:zfp(accuracy=0.1)"])
def test_spec_recipe_of_repack_read_and_pattern_not_given_to_others(text: str) -> None:
    found = spec(text)
    assert (found.read_as, str(found.pipeline)) == ("tamis", "zfp(accuracy=0.1)")
    assert found["h5repack"] == "-f UD=32013,1,4,3,0,2576980378,1069128089"
    assert found["nccopy"] == "-F '*,32013,3,0,0.1d'"
    assert found["cdl"] == 'NAME:_Filter = "32013,3,0,0.1d" ;'
    for name in ("h5repack", "nccopy"):
        assert found.notations[name].note.startswith("for all datasets: '*' is a pattern of tamis repack")
    assert spec("-f 'T S:zfp(accuracy=0.1)|shuffle'")["h5repack"].startswith("-f 'T S:UD=32013")


def test_spec_notation_given_read_so() -> None:
    with pytest.raises(ParameterError, match=r"read as netcdf text: .* at position 8, got the end"):
        spec("shuffle", notation="netcdf")
    known = "expected a notation of cdl, h5dump, h5py, h5repack, netcdf, tamis, zarr, got 'x'"
    with pytest.raises(ParameterError, match=known):
        spec("shuffle", notation="x")


@pytest.mark.parametrize(("compat", "words"), [("netcdf-c", (239,)), ("doc", (4294967279,))])
def test_spec_compat_numbers_of_netcdf_text(compat: str, words: tuple[int, ...]) -> None:
    assert spec("300,-17b", compat=compat).filters[0].requested == words  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="-17b"):
        spec("300,-17b")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"chunks": (4, 0)}, "expected a chunk shape of whole numbers above 0"),
        ({"dtype": "float33"}, "expected a type of values such as f4 or int16, got 'float33'"),
        ({"chunks": (4, 5), "dtype": "i2"}, "int16"),
    ],
)
def test_spec_chunks_and_type_that_cannot_be_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        spec("zfp(rate=8)", **arguments)  # type: ignore[arg-type]


def test_signed_as_h5dump_prints() -> None:
    assert signed((0, 2147483647, 2147483648, 4294967295)) == [0, 2147483647, -2147483648, -1]


PIPELINES = (
    "zfp(accuracy=0.1)", "zfp(rate=8)|shuffle|deflate(4)|fletcher32", "zfp(reversible=true)!|fletcher32", "none",
    "shuffle|deflate(9)|fletcher32", "fletcher32|shuffle|deflate(0)", "deflate(3)!|filter(300,1,4294967295)",
    "filter(300)|filter(300,7)?", "zfp(minbits=1,maxbits=2000,maxprec=30,minexp=-20)|deflate(1)",
)  # fmt: skip


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_spec_every_text_read_again_is_the_same_pipeline(pipeline: str) -> None:
    found = spec(pipeline, variable="TS", chunks=(4, 8), dtype="f4")
    said = 0
    for name, each in found.notations.items():
        if each.problem or (name == "h5py" and not found.filters):
            continue
        again = spec(each.text)
        flagless = name in ("netcdf", "nccopy", "cdl", "zarr2", "zarr3", "nczarr")
        usual = Pipeline(found.pipeline.filters) if flagless else found.pipeline
        assert (again.read_as, again.pipeline) == (READABLE[name], usual)
        said += 1
    assert said >= 2


@given(st.text(max_size=20) | st.text("0123456789,.|dfub-:=()'\"{}[]_ FUDzfp", max_size=20))
def test_notation_of_any_text_at_most_one_and_read_or_refused(text: str) -> None:
    assert notation_of(text) in (None, *NOTATIONS)
    try:
        spec(text)
    except ParameterError as error:
        assert "expected" in str(error)  # noqa: PT017 - any other exception fails


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, ["spec", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_cli_spec_prints_all_notations() -> None:
    printed = run("zfp(accuracy=0.1)", "--variable", "TS", "--chunks", "4x96x144", "--dtype", "f4")
    assert printed == str(spec("zfp(accuracy=0.1)", variable="TS", chunks=(4, 96, 144), dtype="f4")) + "\n"
    assert "requested, as h5dump prints them: 3,0,-1717986918,1069128089" in printed
    assert "\nh5repack:\n-f TS:UD=32013,1,4,3,0,2576980378,1069128089 -l TS:CHUNK=4x96x144\n" in printed


def test_cli_spec_json() -> None:
    found = json.loads(run("--json", "--from", "netcdf", "--compat", "doc", "32013,3,0,0.1d"))
    assert (found["pipeline"], found["read_as"]) == ("zfp(accuracy=0.1)", "netcdf")
    assert found["filters"] == [
        {
            "id": 32013,
            "name": "zfp",
            "optional": True,
            "in_words": found["filters"][0]["in_words"],
            "requested": [3, 0, 2576980378, 1069128089],
            "requested_signed": [3, 0, -1717986918, 1069128089],
            "stored": None,
            "stored_signed": None,
        }
    ]
    assert list(found["notations"]) == list(READABLE)


def test_cli_spec_options_as_text_after_two_dashes() -> None:
    assert "\nshuffle\n" in run("--", "-f SHUF")


def test_cli_spec_bad_text_usage_error() -> None:
    assert run("zfp(rate)", code=2).startswith("tamis spec: expected")
    assert "expected a chunk shape" in run("shuffle", "--chunks", "4,5", code=2)


def test_spec_of_a_rounding_in_the_notations_that_have_one() -> None:
    made = spec("bitround(keepbits=7)|shuffle|deflate(4)", variable="TS")
    assert made["tamis"] == "bitround(keepbits=7)|shuffle|deflate(4)"
    assert "TS:_QuantizeBitRoundNumberOfSignificantDigits = 7 ;" in made["cdl"]
    for notation in ("netcdf", "nccopy", "h5repack", "h5py", "zarr2", "zarr3"):
        with pytest.raises(
            ParameterError, match=f"{notation} cannot express .* is no filter: netCDF4-python has quantize_"
        ):
            made[notation]
    assert made.to_dict()["rounding"]["relative_bound"] == 2**-8
    assert [item["name"] for item in made.to_dict()["filters"]] == ["shuffle", "deflate"]
    assert "before the filters: relative error at most 0.391 %" in str(made)
    assert spec(made["cdl"]).pipeline == made.pipeline
    with pytest.raises(ParameterError, match="expected float32 or float64"):
        spec("bitround(keepbits=7)|deflate", chunks=(4,), dtype="i2")
