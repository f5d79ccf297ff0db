"""Who can read what is stored with each filter: tried with small files, and everyone that is here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tamis.jobs.doctor.child import tried
from tamis.jobs.doctor.result import Finding, Package, Reads
from tamis.system import processor_count

FILTERS = {
    "shuffle|deflate": "shuffle|deflate(4)",
    "szip": "szip",
    "scaleoffset": "scaleoffset(kind=decimal,factor=2)",
    "lzf": "lzf",
    "bzip2": "bzip2",
    "zstd": "zstd",
    "blosc": "blosc",
    "blosc2": "blosc2",
    "lz4": "lz4",
    "bitshuffle": "bitshuffle",
    "zfp": "zfp(accuracy=0.1)",
    "sz3": "sz3(bound=0.1)",
    "sperr": "sperr(bound=0.1)",
}
"""Texts of the filters that are tried, by name."""

_PACKAGES = {"h5py": "h5py", "hdf5plugin": "h5py with hdf5plugin", "netCDF4": "netCDF4"}
"""Packages that read, by the names of tasks of `_probe`, and what they are called here."""

_SECONDS = 120.0


def find_readers(packages: tuple[Package, ...]) -> tuple[tuple[Reads, ...], list[Finding]]:
    """Return who reads each filter, and what is wrong with tamis' own reading."""
    here = {package.name for package in packages if package.version}
    tasks = {"tamis": "tamis"} | {task: name for task, name in _PACKAGES.items() if task in here}
    programs = {name: reads for name, reads in _PROGRAMS.items() if shutil.which(name)}
    with tempfile.TemporaryDirectory(prefix="tamis-doctor-") as folder:
        paths = {name: os.path.join(folder, f"{number}.h5") for number, name in enumerate(FILTERS)}
        written = dict(
            zip(FILTERS, tried("written", [(paths[name], text) for name, text in FILTERS.items()]), strict=True)
        )
        made = [name for name in FILTERS if not written[name].error]
        files = [paths[name] for name in made]
        with ThreadPoolExecutor(processor_count()) as pool:
            answers = {
                **{name: pool.submit(_read_by_package, task, files) for task, name in tasks.items()},
                **{name: pool.submit(_read_by_program, reads, files) for name, reads in programs.items()},
            }
        read = {reader: dict(zip(made, answer.result(), strict=True)) for reader, answer in answers.items()}
    reads = tuple(
        Reads(name, name in made, {reader: answer.get(name) for reader, answer in read.items()}) for name in FILTERS
    )
    return reads, [_own_failure(name) for name in made if not read["tamis"][name]]


def _read_by_package(task: str, files: list[str]) -> list[bool]:
    return [not one.error for one in tried(task, files)]


def _read_by_program(reads: Callable[[str], bool], files: list[str]) -> list[bool]:
    return [*map(reads, files)]


def _is_unpacked(path: str) -> bool:
    """Let h5repack take the filter away; where it cannot read a dataset it copies that, and its exit code is 0."""
    target = f"{path}.out"
    if _output("h5repack", "-f", "x:NONE", path, target) is None:
        return False
    shown = _output("h5dump", "-p", "-H", "-d", "/x", target) or b""
    return re.search(rb"FILTERS\s*\{\s*NONE", shown) is not None


def _output(*command: str) -> bytes | None:
    """Return what a program prints; None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def _own_failure(name: str) -> Finding:
    text = "tamis cannot read what it wrote itself"
    return Finding("problem", name, text, "install tamis and its packages anew; if that does not help, report it")


_PROGRAMS: Mapping[str, Callable[[str], bool]] = {
    "ncdump": lambda path: _output("ncdump", "-v", "x", path) is not None,
    "h5dump": lambda path: _output("h5dump", "-d", "/x", path) is not None,
    "h5repack": _is_unpacked,
}
"""Programs that read, by their names, and how to see whether they can."""
