"""h5py's keywords: the pipelines that h5py makes of them, and code for the others."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Deflate, Fletcher32, ParameterError, Shuffle, Zfp
from tamis.filters import Request, Stage, by_id
from tamis.notation import Reading
from tamis.notation.h5py_keywords import code, keywords, keywords_text, parse_keywords

VALUES = np.cos(np.arange(2400) / 70).reshape(40, 60)


def of(*requests: tuple[int, tuple[int, ...]]) -> tuple[Stage, ...]:
    return tuple(Stage.of(Request(*each)) for each in requests)


def reading(chain: tuple[Stage, ...], chunk_shape: tuple[int, ...] | None = None) -> Reading:
    return Reading("h5py", chain, (), chunk_shape)


CASES: list[tuple[str, str, list[tuple[int, tuple[int, ...]]]]] = [
    ("compression='gzip'", "f4", [(1, (4,))]),
    ("compression='gzip', compression_opts=9", "f4", [(1, (9,))]),
    ("compression=True", "f4", [(1, (4,))]),
    ("compression=7", "f4", [(1, (7,))]),
    ("compression=0", "f4", [(1, (0,))]),
    ("compression=False", "f4", [(1, (0,))]),
    ("shuffle=True, compression='gzip', fletcher32=True", "f4", [(2, ()), (1, (4,)), (3, ())]),
    ("fletcher32=True, compression='gzip', shuffle=True", "f4", [(2, ()), (1, (4,)), (3, ())]),
    ("fletcher32=False, shuffle=None, compression=None", "f4", []),
    ("compression='lzf'", "f4", [(32000, ())]),
    ("compression='szip'", "f4", [(4, (32, 8))]),
    ("compression='szip', compression_opts=('ec', 16)", "i4", [(4, (4, 16))]),
    ("compression=32013, compression_opts=(2, 0, 16)", "f4", [(32013, (2, 0, 16))]),
    ("scaleoffset=3", "f4", [(6, (0, 3))]),
    ("scaleoffset=5, shuffle=True", "i4", [(6, (2, 5)), (2, ())]),
    ("scaleoffset=True", "i4", [(6, (2, 0))]),
]


@pytest.mark.parametrize(("text", "dtype", "requests"), CASES)
def test_parse_keywords_pipeline_that_h5py_makes(
    text: str, dtype: str, requests: list[tuple[int, tuple[int, ...]]], tmp_path: Path
) -> None:
    assert parse_keywords(text, dtype=dtype) == reading(of(*requests))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", data=VALUES.astype(dtype), **eval(f"dict({text})"))
        plist = made.id.get_create_plist()
        stored = [plist.get_filter(i) for i in range(plist.get_nfilters())]
    assert [each[0] for each in stored] == [number for number, _ in requests]
    assert [bool(each[1]) for each in stored] == [number != 3 for number, _ in requests]
    for each, (number, words) in zip(stored, requests, strict=True):
        if number in (1, 6):
            assert each[2][: len(words)] == words


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("chunks=(4, 96, 144), shuffle=True", (4, 96, 144)),
        ("{'chunks': [4, 5], 'shuffle': True}", (4, 5)),
        ("dict(chunks=6, shuffle=True)", (6,)),
        ("chunks=True, shuffle=True", None),
        ("shuffle=True,\nchunks=(4,),  # a remark\n", (4,)),
    ],
)
def test_parse_keywords_forms_and_chunks(text: str, chunks: tuple[int, ...] | None) -> None:
    assert parse_keywords(text) == reading(of((2, ())), chunks)


@pytest.mark.parametrize(
    "given",
    [
        {"compression": 1, "compression_opts": 3},
        {"compression": "gzip", "compression_opts": (4,)},
        {"compression": "gzip", "compression_opts": 10},
        {"compression": "zstd"},
        {"compression": b"gzip"},
        {"compression": "lzf", "compression_opts": 1},
        {"compression": "szip", "compression_opts": ("nn", 9)},
        {"compression_opts": 4},
        {"compression": 32013, "compression_opts": [2, 0, 16]},
        {"compression": 32013, "compression_opts": (-2, 0, 16)},
        {"compression": 32013, "compression_opts": 5},
        {"scaleoffset": -1},
        {"scaleoffset": True},
        {"scaleoffset": 3, "fletcher32": True},
        {"chunks": False},
        {"chunks": (4, 0)},
        {"shuffled": True},
    ],
)
def test_parse_keywords_what_h5py_refuses_refused(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"expected|refuses"):
        parse_keywords(given, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises((TypeError, ValueError, OverflowError)):
        file.create_dataset("v", data=VALUES.astype("f4"), **given)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("compression=", "Python"),
        ("compression='gzip' compression_opts=4", "Python"),
        ("shuffle=True, shufle=True", "a value of one of the keywords .* at position 22, got 'True'"),
        ("shuffle=True, compression=name", "a number, text, True, False, None or a tuple of them at position 27"),
        ("'gzip'", "keywords such as .* at position 1"),
        ("shuffle=True) + f(shuffle=True", "keywords such as .* at position 1"),
        ("shuffle=True,\n  fletcher=True", "line 2: expected a value of one of the keywords .* at position 12"),
        ("**kwargs", "a value of one of the keywords .* at position 3"),
        ("shuffle=True, scaleoffset=3", "the type of the values with scaleoffset=3, got none: "),
        ("compression=32013, compression_opts=(9,)", "ZFP parameters "),
        ("dcpl.set_filter(1)", "set_filter with an id, a flag of 0 or 1 and a tuple at position 1"),
        ("dcpl.set_filter(1, 1, (4,))\ndcpl.fill()", "line 2: expected set_chunk, set_filter or create_dataset"),
    ],
)
def test_parse_keywords_bad_text_place_named(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as raised:
        parse_keywords(text)
    assert str(raised.value).endswith("^")


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (of((1, (4,)), (2, ())), "expected scaleoffset, shuffle, one compression, fletcher32, .* got deflate"),
        (of((3, ()), (1, (4,))), "expected scaleoffset, shuffle, one compression, fletcher32"),
        (of((1, (4,)), (32013, (5,))), "expected scaleoffset, shuffle, one compression, fletcher32"),
        (of((2, ()), (2, ())), "expected scaleoffset, shuffle, one compression, fletcher32"),
        (of((6, (0, 3)), (3, ())), "h5py's keywords refuse scaleoffset with fletcher32"),
        (of((5, ())), "expected a filter that h5py has a keyword for, got"),
        ((Stage(Shuffle(), False),), "expected shuffle to be optional, got required: a keyword cannot"),
    ],
)
def test_keywords_what_they_cannot_say_refused(chain: tuple[Stage, ...], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        keywords(chain)


def test_keywords_text_ready_to_paste() -> None:
    chain = of((2, ()), (1, (6,)), (3, ()))
    assert keywords_text(chain, (4, 5)) == (
        "chunks=(4, 5), shuffle=True, compression='gzip', compression_opts=6, fletcher32=True"
    )


@pytest.mark.parametrize(
    "chain",
    [
        of((32013, (2, 0, 16)), (2, ()), (1, (4,)), (3, ())),
        of((3, ()), (2, ()), (1, (9,))),
        (Stage(Deflate(4), False), Stage(Fletcher32(), True)),
        of((4, (32, 8)), (3, ())),
        (Stage(of((4, (4, 8)))[0].filter, False),),
        (),
    ],
    ids=lambda chain: "|".join(str(each.filter) for each in chain) or "none",
)
def test_code_run_dataset_with_that_pipeline(chain: tuple[Stage, ...], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        exec(code(chain, (20, 30), "v"), {"file": file, "values": VALUES.astype("i4") * 1000})
        plist = file["v"].id.get_create_plist()
        stored = [plist.get_filter(i) for i in range(plist.get_nfilters())]
        assert file["v"].chunks == (20, 30)
    assert [(each[0], bool(each[1])) for each in stored] == [(each.filter.id, each.optional) for each in chain]
    for each, (number, _, words, _) in zip(chain, stored, strict=True):
        if number == 4:  # as H5Pset_szip leaves it
            assert words[:2] == (each.filter.requested[0] & 36 | 137, 8)


def test_code_without_chunks_all_values_are_one(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        exec(code(of((2, ())), None, "v"), {"file": file, "values": VALUES})
        assert file["v"].chunks == VALUES.shape


def sayable(chain: list[Stage]) -> bool:
    ranks = [{6: 0, 2: 1, 3: 3}.get(each.filter.id, 2) for each in chain]
    ordered = all(before < after for before, after in pairwise(ranks))
    usual = all(each.optional == each.filter.optional for each in chain)
    return ordered and usual and not {0, 3} <= set(ranks) and all(each.filter.id not in (5, 6, 4) for each in chain)


@given(data=st.data())
def test_keywords_text_any_pipeline_read_again(data: st.DataObject, chains: st.SearchStrategy[list[Stage]]) -> None:
    chain = data.draw(chains.map(lambda chain: chain[:3]))
    chunks = data.draw(st.none() | st.lists(st.integers(1, 1 << 31), min_size=1, max_size=4).map(tuple))
    try:
        text = keywords_text(chain, chunks)
    except ParameterError:
        assert not sayable(chain)
        return
    dtype = "f4" if any(each.filter.id == 6 and each.filter.requested[0] == 0 for each in chain) else "i4"
    assert parse_keywords(text, dtype=dtype) == reading(tuple(chain), chunks)


@given(data=st.data())
def test_code_any_pipeline_read_again(data: st.DataObject, chains: st.SearchStrategy[list[Stage]]) -> None:
    chain = data.draw(chains)
    found = parse_keywords(code(chain, (4, 5), "v"))
    assert [(each.filter.id, each.optional) for each in found.chain] == [
        (each.filter.id, each.optional) for each in chain
    ]
    assert found.chunk_shape == (4, 5)
    for ours, theirs in zip(chain, found.chain, strict=True):
        assert ours.filter == theirs.filter or ours.filter.id == 4  # szip's code has the mask that HDF5 makes of it


PIECES = ("chunks=", "compression=", "compression_opts=", "'gzip'", "True", "(", ")", ",", "{", "}", ":", "dict(", "\n")


@given(
    st.lists(st.sampled_from([*PIECES, ".set_filter(", ".set_chunk(", "300"]) | st.text(max_size=3), max_size=9).map(
        "".join
    )
)
def test_parse_keywords_any_text_filters_or_error_with_place(text: str) -> None:
    refusal = ""
    try:
        parse_keywords(text)
    except ParameterError as error:
        refusal = str(error)
    assert not refusal or refusal.endswith("^")


def test_zfp_unpacked_into_create_dataset_as_keywords() -> None:
    zfp = Zfp(rate=8)
    assert keywords(of((zfp.id, zfp.requested))) == dict(zfp)
    assert zfp.id in by_id()
