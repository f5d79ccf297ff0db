"""The native tests and fuzzers, built with sanitizers, and the plugin as it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("tamis_tests", "tamis_filter_tests", "tamis_fuzz", "tamis_filter_fuzz", "tamis_plugin_fuzz")


def run(*command: str | os.PathLike[str]) -> str:
    """Run a program, check that it succeeds, and give its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-6000:]}"
    return done.stdout


def tool(name: str) -> str:
    """Give the path of a program: the one beside this Python first, where pip puts cmake and ninja."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None and "CI" in os.environ:
        pytest.fail(f"no {name} here, which CI must have")
    return found or pytest.skip(f"no {name} here")


@pytest.mark.slow
def test_native_code_under_sanitizers_keeps_its_promises(tmp_path_factory: pytest.TempPathFactory) -> None:
    cmake, ninja = tool("cmake"), tool("ninja")
    tool("c++")
    build = tmp_path_factory.mktemp("native")
    run(
        *(cmake, "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"),
        *("-DCMAKE_BUILD_TYPE=Release", "-DTAMIS_BUILD_TESTS=ON", "-DTAMIS_SANITIZE=ON"),
    )
    run(cmake, "--build", build, "--target", *PROGRAMS, "--parallel", "2")

    assert "all native tests passed" in run(build / "tamis_tests")
    assert "all tests of the filters passed" in run(build / "tamis_filter_tests")
    printed = {fuzzer: run(build / fuzzer) for fuzzer in ("tamis_fuzz", "tamis_filter_fuzz", "tamis_plugin_fuzz")}
    assert not [each for each, text in printed.items() if "200000 mutations of seed 1: nothing found" not in text]
    assert printed["tamis_filter_fuzz"].count(" 200000 done,") == 3  # nbit, scaleoffset, shuffle and bitshuffle


@pytest.mark.slow
def test_native_code_in_eight_threads_under_thread_sanitizer_has_no_race(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    cmake, ninja = tool("cmake"), tool("ninja")
    tool("c++")
    build = tmp_path_factory.mktemp("threads")
    run(
        *(cmake, "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"),
        *("-DCMAKE_BUILD_TYPE=Release", "-DTAMIS_BUILD_TESTS=ON", "-DTAMIS_SANITIZE_THREADS=ON"),
    )
    run(cmake, "--build", build, "--target", "tamis_thread_tests", "--parallel", "2")

    assert "__tsan_init" in run(tool("nm"), build / "tamis_thread_tests"), "it looks for races"
    assert "40 rounds in 8 threads: nothing found" in run(build / "tamis_thread_tests")


def plugin() -> Path:
    return tamis.plugin_path() / "libh5ztamis.so"


@pytest.mark.peer
def test_plugin_exports_only_what_hdf5_asks_for() -> None:
    lines = run(tool("nm"), "-D", "--defined-only", plugin()).splitlines()
    assert sorted(line.split()[-1] for line in lines) == ["H5PLget_plugin_info", "H5PLget_plugin_type"]


@pytest.mark.peer
def test_plugin_links_neither_hdf5_nor_a_cxx_runtime() -> None:
    lines = run(tool("readelf"), "-d", "-W", plugin()).splitlines()
    needed = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]
    assert any(name.startswith("libc.") for name in needed), needed
    assert not [name for name in needed if name.startswith(("libhdf5", "libstdc++", "libc++", "libgcc"))], needed
