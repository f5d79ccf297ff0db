"""Instructions of aarch64's kernels: ``python benchmarks/instructions.py [--library FOLDER] [--only WORD …]``.

Each kernel codes the fields of ``fields.py`` by ZFP and integers by szip, and so do libzfp and libaec where --library
says where Debian's are. All must give the same stream and the same values. A count, by QEMU, is that of a program that
codes twice, less that of one that codes once, for each value of the array. Counts say nothing of time: instructions
differ in what they take, and a branch that a processor guesses wrong costs nothing here.

Needs Debian's g++-aarch64-linux-gnu, qemu-user and cmake. Its libraries for arm64:

    dpkg --add-architecture arm64 && apt-get update && apt-get download libzfp1:arm64 libaec0:arm64
    for each in *_arm64.deb; do dpkg -x $each arm64; done  # --library arm64/usr/lib/aarch64-linux-gnu
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fields import field
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
ZFP_MODES = (("accuracy", "1e-3"), ("rate", "8"), ("reversible", ""))
ZFP_FIELDS = (
    ("float32", 3),
    ("float32", 2),
    ("float32", 1),
    ("float32", 4),
    ("float64", 3),
    ("float64", 2),
    ("float64", 1),
    ("int32", 3),
)
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
WHO = ("library", "portable", "neon")
TOOLCHAIN = f"""\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER {COMPILER})
"""


class Case(NamedTuple):
    """An array, and how it is coded."""

    values: NDArray[Any]
    mode: str
    value: str = ""

    @property
    def name(self) -> str:
        """The words that the program and the table have for it."""
        return f"{self.values.dtype} {self.values.ndim}-D {self.mode} {self.value}".strip()


def cases() -> Iterator[Case]:
    """Fields of floats and integers in each mode, then packed ones and noise by szip."""
    for dtype, rank in ZFP_FIELDS:
        values = field(rank, "smooth", dtype)
        yield from (Case(values, mode, value) for mode, value in ZFP_MODES if dtype != "int32" or mode != "accuracy")
    smooth, rough = field(2, "smooth", "float64"), field(2, "rough", "float64")
    yield Case((20000 + 3000 * smooth).astype("<u2"), "szip", "smooth")
    yield Case((20000 + 300 * rough).astype("<u2"), "szip", "rough")


def run(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program; exits with what it printed if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **more})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done


def build(folder: Path) -> tuple[Path, Path]:
    """Build the program that codes, for aarch64, and the plugin that counts, for this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    toolchain, plugin = folder / "toolchain.cmake", folder / "libcount.so"
    toolchain.write_text(TOOLCHAIN)
    options = ("-DTAMIS_BUILD_TESTS=ON", "-DTAMIS_BUILD_LIBRARIES=OFF", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", *options)
    run("cmake", "--build", folder / "build", "--target", "tamis_instructions")
    source = ROOT / "benchmarks" / "instructions_plugin.c"
    run(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", plugin, source)
    return folder / "build" / "tamis_instructions", plugin


class Counter:
    """The program under emulation."""

    def __init__(self, program: Path, plugin: Path, libraries: str) -> None:
        variables = ("-E", f"LD_LIBRARY_PATH={libraries}:/usr/aarch64-linux-gnu/lib")
        self._words = (EMULATOR, "-L", "/usr/aarch64-linux-gnu", *variables, "-plugin", plugin, program)

    def __call__(self, who: str, step: str, case: Case, raw: Path) -> tuple[float, str]:
        """Instructions for each value, and what the program says of stream and values."""
        counts, said = [], set()
        shape = (str(case.values.dtype), str(case.values.ndim), case.mode, case.value or "0")
        for repeats in ("1", "2"):
            done = run(*self._words, who, step, repeats, raw, *shape)
            counts.append(int(re.findall(r"instructions: (\d+)", done.stderr)[0]))
            said.add(done.stdout)
        assert len(said) == 1
        return (counts[1] - counts[0]) / case.values.size, said.pop()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="", metavar="FOLDER", help="with libzfp.so.1 and libaec.so.0 for aarch64")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="cases that have all of these words")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "instructions", metavar="FOLDER")
    arguments = parser.parse_args()
    if not all(map(shutil.which, (COMPILER, EMULATOR, "cmake"))):
        print("nothing counted: apt-get install g++-aarch64-linux-gnu qemu-user cmake ninja-build")
        return
    who = WHO if arguments.library else WHO[1:]
    count = Counter(*build(arguments.build), arguments.library)
    print("instructions for each value, encode and decode, under emulation", flush=True)
    print(f"| | {' | '.join(who)} | portable / neon |\n|---|{'---|' * (len(who) + 1)}")
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "values"
        for case in cases():
            if not set(arguments.only) <= set(case.name.split()):
                continue
            case.values.tofile(raw)
            counts, said = {}, set()
            for each in who:
                for step in ("encode", "decode"):
                    counts[each, step], words = count(each, step, case, raw)
                    said.add(words)
            assert len(said) == 1, f"expected the same stream and values from all, got {said}"
            pairs = (f"{counts[each, 'encode']:.1f}, {counts[each, 'decode']:.1f}" for each in who)
            gains = (counts["portable", step] / counts["neon", step] for step in ("encode", "decode"))
            print(f"| {case.name} | {' | '.join(pairs)} | {', '.join(f'{gain:.2f}' for gain in gains)} |", flush=True)


if __name__ == "__main__":
    main()
