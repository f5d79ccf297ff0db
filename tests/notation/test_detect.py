"""Telling notations from each other: what each printer writes is read in its own notation, as the same pipeline."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.filters import Stage
from tamis.notation import (
    Reading,
    argument_text,
    cdl,
    chain_text,
    command_text,
    h5py_keywords,
    netcdf_requests,
    read,
    zarr,
)
from tamis.notation.detect import NOTATIONS, notation_of

Chain = list[Stage]
CHUNKS = (4, 96)
DTYPE = np.dtype("<f4")


def tamis_text(chain: Chain, name: str) -> str:
    return "|".join(map(str, chain)) or "none"


def nccopy_text(chain: Chain, name: str) -> str:
    return shlex.join(["nccopy", "-F", argument_text(name, netcdf_requests(chain)), "-c", "x:4,96", "in.nc", "out.nc"])


def variable_text(chain: Chain, name: str) -> str:
    return argument_text(name, netcdf_requests(chain))


WRITERS: dict[str, tuple[str, Callable[[Chain, str], str], bool, bool]] = {
    # notation read, writer, whether it has the name, whether it has the chunks
    "tamis": ("tamis", tamis_text, False, False),
    "netcdf": ("netcdf", lambda chain, name: chain_text(netcdf_requests(chain)), False, False),
    "variable": ("netcdf", variable_text, True, False),
    "nccopy": ("netcdf", nccopy_text, True, True),
    "h5repack": ("h5repack", lambda chain, name: command_text(chain, [name], CHUNKS), True, True),
    "keywords": ("h5py", lambda chain, name: h5py_keywords.keywords_text(chain, CHUNKS), False, True),
    "code": ("h5py", lambda chain, name: h5py_keywords.code(chain, CHUNKS, name), False, True),
    "cdl": ("cdl", lambda chain, name: cdl.attributes_text(cdl.attributes(chain, CHUNKS), name), True, True),
}


@pytest.mark.matrix
@pytest.mark.parametrize("writer", WRITERS)
@given(data=st.data())
def test_read_what_each_printer_writes_same_pipeline(
    writer: str, data: st.DataObject, chains: st.SearchStrategy[Chain], names: st.SearchStrategy[str]
) -> None:
    notation, write, named, chunked = WRITERS[writer]
    chain, name = data.draw(chains.map(lambda chain: chain[:4])), data.draw(names)
    try:
        text = write(chain, name)
    except ParameterError:
        assume(False)
    floats = any(each.filter.id == 6 and each.filter.requested[0] == 0 for each in chain)
    found = read(text, dtype=np.dtype("f4" if floats else "i4"))
    flagless = notation in ("netcdf", "cdl")
    said = tuple(Stage.of(each.filter) if flagless else each for each in chain)
    wanted = Reading(notation, said, (name,) if named else (), CHUNKS if chunked else None)
    assert (found.notation, found.chain, found.chunk_shape) == (wanted.notation, wanted.chain, wanted.chunk_shape)
    assert tuple(each.removeprefix("/") for each in found.names) == wanted.names


@pytest.mark.parametrize("version", [zarr.version_2, zarr.version_3])
@given(data=st.data())
def test_read_codecs_same_filters(
    version: Callable[[Chain, np.dtype[np.float32]], object], data: st.DataObject, chains: st.SearchStrategy[Chain]
) -> None:
    chain = data.draw(chains.map(lambda chain: chain[:2]))
    try:
        text = json.dumps(version(chain, DTYPE))
    except ParameterError:
        assume(False)
    found = read(text)
    assert (found.notation, [each.filter for each in found.chain]) == ("zarr", [each.filter for each in chain])


@pytest.mark.parametrize("text", ["", " ", "?", "|", "=4", "(4)", "-x"])
def test_notation_of_no_rule_fits_none(text: str) -> None:
    assert notation_of(text) is None


def test_notations_sorted_for_messages() -> None:
    assert NOTATIONS == ("cdl", "h5dump", "h5py", "h5repack", "netcdf", "tamis", "zarr")
