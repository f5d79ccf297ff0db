"""What `make check-macos` and `make check-windows` read of libraries, and what they say where a tool is absent."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from made_libraries import mac_library, windows_library

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ROOT / "packaging" / "platforms"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PLATFORMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made  # dataclasses look for it
    spec.loader.exec_module(made)
    return made


mach_o, pe = module("mach_o"), module("pe")


def test_mach_o_library_has_what_its_commands_say(tmp_path: Path) -> None:
    path = tmp_path / "libtamis.dylib"
    linked = ("/usr/lib/libSystem.B.dylib",)
    path.write_bytes(mac_library(("tamis", "taxi"), linked, install_name="@rpath/libtamis.dylib", undefined="needed"))
    assert mach_o.read(path) == mach_o.MachO(
        "arm64", "dylib", "@rpath/libtamis.dylib", linked, (), "14.2",
        ("tamis", "taxi"), ("needed",),
    )  # fmt: skip


@pytest.mark.parametrize("changed", [{"magic": 0xCAFEBABE}, {"processor": 12}, {"kind": 2}])
def test_mach_o_other_files_are_refused(tmp_path: Path, changed: dict[str, int]) -> None:
    path = tmp_path / "other"
    path.write_bytes(mac_library(("tamis",), **changed))
    with pytest.raises(ValueError, match="expected a"):
        mach_o.read(path)


def test_pe_library_has_its_exports_and_what_it_links(tmp_path: Path) -> None:
    path = tmp_path / "libtamis.dll"
    path.write_bytes(windows_library(("tamis", "taxi"), ("KERNEL32.dll",)))
    assert pe.read(path) == pe.Pe(("tamis", "taxi"), ("KERNEL32.dll",))
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(ValueError, match="expected a PE file"):
        pe.read(path)


def said_without(script: str, folder: Path, path: str) -> tuple[int, str]:
    """Run a check where neither zig nor, if the path says so, wine is."""
    code = f"import runpy, sys; sys.modules['ziglang'] = None; sys.argv = ['', {str(folder)!r}]; sys.path[:0] = [{str(PLATFORMS)!r}]; runpy.run_path({str(PLATFORMS / script)!r}, run_name='__main__')"  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("nanobind") is None, reason="nanobind is not installed: make test does")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("check_macos.py", "expected zig, found none: pip install ziglang, as make does\n"),
        (
            "check_windows.py",
            "expected wine for programs of x86-64, found none: apt-get install wine64 (Debian, Ubuntu)\n",
        ),
    ],
)
def test_absent_tool_is_named(tmp_path: Path, script: str, said: str) -> None:
    assert said_without(script, tmp_path, str(tmp_path)) == (1, said)


def test_names_that_apple_and_windows_take_are_those_of_linux() -> None:
    build = (ROOT / "CMakeLists.txt").read_text()
    given = re.search(r"tamis_export\(tamis_plugin native/hdf5/exports.map (.+)\)", build)
    assert given is not None
    linux = re.findall(r"\w+(?=;)", (ROOT / "native/hdf5/exports.map").read_text().partition("local")[0])
    assert sorted(given[1].split()) == sorted(linux)
