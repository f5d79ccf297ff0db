"""The native tests and fuzzers, built with sanitizers, and the plugin as it is installed."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

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
    check(
        share([kernel for kernel in tamis.config().kernels if kernel in ("portable", "avx2", "avx512", "neon")]), fuzz
    )


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


OF_VECTORS = tuple(f"../../kernels/{name}" for name in ("vectors", "avx2", "avx512", "neon"))
"""What kernels of ZFP include besides, from native/include/tamis."""


class Kernels(NamedTuple):
    """The kernels of a codec: one for each instruction set, and the choice of one."""

    target: str  # of CMake
    folder: str  # of their sources in native/kernels
    headers: tuple[str, ...]  # what they include of native/include/tamis
    choice: frozenset[str]  # functions that the choice defines for others
    avx2: frozenset[str]  # instructions of the one for AVX2
    avx512: str  # an instruction of the one for AVX-512 alone

    def objects(self) -> dict[str, Path]:
        """Give the objects by kernel: those of the package, unless a source is newer; or built anew."""
        own = ROOT / "native" / "kernels" / self.folder
        sources = [*own.glob("*.*pp")]
        for header in (*self.headers, *(() if self.folder else OF_VECTORS)):
            path = ROOT / "native" / "include" / "tamis" / header
            sources += path.iterdir() if path.is_dir() else [path]
        newest = max(path.stat().st_mtime for path in sources)
        of_others = {"neon"} if platform.machine() == "x86_64" else {"avx2", "avx2_tzcnt", "avx512"}
        expected = {path.stem for path in own.glob("*.cpp")} - of_others
        pattern = f"kernels/{self.folder}/*.o" if self.folder else "kernels/*.o"
        for built in (ROOT / "build").glob(f"*/CMakeFiles/{self.target}.dir"):
            objects = [path for path in built.rglob(pattern) if path.stat().st_mtime > newest]
            if len(objects) == len(expected):
                break
        else:
            objects = [*build(KEPT / "kernels", self.target).rglob(f"{self.target}.dir/**/{pattern}")]
        return {path.name.partition(".")[0]: path for path in objects}


ZFP = Kernels(
    "tamis_kernels",
    "",
    ("zfp",),
    frozenset(
        f"tamis::zfp::{name}"
        for name in (
            "available_kernels()",
            "find_kernel(char const*)",
            "chosen_kernel()",
            "kernels_for(tamis::zfp::Cpu const&)",
        )
    ),
    frozenset(("pdep", "pext", "vpshufb")),
    "vgf2p8affineqb",
)
PACK = Kernels(
    "tamis_pack",
    "pack",
    ("values/packing.hpp",),
    frozenset(("tamis::values::pack_kernel_like(char const*)",)),
    frozenset(("vdivpd", "vmaxpd")),
    "vpternlogd",
)
SZIP = Kernels(
    "tamis_szip",
    "szip",
    ("szip",),
    frozenset(("tamis::szip::kernel_like(char const*)",)),
    frozenset(("pdep", "pext", "vpsadbw")),
    "vpcompressb",
)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", [ZFP, PACK, SZIP], ids=lambda kernels: kernels.target)
def test_kernels_hold_no_code_of_one_another(kernels: Kernels) -> None:
    # A function that two objects define is kept once, by chance the one that this machine cannot run.
    found = kernels.objects()
    assert {"choose", "portable"} <= found.keys()
    for name, each in found.items():
        assert functions(each) == (kernels.choice if name == "choose" else set()), name
    if "avx2" not in found:
        return  # not x86-64
    has = {name: instructions(each) for name, each in found.items()}
    for name in ("choose", "portable"):
        assert not [each for each in has[name] if each.startswith("v")], f"{name} needs no AVX"
    assert kernels.avx2 <= has["avx2"]
    assert {name for name in has if kernels.avx512 in has[name]} == found.keys() & {"avx512"}
    if "avx2_tzcnt" in found:
        assert "vpshufb" in has["avx2_tzcnt"]
        assert not {"pdep", "pext"} & has["avx2_tzcnt"], "they are microcode there"


TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {name})
set(CMAKE_CXX_COMPILER {name}-linux-gnu-g++)
"""
ON_OTHERS: dict[str, int] = {
    "tamis_tests": 0,
    "tamis_filter_tests": 0,
    "tamis_filter_fuzz": 2000,
    "tamis_values_fuzz": 2000,
    "tamis_kernels_agree": 45_000,
    "tamis_szip_fuzz": 10_000,
}
"""Programs that run on other processors, with the number of cases of seed 1."""
KERNELS_OF_OTHERS = {"s390x": ("portable",), "aarch64": ("neon", "portable")}


def sum_of_streams(printed: str) -> str:
    """Give the sum of the streams of all cases; empty for a program that writes none."""
    found = re.search("sum of the streams ([0-9a-f]{16})", printed)
    return found[1] if found else ""


@pytest.mark.check
@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.xdist_group("other processors")  # their builds are kept in one folder
@pytest.mark.parametrize("name", KERNELS_OF_OTHERS)
def test_other_processors_write_the_same_streams(
    name: str, tmp_path: Path, share: Callable[[Sequence[int]], list[int]]
) -> None:
    """s390x is big-endian: numbers in memory have their bytes the other way round, streams have not.

    The kernels of a processor are compared with each other, too, on whole streams and damaged ones.
    """
    tool(f"{name}-linux-gnu-g++")
    emulator = (tool(f"qemu-{name}"), "-L", f"/usr/{name}-linux-gnu")
    toolchain = tmp_path / "toolchain.cmake"
    toolchain.write_text(TOOLCHAIN.format(name=name))
    common = {"TAMIS_BUILD_TESTS": "ON", "TAMIS_BUILD_LIBRARIES": "OFF"}
    there = build(KEPT / name, *ON_OTHERS, **common, CMAKE_TOOLCHAIN_FILE=str(toolchain))
    here = build(KEPT / "here", *ON_OTHERS, **common)
    kernels = KERNELS_OF_OTHERS[name]
    sums = 0
    for program, cases in ON_OTHERS.items():
        numbers = (str(len(share(range(cases)))), "1") if cases else ()
        printed = run(*emulator, there / program, *numbers)
        if program in ("tamis_kernels_agree", "tamis_szip_fuzz"):
            assert printed.startswith(f"{len(kernels)} kernels"), program
        if found := sum_of_streams(printed):
            assert found == sum_of_streams(run(here / program, *numbers)), program
            sums += 1
    assert sums == 2  # zfp and szip
    for kernel in kernels:
        assert "all native tests passed" in run(*emulator, there / "tamis_tests", kernel=kernel), kernel


def plugin() -> Path:
    return tamis.plugin_path() / "libh5ztamis.so"


@pytest.mark.peer
def test_plugin_links_neither_hdf5_nor_a_cxx_runtime() -> None:
    lines = run(tool("readelf"), "-d", "-W", plugin()).splitlines()
    needed = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]
    assert any(name.startswith("libc.") for name in needed), needed
    assert not [name for name in needed if name.startswith(("libhdf5", "libstdc++", "libc++", "libgcc"))], needed
