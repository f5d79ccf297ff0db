"""What h5dump and h5ls print of filters is read back: with their programs, and as typed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis
from tamis.errors import ParameterError
from tamis.notation.h5dump import parse_text

ZFP = "32013 { 269504785 91252346 -268430858 -890241013 }"  # of chunks 1x192x288 of floats
PIPELINES = [
    "zfp(accuracy=0.0625)|shuffle|deflate(4)|fletcher32",
    "zfp(rate=8)",
    "zfp(precision=20)|fletcher32",
    "zfp(reversible=true)",
    "zfp(minbits=64,maxbits=512,maxprec=30,minexp=-12)",
    "shuffle|deflate(9)",
    "nbit",
    "szip",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dumped") / "a.h5"
    with h5py.File(path, "w") as target:
        for number, pipeline in enumerate(PIPELINES):
            values = np.sin(np.arange(4096, dtype="f4") / 50).reshape(64, 64)
            tamis.hdf5.write(target, f"d{number}", values, filters=pipeline, chunks=(16, 64))
    return path


@pytest.mark.parametrize("number", range(len(PIPELINES)), ids=PIPELINES.__getitem__)
def test_filters_that_h5dump_prints_are_read(number: int, file: Path) -> None:
    needs.need("h5dump")
    done = subprocess.run(["h5dump", "-p", "-H", "-d", f"/d{number}", file], capture_output=True, text=True, check=True)
    filters = done.stdout.partition("FILTERS {")[2].partition("FILLVALUE")[0]
    expected = str(tamis.inspect(file)[f"d{number}"].pipeline)
    for text in (filters.rpartition("}")[0], f"FILTERS {{{filters}"):
        result = tamis.spec(text, notation="h5dump")
        assert result.read_as == "h5dump"
        assert str(result.pipeline) == expected


@pytest.mark.parametrize("number", range(len(PIPELINES)), ids=PIPELINES.__getitem__)
def test_filters_that_h5ls_prints_are_read(number: int, file: Path) -> None:
    needs.need("h5ls")
    done = subprocess.run(["h5ls", "-v", f"{file}/d{number}"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if "Filter-" in line]
    assert lines
    result = tamis.spec("\n".join(lines))
    assert result.read_as == "h5dump"
    assert str(result.pipeline) == str(tamis.inspect(file)[f"d{number}"].pipeline)


@pytest.mark.parametrize(
    "text",
    [
        ZFP,
        ZFP.replace("{", "{ params"),
        ZFP.replace("{", "PARAMS {"),
        "32013 {269504785, 91252346, 4026536438, 3404726283}",
        f"UNKNOWN_FILTER {{ FILTER_ID 32013 COMMENT H5Z-ZFP-1.1.1 (ZFP-1.0.1) PARAMS {ZFP.partition(' ')[2]} }}",
        f"USER_DEFINED_FILTER {{ FILTER_ID 32013 PARAMS {ZFP.partition(' ')[2]} }}",
        # The words of a file in other notations, as ncdump -hs prints them, and as h5py has them.
        "32013,269504785,91252346,4026536438,3404726283",
        'TS:_Filter = "32013,269504785,91252346,4026536438,3404726283" ;',
        "UD=32013,1,4,269504785,91252346,-268430858,-890241013",
        "compression=32013, compression_opts=(269504785, 91252346, 4026536438, 3404726283)",
    ],
)
def test_stored_words_of_zfp_give_its_mode(text: str) -> None:
    assert str(tamis.spec(text).pipeline).rstrip("!") == "zfp(accuracy=0.0625)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "32013 { 269504785 91252346 … }",
            "whole numbers of 32 bits, all that the file stores at position 28",
        ),
        ("32013 { 269504785 91252346 }", "filter 32013: expected ZFP parameters"),
        ("32013 { 1 99999999999 }", "expected whole numbers of 32 bits"),
        ("PREPROCESSING SCALEOFFSET { MIN BITS 4 }", "a part of the parameters of scaleoffset"),
        ("COMPRESSION DEFLATE", "expected the parameters of DEFLATE between"),
        ("CHECKSUM FLETCHER32 and more", "expected a filter as h5dump -p or h5ls -v prints it"),
        ("FILTERS { }", "expected a filter as h5dump -p or h5ls -v prints it"),
        ("FILTERS { CHECKSUM FLETCHER32", "expected '}' at the end of FILTERS"),
    ],
)
def test_other_texts_are_refused_at_their_place(text: str, expected: str) -> None:
    with pytest.raises(ParameterError, match=expected.replace("(", r"\(").replace("}", r"\}")):
        parse_text(text)
