"""Pythons at hand that tamis supports: those on the path, and those of pyenv."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_ABOUT = "import ensurepip, platform, sys, venv; print(platform.python_version(), sys._base_executable)"


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter that can make environments."""

    version: str  # Such as 3.12.1
    program: Path

    @property
    def minor(self) -> str:
        """Its version without the last number."""
        return self.version.rpartition(".")[0]

    def fits(self, wheel: Path) -> bool:
        """Return whether a wheel is for this version: for it alone, or for the stable ABI from some version on."""
        python, abi = wheel.stem.split("-")[-3:-1]
        wanted = re.fullmatch(r"cp3(\d+)", python)
        if wanted is None:
            return False
        own = int(self.minor.partition(".")[2])
        return own >= int(wanted[1]) if abi == "abi3" else own == int(wanted[1])


def pythons(names: Iterable[str] = ()) -> list[Python]:
    """Return the Pythons of some names or paths, or without names all at hand, the oldest first, each once."""
    found = {python.program.resolve(): python for name in names or _places() for python in _python(name)}
    return sorted(found.values(), key=lambda python: [*map(int, re.findall(r"\d+", python.version))])


def _places() -> Iterator[str]:
    yield from (*(f"python{version}" for version in VERSIONS), "python3", "/usr/bin/python3")
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(map(str, versions.glob("*/bin/python3")))


def _python(name: str) -> Iterator[Python]:
    """Yield nothing if there is no such program, or its version is no supported one."""
    try:
        done = subprocess.run([name, "-c", _ABOUT], capture_output=True, text=True, check=False)
    except OSError:
        return
    if done.returncode == 0:
        version, program = done.stdout.split(maxsplit=1)
        python = Python(version, Path(program.strip()))
        if python.minor in VERSIONS:
            yield python
