"""Check what is in wheels: ``python packaging/check_wheel.py dist/*.whl`` prints what is wrong and fails.

A wheel must work beside any libhdf5, so that it holds none and links none; whatever it links, every system has.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

REQUIRED = (
    "tamis/__init__.py",
    "tamis/py.typed",
    "tamis/_native.pyi",
    "tamis/hdf5_plugin/libh5ztamis.so",
    "tamis_command/__init__.py",
    *(f"tamis/include/{name}.h" for name in ("H5Zzfp", "H5Zzfp_lib", "H5Zzfp_plugin", "H5Zzfp_props", "tamis")),
    *(f"tamis/lib/lib{name}.{kind}" for name in ("h5zzfp", "tamis") for kind in ("a", "so")),
    *(f"tamis/lib/pkgconfig/{name}.pc" for name in ("h5zzfp", "tamis")),
    *(f"tamis/lib/cmake/{name}/{name}-config.cmake" for name in ("h5z_zfp", "tamis")),
    "tamis/fortran/H5Zzfp_props_f.F90",
    "tamis/sample/cam_ts.nc",
    "tamis/sample/LICENSE-APACHE-2.0.txt",
)
"""What users of Python, of the plugin, of C and of Fortran each need."""

EXPORTS = {"H5PLget_plugin_type", "H5PLget_plugin_info", "NCZ_get_codec_info"}
"""All that the plugin shows to the programs that load it."""

MAX_NBYTES = 16 << 20
"""A quarter of it is the sample; the kernels are in five libraries."""

_FOREIGN = re.compile(r"lib(hdf5\w*|netcdf|zfp|z|sz|aec)[-_.]")
_SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)|ld-linux-[a-z0-9-]+)\.so\.\d+")
_PORTABLE = re.compile(r"-(manylinux_\d+_\d+|macosx_\d+_\d+)_\w+(\.manylinux\w+)*\.whl")
_UNWANTED = re.compile(r"(^|/)(tests?|\.ci|\.venv|__pycache__)/")


_NAMED = (
    ("the licence", ".dist-info/licenses/LICENSE"),
    ("the list of what others wrote", ".dist-info/sboms/tamis.cdx.json"),
    ("pages of man", "share/man/man1/tamis.1"),
)
"""What is in folders with the version in their names, and its end."""


def problems_of(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel, a sentence each."""
    if not _PORTABLE.search(wheel.name):
        yield f"expected a tag manylinux or macosx, got {wheel.name}: repair it with auditwheel or delocate"
    if wheel.stat().st_size > MAX_NBYTES:
        yield f"expected at most {MAX_NBYTES} bytes, got {wheel.stat().st_size}"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder)
        yield from problems_in(Path(folder))


def problems_in(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the content of a wheel, or with an installed package."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    yield from (f"expected {name}, found none" for name in REQUIRED if name not in names)
    if not any(re.fullmatch(r"tamis/_native\.(abi3|cpython-\d+[a-z0-9_-]*)\.so", name) for name in names):
        yield "expected the module tamis/_native, found none"
    for what, end in _NAMED:
        if not any(name.endswith(end) for name in names):
            yield f"expected {what}, found none"
    yield from (f"expected no {name}" for name in names if _UNWANTED.search(name))
    yield from (f"expected no library of others, found {name}" for name in names if _FOREIGN.match(_stem(name)))
    for name in names:
        if re.search(r"\.so(\.\d+)*$", name) and (folder / name).read_bytes()[:4] == b"\x7fELF":
            yield from _link_problems(folder / name, name, {_stem(each) for each in names})


def _stem(name: str) -> str:
    return PurePosixPath(name).name


def _link_problems(library: Path, name: str, own: set[str]) -> Iterator[str]:
    dynamic = _readelf("--dynamic", library)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    yield from (
        f"expected {name} to link what every system has, found {other}"
        for other in needed
        if not _SYSTEM.fullmatch(other) and other not in own
    )
    if paths := re.findall(r"\((?:RPATH|RUNPATH)\).*\[(?!\$ORIGIN)(.+)\]", dynamic):
        yield f"expected {name} to search no folder of this machine, found {paths[0]}"
    if _stem(name) == "libh5ztamis.so":
        if "libstdc++.so.6" in needed:
            yield f"expected {name} to bring its C++ runtime along, found libstdc++.so.6"
        defined = re.findall(r"(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+(\w+)", _readelf("--dyn-syms", library))
        if set(defined) != EXPORTS:
            yield f"expected {name} to export {sorted(EXPORTS)}, found {sorted(set(defined))}"


def _readelf(option: str, library: Path) -> str:
    done = subprocess.run(["readelf", "--wide", option, library], capture_output=True, text=True, check=True)
    return done.stdout


def main(wheels: list[str]) -> int:
    """Check wheels; 1 if anything is wrong, or there is none."""
    problems = [f"{wheel}: {problem}" for wheel in wheels for problem in problems_of(Path(wheel))]
    print("\n".join(problems) or f"{len(wheels)} wheels are as they should be")
    return 1 if problems or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
