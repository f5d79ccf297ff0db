"""Zarr's codecs: JSON that Zarr reads, and the filters of the same bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError, Pipeline, Zfp
from tamis.filters import Request, Stage
from tamis.notation.zarr import nczarr, parse_text, version_2, version_3

F4 = np.dtype("<f4")
NATIVE_F4 = np.dtype("f4")  # which HDF5's zfp takes, on a machine of either byte order


def of(*requests: tuple[int, tuple[int, ...]]) -> tuple[Stage, ...]:
    return tuple(Stage.of(Request(*each)) for each in requests)


ACCURACY = (32013, Zfp(accuracy=0.1).requested)


@pytest.mark.parametrize(
    ("requests", "two", "three"),
    [
        (
            [(2, ()), (1, (4,))],
            {"filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 4}},
            [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
                {"name": "numcodecs.zlib", "configuration": {"level": 4}},
            ],
        ),
        (
            [ACCURACY, (3, ())],
            {
                "filters": [{"id": "zfpy", "mode": 4, "tolerance": 0.1, "rate": -1, "precision": -1}],
                "compressor": {"id": "fletcher32"},
            },
            [
                {"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 0.1}},
                {"name": "numcodecs.fletcher32", "configuration": {}},
            ],
        ),
        (
            [(32015, (4294967293,))],
            {"filters": None, "compressor": {"id": "zstd", "level": -3}},
            [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": -3, "checksum": False}},
            ],
        ),
        (
            [(32001, (0, 0, 0, 0, 5, 1, 1))],
            {
                "filters": None,
                "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
            },
            [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {
                    "name": "blosc",
                    "configuration": {
                        "cname": "lz4",
                        "clevel": 5,
                        "shuffle": "shuffle",
                        "blocksize": 0,
                        "typesize": 4,
                    },
                },
            ],
        ),
        (
            [(307, (9,))],
            {"filters": None, "compressor": {"id": "bz2", "level": 9}},
            [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "numcodecs.bz2", "configuration": {"level": 9}},
            ],
        ),
        (
            [],
            {"filters": None, "compressor": None},
            [{"name": "bytes", "configuration": {"endian": "little"}}],
        ),
    ],
)
def test_pipeline_as_codecs_and_back(
    requests: list[tuple[int, tuple[int, ...]]], two: dict[str, Any], three: list[dict[str, Any]]
) -> None:
    chain = of(*requests)
    assert version_2(chain, np.dtype("<f4")) == two
    assert version_3(chain, np.dtype("<f4")) == three
    assert parse_text(json.dumps(two)) == chain
    assert parse_text(json.dumps(three)) == chain
    assert parse_text(json.dumps({"codecs": three})) == chain


@pytest.mark.parametrize(("dtype", "order"), [("<f4", "little"), (">f4", "big")])
def test_version_3_bytes_in_the_order_of_the_type(dtype: str, order: str) -> None:
    assert version_3((), np.dtype(dtype)) == [{"name": "bytes", "configuration": {"endian": order}}]


def test_version_3_without_a_type_says_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.byteorder", "big")
    assert version_3(()) == [{"name": "bytes", "configuration": {"endian": "little"}}]


def test_version_3_values_of_one_byte_without_order() -> None:
    assert version_3((), np.dtype("u1")) == [{"name": "bytes"}]


@pytest.mark.parametrize(
    ("zfp", "configuration"),
    [
        (Zfp(rate=4.5), {"mode": "fixed_rate", "rate": 4.5}),
        (Zfp(precision=16), {"mode": "fixed_precision", "precision": 16}),
        (Zfp(reversible=True), {"mode": "reversible"}),
        (
            Zfp(minbits=1, maxbits=2000, maxprec=30, minexp=-20),
            {"mode": "expert", "minbits": 1, "maxbits": 2000, "maxprec": 30, "minexp": -20},
        ),
    ],
)
def test_version_3_zfp_every_mode(zfp: Zfp, configuration: dict[str, Any]) -> None:
    made = version_3([Stage(zfp, True)])
    assert made == [{"name": "zfp", "configuration": configuration}]
    assert parse_text(json.dumps(made)) == (Stage(zfp, True),)


def test_nczarr_zfp_as_hdf5_has_it() -> None:
    chain = of(ACCURACY, (3, ()))
    mode = {"id": "h5z_zfp", "mode": "fixed_accuracy", "tolerance": 0.1}
    assert nczarr(chain) == {"filters": [mode], "compressor": {"id": "fletcher32"}}
    with_chunk = mode | {"dtype": "float32", "shape": [20, 31]}
    assert nczarr(chain[:1], NATIVE_F4, (1, 20, 1, 31)) == {"filters": None, "compressor": with_chunk}
    assert parse_text(json.dumps(nczarr(chain, NATIVE_F4, (4, 4)))) == chain


def test_nczarr_chunk_that_zfp_cannot_encode_refused() -> None:
    with pytest.raises(ParameterError, match="expected a chunk with 1 to 4 axes longer than 1"):
        nczarr(of(ACCURACY), NATIVE_F4, (4,) * 5)


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (of((300, ())), r"expected filters that Zarr has a codec for, got filter\(300\): Zarr has none"),
        (of((2, ())), "expected the type of the values, got none: Zarr's shuffle needs their size; say f4"),
        (of((32013, (5,))), "expected rate, precision or accuracy, got zfp"),
    ],
)
def test_version_2_what_zarr_lacks_refused(chain: tuple[Stage, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        version_2(chain)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"expected JSON \(Expecting value\) at position 1, got the end"),
        ("[{]", r"expected JSON \(Expecting property name enclosed in double quotes\) at position 3"),
        ("3", "expected a list of codecs, or an object with filters and compressor at position 1"),
        ('{"filters": {"id": "zlib"}}', "expected a list of filters, or null at position 2"),
        ('[{"id": "zlib"}, {"id": "lz4"}]', "(?s)expected one of zlib, shuffle, .*, got 'lz4'.*\n {26}\\^$"),
        ('[{"name": "gzip", "configuration": {"level": 4}}]', "expected one of zlib, .* got 'gzip'"),
        ('[{"id": "zlib", "level": 10}]', "expected level of 0 to 9, got 10"),
        ('[{"id": "zlib", "level": true}]', "expected level of 0 to 9, got True"),
        ('[{"id": "zfpy", "mode": 4}]', "expected a number as accuracy, got None"),
        ('[{"id": "zfpy", "mode": 1}]', "expected zfpy of mode 2 rate, 3 precision, 4 accuracy or 5 reversible, got 1"),
        ('[{"name": "zfp"}]', "expected a mode of zfp such as 'fixed_accuracy', got None"),
        ('[{"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": -1}}]', "expected a finite rate above 0"),
        ('[{"id": "blosc", "cname": "lz5"}]', "expected blosc with a codec and shuffle of HDF5's filter, got 'lz5', 1"),
        ('[{"id": "blosc", "shuffle": -1}]', "expected blosc with a codec and shuffle"),
        (
            '[{"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 1%s}}]' % ("0" * 400),
            "expected a number as accuracy, got 1000",
        ),
        ("[7]", "expected an object with id or name, got 7"),
        ('[\n{"id": "lz4"}\n]', "line 2: expected one of zlib"),
    ],
)
def test_parse_text_bad_text_place_named(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as raised:
        parse_text(text)
    assert str(raised.value).endswith("^")


def test_codecs_of_tamis_and_unit_axes_read_again() -> None:
    zfp = of((32013, Zfp(rate=8).requested))
    squeezed = version_3(zfp, F4, (1, 4, 8))
    assert squeezed[0] == {"name": "reshape", "configuration": {"shape": [[0, 1], [2]]}}
    assert parse_text(json.dumps(squeezed)) == parse_text(json.dumps(version_3(zfp, F4, (4, 8)))) == zfp
    codec = {"name": "tamis.pipeline", "configuration": {"filters": "zfp(rate=8)|shuffle|lzf"}}
    assert str(Pipeline(parse_text(json.dumps([codec])))) == codec["configuration"]["filters"]
    with pytest.raises(ParameterError, match=r"expected tamis\.pipeline with the text of its filters"):
        parse_text('{"id": "tamis.pipeline", "filters": 3}')
    with pytest.raises(ParameterError, match=r"shuffle cannot follow deflate\(4\) in Zarr"):
        version_2(of((1, (4,)), (2, ())), F4)


@given(data=st.data())
def test_codecs_any_pipeline_read_again(data: st.DataObject, chains: st.SearchStrategy[list[Stage]]) -> None:
    chain = data.draw(chains)
    usual = tuple(Stage(each.filter, each.filter.optional) for each in chain)  # Zarr has no flags
    for version in (version_2, version_3, nczarr):
        try:
            made = version(chain, F4)
        except ParameterError:
            unusual = [each for each in chain if each.filter.id not in (1, 2, 3, 307)]
            late = version is not nczarr and any(each.filter.id == 2 for each in chain[1:])  # a shuffle of no values
            assert unusual or late
        else:
            assert parse_text(json.dumps(made)) == usual


VALUES = st.none() | st.integers(-3, 9) | st.sampled_from(["zlib", "zfp", "zfpy", "blosc", "zstd", "fixed_rate", "x"])
KEYS = st.sampled_from(["id", "name", "level", "mode", "rate", "configuration", "filters", "compressor", "shuffle"])
TREES = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(TREES.map(json.dumps) | st.text(max_size=9))
def test_parse_text_any_text_filters_or_error_with_place(text: str) -> None:
    refusal = ""
    try:
        parse_text(text)
    except ParameterError as error:
        refusal = str(error)
    assert not refusal or refusal.endswith("^")
