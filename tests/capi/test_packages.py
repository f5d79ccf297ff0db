"""What other build systems find: pkg-config and CMake."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tamis

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PACKAGES = tamis.config().library_path
Run = Callable[..., str]
pytestmark = pytest.mark.peer


def test_pkg_config_names_headers_and_libraries(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # h5cc leaves an object file where it runs
    for name in ("pkg-config", "h5cc"):
        if shutil.which(name) is None:
            pytest.skip(f"no {name} here")
    found = run("pkg-config", "--cflags", "--libs", "h5zzfp", PKG_CONFIG_PATH=str(PACKAGES / "pkgconfig")).split()
    assert "-lh5zzfp" in found
    run("h5cc", EXAMPLES / "c" / "sixd.c", *found, "-lm", "-o", tmp_path / "sixd")
    assert "279936" in run(tmp_path / "sixd", tmp_path / "sixd.h5")
    codec = run("pkg-config", "--variable=fortran", "tamis", PKG_CONFIG_PATH=str(PACKAGES / "pkgconfig"))
    assert Path(codec.strip()).name == "tamis_zfp.f90"


def test_cmake_finds_filter_codec_and_fortran(run: Run, tmp_path: Path) -> None:
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if cmake is None or shutil.which("h5fc") is None or shutil.which("make") is None:
        pytest.skip("no cmake, make or h5fc here")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(programs C Fortran)\n"
        "find_package(H5Z_ZFP REQUIRED)\n"
        "find_package(tamis REQUIRED)\n"
        f"add_executable(chunks {EXAMPLES}/c/chunks.c)\n"
        "target_link_libraries(chunks h5z_zfp::h5z_zfp tamis::tamis m)\n"
        f"add_executable(modes {EXAMPLES}/fortran/modes.f90)\n"
        "target_link_libraries(modes h5z_zfp::fortran)\n"
    )
    built = tmp_path / "built"
    run(cmake, "-S", tmp_path, "-B", built, "-G", "Unix Makefiles", f"-DCMAKE_PREFIX_PATH={PACKAGES.parent}")
    run(cmake, "--build", built)
    assert "rank 2, 70x90" in run(built / "chunks", tmp_path / "chunks.h5")
    assert "reversible_generic: mode 5" in run(built / "modes", tmp_path / "modes.h5")
