"""D24: one plugin file serves every libhdf5 of a process at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

import tamis

Run = Callable[..., str]
THREE_LIBRARIES = Path(__file__).with_name("three_libraries.py")


@pytest.mark.matrix
@pytest.mark.parametrize("imports", [(), ("tamis",)], ids=["plugin path alone", "tamis imported too"])
def test_d24_three_libraries_in_one_process_write_and_read(
    tmp_path: Path, python: Run, imports: tuple[str, ...]
) -> None:
    """D24: one plugin file serves every libhdf5 in the process at once, reading and writing."""
    plugins = tamis.plugin_path()
    assert "100 rounds" in python(THREE_LIBRARIES, tmp_path, "100", *imports, plugins=plugins)


def test_d24_message_of_failed_read_reaches_error_stack_of_each_library(tmp_path: Path, python: Run) -> None:
    """D24, and issue 2: errors reach the HDF5 error stack."""
    said = python(
        THREE_LIBRARIES,
        tmp_path,
        "1",
        env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())},
    )
    assert said == "1 rounds, filter's message on read: h5py netcdf4 tables\n"


UNLOADED = """
import _ctypes, sys
_ctypes.dlclose(_ctypes.dlopen(sys.argv[1], 1))
with open("/proc/self/maps") as maps:
    print(sys.argv[1] in maps.read())
"""


def test_plugin_that_is_unloaded_leaves_nothing_for_the_end_of_the_process() -> None:
    """HDF5 unloads its plugins when it ends, as it does at the end of h5repack."""
    (plugin,) = tamis.plugin_path().glob("libh5ztamis.*")
    command = [sys.executable, "-c", UNLOADED, str(plugin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n")


@pytest.mark.peer
def test_d24_plugin_is_one_file_and_shows_only_entry_points() -> None:
    """D24: one plugin file, with no symbol leaking, and bound to no libhdf5 beforehand."""
    needs.need("nm", "readelf")
    (plugin,) = tamis.plugin_path().iterdir()
    listed = subprocess.run(["nm", "-D", plugin], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in listed.splitlines()]
    entry_points = {"H5PLget_plugin_info", "H5PLget_plugin_type", "NCZ_get_codec_info"}
    assert {parts[-1] for parts in symbols if parts[-2] not in "Uwv"} == entry_points
    assert not [parts[-1] for parts in symbols if parts[-2] == "U" and parts[-1].startswith("H5")]
    needed = subprocess.run(["readelf", "-d", plugin], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed
    assert "hdf5" not in needed.lower()
