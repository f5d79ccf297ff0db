"""What other build systems find: pkg-config and CMake."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = tamis.config().library_path
TAMIS = Path(sys.executable).with_name("tamis")
PAGE = (ROOT / "docs" / "c-and-fortran.md").read_text()
H5Z_ZFP_VERSION = "1.1.1"
KINDS = (".c", ".f90")
Run = Callable[..., str]
pytestmark = pytest.mark.peer


@pytest.fixture(scope="session")
def cmake() -> str:
    program = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    assert program, "make test installs cmake"
    needs.need("make", "h5fc")
    return program


@pytest.fixture(scope="session")
def moved_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a folder, and move it."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([TAMIS, "config", "--install", folder / "first"], check=True, capture_output=True)
    return (folder / "first").rename(folder / "moved here")


def pkg_config(run: Run, *options: str) -> list[str]:
    needs.need("pkg-config")
    return run("pkg-config", *options, PKG_CONFIG_PATH=str(PACKAGES / "pkgconfig")).split()


def test_pkg_config_names_headers_and_libraries(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # h5cc leaves an object file where it runs
    needs.need("h5cc")
    options = pkg_config(run, "--cflags", "--libs", "h5zzfp")
    assert "-lh5zzfp" in options
    run("h5cc", EXAMPLES / "c" / "sixd.c", *options, "-o", tmp_path / "sixd")
    assert "279936" in run(tmp_path / "sixd", tmp_path / "sixd.h5")
    (codec,) = pkg_config(run, "--variable=fortran", "tamis")
    assert Path(codec).name == "tamis_zfp.f90"


def test_u37_pkg_config_has_the_version_of_h5z_zfp(run: Run) -> None:
    assert pkg_config(run, "--modversion", "h5zzfp") == [H5Z_ZFP_VERSION]
    assert pkg_config(run, "--modversion", "tamis") == [tamis.__version__]
    assert pkg_config(run, "h5zzfp >= 1.0.1") == []


@pytest.mark.parametrize(
    ("requested", "is_met"), [("1.0", True), ("1", True), ("1.999", False), ("0.1", False), ("2.0", False)]
)
def test_cmake_takes_every_version_of_the_codec_with_the_same_major(
    run: Run, cmake: str, tmp_path: Path, requested: str, is_met: bool
) -> None:
    script = tmp_path / "version.cmake"
    script.write_text(
        f"include({PACKAGES}/cmake/tamis/tamis-config-version.cmake)\n"
        'message("version ${PACKAGE_VERSION};${PACKAGE_VERSION_COMPATIBLE}")\n'
    )
    major = requested.partition(".")[0]
    printed = run(cmake, f"-DPACKAGE_FIND_VERSION={requested}", f"-DPACKAGE_FIND_VERSION_MAJOR={major}", "-P", script)
    assert printed.strip() == f"version {tamis.__version__};{'TRUE' if is_met else 'FALSE'}"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("requested", "is_met", "is_exact"),
    [
        ("1", True, False),
        ("1.0.1", True, False),
        ("1.1.0", True, False),
        ("1.1.1", True, True),
        ("1.1.2", False, False),
        ("1.2", False, False),
        ("0.9", False, False),
        ("2.0", False, False),
    ],
)
def test_u37_cmake_meets_the_versions_that_h5z_zfp_meets(
    run: Run, cmake: str, tmp_path: Path, requested: str, is_met: bool, is_exact: bool
) -> None:
    script = tmp_path / "version.cmake"
    script.write_text(
        f"include({PACKAGES}/cmake/h5z_zfp/h5z_zfp-config-version.cmake)\n"
        'message("version ${PACKAGE_VERSION};${PACKAGE_VERSION_COMPATIBLE};${PACKAGE_VERSION_EXACT}")\n'
    )
    major = requested.partition(".")[0]
    printed = run(cmake, f"-DPACKAGE_FIND_VERSION={requested}", f"-DPACKAGE_FIND_VERSION_MAJOR={major}", "-P", script)
    answer = [H5Z_ZFP_VERSION, "TRUE" if is_met else "", "TRUE" if is_exact else ""]
    assert printed.strip() == f"version {';'.join(answer)}"


@pytest.mark.check
@pytest.mark.parametrize("language", ["C", "Fortran"])
@pytest.mark.parametrize("static", ["ON", "OFF"])
@pytest.mark.parametrize("folder", ["package", "installed"])
def test_u37_lines_of_h5z_zfps_manual_build_programs(
    run: Run, cmake: str, moved_folder: Path, tmp_path: Path, language: str, static: str, folder: str
) -> None:
    prefix = moved_folder if folder == "installed" else PACKAGES.parent
    program = EXAMPLES / ("c/modes.c" if language == "C" else "fortran/modes.f90")
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.10)\n"
        f"project(programs {language})\n"
        "cmake_policy(SET CMP0028 NEW)\n"
        f"set(H5Z_ZFP_USE_STATIC_LIBS {static})\n"
        "find_package(H5Z_ZFP 1.0.1 CONFIG)\n"
        'message(STATUS "version ${H5Z_ZFP_VERSION}, plugin ${H5Z_ZFP_PLUGIN_DIR}, ${H5Z_ZFP_LIBRARY}")\n'
        'message(STATUS "include ${H5Z_ZFP_INCLUDE_DIR}")\n'
        f"add_executable(modes {program})\n"
        "target_link_libraries(modes h5z_zfp::h5z_zfp)\n"
    )
    options, variables = [f"-DCMAKE_PREFIX_PATH={prefix}"], {}
    if (static == "ON") == (folder == "installed"):  # each way with both kinds of library
        options, variables = [], {"H5Z_ZFP_DIR": str(prefix)}
        found = run(cmake, "-S", tmp_path, "-B", tmp_path / "by_option", f"-DH5Z_ZFP_DIR={prefix}/lib/cmake/h5z_zfp")
        assert f"version {H5Z_ZFP_VERSION}, plugin {prefix}/" in found
    printed = run(cmake, "-S", tmp_path, "-B", tmp_path / "built", "-G", "Unix Makefiles", *options, **variables)
    library = "libh5zzfp.a" if static == "ON" else "libh5zzfp.so"
    assert f"version {H5Z_ZFP_VERSION}, plugin {prefix}/" in printed
    assert f"{library}\n" in printed
    assert f"include {prefix}/include\n" in printed
    run(cmake, "--build", tmp_path / "built")
    assert "reversible_generic" in run(tmp_path / "built" / "modes", tmp_path / "modes.h5")
    assert ("libh5zzfp.so" in run("readelf", "-d", tmp_path / "built" / "modes")) == (static == "OFF")


@pytest.mark.check
def test_u37_both_kinds_of_library_have_targets_and_c_is_linked_as_c(
    run: Run, cmake: str, moved_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\n"
        "project(programs C Fortran)\n"
        "find_package(HDF5 COMPONENTS C)\n"  # of one language, as the project's own
        "find_package(H5Z_ZFP 1.1 CONFIG REQUIRED)\n"
        "include(CheckSymbolExists)\n"
        "set(CMAKE_REQUIRED_LIBRARIES h5z_zfp::h5z_zfp)\n"
        "check_symbol_exists(H5Pset_zfp_accuracy H5Zzfp.h HAS_PROPERTIES)\n"
        "if(NOT HAS_PROPERTIES)\n"
        '  message(FATAL_ERROR "expected H5Pset_zfp_accuracy")\n'
        "endif()\n"
        "foreach(kind shared static)\n"
        f"  add_executable(${{kind}} {EXAMPLES}/c/modes.c)\n"
        "  target_link_libraries(${kind} h5z_zfp::h5z_zfp_${kind} m)\n"
        "endforeach()\n"
    )
    run(cmake, "-S", tmp_path, "-B", tmp_path / "built", f"-DCMAKE_PREFIX_PATH={moved_folder}", "-G", "Unix Makefiles")
    run(cmake, "--build", tmp_path / "built")
    for kind in ("shared", "static"):
        assert "reversible_generic" in run(tmp_path / "built" / kind, tmp_path / "modes.h5")
        assert ("libh5zzfp.so" in run("readelf", "-d", tmp_path / "built" / kind)) == (kind == "shared")
    assert "libgfortran" not in run("readelf", "-d", tmp_path / "built" / "static")


def test_cmake_project_of_the_docs_is_that_of_the_examples() -> None:
    """Its build and its programs are run with the page, by tests/test_examples.py."""
    project = (EXAMPLES / "CMakeLists.txt").read_text()
    assert f"```cmake\n{project}```\n" in PAGE
    for name in re.findall(r"[cf]\w+/\w+\.(?:c|f90)\b", project):
        assert (EXAMPLES / name).is_file(), name


def test_parallel_program_of_the_docs_is_the_example() -> None:
    """The example is built and run by test_programs.py."""
    page = (EXAMPLES.parent / "docs" / "simulation.md").read_text()
    assert f'```c title="parallel.c"\n{(EXAMPLES / "c" / "parallel.c").read_text()}```\n' in page


def test_every_program_that_the_docs_build_is_an_example_with_its_build_line() -> None:
    built = {line.split(" $(")[0] for line in PAGE.splitlines() if re.match(r"(h5cc|h5fc|cc) ", line)}
    on_page = set(re.findall(r'^```\w+ title="([\w.]+)"', PAGE, re.MULTILINE))
    assert on_page == {"write.c", "write.f90", "generic.f90"}
    named = set(re.findall(r"[\w/]+\.(?:c|f90)\b", PAGE)) - on_page
    sources = [path for path in EXAMPLES.rglob("*") if path.suffix in KINDS]
    examples = {f"examples/{path.parent.name}/{path.name}": path for path in sources}
    assert {name for name in named if name.startswith("examples/")} == set(examples)
    assert {name.split("/")[-1] for name in named} == {path.name for path in examples.values()}
    assert len(built) >= len(examples) - 1  # all but the one for MPI
    for path in examples.values():
        assert re.search(rf" (\$\(tamis config --fortran[^)]*\) )*{path.name} \$\(tamis config", path.read_text()), path
