"""Parameters arrive at a filter word for word: netCDF-C's own vector, through a filter of the test in its HDF5."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis import netcdf
from tamis.netcdf import filterspec_fix8

from .conftest import RawLibrary, netCDF4, new_dataset, variable_of

MISC = 32768
TEXT = f"{MISC},3,32768,-17b,23ub,-25S,27US,77,93U,789f,12345678.12345678d,-9223372036854775807L,18446744073709551615UL"
WORDS = (
    3, 32768, 239, 23, 65511, 27, 77, 93, 1145389056, 3287505826, 1097305129, 1, 2147483648, 4294967295, 4294967295,
)  # fmt: skip

Callback = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)


class FilterClass(ctypes.Structure):
    """H5Z_class2_t."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encoder_present", ctypes.c_uint),
        ("decoder_present", ctypes.c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", ctypes.c_void_p),
        ("set_local", ctypes.c_void_p),
        ("filter", Callback),
    )


@pytest.fixture
def arrived(raw: RawLibrary) -> Iterator[list[tuple[bool, tuple[int, ...]]]]:
    """Register a filter that changes nothing with netCDF's HDF5; give whether it read, and its words, call by call."""
    calls: list[tuple[bool, tuple[int, ...]]] = []

    def pass_on(flags: int, count: int, words: Any, nbytes: int, _size: Any, _buffer: Any) -> int:
        calls.append((bool(flags & 0x0100), tuple(words[:count])))
        return nbytes

    callback = Callback(pass_on)
    entry = FilterClass(1, MISC, 1, 1, b"misc", None, None, callback)
    assert raw.library.H5Zregister(ctypes.byref(entry)) >= 0
    yield calls
    assert raw.library.H5Zunregister(MISC) >= 0


def test_official_vector_arrives_at_the_filter_on_writing_and_reading(
    arrived: list[tuple[bool, tuple[int, ...]]], tmp_path: Path, values: np.ndarray
) -> None:
    request = netcdf.filterspec_parse(TEXT, compat="netcdf-c")
    assert request == (MISC, WORDS)
    assert netcdf.filterspec_parselist(f"{TEXT}|1,4", compat="netcdf-c") == [request, (1, (4,))]
    with new_dataset(tmp_path / "a.nc") as dataset:
        variable = variable_of(dataset)
        netcdf.def_var_filter(variable, request)
        assert netcdf.inq_var_filter_info(variable, MISC) == request
        variable[:] = values
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        assert np.array_equal(dataset["v"][:], values)
        assert netcdf.filters(dataset["v"]).stages[0].stored == WORDS
        assert netcdf.inq_var_filter_info(dataset["v"], MISC) == request
    assert {reads for reads, _ in arrived} == {True, False}
    assert {words for _, words in arrived} == {WORDS}


def test_def_var_filter_text_with_two_meanings_refused_and_words_taken(
    arrived: list[tuple[bool, tuple[int, ...]]], dataset: Any
) -> None:
    variable = variable_of(dataset)
    with pytest.raises(tamis.ParameterError, match="at position"):
        netcdf.def_var_filter(variable, TEXT)  # -17b is 239 for netCDF-C, and -17 for its documentation
    assert netcdf.inq_var_filter_ids(variable) == ()
    netcdf.def_var_filter(variable, MISC, WORDS)
    assert netcdf.inq_var_filter_info(variable, MISC).values == WORDS


@pytest.mark.skipif(sys.byteorder == "big", reason="netCDF-C changes bytes there")
def test_fix8_and_parse_parameter_as_netcdf_c(raw: RawLibrary) -> None:
    data = np.float64(0.1).tobytes()
    for decode in (False, True):
        room = ctypes.create_string_buffer(data, 8)
        raw.library.ncaux_h5filterspec_fix8(room, decode)
        assert filterspec_fix8(data, decode) == room.raw
    assert netcdf.filterspec_parse_parameter("0.1d") == tuple(np.frombuffer(data, "u4"))
    assert netcdf.filterspec_parse_parameter("-17b", compat="netcdf-c") == (239,)
    assert netcdf.filterspec_parse_parameter("-17b", compat="doc") == (4294967279,)
