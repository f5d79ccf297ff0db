"""Arguments of nccopy's -c."""

from __future__ import annotations

import pytest

from tamis import ParameterError
from tamis.jobs.copy import ChunkArgument, parse_chunk_argument


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("time/10,lat/96,lon/", ChunkArgument({"/time": 10, "/lat": 96, "/lon": None})),
        ("/g/y/20", ChunkArgument({"/g/y": 20})),
        (r"a\,b/4,c\/d/5", ChunkArgument({"/a,b": 4, "/c/d": 5})),
        ("TS:10,96,144", ChunkArgument({}, "/TS", (10, 96, 144))),
        ("/g/w:7", ChunkArgument({}, "/g/w", (7,))),
        (r"a\:b:7", ChunkArgument({}, "/a:b", (7,))),
        (r"a\:b/7", ChunkArgument({"/a:b": 7})),
        ("/", ChunkArgument({}, unchunked="contiguous")),
        ("TS:", ChunkArgument({}, "/TS", unchunked="contiguous")),
        ("TS:contiguous", ChunkArgument({}, "/TS", unchunked="contiguous")),
        ("TS:compact", ChunkArgument({}, "/TS", unchunked="compact")),
    ],
)
def test_argument_is_read(text: str, argument: ChunkArgument) -> None:
    assert parse_chunk_argument(text) == argument


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected DIMENSION/LENGTH such as time/10"),
        ("time", "expected DIMENSION/LENGTH such as time/10"),
        ("time/10,", "at position 9, got the end"),
        ("time/0", "a chunk length of 1 or more at position 6, got '0'"),
        ("time/-1", "a chunk length of 1 or more"),
        ("time/1e3", "a chunk length of 1 or more"),
        ("time/٣", "a chunk length of 1 or more"),
        ("time/" + "9" * 30, "a chunk length of 1 or more"),
        ("time/4,time/5", "each dimension once, got time again"),
        ("/4", "expected a name at position 1"),
        (":4", "expected a name at position 1"),
        ("TS:4,,5", "a chunk length of 1 or more at position 6"),
        ("TS:4x5", "a chunk length of 1 or more at position 4"),
        ("TS\\", r"a character after '\\'"),
    ],
)
def test_malformed_argument_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse_chunk_argument(text)
