"""CDL attributes: what ncgen takes, and the pipelines that netCDF makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError, Pipeline
from tamis.filters import Request, Stage
from tamis.notation import Reading, in_netcdf_order, netcdf_requests
from tamis.notation.cdl import Value, attributes, attributes_text, parse_attributes, parse_text

ZFP = (32013, (3, 0, 2576980378, 1069128089))


def of(*requests: tuple[int, tuple[int, ...]]) -> tuple[Stage, ...]:
    return tuple(Stage.of(Request(*each)) for each in requests)


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ('v:_Filter = "32013,3,0,0.1d" ;', [ZFP]),
        ('v:_Filter="32013,3,0,0.1d|1,4";', [ZFP, (1, (4,))]),
        ("v:_DeflateLevel = 4 ;", [(1, (4,))]),
        ("v:_DeflateLevel = 0 ;", []),
        ('v:_Filter = "1,0" ;', [(1, (0,))]),
        ('v:_Shuffle = "true" ; v:_DeflateLevel = 4 ; v:_Fletcher32 = "true" ;', [(3, ()), (2, ()), (1, (4,))]),
        ('v:_Shuffle = 1 ; v:_Fletcher32 = "1" ;', [(3, ()), (2, ())]),
        ('v:_Shuffle = "false" ; v:_Filter = "2|300" ;', [(2, ()), (300, ())]),
        # netCDF runs fletcher32 first and shuffle next.
        ('v:_Filter = "1,4|2|3" ;', [(3, ()), (2, ()), (1, (4,))]),
        ('v:_Filter = "300|1,4" ; v:_Shuffle = "true" ;', [(2, ()), (300, ()), (1, (4,))]),
        # A filter that is defined again keeps its place and takes the new parameters.
        ('v:_DeflateLevel = 4 ; v:_Filter = "300|1,9" ;', [(1, (9,)), (300, ())]),
        ('v:_Filter = "300,1|301|300,2" ;', [(300, (2,)), (301, ())]),
    ],
)
def test_parse_text_attributes_pipeline_that_netcdf_makes(
    text: str, requests: list[tuple[int, tuple[int, ...]]]
) -> None:
    assert parse_text(text) == Reading("cdl", of(*requests), ("v",))


def test_parse_text_of_ncdump_all_that_it_says() -> None:
    text = """
        TS:units = "K; or so" ; // not ours
        TS:valid_range = -1.5f, 400.f ;
        \t\tTS:_Storage = "chunked" ;
        TS:_ChunkSizes = 4, 96, 144u ;
        TS:_DeflateLevel = 4 ;
        TS:_Endianness = "little" ;
        TS:_NoFill = "true" ;
    """
    assert parse_text(text) == Reading("cdl", of((1, (4,))), ("TS",), (4, 96, 144))


def test_parse_text_escaped_name_and_compat() -> None:
    assert parse_text(r'\1a\ b:_Filter = "300,-17b" ;', compat="netcdf-c").names == ("1a b",)
    assert parse_text(':_Filter = "300,-17b" ;', compat="doc").chain == of((300, (4294967279,)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected one of the attributes _Storage, .* at position 1, got the end"),
        ('v:units = "K" ;', "expected one of the attributes _Storage, .* at position 16, got the end"),
        ("float v(x) ;", "expected an attribute such as TS:_DeflateLevel = 4 ; at position 1"),
        ("v:_DeflateLevel = 4 v:_Shuffle", "expected ',' or ';' at position 21, got 'v:_Shuffle'"),
        ("v:_Shuffle = true ;", "expected a number or text in double quotes at position 14"),
        ('v:_Shuffle = "true', "expected a number or text in double quotes at position 14"),
        ("v:_DeflateLevel = 4b ;", "expected a whole number or text as _DeflateLevel at position 19"),
        ("v:_DeflateLevel = 4.5 ;", "expected a whole number or text as _DeflateLevel at position 19"),
        ("v:_DeflateLevel = 1 ;\nv:_DeflateLevel = 2 ;", "line 2: expected _DeflateLevel once at position 1"),
        ('v:_DeflateLevel = 1 ;\nw:_Shuffle = "true" ;', "line 2: expected attributes of v only at position 1"),
        ("v:_DeflateLevel = 10 ;", "expected _DeflateLevel of 0 to 9, got 10"),
        ('v:_DeflateLevel = "4" ;', "expected _DeflateLevel of 0 to 9, got '4'"),
        ('v:_Shuffle = "TRUE" ;', 'expected _Shuffle of "true" or "false", got \'TRUE\''),
        ("v:_Shuffle = 2 ;", 'expected _Shuffle of "true" or "false", got 2'),
        ('v:_Filter = "none" ;', "expected a filter id of 1 to 65535 at position 1"),
        ('v:_Filter = "1,4","5" ;', "expected text as _Filter, got"),
        ('v:_Filter = "32013,9" ;', "expected ZFP parameters"),
        ('v:_Storage = "tape" ;', "expected _Storage to be one of chunked, contiguous, compact, got 'tape'"),
        ("v:_ChunkSizes = 4, 0 ;", "expected _ChunkSizes of whole numbers above 0"),
    ],
)
def test_parse_text_bad_text_place_named(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as raised:
        parse_text(text)
    assert str(raised.value).endswith("^")


@pytest.mark.parametrize(
    ("requests", "made"),
    [
        ([], {}),
        ([(1, (4,))], {"_DeflateLevel": 4}),
        ([(1, (0,))], {"_Filter": "1,0"}),
        ([(2, ()), (1, (4,))], {"_Shuffle": "true", "_DeflateLevel": 4}),
        (
            [(3, ()), (2, ()), (1, (4,)), (300, (7,))],
            {
                "_Fletcher32": "true",
                "_Shuffle": "true",
                "_DeflateLevel": 4,
                "_Filter": "300,7",
            },
        ),
        ([ZFP, (1, (4,))], {"_Filter": "32013,3,0,2576980378,1069128089|1,4"}),
    ],
)
def test_attributes_pipeline_as_ncgen_takes_it(
    requests: list[tuple[int, tuple[int, ...]]], made: dict[str, Value]
) -> None:
    assert attributes(of(*requests)) == made
    assert attributes(of(*requests), (4, 5)) == {"_Storage": "chunked", "_ChunkSizes": (4, 5)} | made


def test_attributes_doubles_counted_from_the_filters_of_the_chain() -> None:
    assert attributes(of((3, ()), (300, ()), (301, ZFP[1])), doubles={2: (2,)}) == {
        "_Fletcher32": "true",
        "_Filter": "300|301,3,0,0.1d",
    }


def test_attributes_text_lines_of_cdl() -> None:
    made: dict[str, Value] = {"_Shuffle": "true", "_ChunkSizes": (4, 5), "_DeflateLevel": 1}
    assert attributes_text(made, "1 a") == (
        '\\1\\ a:_Shuffle = "true" ;\n\\1\\ a:_ChunkSizes = 4, 5 ;\n\\1\\ a:_DeflateLevel = 1 ;'
    )


@pytest.mark.parametrize("name", ["", "g/v", "a\nb"])
def test_attributes_text_no_name_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="expected the name of a variable of the group"):
        attributes_text({}, name)


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (of(ZFP, (3, ())), r"netCDF would make it fletcher32\|zfp\(accuracy=0.1\)"),
        (of((1, (4,)), (2, ())), r"netCDF would make it shuffle\|deflate\(4\)"),
        (of((300, (1,)), (300, (2,))), r"got filter\(300,1\)\|filter\(300,2\): netCDF would make it filter\(300,2\)$"),
    ],
)
def test_attributes_what_netcdf_does_otherwise_refused(chain: tuple[Stage, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        attributes(chain)


@given(data=st.data())
def test_attributes_text_any_pipeline_read_again(
    data: st.DataObject, chains: st.SearchStrategy[list[Stage]], names: st.SearchStrategy[str]
) -> None:
    chain = tuple(data.draw(chains))
    name = data.draw(names)
    chunks = tuple(data.draw(st.lists(st.integers(1, 1 << 31), min_size=1, max_size=4)))
    requests = [each.request for each in chain]
    try:
        text = attributes_text(attributes(chain, chunks), name)
    except ParameterError:
        assert in_netcdf_order(requests) != requests
        return
    usual = tuple(Stage.of(each.filter) for each in chain)  # netCDF sets flags itself
    assert parse_text(text) == Reading("cdl", usual, (name,), chunks)
    assert parse_attributes(attributes(chain, chunks)).chain == usual
    assert netcdf_requests(chain) == requests


PIECES = (
    "v:",
    "_Filter",
    "_Shuffle",
    "_DeflateLevel",
    "_ChunkSizes",
    "=",
    '"',
    '"true"',
    ";",
    ",",
    "4",
    "|",
    "300",
    "\n",
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map(" ".join))
def test_parse_text_any_text_filters_or_error_with_place(text: str) -> None:
    refusal = ""
    try:
        parse_text(text)
    except ParameterError as error:
        refusal = str(error)
    assert not refusal or refusal.endswith("^")


@pytest.mark.parametrize(
    "text", ["bitround(keepbits=4)|deflate(4)", "granular(digits=2)|shuffle|deflate(1)", "bitround(keepbits=9)"]
)
def test_cdl_of_a_rounding_makes_ncgen_round(text: str, tmp_path: Path) -> None:
    """ncgen 4.9.0 records bitgroom and does not round, so it is left out."""
    needs.need("ncgen")
    pipeline = Pipeline.parse(text)
    assert pipeline.rounding is not None
    lines = attributes_text(attributes(pipeline.stages, (4,), rounding=pipeline.rounding), "v")
    values = "1.2345678, 2.3456789, 3.456789, 1234.5678"
    header = f"netcdf a {{ dimensions: x = 4 ; variables: float v(x) ;\n{lines}\ndata: v = {values} ; }}"
    (tmp_path / "a.cdl").write_text(header)
    subprocess.run(["ncgen", "-4", "-o", tmp_path / "a.nc", tmp_path / "a.cdl"], check=True)
    with h5py.File(tmp_path / "a.nc") as file:
        expected = pipeline.rounding.round(np.array(values.split(","), "f4"))
        assert file["v"][...].tolist() == expected.tolist()
        assert file["v"].attrs[pipeline.rounding.attribute] == pipeline.rounding.number
    assert Pipeline(parse_text(lines).chain) == pipeline


def test_cdl_reads_the_attribute_that_files_have() -> None:
    text = "v:_QuantizeBitRoundNumberOfSignificantBits = 7 ; v:_DeflateLevel = 4 ;"
    assert str(Pipeline(parse_text(text).chain)) == "bitround(keepbits=7)|deflate(4)"
    for value in ('"7"', "99", "7, 8"):
        with pytest.raises(ParameterError, match=r"_QuantizeBitRound|keepbits"):
            parse_text(f"v:_QuantizeBitRoundNumberOfSignificantBits = {value} ;")
