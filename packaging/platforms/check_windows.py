"""Build for Windows with zig, and run what was built under wine: ``check_windows.py FOLDER``.

- the library for C in each mode, for each type and number of axes, compared with the one of this machine;
- the plugin, loaded by the HDF5 of h5py's wheel for Windows: its stored chunks are compared with those of this machine,
  byte by byte, and its file is read here;
- the native tests, and what `native/include/tamis/system/` does there;
- the Python module, which is compiled and linked, but not run: no Python for Windows is at hand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import nanobind
import pe
from check_macos import PLUGIN, names_of_header
from zig import ROOT, Zig, run

import tamis

HERE = Path(__file__).parent
H5PY = "h5py==3.8.0"
"""Newer wheels bring an HDF5 that asks Windows for more than wine 8 has."""

_SYSTEM = re.compile(r"(kernel32|ntdll|advapi32|api-ms-win-crt-[\w-]+|ucrtbase)\.dll", re.IGNORECASE)

TESTS = {"tamis_tests": "", "tamis_filter_tests": "", "tamis_kernels_agree": "2000", "tamis_chunk_fuzz": "2000"}
"""Native tests with their number of cases: those without a fake libhdf5, since a program of Windows cannot take the
place of a library."""


class Wine:
    """Programs of Windows, with a registry and a C: of their own in a folder."""

    def __init__(self, folder: Path) -> None:
        self.program = shutil.which("wine64") or shutil.which("wine")
        if self.program is None:
            sys.exit("expected wine for programs of x86-64, found none: apt-get install wine64 (Debian, Ubuntu)")
        self.settings = {
            "WINEPREFIX": str(folder),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
        }

    def run(self, *words: str | Path, **more: str) -> tuple[str, str]:
        """Run a program; returns what it printed, and what it said. Exits if it fails."""
        assert self.program is not None
        environment = {**os.environ, **self.settings, **more}
        done = subprocess.run(
            [self.program, *(windows(word) if isinstance(word, Path) else word for word in words)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode:
            sys.exit(f"wine {words[0]}\n{done.stdout}{done.stderr}\nexit code {done.returncode}")
        return done.stdout, done.stderr


def windows(path: Path) -> str:
    """Return a path as programs under wine name it."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def library_of_h5py(folder: Path) -> Path:
    """Return the folder of the libraries in h5py's wheel for Windows, which pip brings."""
    libraries = folder / "h5py"
    if not (libraries / "hdf5.dll").exists():
        words = ["--platform", "win_amd64", "--python-version", "3.11", "--only-binary=:all:", "--no-deps"]
        run([sys.executable, "-m", "pip", "download", "--quiet", *words, "--dest", folder, H5PY])
        (wheel,) = folder.glob("h5py-*-win_amd64.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return libraries


def library_here() -> Path:
    """Return the libhdf5 of this machine's h5py."""
    h5py.version.hdf5_version  # noqa: B018  # loads it
    loaded = Path("/proc/self/maps").read_text()
    found = re.search(r"\S*/libhdf5(?!_hl)[^/\s]*\.so[\d.]*$", loaded, re.MULTILINE)
    if found is None:
        sys.exit("expected a libhdf5 in this process, found none: install h5py from a wheel")
    return Path(found[0])


def python_for_windows(folder: Path) -> dict[str, str]:
    """Make headers and an import library of this Python for Windows; returns CMake's settings."""
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    headers = folder / "include"
    shutil.rmtree(headers, ignore_errors=True)
    shutil.copytree(sysconfig.get_path("include"), headers, ignore=shutil.ignore_patterns("pyconfig*.h"))
    shutil.copy2(HERE / "stand_in" / "pyconfig.h", headers)  # with its time: what is compiled stays so
    text = "\n".join(path.read_text(errors="replace") for path in headers.rglob("*.h"))
    declared = re.findall(r"PyAPI_(FUNC|DATA)\([^()]*(?:\([^()]*\))?[^()]*\)\s*(\w+)", text)
    lines = sorted({f" {name}{' DATA' if kind == 'DATA' else ''}" for kind, name in declared})
    definition, library = folder / f"python{version}.def", folder / f"python{version}.lib"
    definition.write_text("\n".join([f"LIBRARY python{version}.dll", "EXPORTS", *lines, ""]))
    zig = Path(run([sys.executable, "-c", "import ziglang; print(ziglang.__path__[0])"]).strip()) / "zig"
    run([zig, "dlltool", "-m", "i386:x86-64", "-d", definition, "-l", library])
    return {
        "TAMIS_BUILD_PYTHON": "ON",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": str(headers),
        "Python_LIBRARY": str(library),
        "nanobind_DIR": nanobind.cmake_dir(),
        "NB_SUFFIX": f".cp{version}-win_amd64.pyd",
        "NB_SUFFIX_S": ".pyd",
    }


def link_problems(path: Path, names: tuple[str, ...], others: str = "(?!)") -> Iterator[str]:
    """Yield what is wrong with the names that a library shows, and with what it needs."""
    library = pe.read(path)
    # nanobind shows two of its own.
    shown = [name for name in library.exports if "nanobind" not in name]
    if {*shown} != {*names}:
        yield f"{path.name}: expected the exports {', '.join(names)}, got {', '.join(shown)}"
    for each in library.linked:
        if not _SYSTEM.fullmatch(each) and not re.fullmatch(others, each):
            yield f"{path.name}: expected to link what every Windows has, got {each}"
    print(f"{path.name}: {len(library.exports)} exports, links {', '.join(library.linked)}")


def compile_here(program: Path, source: Path, *words: str) -> None:
    """Make a program for this machine by its own compiler, which fits the C library that tamis links here."""
    run([os.environ.get("CC", "cc"), "-O2", "-o", program, source, *words])


def c_problems(zig: Zig, here: Path, wine: Wine, built: Path) -> Iterator[str]:
    """Yield where the C library differs from the one of this machine."""
    package = Path(tamis.__file__).parent
    source = HERE / "round_trip.c"
    program = zig.folder / "round_trip.exe"
    zig.compile("-O2", "-o", program, source, f"-I{package / 'include'}", built / "native/capi/libtamis.dll.a")
    shutil.copy(built / "native/capi/libtamis.dll", zig.folder)
    there, _ = wine.run(program)
    other = here / "round_trip"
    libraries = package / "lib"
    compile_here(other, source, f"-I{package / 'include'}", f"-L{libraries}", "-ltamis", f"-Wl,-rpath,{libraries}")
    expected = run([other])
    print(f"round_trip.c: {len(there.splitlines())} streams under wine")
    for line, wanted in zip(there.splitlines(), expected.splitlines(), strict=True):
        if line != wanted:
            yield f"round_trip.c: expected {wanted}, got {line}"


def plugin_problems(zig: Zig, here: Path, wine: Wine, built: Path) -> Iterator[str]:
    """Yield where chunks that the plugin writes differ from those of this machine."""
    libraries = library_of_h5py(zig.folder)
    plugins = zig.folder / "plugin"
    plugins.mkdir(exist_ok=True)
    shutil.copy(built / "libh5ztamis.dll", plugins)
    source = HERE / "plugin_file.c"
    zig.compile("-O2", "-o", zig.folder / "plugin_file.exe", source)
    compile_here(here / "plugin_file", source, "-ldl", "-lm")
    made = [zig.folder / name for name in ("there.h5", "there.chunks", "here.h5", "here.chunks")]
    for path in made:
        path.unlink(missing_ok=True)
    said = {}
    said["there"] = wine.run(
        zig.folder / "plugin_file.exe", libraries / "hdf5.dll", *made[:2], HDF5_PLUGIN_PATH=windows(plugins)
    )
    done = subprocess.run(
        [here / "plugin_file", library_here(), *made[2:]],
        env={**os.environ, "HDF5_PLUGIN_PATH": str(tamis.plugin_path())},
        capture_output=True,
        text=True,
        check=True,
    )
    said["here"] = (done.stdout, done.stderr)
    for where, (_, errors) in said.items():
        if "NaN" not in errors:
            yield f"plugin_file.c: expected a message about NaN {where}, got {errors}"
    if said["there"][0] != said["here"][0]:
        yield f"plugin_file.c: expected\n{said['here'][0]}got\n{said['there'][0]}"
    there, expected = (path.read_bytes() for path in (made[1], made[3]))
    if there != expected:
        yield f"plugin_file.c: expected the {len(expected)} bytes of chunks of this machine, got {len(there)} others"
    datasets = said["there"][0].count(" bytes\n")
    versions = " and ".join(errors.partition("\n")[0].strip() for _, errors in said.values())
    print(f"plugin_file.c: {datasets} datasets, {len(there)} bytes of chunks, written by {versions}")
    yield from read_problems(made[0], made[2])


def read_problems(there: Path, here: Path) -> Iterator[str]:
    """Yield where a file of Windows, read on this machine, has other values than one of this machine."""
    with h5py.File(there) as file, h5py.File(here) as expected:
        for name in expected:
            if name != "nan" and file[name][...].tobytes() != expected[name][...].tobytes():
                yield f"{there.name}: expected the values of {here.name} in {name}, got others"


def main(words: list[str]) -> int:
    """Build, run and compare; 1 if anything is wrong."""
    folder = Path(words[0]).resolve()
    wine = Wine(folder / "wine")
    zig, here = Zig("x86_64-windows-gnu", folder), folder / "here"
    here.mkdir(exist_ok=True)
    settings = {"CMAKE_SYSTEM_NAME": "Windows", "CMAKE_SYSTEM_PROCESSOR": "AMD64", "TAMIS_BUILD_TESTS": "ON"}
    settings["CMAKE_CXX_FLAGS_RELEASE"] = "-O2 -DNDEBUG"  # -O3 takes longer to compile
    libraries = ("tamis_plugin", "tamis_shared", "tamis_static", "h5zzfp_static")
    built = zig.build({**settings, **python_for_windows(folder)}, [*libraries, *TESTS, "_native"])
    (module,) = built.glob("_native*.pyd")
    problems = [
        *link_problems(built / "libh5ztamis.dll", PLUGIN),
        *link_problems(built / "native/capi/libtamis.dll", names_of_header()),
        *link_problems(module, ("PyInit__native",), r"python3\d+\.dll"),
        *c_problems(zig, here, wine, built),
        *plugin_problems(zig, here, wine, built),
    ]
    system = folder / "system.exe"
    run([folder / "c++", "-std=c++20", f"-I{ROOT / 'native/include'}", "-o", system, HERE / "system.cpp"])
    print("system.cpp:", wine.run(system, library_of_h5py(folder) / "hdf5_hl.dll")[0].strip())
    for test, cases in TESTS.items():
        printed, _ = wine.run(built / f"{test}.exe", *filter(None, [cases]))
        print(f"{test}: {printed.strip().splitlines()[-1] if printed.strip() else 'passed'}")
    print("\n".join(problems) or "check-windows: chunks as on this machine; the Python module is linked, not run")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
