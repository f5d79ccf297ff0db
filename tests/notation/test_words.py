"""Stored filters in words."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import ParameterError
from tamis.filters import ChunkType, Deflate, Fletcher32, Shuffle, Zfp
from tamis.notation.words import in_words, typed

CHUNK = ChunkType(np.dtype("f8"), (256,))


@pytest.mark.parametrize(
    ("zfp_filter", "words"),
    [
        (Zfp(accuracy=1e-3), "zfp accuracy, effective tolerance 2^-10 = 0.000976562 (H5Z-ZFP 1.1.1, zfp 1.0.1)"),
        (Zfp(rate=4.5), "zfp rate, 4.5 bits per value (H5Z-ZFP 1.1.1, zfp 1.0.1)"),
        (Zfp(precision=20), "zfp precision, 20 bit planes (H5Z-ZFP 1.1.1, zfp 1.0.1)"),
        (Zfp(reversible=True), "zfp reversible (lossless) (H5Z-ZFP 1.1.1, zfp 1.0.1)"),
        (
            Zfp(maxbits=2000),
            "zfp expert, minbits=1, maxbits=2000, maxprec=64, minexp=-1074 (H5Z-ZFP 1.1.1, zfp 1.0.1)",
        ),
    ],
    ids=str,
)
def test_in_words_stored_zfp_mode_and_writer(zfp_filter: Zfp, words: str) -> None:
    assert in_words(Zfp.id, zfp_filter.stored(CHUNK)) == words


def test_in_words_zfp_of_other_byte_order_said() -> None:
    words = in_words(Zfp.id, (0x00500020, 0x7A667005, 0xF30F0000, 0x0000F083))
    assert words.endswith("(H5Z-ZFP 0.2.0, zfp 0.5.0, written on a machine of the other byte order)")


def test_in_words_zfp_requested_only_said() -> None:
    words = in_words(Zfp.id, Zfp(accuracy=0.5).requested)
    assert words == "zfp(accuracy=0.5) as requested, not set up by the filter: chunks are stored unfiltered"


@pytest.mark.parametrize("values", [(7, 8, 9), (0x10107111, 0x0570667A, 0x00000FF3, 0x83F00000)], ids=str)
def test_in_words_zfp_damaged_said(values: tuple[int, ...]) -> None:
    assert in_words(Zfp.id, values).startswith("zfp [32013], not readable: expected ")


@pytest.mark.parametrize(
    ("number", "values", "name", "words"),
    [
        (1, (6,), "deflate", "deflate(6)"),
        (2, (8,), "shuffle", "shuffle"),
        (3, (), "fletcher32", "fletcher32"),
        (1, (77,), "deflate", "deflate [1], not readable: expected level of 0 to 9, got level=77"),
        (32015, (3,), "", "zstd [32015] 3"),
        (307, (9,), "bzip2 filter", "bzip2 [307] 9"),
        (4242, (1, 2), "my filter", "my filter [4242] 1,2"),
        (4242, (), "", "filter [4242]"),
    ],
)
def test_in_words_other_filters_name_id_and_values(number: int, values: tuple[int, ...], name: str, words: str) -> None:
    assert in_words(number, values, name) == words


@pytest.mark.parametrize("zfp_filter", [Zfp(rate=8), Zfp(accuracy=0.5), Zfp(reversible=True)], ids=str)
def test_typed_zfp_requested_or_stored_same(zfp_filter: Zfp) -> None:
    assert typed(Zfp.id, zfp_filter.requested) == typed(Zfp.id, zfp_filter.stored(CHUNK)) == zfp_filter


def test_typed_other_filters_known_or_none() -> None:
    assert typed(1, (4,)) == Deflate(4)
    assert typed(2, (8,)) == Shuffle()
    assert typed(3, ()) == Fletcher32()
    assert typed(32015, (3,)) is None
    with pytest.raises(ParameterError, match="expected level of 0 to 9, got level=10"):
        typed(1, (10,))
