"""Texts for people: options of the command line and keywords of Python."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main
from tamis.formatting import change_text, with_keywords


@pytest.mark.parametrize(
    ("option", "keyword"),
    [
        ("give longer ones (-c) if", "give longer ones (chunks=) if"),
        ("less than 4096 B (--min-size): name it", "less than 4096 B (min_size=): name it"),
        ("or use --larger", "or use larger=True"),
        ("with --missing mask, which", "with missing='mask', which"),
        ("only with --allow unstable, for", "only with allow='unstable', for"),
        ("readers have zfp: --readers netcdf-plugins", "readers have zfp: readers='netcdf-plugins'"),
        ("if they have netCDF: --readers netcdf, or", "if they have netCDF: readers='netcdf', or"),
        ("repack --no-consolidated avoids", "repack consolidated=False avoids"),
        ("and 3 more: --json has all", "and 3 more: to_json() has all"),
        ("tamis repack a.nc OUT --larger -c TS:1", "tamis repack a.nc OUT --larger -c TS:1"),
        ("tamis 1.0.0: repack -c 'TS:4' --larger", "tamis 1.0.0: repack -c 'TS:4' --larger"),
        ("x -- y, x--y, a-c, --", "x -- y, x--y, a-c, --"),
    ],
)
def test_options_become_keywords_in_texts_for_python(option: str, keyword: str) -> None:
    assert with_keywords(option) == keyword
    assert with_keywords(f"{option}\n{option}") == f"{keyword}\n{keyword}"


def test_result_has_keywords_in_python_and_options_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["small"] = np.zeros(9)
        file["v"] = np.arange(5000.0)
    result = tamis.repack(path, tmp_path / "b.h5", {"*": "shuffle|deflate(4)"})
    assert "(min_size=)" in str(result)
    assert "(min_size=)" in result._repr_html_()
    assert "--" not in str(result)
    line = ["repack", str(path), str(tmp_path / "c.h5"), "-f", "*:shuffle|deflate(4)"]
    assert "(--min-size)" in CliRunner().invoke(main, line).output


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(1_200_000, 800_000, "1.2 MB became 800 kB"), (262_144, 262_150, "262144 bytes became 262150 bytes")],
)
def test_sizes_that_round_to_the_same_are_in_bytes(before: int, after: int, text: str) -> None:
    assert change_text(before, after) == text
