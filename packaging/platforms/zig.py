"""Builds for other systems with zig: its C++ compiler has their headers and libraries within."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Apple's linker takes lists of names that are shown or absent, room for other names, and bundles; zig's has none of it.
_COMPILER = """#!/bin/bash
# Hidden visibility has to do here what lists of names do with Apple's linker.
words=()
while (($#)); do
    case "$1 ${{2-}}" in
    "-Xlinker -exported_symbol") shift 3 ;;
    "-Xlinker -dead_strip") shift ;;
    "-Wl,-exported_symbol,"* | "-Wl,-headerpad_max_install_names "* | "-Wl,-dead_strip "*) ;;
    "-Xlinker @"*) words+=(-undefined dynamic_lookup) && shift ;;  # nanobind's list of Python's names
    "-Wl,@"*) words+=(-undefined dynamic_lookup) ;;
    "-Xlinker -undefined") words+=(-undefined dynamic_lookup) && shift 3 ;;
    "-bundle "*) words+=(-shared) ;;
    "-ldl "*) [[ {target} != *linux* ]] || words+=(-ldl) ;;  # what CMake takes from this machine's Python
    *) words+=("$1") ;;
    esac
    shift
done
exec {zig} {verb} -target {target} "${{words[@]}}"
"""


class Zig:
    """Zig of this Python's environment, for one target such as ``aarch64-macos.14.0``."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        spec = importlib.util.find_spec("ziglang")
        if spec is None or spec.origin is None:
            sys.exit("expected zig, found none: pip install ziglang, as make does")
        self.program = Path(spec.origin).parent / "zig"
        folder.mkdir(parents=True, exist_ok=True)
        for verb in ("cc", "c++"):
            self._script(verb, _COMPILER.format(zig=self.program, verb=verb, target=target))
        for name in ("ar", "ranlib", "rc"):
            self._script(name, f'#!/bin/bash\nexec {self.program} {name} "$@"\n')

    def _script(self, name: str, text: str) -> None:
        path = self.folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            path.chmod(0o755)

    def compile(self, *words: str | Path) -> None:
        """Run the C compiler; exits with its message if it fails."""
        run([self.folder / "cc", *words])

    def build(self, settings: Mapping[str, str], targets: Sequence[str]) -> Path:
        """Build targets of the project by CMake, and return the folder that they lie in."""
        built = self.folder / "build"
        given = {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_CXX_COMPILER": self.folder / "c++",
            "CMAKE_AR": self.folder / "ar",
            "CMAKE_RANLIB": self.folder / "ranlib",
            "CMAKE_RC_COMPILER": self.folder / "rc",
            "CMAKE_MAKE_PROGRAM": Path(sys.executable).parent / "ninja",
            **settings,
        }
        words = [f"-D{name}={value}" for name, value in given.items()]
        cmake = Path(sys.executable).parent / "cmake"
        run([cmake, "-S", ROOT, "-B", built, "-G", "Ninja", "--log-level=WARNING", *words])
        run([cmake, "--build", built, "--parallel", os.environ.get("JOBS", "2"), "--target", *targets])
        return built


def run(words: Sequence[str | Path], **more: str) -> str:
    """Run a program and return what it printed; exits with that if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **more}, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}\nexit code {done.returncode}")
    return done.stdout
