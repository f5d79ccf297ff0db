"""What can read a pipeline: any HDF5, HDF5 with plugins, h5py as it is here, tamis."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tamis
from tamis import Deflate, Fletcher32, Shuffle, UnknownFilter
from tamis.filters import Request, from_values
from tamis.filters.unknown import REGISTERED
from tamis.formats.hdf5.library_reader import Readers, readers_of


def test_readers_of_no_filters_and_of_hdf5s_own_are_any() -> None:
    for filters in ((), (Shuffle(), Deflate(4), Fletcher32())):
        found = readers_of(filters)
        assert (found.any_hdf5, found.h5py, found.tamis, str(found)) == (True, True, True, "any HDF5")


def test_readers_of_zfp_need_its_plugin_which_tamis_is() -> None:
    found = readers_of([tamis.Zfp(rate=8), Deflate(4)])
    assert found == Readers(plugins=("H5Z-ZFP",), szip=False, h5py=True, tamis=True, hint="")
    assert str(found) == "HDF5 with the plugin H5Z-ZFP (here: h5py yes; tamis yes)"


def test_readers_of_szip_need_a_library_built_with_it() -> None:
    found = readers_of([from_values(Request(4, (169, 8, 32, 32)))])
    assert found.szip
    assert not found.any_hdf5
    assert str(found).startswith("HDF5 built with szip, not NCO 5.1 (here: h5py ")
    assert found.not_by == ("NCO 5.1",)


def test_readers_of_filter_that_nobody_has_say_no() -> None:
    found = readers_of([UnknownFilter(400, (1, 2)), UnknownFilter(401, (), "mine; see elsewhere"), Deflate(4)])
    assert str(found) == "HDF5 with the plugins of filter 400 and mine [401] (here: h5py no; tamis no)"


def test_readers_of_damaged_zfp_parameters_are_none() -> None:
    found = readers_of([from_values(Request(32013, (1, 2, 3)))])
    assert (found.h5py, found.tamis, found.hint) == (False, False, "")


def test_readers_of_filter_used_twice_name_its_plugin_once() -> None:
    assert readers_of([UnknownFilter(32004, (1,)), UnknownFilter(32004, (2,))]).plugins == ("LZ4",)


@pytest.mark.parametrize(
    ("first", "words"),
    [("", "h5py no, import hdf5plugin in the program that reads"), ("import hdf5plugin", "h5py yes")],
)
def test_readers_of_hdf5plugins_filters_say_how_to_get_them(first: str, words: str) -> None:
    code = f"""
{first}
import tamis
from tamis.filters import UnknownFilter
from tamis.formats.hdf5.library_reader import readers_of
print(readers_of([UnknownFilter(32008)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"HDF5 with the plugin bitshuffle (here: {words}" in done.stdout


def test_registered_names_agree_with_hdf5plugins_ids() -> None:
    names = ("BLOSC", "BLOSC2", "BSHUF", "BZIP2", "FCIDECOMP", "LZ4", "SPERR", "SZ", "SZ3", "ZFP", "ZSTD")
    code = f"import hdf5plugin._filters as f; print(*(getattr(f, name + '_ID') for name in {names}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name, number in zip(names, done.stdout.split(), strict=True):
        assert {"BSHUF": "BITSHUFFLE", "ZSTD": "ZSTANDARD"}.get(name, name) in REGISTERED[int(number)].upper()
