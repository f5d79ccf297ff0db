"""Build for macOS on any machine, and look at what was built: ``check_macos.py FOLDER [ARCHITECTURE ...]``.

The plugin, the libraries for C and Fortran and the Python module are compiled and linked by zig. Nothing of it is run:
that needs a Mac.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import mach_o
import nanobind
from zig import ROOT, Zig

MINIMUM = "14.0"
"""Of macOS, as in [tool.cibuildwheel.macos] of pyproject.toml."""

ARCHITECTURES = {"arm64": "aarch64", "x86_64": "x86_64"}

PLUGIN = ("H5PLget_plugin_info", "H5PLget_plugin_type", "NCZ_get_codec_info")

# zig's linker takes no list of names: it shows where the file begins, and what its own C++ runtime and nanobind show.
_OF_ZIG = re.compile(r"_+mh_dylib_header|_+dso_handle|_Z(?!.*5tamis)\w+|__cxa_\w+|__gxx_personality\w+|__cxxabiv1\w*")


def names_of_header() -> tuple[str, ...]:
    """Return the functions that tamis.h declares."""
    text = (ROOT / "native/capi/include/tamis.h").read_text()
    return tuple(sorted(re.findall(r"^extern .*?(tamis_\w+)\(", text, re.MULTILINE)))


def problems_of(path: Path, architecture: str, exports: str, install_name: str | None = None) -> Iterator[str]:
    """Yield what is wrong with a library; `exports` is an expression that its names match, and no others."""
    library = mach_o.read(path)
    if library.architecture != architecture:
        yield f"{path.name}: expected {architecture}, got {library.architecture}"
    if library.minimum != MINIMUM:
        yield f"{path.name}: expected macOS {MINIMUM} as minimum version, got {library.minimum}"
    if install_name is not None and library.install_name != install_name:
        yield f"{path.name}: expected the install name {install_name}, got {library.install_name}"
    for other in library.linked:
        if not other.startswith(("/usr/lib/", "/System/")):
            yield f"{path.name}: expected to link what every Mac has, got {other}"
    yield from (f"{path.name}: expected no rpath, got {each}" for each in library.rpaths)
    shown = [name for name in library.exports if not _OF_ZIG.fullmatch(name)]
    yield from (f"{path.name}: expected no export {name}" for name in shown if not re.fullmatch(exports, name))
    if not shown:
        yield f"{path.name}: expected exports, got none"


def check(architecture: str, folder: Path) -> list[str]:
    """Build for an architecture; return what is wrong."""
    zig = Zig(f"{ARCHITECTURES[architecture]}-macos.{MINIMUM}", folder)
    settings = {
        "CMAKE_SYSTEM_NAME": "Darwin",
        "CMAKE_SYSTEM_PROCESSOR": architecture,
        "CMAKE_INSTALL_NAME_TOOL": "/bin/true",
        "CMAKE_CXX_FLAGS_RELEASE": "-O1 -DNDEBUG",  # nothing of it is run
        "TAMIS_BUILD_PYTHON": "ON",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": sysconfig.get_path("include"),
        "nanobind_DIR": nanobind.cmake_dir(),
        "NB_SUFFIX": ".cpython-darwin.so",
        "NB_SUFFIX_S": ".abi3.so",
    }
    built = zig.build(settings, ["all"])
    (module,) = built.glob("_native*.so")
    problems = [
        *problems_of(built / "libh5ztamis.so", architecture, "|".join(PLUGIN)),
        *problems_of(built / "native/capi/libtamis.dylib", architecture, r"tamis_\w+", "@rpath/libtamis.dylib"),
        *problems_of(
            built / "native/capi/libh5zzfp.dylib",
            architecture,
            r"H5Z_zfp_\w+|H5P[sg]et_zfp_\w+",
            "@rpath/libh5zzfp.dylib",
        ),
        *problems_of(module, architecture, "PyInit__native"),
    ]
    wanted = {
        "libh5ztamis.so": (built / "libh5ztamis.so", PLUGIN),
        "libtamis.dylib": (built / "native/capi/libtamis.dylib", names_of_header()),
        "_native": (module, ("PyInit__native",)),
    }
    for name, (path, names) in wanted.items():
        missing = {*names} - {*mach_o.read(path).exports}
        problems += [f"{name}: expected the export {each}" for each in sorted(missing)]
    if unknown := [name for name in mach_o.read(module).undefined if name.startswith("H5")]:
        problems.append(f"_native: expected no call of HDF5 by name, got {unknown}")
    for path in (*(path for path, _ in wanted.values()), built / "native/capi/libh5zzfp.dylib"):
        library = mach_o.read(path)
        print(
            f"{architecture} {path.name}: {library.kind}, macOS {library.minimum}, install name "
            f"{library.install_name or 'none'}, {len(library.exports)} exports, links {' '.join(library.linked)}"
        )
    return problems


def main(words: list[str]) -> int:
    """Build and check; 1 if anything is wrong."""
    folder, *architectures = words
    problems = []
    for architecture in architectures or ARCHITECTURES:
        problems += check(architecture, Path(folder).resolve() / architecture)
    print("\n".join(problems) or "check-macos: built as it should be; not run, since that needs a Mac")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
