"""Check what is in wheels: ``python packaging/check_wheel.py dist/*.whl`` prints what is wrong and fails.

A wheel must work beside any libhdf5, so that it holds none and links none; whatever it links, every system has. Wheels
for all systems are checked on any machine, except that those for Linux are read by readelf.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent / "platforms"))
import mach_o
import pe

ROOT = Path(__file__).resolve().parents[1]

REQUIRED = (
    "tamis/__init__.py",
    "tamis/py.typed",
    "tamis/_native.pyi",
    "tamis_command/__init__.py",
    "tamis_xarray/__init__.py",
    *(f"tamis/include/{name}.h" for name in ("H5Zzfp", "H5Zzfp_lib", "H5Zzfp_plugin", "H5Zzfp_props", "tamis")),
    *(f"tamis/lib/pkgconfig/{name}.pc" for name in ("h5zzfp", "tamis")),
    *(f"tamis/lib/cmake/{name}/{name}-config.cmake" for name in ("h5z_zfp", "tamis")),
    *(f"tamis/fortran/{name}" for name in ("H5Zzfp_props_f.F90", "tamis_zfp.f90")),
    "tamis/sample/cam_ts.nc",
    "tamis/sample/LICENSE-APACHE-2.0.txt",
)
"""What users of Python, of C and of Fortran each need, on every system."""

EXPORTS = {"H5PLget_plugin_type", "H5PLget_plugin_info", "NCZ_get_codec_info"}
"""All that the plugin shows to the programs that load it."""

MAX_NBYTES = 16 << 20
"""A quarter of it is the sample; the kernels are in five libraries."""

_FOREIGN = re.compile(r"(lib)?(hdf5\w*|netcdf|zfp|z|zlib\w*|sz|szip|aec)[-_.]")
_UNWANTED = re.compile(r"(^|/)(tests?|\.ci|\.venv|__pycache__)/")
_CXX_RUNTIME = re.compile(r"lib(std)?c\+\+\S*|msvcp\d+\S*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Linked:
    """What a library says of itself."""

    exports: frozenset[str]
    needed: tuple[str, ...]
    folders: tuple[str, ...] = ()
    """Where it looks for the libraries that it needs."""
    ends: bool = True
    """Whether its static objects end when it is unloaded, and not when the process does."""


def read_elf(path: Path) -> Linked:
    """Read a library for Linux."""
    dynamic, symbols = (
        subprocess.run(["readelf", "--wide", option, path], capture_output=True, text=True, check=True).stdout
        for option in ("--dynamic", "--dyn-syms")
    )
    exports = re.findall(r"(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+(\w+)", symbols)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    folders = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", dynamic)
    ends = re.search(r"\bUND\s+__cxa_finalize\b", symbols) is not None
    return Linked(frozenset(exports), tuple(needed), tuple(folders), ends)


def read_mach_o(path: Path) -> Linked:
    """Read a library for macOS."""
    library = mach_o.read(path)
    return Linked(frozenset(library.exports), library.linked, library.rpaths)


def read_pe(path: Path) -> Linked:
    """Read a library for Windows."""
    library = pe.read(path)
    return Linked(frozenset(library.exports), library.linked)


@dataclass(frozen=True, slots=True)
class System:
    """How a wheel for this system differs from one for another; patterns match whole names."""

    tag: str
    module: str
    plugin: str
    libraries: tuple[str, ...]
    """For programs in C and Fortran."""
    suffix: str
    """Of files that are linked, as a pattern."""
    everywhere: str
    """What every such system has, with the Python that imports the package."""
    runtime_is_everywhere: bool
    """Whether that holds for the C++ runtime, too, where a program without Python loads the plugin."""
    read: Callable[[Path], Linked]


SYSTEMS = {
    "Linux": System(
        tag=r"((many|musl)linux_\d+_\d+_\w+\.?)+",
        module=r"_native\.(abi3|cpython-\d+[a-z0-9_-]*)\.so",
        plugin="libh5ztamis.so",
        libraries=(r"libh5zzfp\.a", r"libh5zzfp\.so", r"libtamis\.a", r"libtamis\.so"),
        suffix=r"\.so(\.\d+)*",
        everywhere=r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)|ld-linux-[a-z0-9-]+)\.so\.\d+|libc\.(musl-\w+\.so\.1|so)",
        runtime_is_everywhere=False,
        read=read_elf,
    ),
    "macOS": System(
        tag=r"macosx_\d+_\d+_\w+",
        module=r"_native\.(abi3|cpython-\d+-darwin)\.so",
        plugin="libh5ztamis.so",  # HDF5 loads it there by this name, too
        libraries=(r"libh5zzfp\.a", r"libh5zzfp\.dylib", r"libtamis\.a", r"libtamis\.dylib"),
        suffix=r"\.(so|dylib)",
        everywhere=r"/(usr/lib|System)/.+",
        runtime_is_everywhere=True,
        read=read_mach_o,
    ),
    "Windows": System(
        tag="win_amd64",
        module=r"_native(\.cp\d+-win_amd64)?\.pyd",
        plugin="libh5ztamis.dll",
        # Microsoft's linker and MinGW's have suffixes of their own; a DLL comes with what programs link in its place.
        libraries=(r"libh5zzfp\.(a|lib)", r"libtamis\.(a|lib)", r"libtamis\.dll", r"(libtamis\.dll\.a|tamis\.lib)"),
        suffix=r"\.(dll|pyd)",
        everywhere=r"(?i:(kernel32|ntdll|advapi32|api-ms-win-[\w-]+|ucrtbase|python3\d*|vcruntime140(_1)?)\.dll)",
        runtime_is_everywhere=False,
        read=read_pe,
    ),
}
"""By name."""


def system_of(wheel: str) -> str | None:
    """Return the system that a wheel's name says, if it is one whose wheels work on other machines."""
    tag = wheel.removesuffix(".whl").rpartition("-")[2]
    return next((name for name, system in SYSTEMS.items() if re.fullmatch(system.tag, tag)), None)


_NAMED = (
    ("the licence", ".dist-info/licenses/LICENSE"),
    ("the list of what others wrote", ".dist-info/sboms/tamis.cdx.json"),
    ("man pages", "share/man/man1/tamis.1"),
)
"""What is in folders with the version in their names, and its end."""


def problems_of(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel, a sentence each."""
    system = system_of(wheel.name)
    if system is None:
        tags = "manylinux, musllinux, macosx or win_amd64"
        yield f"expected a tag {tags}, got {wheel.name}: repair it with auditwheel or delocate"
    if wheel.stat().st_size > MAX_NBYTES:
        yield f"expected at most {MAX_NBYTES} bytes, got {wheel.stat().st_size}"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder)
        yield from problems_in(Path(folder), system or "Linux")


def problems_in(folder: Path, system: str = "Linux") -> Iterator[str]:
    """Yield what is wrong with the content of a wheel, or with an installed package."""
    expected = SYSTEMS[system]
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    required = (*REQUIRED, f"tamis/hdf5_plugin/{expected.plugin}")
    yield from (f"expected {name}, found none" for name in required if name not in names)
    for pattern in expected.libraries:
        if not any(re.fullmatch(f"tamis/lib/{pattern}", name) for name in names):
            yield f"expected a file tamis/lib/{pattern}, found none"
    if not any(re.fullmatch(f"tamis/{expected.module}", name) for name in names):
        yield "expected the module tamis/_native, found none"
    for what, end in _NAMED:
        if not any(name.endswith(end) for name in names):
            yield f"expected {what}, found none"
    yield from (f"expected no {name}" for name in names if _UNWANTED.search(name))
    libraries = [name for name in names if re.search(f"{expected.suffix}$", name)]
    yield from (f"expected no library of others, found {name}" for name in libraries if _FOREIGN.match(_stem(name)))
    for name in libraries:
        if (folder / name).stat().st_size:
            yield from _link_problems(folder / name, name, expected, {_stem(each) for each in names})


def _stem(name: str) -> str:
    return PurePosixPath(name).name


def _link_problems(path: Path, name: str, system: System, own: set[str]) -> Iterator[str]:
    library = system.read(path)
    yield from (
        f"expected {name} to link what every system has, found {other}"
        for other in library.needed
        if not re.fullmatch(system.everywhere, other) and _stem(other) not in own
    )
    for folder in library.folders:
        if not folder.startswith(("$ORIGIN", "@loader_path")):
            yield f"expected {name} to search no folder of this machine, found {folder}"
    if not library.ends and not re.fullmatch(system.module, _stem(name)):  # Python unloads no module
        yield f"expected {name} to end its static objects when it is unloaded, found no call of __cxa_finalize"
    if _stem(name) == system.plugin:
        runtimes = [other for other in library.needed if _CXX_RUNTIME.fullmatch(_stem(other))]
        if runtimes and not system.runtime_is_everywhere:
            yield f"expected {name} to bring its C++ runtime along, found {runtimes[0]}"
        if library.exports != EXPORTS:
            yield f"expected {name} to export {sorted(EXPORTS)}, found {sorted(library.exports)}"


def main(wheels: list[str]) -> int:
    """Check wheels; 1 if anything is wrong, or there is none."""
    problems = [f"{wheel}: {problem}" for wheel in wheels for problem in problems_of(Path(wheel))]
    print("\n".join(problems) or f"{len(wheels)} wheels are as they should be")
    return 1 if problems or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
