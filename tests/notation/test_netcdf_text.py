"""Known defect D25: netcdf-c reads parameters as something else without a word, and does not survive some texts."""

from __future__ import annotations

import struct

import pytest

from tamis.errors import ParameterError
from tamis.notation.netcdf import parse_chain

READ_OTHERWISE = {
    "307,1.5": 1,
    "307,0xff": struct.unpack("<I", struct.pack("<f", 255))[0],
    "307,4294967296": 0,
    "307,5LU": 5,
}


@pytest.mark.parametrize("text", [*READ_OTHERWISE, "[0]307,9"])
def test_d25_strict_parser_refuses_with_the_position(text: str) -> None:
    with pytest.raises(ParameterError, match=r"at position [0-9]+"):
        parse_chain(text)


@pytest.mark.parametrize(("text", "word"), READ_OTHERWISE.items())
def test_d25_compat_reads_as_netcdf_c_does(text: str, word: int) -> None:
    (found,) = parse_chain(text, compat="netcdf-c")
    assert found.values[0] == word
