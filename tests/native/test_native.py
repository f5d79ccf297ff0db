"""The native tests and fuzzers, built with sanitizers, and the plugin as it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import needs
import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "check"
"""Builds that are kept, so that only what changed is compiled again."""
OF_CODEC = ("tamis_tests", "tamis_kernels_agree", "tamis_fuzz")
OF_FILTERS = (
    "tamis_filter_tests",
    "tamis_filter_fuzz",
    "tamis_szip_fuzz",
    "tamis_plugin_fuzz",
    "tamis_nczarr_fuzz",
    "tamis_chunk_fuzz",
    "tamis_values_fuzz",
)


def run(*command: str | os.PathLike[str], kernel: str = "") -> str:
    """Run a program with a kernel, check that it succeeds, and give its output."""
    environment = os.environ | {"TAMIS_KERNEL": kernel}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-6000:]}"
    return done.stdout


def tool(name: str) -> str:
    """Give the path of a program: the one beside this Python first, where pip puts cmake and ninja."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or needs.absent(name)


def build(folder: Path, *targets: str, **options: str) -> Path:
    """Build targets of the native code with CMake."""
    cmake, ninja = tool("cmake"), tool("ninja")
    tool("c++")
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    command = (cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}")
    run(*command, "-DCMAKE_BUILD_TYPE=Release", *definitions)
    run(cmake, "--build", folder, "--target", *targets, "--parallel", "2")
    return folder


@pytest.fixture
def fuzz(share: Callable[[Sequence[int]], list[int]], request: pytest.FixtureRequest) -> Callable[..., str]:
    """Run a fuzzer for so many rounds of seed 1; a run that takes a part of them has a seed of its own."""

    def fuzz(fuzzer: Path, rounds: int, kernel: str = "") -> str:
        taken = len(share(range(rounds)))
        seed = 1 if taken == rounds else int(request.config.getoption("randomly_seed", 1))
        printed = run(fuzzer, str(taken), str(seed), kernel=kernel)
        assert f"{taken} " in printed
        ending = "," if fuzzer.name == "tamis_kernels_agree" else ": nothing found"
        assert f" of seed {seed}{ending}" in printed
        return printed

    return fuzz


def build_sanitized(kernels: Sequence[str], *programs: str) -> Path:
    """Build programs with AddressSanitizer and UndefinedBehaviorSanitizer."""
    options = {"TAMIS_BUILD_TESTS": "ON", "TAMIS_SANITIZE": "ON", "TAMIS_KERNELS": ";".join(kernels)}
    return build(KEPT / "sanitize", *programs, **options)


def check_memory_of_codec(kernels: Sequence[str], fuzz: Callable[..., str]) -> None:
    """Run the codec's tests and fuzzers."""
    built = build_sanitized(kernels, *OF_CODEC)
    for kernel in kernels:
        assert "all native tests passed" in run(built / "tamis_tests", kernel=kernel), kernel
        fuzz(built / "tamis_fuzz", 50_000, kernel)
    number = len({"portable", *kernels})
    assert fuzz(built / "tamis_kernels_agree", 30_000).startswith(f"{number} kernels agree on ")


def check_memory_of_filters(kernels: Sequence[str], fuzz: Callable[..., str]) -> None:
    """Run the tests and fuzzers of filters, plugins, chunks and values."""
    built = build_sanitized(kernels, *OF_FILTERS)
    for kernel in kernels:
        fuzz(built / "tamis_plugin_fuzz", 50_000, kernel)
        fuzz(built / "tamis_chunk_fuzz", 20_000, kernel)
    fuzz(built / "tamis_values_fuzz", 20_000)
    assert "all tests of the filters passed" in run(built / "tamis_filter_tests")
    printed = fuzz(built / "tamis_filter_fuzz", 200_000)
    assert printed.count(" done,") == 3  # nbit, scaleoffset, shuffle and bitshuffle
    fuzz(built / "tamis_szip_fuzz", 10_000)  # each case by all kernels
    fuzz(built / "tamis_nczarr_fuzz", 200_000)


def check_threads(_: object, fuzz: Callable[..., str]) -> None:
    """Run the tests of threads under ThreadSanitizer."""
    # No kernel besides the portable one: threads share the code of all.
    options = {"TAMIS_BUILD_TESTS": "ON", "TAMIS_SANITIZE_THREADS": "ON", "TAMIS_KERNELS": ""}
    built = build(KEPT / "threads", "tamis_thread_tests", "tamis_chunk_fuzz", **options)
    assert "__tsan_init" in run(tool("nm"), built / "tamis_thread_tests"), "it looks for races"
    assert "40 rounds in 8 threads: nothing found" in run(built / "tamis_thread_tests")
    fuzz(built / "tamis_chunk_fuzz", 5000)


@pytest.mark.slow
@pytest.mark.check
@pytest.mark.matrix
@pytest.mark.xdist_group("sanitizers")  # their builds are kept in one folder
@pytest.mark.parametrize("check", [check_memory_of_codec, check_memory_of_filters, check_threads])
def test_native_code_under_sanitizers_keeps_its_promises(
    check: Callable[..., None], share: Callable[[Sequence[str]], list[str]], fuzz: Callable[..., str]
) -> None:
    # Each kernel takes minutes to compile, so only those that run here; avx2-tzcnt is avx2 but for some instructions.
    check(share([kernel for kernel in tamis.config().kernels if kernel in ("portable", "avx2", "avx512")]), fuzz)


def functions(file: Path) -> set[str]:
    """Give the functions that an object file defines for others."""
    lines = run(tool("nm"), "--defined-only", "--extern-only", "--demangle", file).splitlines()
    symbols = [line.split(maxsplit=2)[1:] for line in lines]
    return {symbol for kind, symbol in symbols if kind in "TtWwi"}


def instructions(file: Path) -> set[str]:
    """Give the names of the instructions of an object file."""
    lines = run(tool("objdump"), "--disassemble", "--no-show-raw-insn", file).splitlines()
    columns = [line.split("\t") for line in lines]
    return {column[1].split()[0] for column in columns if len(column) > 1 and column[1].strip()}


CHOICE = {"available_kernels()", "find_kernel(char const*)", "chosen_kernel()", "kernels_for(tamis::zfp::Cpu const&)"}


def kernels() -> list[Path]:
    """Give the kernels' objects: those that the package was built of, unless a source is newer; or built anew."""
    sources = [
        *(ROOT / "native" / "kernels").rglob("*.*pp"),
        *(ROOT / "native" / "include" / "tamis" / "zfp").iterdir(),
    ]
    newest = max(path.stat().st_mtime for path in sources)
    for built in (ROOT / "build").glob("*/CMakeFiles/tamis_kernels.dir"):
        objects = [path for path in built.rglob("kernels/*.o") if path.stat().st_mtime > newest]
        if len(objects) == len([*(ROOT / "native" / "kernels").glob("*.cpp")]):
            return objects
    return [*build(KEPT / "kernels", "tamis_kernels").rglob("kernels/*.o")]


@pytest.mark.slow
def test_kernels_hold_no_code_of_one_another() -> None:
    # A function that two objects define is kept once, by chance the one that this machine cannot run.
    found = {each.name.partition(".")[0]: each for each in kernels()}
    assert {"choose", "portable"} <= found.keys()
    for name, each in found.items():
        assert functions(each) == {f"tamis::zfp::{own}" for own in (CHOICE if name == "choose" else ())}, name
    if "avx2" not in found:
        return  # not x86-64
    has = {name: instructions(each) for name, each in found.items()}
    for name in ("choose", "portable"):
        assert not [each for each in has[name] if each.startswith("v")], f"{name} needs no AVX"
    assert {"pdep", "pext", "vpshufb"} <= has["avx2"]
    assert "vpshufb" in has["avx2_tzcnt"]
    assert not {"pdep", "pext"} & has["avx2_tzcnt"], "they are microcode there"
    assert {name for name in has if "vgf2p8affineqb" in has[name]} == found.keys() & {"avx512"}


@pytest.mark.slow
def test_kernels_of_szip_hold_no_code_of_one_another() -> None:
    built = build(KEPT / "kernels", "tamis_szip")
    found = {each.name.partition(".")[0]: each for each in built.rglob("kernels/szip/*.o")}
    assert {"choose", "portable"} <= found.keys()
    for name, each in found.items():
        own = "kernel_like(char const*)" if name == "choose" else ""
        assert functions(each) == ({f"tamis::szip::{own}"} if own else set()), name
    if "avx2" not in found:
        return  # not x86-64
    has = {name: instructions(each) for name, each in found.items()}
    assert not [each for each in has["portable"] if each.startswith("v")], "portable needs no AVX"
    assert {"pdep", "pext", "vpsadbw"} <= has["avx2"]
    assert {name for name in has if "vpcompressb" in has[name]} == found.keys() & {"avx512"}


def plugin() -> Path:
    return tamis.plugin_path() / "libh5ztamis.so"


@pytest.mark.peer
def test_plugin_links_neither_hdf5_nor_a_cxx_runtime() -> None:
    lines = run(tool("readelf"), "-d", "-W", plugin()).splitlines()
    needed = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]
    assert any(name.startswith("libc.") for name in needed), needed
    assert not [name for name in needed if name.startswith(("libhdf5", "libstdc++", "libc++", "libgcc"))], needed
